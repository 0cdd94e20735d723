/**
 * Runs a process that claims and settles, and kills it without warning.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { SessionKey } from '../../src/store/store.js';

const program = fileURLToPath(new URL('./claim-until-killed.mjs', import.meta.url));
const LINES_MIN = 120;

/** The keys of which it told, until it was killed. */
export async function claimedUntilKilled(
  url: string,
  session: SessionKey,
): Promise<{ readonly claimed: string[]; readonly settled: string[] }> {
  const child = spawn(process.execPath, [program, url, JSON.stringify(session)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let complained = '';
  child.stderr.on('data', (chunk: Buffer) => (complained += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.split('\n').length > LINES_MIN) child.kill('SIGKILL');
    });
    child.on('close', (_, signal) => {
      if (signal === 'SIGKILL') resolve();
      else reject(new Error(`the process ended by itself: ${complained}`));
    });
  });
  const told = said.split('\n').map((line) => line.split(' '));
  const keysOf = (what: string) => told.filter(([kind]) => kind === what).map(([, key = '']) => key);
  return { claimed: keysOf('claimed'), settled: keysOf('settled') };
}
