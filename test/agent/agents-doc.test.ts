import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadAgents } from '../../src/agent/agent-catalog.js';
import { systemClock } from '../../src/clock.js';
import { type Agent, NothingDone } from '../../src/index.js';
import { silentLog } from '../../src/observe/log.js';
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

let greeter: Agent;
let reception: Agent;
let fromReadme: Agent;
beforeAll(async () => {
  // Packages are found as in a project of the author's own.
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const modules = ['docs/agents.md', 'README.md'].flatMap((page) => modulesOf(readProjectFile(page).text));
  const files = modules.map((code, at) => {
    const file = join(folder, `module-${at}.ts`);
    writeFileSync(file, code);
    return file;
  });
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
