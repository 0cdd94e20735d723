import { createServer, type AddressInfo, type Server } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import Database from 'libsql';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { POSTGRES_CONNECTIONS_MAX } from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { EventWriter } from '../../src/store/event-writer.js';
import { openStore } from '../../src/store/open-store.js';
import type { Store } from '../../src/store/store.js';
import { fuzzed, fuzzedAtLeast } from '../fuzz/seed.js';
import { lossesWhenKilled } from './killed-server.js';
import { PASSWORD, PostgresServer } from './postgres-server.js';
import { storeContract } from './store-contract.js';
import {
  changeEvent,
  collected,
  errorOf,
  KeptLog,
  sessionKey,
  userEvent,
  WallClock,
} from './store-fixture.js';
import { StoreModel } from './store-model.js';
import { answerOf, modelAnswer, operations } from './store-operations.js';

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
});

afterAll(() => server.stop());

storeContract('PostgreSQL', () => ({
  fresh: () => server.createDatabase(),
  query: async (url, statement) => {
    await server.query(databaseOf(url), statement);
  },
}));

function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

describe('PostgreSQL', () => {
  const key = sessionKey('CA1');
  const opened: Store[] = [];
  const listening: Server[] = [];
  let log: KeptLog;

  async function open(url: string): Promise<Store> {
    const store = await openStore(url, { clock: systemClock, log });
    opened.push(store);
    return store;
  }

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
    for (const one of listening.splice(0)) one.close();
  });

  /** No form of the password, and nothing of what is stored. */
  function expectNoSecret(text: string): void {
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), '+12025550123'])
      expect(text).not.toContain(secret);
  }

  test('with a wrong password, database or address is refused, and the password is in no error and no log', async () => {
    log = new KeptLog();
    const url = await server.createDatabase();
    const port = String(server.port);
    const refused = [
      [server.url('nowhere'), 'store_unusable', 'no database of that name'],
      [url.replace(encodeURIComponent(PASSWORD), 'wr%6Fng-word'), 'store_unusable', 'refused the login'],
      [url.replace(`:${port}/`, ':1/'), 'store_failed', 'cannot be reached'],
      [url.replace('127.0.0.1', 'nowhere.invalid'), 'store_failed', 'is not known'],
      [`${url}?sslmode=verify-full`, 'store_unusable', 'speaks no TLS'],
      [
        `postgres://tester@127.0.0.1:${port}/postgres?password=wrong-word`,
        'store_unusable',
        'refused the login',
      ],
      ['postgres://u:wrong-word@[bad/x', 'store_unusable', 'not a valid'],
    ] as const;
    for (const [address, expected, words] of refused) {
      const { code, text } = await errorOf(open(address));
      expect({ code, text }).toMatchObject({
        code: expected,
        text: expect.stringContaining(words) as string,
      });
      expectNoSecret(text);
      expect(text).not.toMatch(/wr(o|%6F)ng-word/);
    }
    await open(url);
    const logged = JSON.stringify(log.lines);
    expectNoSecret(logged);
    expect(logged).toContain(`tester:***@127.0.0.1:${port}`);
  });

  test('that takes connections and says nothing is given up in time', async () => {
    log = new KeptLog();
    const silent = createServer(() => {});
    listening.push(silent);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const { code, text } = await errorOf(open(`postgres://u:p@127.0.0.1:${port}/x`));
    expect(code).toBe('store_failed');
    expect(text).toContain('did not answer in time');
  }, 60_000);

  test('that ends our connections is connected to again', async () => {
    log = new KeptLog();
    const url = await server.createDatabase();
    const store = await open(url);
    await store.createSession(key);
    await Promise.all(Array.from({ length: 20 }, () => store.getSession(key)));
    const mine = `from pg_stat_activity where datname = '${databaseOf(url)}'`;
    const counted = await server.query('postgres', `select count(*)::int as n ${mine}`);
    expect(counted[0]?.['n']).toBe(POSTGRES_CONNECTIONS_MAX);
    await server.query('postgres', `select pg_terminate_backend(pid) ${mine}`);
    await expect
      .poll(() => store.appendEvent(key, userEvent('e1')).catch(() => 0), { timeout: 15_000 })
      .toBe(1);
    expectNoSecret(JSON.stringify(log.lines));
  }, 30_000);

  test('that restarts in the middle loses nothing of what the writer was given', async () => {
    log = new KeptLog();
    const store = await open(await server.createDatabase());
    const writer = new EventWriter({ store, clock: systemClock, log });
    void writer.createSession(key);
    const outcomes = Array.from({ length: 40 }, (_, at) => writer.append(key, changeEvent(`a${at}`, { at })));
    await outcomes[0];
    await server.pause();
    outcomes.push(
      ...Array.from({ length: 40 }, (_, at) => writer.append(key, changeEvent(`b${at}`, { at }))),
    );
    await expect.poll(() => writer.isFailing, { timeout: 15_000 }).toBe(true);
    expect((await errorOf(store.listSessions({}))).code).toBe('store_failed');
    await server.resume();
    expect(await Promise.all(outcomes)).toEqual(outcomes.map((_, at) => ({ stored: true, seq: at + 1 })));
    expect((await store.getSession(key))?.events).toHaveLength(80);
    const said = log.lines.map(({ message }) => message);
    expect(said.filter((line) => line.startsWith('events are not being stored'))).toHaveLength(1);
    expect(said).toContain('events are stored again');
    expectNoSecret(JSON.stringify(log.lines));
    await writer.close();
  }, 60_000);

  test('tells what a fault of it was without what was stored', async () => {
    log = new KeptLog();
    const url = await server.createDatabase();
    const store = await open(url);
    await store.createSession(key);
    await server.query(databaseOf(url), 'alter table event add constraint odd check (seq < 2)');
    await store.appendEvent(key, userEvent('e1'));
    const { code, text } = await errorOf(store.appendEvent(key, userEvent('e2', 'what the caller said')));
    expect(code).toBe('store_failed');
    expect(text).toContain('23514');
    expectNoSecret(text);
    expect(text).not.toContain('what the caller said');
    await server.query(databaseOf(url), 'alter table event drop constraint odd');
    expect(await store.appendEvent(key, userEvent('e2'))).toBe(2);
  });

  test('that may only be read is a clear failure', async () => {
    log = new KeptLog();
    const url = await server.createDatabase();
    const store = await open(url);
    await store.createSession(key);
    await store.close();
    await server.query(
      'postgres',
      `alter database ${databaseOf(url)} set default_transaction_read_only = on`,
    );
    const reader = await open(url);
    expect((await errorOf(reader.appendEvent(key, userEvent('e1')))).text).toContain(
      'the database is read-only',
    );
    expect((await reader.getSession(key))?.events).toEqual([]);
  });

  test('answers random operations as SQLite does, and as the description of a store does', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-same-'));
    const clock = new WallClock();
    const urls = [`sqlite:${join(folder, 'same.db')}`, await server.createDatabase()];
    const stores = await Promise.all(urls.map((url) => openStore(url, { clock, log: silentLog })));
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(operations('app'), async (all) => {
        // Also what a run that failed has left, while its smallest case is looked for.
        for (const [at, url] of urls.entries()) await emptied(url, at);
        const model = new StoreModel(() => clock.wall);
        for (const operation of all) {
          if (operation.do === 'wait') clock.wall += operation.ms;
          const expected = JSON.stringify(modelAnswer(model, operation, clock.wall));
          for (const store of stores)
            expect(JSON.stringify(await answerOf(store, operation, clock.wall))).toBe(expected);
          seen.set(operation.do, (seen.get(operation.do) ?? 0) + 1);
        }
        const lines = await Promise.all(stores.map((store) => collected(store.exportSessions())));
        expect(lines[1]).toEqual(lines[0]);
      }),
      fuzzed(25),
    );
    for (const name of ['create', 'append', 'save', 'deleteSession', 'deleteUser', 'deleteOlderThan', 'look'])
      expect(seen.get(name) ?? 0).toBeGreaterThanOrEqual(fuzzedAtLeast(10));
    await Promise.all(stores.map((store) => store.close()));
    rmSync(folder, { recursive: true });
  }, 120_000);

  async function emptied(url: string, at: number): Promise<void> {
    const tables = ['session', 'event', 'state', 'artifact'];
    if (at === 0) {
      const database = new Database(url.slice('sqlite:'.length));
      for (const table of tables) database.exec(`delete from ${table}`);
      database.close();
    } else await server.query(databaseOf(url), `truncate ${tables.join(', ')}`);
  }

  test('loses nothing that was reported when the server is killed', async () => {
    expect(await lossesWhenKilled(await server.createDatabase())).toEqual([]);
  }, 60_000);
});
