import { defineConfig } from 'vitest/config';
import tests from './vitest.config.js';

/** The seeded soak alone, which takes minutes: `npm run soak`. */
export default defineConfig({
  ...tests,
  test: { ...tests.test, include: ['test/soak/**/*.soak.ts'], testTimeout: 900_000, hookTimeout: 900_000 },
});
