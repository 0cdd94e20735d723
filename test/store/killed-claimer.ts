/**
 * Runs a process that claims and settles, and kills it without warning.
 */
import type { SessionKey } from '../../src/store/store.js';
import { linesUntilKilled } from './killed-process.js';

/** The keys of which it told, until it was killed. */
export async function claimedUntilKilled(
  url: string,
  session: SessionKey,
): Promise<{ readonly claimed: string[]; readonly settled: string[] }> {
  const lines = await linesUntilKilled('./claim-until-killed.mjs', [url, JSON.stringify(session)], 120);
  const told = lines.map((line) => line.split(' '));
  const keysOf = (what: string) => told.filter(([kind]) => kind === what).map(([, key = '']) => key);
  return { claimed: keysOf('claimed'), settled: keysOf('settled') };
}
