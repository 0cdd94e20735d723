import { describe, expect, test } from 'vitest';
import { importBreaches, partCycles } from './import-rules.js';
import { projectTextFiles, readProjectJson } from './project-files.js';

const dependencies = Object.keys(
  (readProjectJson('package.json') as { dependencies: Record<string, string> }).dependencies,
);

/** Breaches of one file that holds one line. */
function breachesOf(path: string, text: string): string[] {
  return importBreaches([{ path, text }], dependencies);
}

describe('import boundaries', () => {
  test('hold in src and agents', () => {
    expect(importBreaches(projectTextFiles(), dependencies)).toEqual([]);
  });

  test('have no part that loads itself through another', () => {
    expect(partCycles(projectTextFiles())).toEqual([]);
  });
});

describe('the import rule', () => {
  test.each([
    ['a value across media folders', 'src/telephony/a.ts', `import { b } from '../audio/b.js';`],
    ['a type across media folders', 'src/model/a.ts', `import type { B } from '../agent/b.js';`],
    ['a type by import()', 'src/model/a.ts', `let b: import('../agent/b.js').B;`],
    ['a deeper file', 'src/model/rehearsal/a.ts', `import { b } from '../../audio/b.js';`],
    ['a dynamic import', 'src/audio/a.ts', `await import('../store/b.js');`],
    ['a re-export', 'src/store/a.ts', `export { b } from '../agent/b.js';`],
    ['a require', 'src/audio/a.ts', `import b = require('../store/b.js');`],
    ['a module loaded by URL', 'src/audio/a.ts', `new Worker(new URL('../model/w.js', import.meta.url));`],
    ['call from a media folder', 'src/agent/a.ts', `import type { Call } from '../call/call.js';`],
    ['config from a media folder', 'src/telephony/a.ts', `import type { Config } from '../config.js';`],
    ['a value of observe in a media folder', 'src/audio/a.ts', `import { b } from '../observe/b.js';`],
    ['an inline type, which still loads', 'src/audio/a.ts', `import { type Log } from '../observe/log.js';`],
    ['a value in observe', 'src/observe/a.ts', `import { b } from '../call/b.js';`],
    ['a type of call in console', 'src/console/a.ts', `import type { Call } from '../call/call.js';`],
    ['a value of console in call', 'src/call/a.ts', `import { b } from '../console/b.js';`],
    ['a folder from a top-level file', 'src/limits.ts', `import { b } from './audio/b.js';`],
    ['main in a worker', 'src/call/a.ts', `new Worker(new URL('../main.js', import.meta.url));`],
    ['main from anywhere', 'src/replay/a.ts', `import '../main.js';`],
    ['a test from src', 'src/call/a.ts', `import { b } from '../../test/support/b.js';`],
    ['a part that the table does not know', 'src/extras/a.ts', `import { b } from '../clock.js';`],
    ['twilio in call', 'src/call/a.ts', `import twilio from 'twilio';`],
    ['types of twilio in console', 'src/console/a.ts', `import type { X } from 'twilio/lib/x.js';`],
    ['the Gemini SDK in telephony', 'src/telephony/a.ts', `import type { Part } from '@google/genai/web';`],
    ['the Gemini SDK in doctor', 'src/doctor.ts', `import { GoogleGenAI } from '@google/genai';`],
    ['express in call', 'src/call/a.ts', `import express from 'express';`],
    ['a development package in src', 'src/audio/a.ts', `import fc from 'fast-check';`],
    ['a builtin without its prefix', 'src/audio/a.ts', `import fs from 'fs';`],
    ['a source file from an agent', 'agents/a.ts', `import { b } from '../src/agent/b.js';`],
    ['another agent from an agent', 'agents/a.ts', `import { b } from './b.js';`],
    ['an agent from a shared tool', 'agents/tools/a.ts', `import { b } from '../b.js';`],
    ['a source file from a shared tool', 'agents/tools/a.ts', `import { b } from '../../src/clock.js';`],
    ['the inside of the package from an agent', 'agents/a.ts', `import { b } from 'earshot/dist/b.js';`],
    ['a leaf in the client', 'src/client/a.ts', `import { systemClock } from '../clock.js';`],
    ['a builtin in the client', 'src/client/a.ts', `import type { Socket } from 'node:net';`],
    ['a package in the client', 'src/client/a.ts', `import { z } from 'zod';`],
    ['a value of the client in wire', 'src/wire/a.ts', `import { reduce } from '../client/reducer.js';`],
    ['an unknown package from an agent', 'agents/a.ts', `import b from 'left-pad';`],
  ])('finds %s', (_, path, text) => {
    expect(breachesOf(path, text)).toHaveLength(1);
  });

  test.each([
    ['call joining the media folders', 'src/call/a.ts', `import { b } from '../audio/b.js';`],
    ['a media folder using a leaf', 'src/audio/a.ts', `import { FRAME_MS } from '../limits.js';`],
    ['the type of the log', 'src/audio/a.ts', `import type { Log } from '../observe/log.js';`],
    ['types in observe', 'src/observe/a.ts', `import type { B } from '../call/b.js';`],
    ['an own neighbour', 'src/model/rehearsal/a.ts', `import { b } from '../b.js';`],
    ['the server as a process', 'src/replay/a.ts', `const entry = new URL('../main.js', import.meta.url);`],
    ['a builtin', 'src/audio/a.ts', `import { readFile } from 'node:fs/promises';`],
    ['a vendor at home', 'src/model/a.ts', `import { GoogleGenAI } from '@google/genai';`],
    ['a word in a comment', 'src/audio/a.ts', `// import { b } from '../store/b.js';`],
    ['a word in a string', 'src/audio/a.ts', `export const a = "import { b } from '../store/b.js';";`],
    ['a shared tool in an agent', 'agents/a.ts', `import { b } from './tools/b.js';`],
    ['data in a shared tool', 'agents/tools/a.ts', `import b from '../data/b.json' with { type: 'json' };`],
    [
      'an agent on the face',
      'agents/a.ts',
      `import { defineAgent } from 'earshot'; import { z } from 'zod';`,
    ],
  ])('lets pass %s', (_, path, text) => {
    expect(breachesOf(path, text)).toEqual([]);
  });

  test('finds a cycle of parts, once', () => {
    const files = [
      { path: 'src/call/a.ts', text: `import { b } from '../audio/b.js';` },
      { path: 'src/audio/b.ts', text: `import { c } from '../store/c.js';` },
      { path: 'src/store/c.ts', text: `import { a } from '../call/a.js';` },
    ];
    expect(partCycles(files)).toEqual(['audio -> store -> call -> audio']);
  });

  test('sees no cycle where one side is only types', () => {
    const files = [
      { path: 'src/call/a.ts', text: `import { b } from '../observe/b.js';` },
      { path: 'src/observe/b.ts', text: `import type { A } from '../call/a.js';` },
    ];
    expect(partCycles(files)).toEqual([]);
  });
});
