import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { defineAgent, type AgentContext } from '../../src/agent/agent.js';
import { loadAgents } from '../../src/agent/agent-catalog.js';
import { loadAgent } from '../../src/agent/agent-module.js';
import { instructionText } from '../../src/agent/instruction.js';
import { systemClock } from '../../src/clock.js';
import { ConfigError, errorText } from '../../src/errors.js';
import { faultFields } from '../../src/foreign.js';
import { AGENT_LOAD_MAX_MS, AGENT_LOAD_SLOW_MS } from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { hostile } from '../support/hostile.js';
import { RecordingLog } from '../telephony/recording-log.js';

/** Nowhere near the project and its packages. */
const FOLDER = mkdtempSync(join(tmpdir(), 'earshot-module-'));
afterAll(() => rmSync(FOLDER, { recursive: true }));

function write(name: string, lines: readonly string[]): string {
  const file = join(FOLDER, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

const WITH_ZOD = [
  "import { defineAgent, defineTool } from 'earshot';",
  "import { z } from 'zod';",
  'const parameters = z.object({ room: z.string() });',
  "const tool = defineTool({ name: 'look', description: 'Looks.', parameters, execute: () => 1 });",
  "export default defineAgent({ name: z.made ?? 'a', instruction: 'x', tools: [tool] });",
];

describe('an agent module', () => {
  it.each(['ts', 'mjs'])('may lie anywhere and import zod (.%s)', async (ending) => {
    const agent = await loadAgent(write(`far/zod.${ending}`, WITH_ZOD), systemClock);
    expect(agent.tools?.[0]?.readArguments({ room: 5 })).toEqual({ error: expect.stringContaining('room') });
  });

  it('has its own zod where it has one', async () => {
    const file = write('near/agent.mjs', [
      "import { defineAgent } from 'earshot';",
      "import { z } from 'zod';",
      "export default defineAgent({ name: z, instruction: 'x' });",
    ]);
    write('near/node_modules/zod/package.json', [
      '{ "name": "zod", "type": "module", "exports": { "import": "./index.js" } }',
    ]);
    write('near/node_modules/zod/index.js', ["export const z = 'its-own';"]);
    expect((await loadAgent(file, systemClock)).name).toBe('its-own');
  });

  const imports = "import { defineAgent, defineTool } from 'earshot';";
  it.each([
    ['that cannot be read', ['const a = 1;', 'export default {;'], /Unexpected token, at .*FILE:2:\d+$/],
    ['that throws', ['', "throw new Error('no\\nlines');"], /: no, at .*FILE:2:\d+$/],
    ['that throws what is no error', ["throw 'just text';"], /: just text$/],
    [
      'that imports what is not there',
      ['', '', "import './nowhere.js';"],
      /Cannot find module '.\/nowhere.js', at .*FILE:3:\d+$/,
    ],
    [
      'whose tool breaks a rule',
      [imports, '', "export const tool = defineTool({ name: 'x' });"],
      /tool x: description .*, at .*FILE:3:\d+$/,
    ],
  ])('%s is named with the line', async (_what, lines, why) => {
    for (const ending of ['mjs', 'ts']) {
      const file = write(`broken.${ending}`, lines);
      const error: unknown = await loadAgent(file, systemClock).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConfigError);
      expect(errorText(error).replaceAll(`broken.${ending}`, 'FILE')).toMatch(why);
      expect(errorText(error)).toMatch(/^agent module .*$/);
    }
  });

  it.each([
    ['cannot be read', ['const a = 1;', 'const b: = 2;'], 'inner.ts:2:'],
    ['throws', ['', '', "throw new Error('x');"], 'inner.ts:3:'],
  ])('that imports one that %s is told which', async (_what, lines, place) => {
    write('inner.ts', lines);
    const outer = write('outer.ts', ["import './inner.ts';", 'export default 1;']);
    await expect(loadAgent(outer, systemClock)).rejects.toThrow(`, at ${join(FOLDER, place)}`);
  });

  it('that throws a Proxy is an error all the same', async () => {
    const file = write('hostile.mjs', [
      'throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } });',
    ]);
    await expect(loadAgent(file, systemClock)).rejects.toThrow('what was thrown has no text');
  });

  it('that never ends loading is named in the log first, and then ends the start', async () => {
    const file = write('endless.mjs', ['await new Promise(() => {});', 'export default 1;']);
    const clock = new VirtualClock();
    const log = new RecordingLog();
    const loading = loadAgents({ selected: file, folder: join(FOLDER, 'none'), clock, log });
    clock.advance(AGENT_LOAD_SLOW_MS);
    expect(log.lines).toMatchObject([{ level: 'warn', fields: { module: file } }]);
    clock.advance(AGENT_LOAD_MAX_MS);
    await expect(loading).rejects.toBeInstanceOf(ConfigError);
    await expect(loading).rejects.toThrow(
      /endless\.mjs: it did not finish loading within 20 s: .* has not ended$/,
    );
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('an instruction', () => {
  const ctx = {} as AgentContext;
  const thrown = (instruction: () => unknown): unknown => {
    const agent = defineAgent({ name: 'desk', instruction: instruction as () => string });
    try {
      return instructionText(agent, ctx);
    } catch (error) {
      return error;
    }
  };

  it('is what the author’s function returns', () => {
    expect(thrown(() => 'Serve.')).toBe('Serve.');
  });

  it.each([
    ['is async', async () => Promise.resolve('x'), /cannot be async/],
    ['is async and rejects', () => Promise.reject(new Error('nobody hears it')), /cannot be async/],
    ['returns nothing', () => undefined, /must return a string/],
    ['returns a Proxy', () => hostile(), /must return a string/],
    [
      'throws',
      () => {
        throw new Error('PRIVATE');
      },
      /^agent desk: its instruction function threw$/,
    ],
    [
      'throws a Proxy',
      () => {
        throw hostile();
      },
      /^agent desk: its instruction function threw$/,
    ],
  ])('that %s is an error that says so, without the author’s words', (_what, instruction, why) => {
    const error = thrown(instruction);
    expect(error).toBeInstanceOf(ConfigError);
    expect(errorText(error)).toMatch(why);
    const log = new RecordingLog();
    log.error(faultFields(error), 'x');
    expect(log.publicText).toContain('agent desk');
    expect(log.publicText).not.toContain('PRIVATE');
  });

  it('that throws is logged with its place', () => {
    const error = thrown(() => {
      throw new Error('PRIVATE');
    });
    expect(faultFields(error)).toMatchObject({
      at: expect.stringMatching(/agent-module\.test\.ts:\d+:\d+$/),
      pii: { cause: 'PRIVATE' },
    });
  });
});
