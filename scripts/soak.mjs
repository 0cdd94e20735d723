/**
 * `npm run soak -- [options]`: makes variables of the options and runs the soak by vitest, so that CI can count it like every other
 * test. docs/performance.md says what it does.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `npm run soak -- [options]
  --seed N        what is drawn from (20260101)
  --calls N       how many calls (200)
  --at-once N     how many of them at once at most (60)
  --only WORDS    faults and events with one of these words, divided by commas, in their names
  --only-call N   this call of that seed alone
  --logs FOLDER   writes what the servers logged there`;

const root = fileURLToPath(new URL('..', import.meta.url));
const options = Object.fromEntries(
  ['seed', 'calls', 'at-once', 'only', 'only-call', 'logs'].map((name) => [name, { type: 'string' }]),
);

function main(args) {
  let values;
  try {
    ({ values } = parseArgs({ args, options: { ...options, help: { type: 'boolean' } } }));
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return 64;
  }
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const env = { ...process.env };
  for (const [name, value] of Object.entries(values))
    env[`SOAK_${name.toUpperCase().replaceAll('-', '_')}`] = value;
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
  const ran = spawnSync(process.execPath, [vitest, 'run', '--config', 'vitest.soak.config.ts'], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  return ran.status ?? 1;
}

process.exitCode = main(process.argv.slice(2));
