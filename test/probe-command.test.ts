/** The probe as its own process, against the rehearsal; and what it says where something is wrong. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import concierge from '../agents/concierge.js';
import monitor from '../agents/monitor.js';
import support from '../agents/support.js';
import { systemClock } from '../src/clock.js';
import { silentLog } from '../src/observe/log.js';
import type { ProbeMode } from '../src/probe/probe-conversation.js';
import { type ProbeResult, probeAgent } from '../src/probe/probe-run.js';
import { modesOf, PROBE_TURNS } from '../src/probe/probe-turns.js';

// The rehearsal speaks in real time.
vi.setConfig({ testTimeout: 180_000 });
const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

function run(...args: string[]): Promise<Ran> {
  const child = spawn(process.execPath, ['dist/probe-command.js', ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', MODEL: 'rehearsal' },
  });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output, errors })));
}

describe('npm run probe', () => {
  it('asks every agent that ships, in every mode, and all of it passes', async () => {
    const { code, output, errors } = await run('--json');
    const results = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ProbeResult);
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    expect(results.map(({ agent, turn, mode }) => [agent, turn, mode])).toEqual(
      PROBE_TURNS.flatMap((turn) => modesOf(turn).map((mode) => [turn.agent, turn.name, mode])),
    );
    expect([code, errors]).toEqual([0, '']);
  });

  it.each([concierge, support, monitor])(
    'asks $name for each of its tools, in every mode that can answer',
    ({ name: agent, tools = [] }) => {
      const asked = (mode: ProbeMode) =>
        PROBE_TURNS.filter((turn) => turn.agent === agent && modesOf(turn).includes(mode)).flatMap(
          ({ says }) => says.flat().flatMap(({ calls }) => calls),
        );
      const names = tools.map(({ name }) => name);
      expect(asked('live')).toEqual(expect.arrayContaining(names));
      const answering = tools.filter(({ kind }) => kind !== 'streaming').map(({ name }) => name);
      for (const mode of ['run', 'sse'] as const)
        expect(asked(mode)).toEqual(expect.arrayContaining(answering));
    },
  );

  it('tries one tool of any agent, in every mode, and tells what it answers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-probe-test-'));
    const module = join(folder, 'reception.mjs');
    writeFileSync(
      module,
      [
        "import { defineAgent, defineTool } from 'earshot';",
        "const execute = ({ room }) => room === '101' ? { guest: 'Ms Gray' } : { error: 'There is no such room.' };",
        "const findGuest = defineTool({ name: 'find_guest', description: 'Finds.', parameters: { type: 'object', properties: {} }, execute });",
        "export default defineAgent({ name: 'reception', instruction: 'Serve.', tools: [findGuest] });",
      ].join('\n'),
    );
    const [found, missing, text, unknown] = await Promise.all([
      run('--agent', module, '--call', 'find_guest {"room":"101"}', '--json'),
      run('--agent', module, '--call', 'find_guest {}', '--json'),
      run('--agent', module, '--call', 'find_guest {"room":"101"}'),
      run('--agent', module, '--call', 'find_gust {}'),
    ]);
    rmSync(folder, { recursive: true });
    const results = ({ output }: Ran) =>
      output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as ProbeResult);
    expect([found.code, found.errors]).toEqual([0, '']);
    expect(results(found).map(({ mode }) => mode)).toEqual(['run', 'sse', 'live']);
    for (const { told } of results(found)) {
      expect(told?.responses).toEqual([{ name: 'find_guest', response: { guest: 'Ms Gray' } }]);
      expect(told?.text).toMatch(/Ms Gray\.$/);
    }
    for (const { told } of results(missing))
      expect(told?.responses).toEqual([
        { name: 'find_guest', response: { error: 'There is no such room.' } },
      ]);
    expect(text.output).toContain('find_guest answers {"guest":"Ms Gray"}');
    expect(unknown).toMatchObject({ code: 78, errors: expect.stringContaining('find_guest') });
  });

  it.each([
    [['--call', 'find_guest {}'], '--agent'],
    [['--agent', 'nobody'], 'concierge, support, monitor'],
    [['--agents'], '--agents'],
  ])('refuses %j with exit 78, naming what is wrong', async (args, named) => {
    const { code, output, errors } = await run(...args);
    expect([code, output]).toEqual([78, '']);
    expect(errors).toContain(named);
  });

  it('tells how it is used', async () => {
    expect(await run('--help')).toMatchObject({ code: 0, output: expect.stringContaining('npm run probe') });
  });
});

describe('a turn that goes wrong', () => {
  it('is told with what is wrong, and the others are asked all the same', async () => {
    const weather = { text: 'What is the weather in London?', calls: ['get_weather'] };
    const turns = [
      { agent: 'concierge', name: 'as it should be', says: [[weather]] },
      { agent: 'concierge', name: 'not called', says: [[{ ...weather, calls: ['get_time'] }]] },
      { agent: 'concierge', name: 'called, too', says: [[{ ...weather, calls: [] }]] },
      { agent: 'concierge', name: 'said wrongly', says: [[weather]], fault: () => 'it is about London' },
      { agent: 'concierge', name: 'refused', says: [[{ text: ' ', calls: [] }]] },
    ];
    const options = {
      agent: 'concierge',
      turns,
      model: { MODEL: 'rehearsal' },
      clock: systemClock,
      log: silentLog,
    };
    const results = (await probeAgent(options)).filter(({ mode }) => mode === 'run');
    expect(results.map(({ passed }) => passed)).toEqual([true, false, false, false, false]);
    expect(results.map(({ fault }) => fault)).toEqual([
      '',
      'get_time was not called and answered',
      'get_weather was called, too',
      'it is about London',
      expect.stringContaining('POST /run: HTTP 400'),
    ]);
    expect(results[0]?.calls).toEqual([{ name: 'get_weather', answer: 'result' }]);
  });
});
