/** The start of a server whose database is not there: what is waited for, how long, and what ends it at once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { ConfigError, StoreError } from '../../src/errors.js';
import { STORE_START_MAX_MS } from '../../src/limits.js';
import { type Log, silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { awaitStore } from '../../src/store/await-store.js';
import { openStore } from '../../src/store/open-store.js';
import type { Store } from '../../src/store/store.js';
import { waitUntil } from '../support/wait-until.js';
import { PostgresServer } from './postgres-server.js';

const STORE = {} as Store;

/** Opens as it is told, one answer a try, the last one again and again; time goes on where it is waited for. */
function opening(...answers: readonly (Store | Error)[]) {
  const clock = new VirtualClock();
  const warned: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => warned.push(message) };
  let tries = 0;
  const opened = awaitStore(
    async () => {
      const answer = answers[Math.min(tries, answers.length - 1)];
      tries += 1;
      if (answer instanceof Error) throw answer;
      return answer!;
    },
    { clock, log },
  );
  const outcome: unknown[] = [];
  void opened.then(
    (store) => outcome.push(store),
    (error: unknown) => outcome.push(error),
  );
  const run = async (): Promise<unknown> => {
    while (outcome.length === 0) {
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
      clock.advance(50);
    }
    return outcome[0];
  };
  return { run, clock, warned, tries: () => tries };
}

const AWAY = new StoreError('store_failed', 'the database server cannot be reached');

describe('the start of the store', () => {
  it('is over with the first try where the database is there', async () => {
    const { run, warned, tries } = opening(STORE);
    expect(await run()).toBe(STORE);
    expect([tries(), warned]).toEqual([1, []]);
  });

  it('is tried again while it can be helped, and told once', async () => {
    const { run, warned, tries } = opening(AWAY, AWAY, AWAY, AWAY, STORE);
    expect(await run()).toBe(STORE);
    expect([tries(), warned.length]).toEqual([5, 1]);
  });

  it('is given up after a bounded time, with the reason', async () => {
    const { run, clock, warned } = opening(AWAY);
    const beganAtMs = clock.nowMs();
    expect(await run()).toMatchObject({
      code: 'store_failed',
      message: expect.stringMatching(/^the database server cannot be reached \(tried for \d+ s\)$/),
    });
    const tookMs = clock.nowMs() - beganAtMs;
    expect(tookMs).toBeLessThanOrEqual(STORE_START_MAX_MS + 1_000);
    expect(tookMs).toBeGreaterThan(STORE_START_MAX_MS / 2);
    expect(warned).toHaveLength(1);
  });

  it.each([
    ['what has to be mended', new StoreError('store_unusable', 'the database refused the login')],
    ['a wrong address', new ConfigError('config_invalid', 'DATABASE_URL is none')],
    ['a fault of ours', new TypeError('undefined is not a function')],
  ])('ends at once for %s, also behind a database that was away', async (_what, error) => {
    const first = opening(error);
    expect(await first.run()).toBe(error);
    expect([first.tries(), first.warned]).toEqual([1, []]);
    const later = opening(AWAY, error);
    expect(await later.run()).toBe(error);
    expect(later.tries()).toBe(2);
  });
});

describe('a PostgreSQL that starts after the server', () => {
  let postgres: PostgresServer;
  beforeAll(async () => {
    postgres = await PostgresServer.start();
  }, 60_000);
  afterAll(() => postgres.stop());

  it('is waited for, and used', async () => {
    const url = await postgres.createDatabase();
    await postgres.pause();
    const tries: number[] = [];
    const opened = awaitStore(
      () => {
        tries.push(systemClock.nowMs());
        return openStore(url, { clock: systemClock, log: silentLog });
      },
      { clock: systemClock, log: silentLog },
    );
    await waitUntil('a second try', () => tries.length >= 2);
    await postgres.resume();
    const store = await opened;
    expect(await store.listSessions({})).toMatchObject({ items: [] });
    await store.close();
  });
});
