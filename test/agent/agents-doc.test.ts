import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadAgents } from '../../src/agent/agent-catalog.js';
import { systemClock } from '../../src/clock.js';
import { type Agent, NothingDone } from '../../src/index.js';
import { silentLog } from '../../src/observe/log.js';
import { type Line, PROBE_MODES, type ProbeMode } from '../../src/probe/probe-conversation.js';
import { probeAgent } from '../../src/probe/probe-run.js';
import type { ProbeTurn } from '../../src/probe/probe-turns.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { argumentsOf, call, context, stream, toolOf } from '../agents/tool-rig.js';
import { readProjectFile } from '../tidy/project-files.js';

const folder = mkdtempSync(join(tmpdir(), 'earshot-agents-doc-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The page's modules: a block that begins with an import begins one, the blocks behind it go on with it. */
function modulesOf(page: string): string[] {
  const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code);
  const modules: string[] = [];
  for (const block of blocks) {
    if (block.startsWith('import ')) modules.push(block);
    else modules.push(`${modules.pop() ?? ''}\n${block}`);
  }
  return modules;
}

/** What the page's modules are called here, and the README's. */
const FILES = ['greeter', 'reception', 'readme'];

/** The page's one block of that kind. */
function blockOf(language: string): string {
  const blocks = [...readProjectFile('docs/agents.md').text.matchAll(/```(\w*)\n([\s\S]*?)```/g)];
  const found = blocks.filter(([, kind]) => kind === language);
  expect(found).toHaveLength(1);
  return found[0]?.[2] ?? '';
}

let greeter: Agent;
let reception: Agent;
let fromReadme: Agent;
beforeAll(async () => {
  // Packages are found as in a project of the author's own.
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const modules = ['docs/agents.md', 'README.md'].flatMap((page) => modulesOf(readProjectFile(page).text));
  const files = modules.map((code, at) => {
    const file = join(folder, `${FILES[at] ?? 'none'}.ts`);
    writeFileSync(file, code);
    return file;
  });
  writeFileSync(join(folder, 'reception.rehearsal.json'), blockOf('json'));
  const compilerOptions = {
    noEmit: true,
    rootDir: '/',
    typeRoots: [join(PACKAGE_ROOT, 'node_modules/@types')],
  };
  const project = { extends: join(PACKAGE_ROOT, 'tsconfig.json'), compilerOptions, files, include: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project));
  const load = async (selected: string): Promise<Agent> =>
    (await loadAgents({ selected, folder: join(folder, 'none'), clock: systemClock, log: silentLog }))
      .default;
  [greeter, reception, fromReadme] = (await Promise.all(files.map(load))) as [Agent, Agent, Agent];
});

