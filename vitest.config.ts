import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
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
