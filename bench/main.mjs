/**
 * `npm run bench`: the parts (codec, resampling), then whole calls. Each can be run alone; options go to the calls.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CALLS_HELP, runCalls } from './calls.mjs';

const parts = fileURLToPath(new URL('parts.mjs', import.meta.url));

async function main(args) {
  if (args.includes('--help')) {
    console.log(`npm run bench -- [options]   parts, then calls; under six minutes with the defaults
  --no-parts        only the calls; the other options are theirs

${CALLS_HELP}`);
    return 0;
  }
  const callsArgs = args.filter((arg) => arg !== '--no-parts');
  if (callsArgs.length === args.length && existsSync(parts)) {
    const { status } = spawnSync(process.execPath, [parts], { stdio: 'inherit' });
    if (status !== 0) return status ?? 1;
  }
  return runCalls(callsArgs);
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  return 1;
});
