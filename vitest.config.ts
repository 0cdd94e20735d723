import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { UnfinishedFiles } from './test/support/unfinished-files.js';

/** Where CI wants a machine-readable report; unset everywhere else. */
const reportFile = process.env['TEST_REPORT'];

export default defineConfig({
  resolve: {
    alias: {
      'earshot/client': fileURLToPath(new URL('./src/client/index.ts', import.meta.url)),
      earshot: fileURLToPath(new URL('./src/index.ts', import.meta.url)),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    // Whole calls in real time are two fifths of the time: CI plays them on two Node lines of three, and says so here.
    exclude: [...configDefaults.exclude, ...(process.env['SKIP_DECISIVE'] ? ['test/decisive/**'] : [])],
    setupFiles: ['./test/fuzz/one-seed.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    unstubEnvs: true,
    coverage: { include: ['src/**/*.ts'] },
    reporters: [
      'default',
      new UnfinishedFiles(),
      ...(reportFile ? [['json', { outputFile: reportFile }] as ['json', object]] : []),
    ],
  },
});