describe('the agents of docs/agents.md and README.md', () => {
  it('compile as strictly as the project', () => {
    const tsc = join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
    expect([stdout, status]).toEqual(['', 0]);
  }, 60_000);

  it('load', () => {
    expect([greeter, reception, fromReadme].map(({ name }) => name)).toEqual([
      'greeter',
      'reception',
      'reception',
    ]);
    expect(greeter.greeting).toMatch(/^Good day/);
  });

  it('find a guest, and say so where there is none', async () => {
    expect(await call(reception, 'find_guest', { room: '101' })).toMatchObject({ guest: 'Ms Gray' });
    expect(await call(fromReadme, 'find_guest', { room: '101' })).toHaveProperty('message');
    expect(await call(reception, 'find_guest', { room: '7' })).toEqual({ error: 'There is no room 7.' });
    expect(() => argumentsOf(toolOf(reception, 'find_guest'), {})).toThrow('room');
  });

  it('guard a refund, and hold one of a large stay for a person', async () => {
    const [policy] = reception.plugins ?? [];
    const refund = toolOf(reception, 'refund_night');
    const asked = (room: string, callerVerified = true) =>
      policy?.beforeTool?.({ tool: refund.name, args: { room }, ctx: context({ callerVerified }) });
    expect(asked('101')).toBeUndefined();
    expect(() => asked('101', false)).toThrow('not attested');
    expect(() => asked('7')).toThrow('no such room');
    const args = (room: string) => argumentsOf(refund, { room, night: '2030-01-15' });
    expect(['101', '102'].map((room) => refund.approval(args(room), context()))).toEqual([false, true]);
    expect(refund.sideEffect?.key(args('101'), context())).toBe('shop/101/2030-01-15');
    expect(refund.sideEffect?.amount?.(args('101'), context())).toMatchObject({ limitMinor: 24_000 });
    expect(() => argumentsOf(refund, { room: '101', night: 'Tuesday' })).toThrow('night');
    expect(new NothingDone('no connection').name).toBe('NothingDone');
  });

  it('report by themselves until they are stopped', async () => {
    const controller = new AbortController();
    const taxi = stream(reception, 'watch_taxi', {}, context({ signal: controller.signal }));
    expect((await taxi.next()).value).toBe('The taxi is 6 minutes away.');
    const next = taxi.next();
    controller.abort();
    await expect(next).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });

  it('keep state and memory, with a secret', async () => {
    vi.stubEnv('RECEPTION_ALARM_TOKEN', 'secret');
    const kept: unknown[] = [];
    const ctx = context({
      getSecret: async (name) => (await reception.runConfig?.getSecret?.(name, context())) ?? null,
      memory: { remember: async (...facts) => kept.push(facts), relate: async () => true },
    });
    const args = { time: '7:00', wish: 'softly' };
    expect(await call(reception, 'set_wake_up', args, ctx)).toMatchObject({ status: 'set' });
    expect(ctx.state).toEqual({ 'user:wake_up': '7:00' });
    expect(kept).toEqual([['caller', ['likes to be woken: softly']]]);
    expect(await call(reception, 'set_wake_up', args)).toHaveProperty('error');
  });

  it('do heavy work in a worker', async () => {
    expect(toolOf(reception, 'plan_tables').worker).toBe(true);
    expect(await call(reception, 'plan_tables', { guests: 6 })).toMatchObject({ ways: 15 });
  });

  it('are rehearsed by the page’s dialogue and by lines that are written out, and tell what a tool reports once', async () => {
    const page = readProjectFile('docs/agents.md').text;
    const posted = JSON.parse(/-d '(\{.*\})'/.exec(page)?.[1] ?? '') as {
      newMessage: { parts: [{ text: string }] };
    };
    const written = posted.newMessage.parts[0].text;
    expect(page).toContain(`--agent ./reception.ts --call '${written}'`);
    const agent = join(folder, 'reception.ts');
    const turn = (name: string, line: Line, modes: readonly ProbeMode[], says: RegExp): ProbeTurn => ({
      agent,
      name,
      says: [[line]],
      modes,
      fault: ([answer]) => (says.test(answer?.text ?? '') ? undefined : `it said ${answer?.text}`),
    });
    const found = /Ms Gray stays in room 101\.$/;
    const watched = /I watch the taxi\. The taxi is 6 minutes away\.$/;
    const results = await probeAgent({
      agent,
      turns: [
        turn('written out', { text: written, calls: ['find_guest'] }, PROBE_MODES, found),
        turn('reported', { text: 'My taxi?', calls: ['watch_taxi'], reports: 1 }, ['live'], watched),
      ],
      model: { MODEL: 'rehearsal' },
      clock: systemClock,
      log: silentLog,
    });
    expect(results.map(({ turn: name, mode, fault }) => [name, mode, fault])).toEqual([
      ['written out', 'run', ''],
      ['written out', 'sse', ''],
      ['written out', 'live', ''],
      ['reported', 'live', ''],
    ]);
  }, 90_000);

  it('are told what they may not do', () => {
    const { instruction } = reception;
    const told = (callerVerified: boolean) =>
      typeof instruction === 'function' ? instruction(context({ callerVerified })) : instruction;
    expect([told(false).includes('Refund nothing'), told(true).includes('Refund nothing')]).toEqual([
      true,
      false,
    ]);
  });
});
