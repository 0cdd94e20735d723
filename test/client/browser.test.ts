import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { build, type Rollup } from 'vite';
import { afterAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../tidy/project-files.js';

const folder = mkdtempSync(join(tmpdir(), 'earshot-client-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('earshot/client in a browser', () => {
  test('compiles with the types of a browser alone', () => {
    const project = join(folder, 'tsconfig.json');
    const compilerOptions = {
      lib: ['es2023', 'dom', 'dom.iterable'],
      types: [],
      rootDir: join(projectRoot, 'src/client'),
    };
    writeFileSync(
      project,
      JSON.stringify({
        extends: join(projectRoot, 'tsconfig.json'),
        compilerOptions,
        include: [join(projectRoot, 'src/client')],
        exclude: [],
      }),
    );
    const tsc = join(projectRoot, 'node_modules/typescript/bin/tsc');
    const compiled = spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' });
    expect(compiled.stdout + compiled.stderr).toBe('');
    expect(compiled.status).toBe(0);
  });

  test('is one script without anything of Node, and small', async () => {
    const entry = join(projectRoot, 'src/client/index.ts');
    const lib = { entry, formats: ['iife' as const], name: 'earshot', fileName: 'client' };
    const built = (await build({
      configFile: false,
      logLevel: 'silent',
      build: { write: false, lib },
    })) as Rollup.RollupOutput[];
    const { code } = built[0]!.output[0];
    expect(code.length).toBeLessThan(20_000);
    // What a window has and the language does not; fetch answers as a browser's would for a lost network.
    const window = {
      TextDecoder,
      AbortController,
      setTimeout,
      clearTimeout,
      atob,
      btoa,
      fetch: () => Promise.reject(new TypeError()),
    };
    const ended = runInNewContext(
      `${code}
      const state = earshot.reduce(earshot.initialState, { type: 'done', seq: 1, msg: 'a', role: 'model', text: 'Yes.' });
      const connection = earshot.connectEvents({ url: '/', retryFirstMs: 0, attemptsMax: 2 });
      connection.ended.then((end) => JSON.stringify([earshot.storedMessages(state), end.reason]));`,
      window,
    ) as Promise<string>;
    expect(JSON.parse(await ended)).toEqual([[{ msg: 'a', role: 'model', text: 'Yes.' }], 'lost']);
  });
});
