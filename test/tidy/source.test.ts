import { describe, expect, test } from 'vitest';
import { projectPaths, projectTextFiles, type ProjectFile } from './project-files.js';
import {
  consoleBreaches,
  environmentBreaches,
  exportBreaches,
  leftoverBreaches,
  nameBreaches,
  timeAndChanceBreaches,
} from './source-rules.js';

const files = projectTextFiles();

/** A file in a media folder, where every rule holds. */
function sample(text: string, path = 'src/audio/a.ts'): ProjectFile[] {
  return [{ path, text }];
}

describe('time and chance', () => {
  test('come only from clock.ts and ids.ts', () => {
    expect(timeAndChanceBreaches(files)).toEqual([]);
  });

  test.each([
    'const a = Date.now();',
    'const a = new Date();',
    'const a = Date();',
    'const { now } = Date;',
    'const a = performance.now();',
    `const a = performance['now']();`,
    'const a = process.hrtime.bigint();',
    'setTimeout(fire, 20);',
    'setInterval(fire, 20);',
    'setImmediate(fire);',
    'globalThis.setTimeout(fire, 20);',
    'const later = { setTimeout };',
    `import { setTimeout as sleep } from 'node:timers/promises';`,
    `import timers from 'node:timers';`,
    'const a = Math.random();',
    `import { randomUUID } from 'node:crypto';`,
    'const a = crypto.randomUUID();',
    'const { randomUUID: id } = crypto;',
  ])('the rule finds %s', (text) => {
    expect(timeAndChanceBreaches(sample(text))).not.toEqual([]);
  });

  test('the rule tells clocks and chance apart in the two files that may have one of them', () => {
    expect(timeAndChanceBreaches(sample('Math.random();', 'src/clock.ts'))).toHaveLength(1);
    expect(timeAndChanceBreaches(sample('Date.now();', 'src/ids.ts'))).toHaveLength(1);
  });

  test('the rule lets an agent read the date and wait by a promise, and nothing else', () => {
    const wait = `import { setTimeout as wait } from 'node:timers/promises';\nconst now = new Date();`;
    expect(timeAndChanceBreaches(sample(wait, 'agents/a.ts'))).toEqual([]);
    expect(timeAndChanceBreaches(sample(`import timers from 'node:timers';`, 'agents/a.ts'))).toHaveLength(1);
    expect(timeAndChanceBreaches(sample('Math.random();', 'agents/a.ts'))).toHaveLength(1);
  });

  test.each([
    '// Date.now() would tie this to the wall',
    `const a = 'setTimeout';`,
    'const a = new Date(atMs);',
    'socket.setTimeout(5_000);',
    'const a = { setTimeout: 1 };',
    'let a: ReturnType<typeof setTimeout>;',
    'const a = clock.nowMs();',
  ])('the rule lets pass %s', (text) => {
    expect(timeAndChanceBreaches(sample(text))).toEqual([]);
  });
});

describe('the environment', () => {
  test('is read only by config.ts and by entry files that say so', () => {
    expect(environmentBreaches(files)).toEqual([]);
  });

  test.each([
    'const a = process.env;',
    'const a = process.env.PORT;',
    `const a = process['env'];`,
    'const { env } = process;',
    `import { env } from 'node:process';`,
    `import { env as variables } from 'process';`,
  ])('the rule finds %s', (text) => {
    expect(environmentBreaches(sample(text))).toHaveLength(1);
  });

  test('the rule asks an entry file to name the environment in its header', () => {
    const read = 'const a = process.env.PORT;\n// environment\n';
    const said = `/**\n * Plays a call; takes PORT from the environment.\n */\n${read}`;
    expect(environmentBreaches(sample(read, 'src/replay/a.ts'))).toHaveLength(1);
    expect(environmentBreaches(sample(said, 'src/replay/a.ts'))).toEqual([]);
    expect(environmentBreaches(sample(read, 'src/main.ts'))).toHaveLength(1);
    expect(environmentBreaches(sample(said))).toHaveLength(1);
  });
});

describe('exports', () => {
  test('have names, and stand where they are defined', () => {
    expect(exportBreaches(files)).toEqual([]);
  });

  test.each([
    'export default function a() {}',
    'const a = 1; export { a as default };',
    `export * from './b.js';`,
    `export { b } from './b.js';`,
    `export type { B } from './b.js';`,
  ])('the rule finds %s', (text) => {
    expect(exportBreaches(sample(text))).toHaveLength(1);
  });

  test('the rule lets an agent module have its default export and the face its re-exports', () => {
    expect(exportBreaches(sample('export default 1;', 'agents/a.ts'))).toEqual([]);
    expect(exportBreaches(sample(`export { a } from './agent/a.js';`, 'src/index.ts'))).toEqual([]);
  });
});

describe('leftovers', () => {
  test('are nowhere in the project', () => {
    expect([...leftoverBreaches(files), ...consoleBreaches(files)]).toEqual([]);
  });

  // Each sample is put together here, so that this file does not hold it.
  test.each([
    ['a note to finish', ['// TO', 'DO: later']],
    ['a note to mend', ['// FIX', 'ME']],
    ['a focused test', ['test.onl', `y('a', run)`]],
    ['a focused table', ['describe.onl', 'y.each([])']],
    ['the path of a work tree', ['see /wor', 'k/main/a.ts']],
    ['the path of a temporary tree', ['/tmp/w', 't/ci']],
    ['the path of a home', ['HOME=/roo', 't/.npm']],
    ['the host of a registry', ['https://registry.npmj', 's.org/ws']],
  ])('the rule finds %s', (_, parts) => {
    expect(leftoverBreaches(sample(parts.join(''), 'docs/a.md'))).toHaveLength(1);
  });

  test.each(['todo list', 'https://example.com/work/a', 'src/audio/root/a.ts', 'the only test', 'commonly.'])(
    'the rule lets pass %s',
    (text) => {
      expect(leftoverBreaches(sample(text))).toEqual([]);
    },
  );

  test('the rule finds the console in src, and leaves it to scripts', () => {
    const call = ['console', 'log(1)'].join('.');
    expect(consoleBreaches(sample(call))).toHaveLength(1);
    expect(consoleBreaches(sample(call, 'scripts/a.mjs'))).toEqual([]);
  });
});

describe('names', () => {
  test('are kebab-case nouns', () => {
    expect(nameBreaches(projectPaths())).toEqual([]);
  });

  test.each([
    'src/audio/playoutPacer.ts',
    'test/calls/Barge-in.test.ts',
    'docs/two_planes.md',
    'src/audio/-a.ts',
  ])('the rule finds %s', (path) => {
    expect(nameBreaches([path])).toHaveLength(1);
  });

  test.each(['src/utils/a.ts', 'src/audio/helpers.ts', 'src/call/types.ts', 'src/common/a.ts'])(
    'the rule finds the drawer %s',
    (path) => {
      expect(nameBreaches([path])).toHaveLength(1);
    },
  );

  test.each([
    'src/audio/playout-pacer.ts',
    'src/audio/fir-kernel.as.ts',
    'README.md',
    'docs/decisions/0001-a.md',
  ])('the rule lets pass %s', (path) => {
    expect(nameBreaches([path])).toEqual([]);
  });
});
