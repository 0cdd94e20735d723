/**
 * Runs a process that stores events, kills it without warning, and holds what it reported against what the database has.
 */
import { silentLog } from '../../src/observe/log.js';
import { openStore } from '../../src/store/open-store.js';
import { linesUntilKilled } from './killed-process.js';
import { WallClock } from './store-fixture.js';

/**
 * Kills the process three times, and returns what then was not as it should be: every event that was reported is stored, in its
 * place and with its state, and nothing in part.
 */
export async function lossesWhenKilled(url: string): Promise<string[]> {
  const reported = new Map<string, string[]>();
  const losses: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    const lines = await linesUntilKilled('./append-until-killed.mjs', [url, String(round * 1_000_000)], 150);
    for (const line of lines) {
      const [session = '', id = '', seq = ''] = line.split(' ');
      reported.set(session, [...(reported.get(session) ?? []), `${seq} ${id}`]);
    }
    const store = await openStore(url, { clock: new WallClock(), log: silentLog });
    for (const [id, events] of reported) {
      const session = await store.getSession({ appName: 'support', userId: 'ada', id });
      const stored = session?.events.map((event, at) => `${at + 1} ${event.id}`) ?? [];
      losses.push(
        ...events.filter((event) => !stored.includes(event)).map((event) => `lost: ${id} ${event}`),
      );
      // Each waits for the one before, so that at most one a session was stored and not reported.
      if (stored.length > events.length + round + 1) losses.push(`stored twice: ${id}`);
      if (session?.state['last'] !== session?.events.at(-1)?.timestamp) losses.push(`another state: ${id}`);
    }
    await store.close();
  }
  return reported.size === 4 ? losses : ['not all sessions stored anything'];
}
