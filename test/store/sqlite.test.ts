import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { Kysely, sql } from 'kysely';
import Database from 'libsql';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { SQLITE_STATEMENT_MAX_MS } from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { RecordingLog } from '../telephony/recording-log.js';
import { openStore } from '../../src/store/open-store.js';
import { SqliteThreadDialect } from '../../src/store/sqlite-dialect.js';
import { SqliteThread } from '../../src/store/sqlite-thread-client.js';
import type { Store } from '../../src/store/store.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { lossesWhenKilled } from './killed-server.js';
import { storeContract } from './store-contract.js';
import { changeEvent, errorOf, sessionKey, userEvent } from './store-fixture.js';

const folder = mkdtempSync(join(tmpdir(), 'earshot-sqlite-'));
let files = 0;

function freshPath(): string {
  files += 1;
  return join(folder, `${files}`, 'earshot.db');
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

storeContract('SQLite', () => ({
  fresh: async () => `sqlite:${freshPath()}`,
  query: async (url, statement) => {
    const database = new Database(url.slice('sqlite:'.length));
    database.exec(statement);
    database.close();
  },
}));

const key = sessionKey('CA1');
const opened: Store[] = [];

async function open(path: string): Promise<Store> {
  const store = await openStore(`sqlite:${path}`, { clock: systemClock, log: silentLog });
  opened.push(store);
  return store;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
});

describe('the SQLite file', () => {
  test('is closed without a word: the thread that ends then has not failed', async () => {
    const log = new RecordingLog();
    const store = await openStore(`sqlite:${freshPath()}`, { clock: systemClock, log });
    await store.createSession(key);
    await store.close();
    await store.close();
    expect(log.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  test('is made with its folders for this user only, from the working directory on', async () => {
    const path = join(folder, 'new', 'deep', 'earshot.db');
    const store = await open(relative(process.cwd(), path));
    await store.createSession(key);
    const modes = readdirSync(dirname(path)).map((name) => [
      name,
      statSync(join(dirname(path), name)).mode & 0o777,
    ]);
    expect(modes).toEqual([
      ['earshot.db', 0o600],
      ['earshot.db-shm', 0o600],
      ['earshot.db-wal', 0o600],
    ]);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700);
  });

  test.each([
    [
      'is no database',
      'text',
      () => writeFileSync(join(folder, 'text'), 'plain text, and long enough'.repeat(100)),
    ],
    ['is a folder', 'dir', () => mkdirSync(join(folder, 'dir'))],
    ['lies in what is no folder', 'file/earshot.db', () => writeFileSync(join(folder, 'file'), '')],
  ])('that %s is refused, and named', async (_, name, make) => {
    make();
    const { code, text } = await errorOf(open(join(folder, name)));
    expect(code).toBe('store_unusable');
    expect(text).toContain(join(folder, name));
  });

  test.each(['', 'mysql://localhost/x', 'data/earshot.db', 'sqlite:', 'sqlite:a\0b'])(
    'is asked for by its address, not by %j',
    async (url) => {
      const { code } = await errorOf(openStore(url, { clock: systemClock, log: silentLog }));
      expect(code).toBe('store_unusable');
    },
  );

  test('that another process locks is a clear failure, and works again afterwards', async () => {
    const path = freshPath();
    const store = await open(path);
    await store.createSession(key);
    const other = new Database(path);
    other.exec('begin immediate');
    const blocked = errorOf(store.appendEvent(key, userEvent('e1')));
    expect(await blocked).toMatchObject({ code: 'store_failed' });
    expect((await blocked).text).toContain('locked by another process');
    other.exec('rollback');
    other.close();
    expect(await store.appendEvent(key, userEvent('e1'))).toBe(1);
  }, 30_000);

  test('holds nothing any more of what was deleted', async () => {
    const path = freshPath();
    const store = await open(path);
    for (const userId of ['ada', 'bobby']) {
      const session = sessionKey('CA1', { userId });
      await store.createSession(session, { word: `state-of-${userId}` });
      for (let at = 0; at < 50; at += 1) {
        const text = `secret-of-${userId} ${'x'.repeat(at * 40)}`;
        await store.appendEvent(session, { ...userEvent(`e${at}`), content: { parts: [{ text }] } });
      }
      await store.saveArtifact(session, 'user:a', Buffer.from(`bytes-of-${userId}`.repeat(2_000)), 'a/b');
      const owner = { appName: session.appName, userId };
      await store.remember(owner, `memory-of-${userId}`, ['a', 'b']);
      await store.claim({ session, key: `key ${userId.length}`, tool: 't', callId: 'c', guards: [] });
      await store.addPendingCall({
        id: `pending ${userId.length}`,
        session,
        callSid: 'CA1',
        invocationId: 'run',
        callId: 'c',
        tool: 't',
        args: { word: `arguments-of-${userId}` },
        kind: 'approval',
        guards: [],
        requestedAtMs: 1,
      });
    }
    await store.deleteUser('all', 'ada');
    const everything = readdirSync(dirname(path)).map((name) =>
      readFileSync(join(dirname(path), name), 'latin1'),
    );
    const bytes = everything.join('');
    for (const what of ['secret', 'state', 'bytes', 'memory', 'arguments']) {
      expect(bytes).toContain(`${what}-of-bobby`);
      expect(bytes).not.toContain(`${what}-of-ada`);
    }
    expect(bytes).not.toContain('ada');
  });

  test('loses nothing that was reported when the process is killed', async () => {
    expect(await lossesWhenKilled(`sqlite:${freshPath()}`)).toEqual([]);
  }, 60_000);
});

describe('the database thread', () => {
  function threadOf(name: string, clock = systemClock): SqliteThread {
    const threadUrl = new URL(`./${name}.mjs`, import.meta.url);
    const path = freshPath();
    mkdirSync(dirname(path));
    return new SqliteThread({ path, clock, log: silentLog, threadUrl });
  }

  test('that dies loses its transaction whole, and another takes its place', async () => {
    const thread = threadOf('dying-thread');
    const db = new Kysely<{ t: { a: number } }>({ dialect: new SqliteThreadDialect(thread) });
    await sql`create table t (a integer)`.execute(db);
    const later: string[] = [];
    const transaction = db.transaction().execute(async (trx) => {
      await trx.insertInto('t').values({ a: 1 }).execute();
      later.push((await errorOf(sql`select 'die now'`.execute(trx))).text);
      // Without the transaction around it, this one would stay.
      later.push((await errorOf(trx.insertInto('t').values({ a: 2 }).execute())).text);
      throw new Error('given up');
    });
    expect((await errorOf(transaction)).text).toContain('given up');
    expect(later[0]).toContain('ended with code 3');
    expect(later[1]).toContain('replaced during a transaction');
    expect(await db.selectFrom('t').selectAll().execute()).toEqual([]);
    await db.insertInto('t').values({ a: 3 }).execute();
    expect(await db.selectFrom('t').selectAll().execute()).toEqual([{ a: 3 }]);
    await db.destroy();
  });

  test('that does not answer in time fails all that it was asked', async () => {
    const clock = new VirtualClock();
    const thread = threadOf('silent-thread', clock);
    const asked = [errorOf(thread.ask('select 1')), errorOf(thread.ask('select 2'))];
    clock.advance(SQLITE_STATEMENT_MAX_MS);
    for (const { text } of await Promise.all(asked)) expect(text).toContain('did not answer in time');
    const again = errorOf(thread.ask('select 3'));
    clock.advance(SQLITE_STATEMENT_MAX_MS);
    expect((await again).text).toContain('did not answer in time');
    expect(clock.pendingTimers).toBe(0);
    await thread.close();
  });
});

/** A file system of its own, of a size and kind that the test chooses. */
class SmallDisk {
  readonly path: string;

  constructor(options: string) {
    this.path = mkdtempSync(join(tmpdir(), 'earshot-disk-'));
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', this.path], {
      encoding: 'utf8',
    });
    if (mounted.status !== 0) {
      rmSync(this.path, { recursive: true });
      throw new Error(`cannot mount: ${mounted.stderr}`);
    }
  }

  remount(options: string): void {
    const mounted = spawnSync('mount', ['-o', `remount,${options}`, this.path], { encoding: 'utf8' });
    if (mounted.status !== 0) throw new Error(mounted.stderr);
  }

  remove(): void {
    spawnSync('umount', [this.path]);
    rmSync(this.path, { recursive: true, force: true });
  }
}

function canMount(): boolean {
  try {
    new SmallDisk('size=64k').remove();
    return true;
  } catch {
    console.warn('NOT CHECKED: a full and a read-only disk, because this user cannot mount one.');
    return false;
  }
}

describe.skipIf(!canMount())('a disk', () => {
  let disk: SmallDisk | undefined;

  afterEach(() => {
    disk?.remove();
    disk = undefined;
  });

  test('that is full is a clear failure, keeps what was stored, and takes more when there is room', async () => {
    disk = new SmallDisk('size=2m');
    writeFileSync(join(disk.path, 'ballast'), Buffer.alloc(800_000));
    const store = await open(join(disk.path, 'earshot.db'));
    await store.createSession(key);
    const text = 'x'.repeat(40_000);
    let stored = 0;
    let failure = { code: 'none', text: '' };
    for (let at = 0; at < 200 && failure.code === 'none'; at += 1) {
      failure = await errorOf(
        store.appendEvent(key, { ...changeEvent(`e${at}`, { at }), content: { parts: [{ text }] } }),
      );
      if (failure.code === 'none') stored = at + 1;
    }
    expect(failure.code).toBe('store_failed');
    expect(failure.text).toContain('the disk of the database is full');
    const session = await store.getSession(key);
    expect(session?.events).toHaveLength(stored);
    expect(session?.state).toEqual({ at: stored - 1 });
    rmSync(join(disk.path, 'ballast'));
    expect(await store.appendEvent(key, userEvent('room'))).toBe(stored + 1);
    await store.close();
  });

  test('that is read-only is a clear failure', async () => {
    disk = new SmallDisk('size=8m');
    const path = join(disk.path, 'earshot.db');
    const first = await open(path);
    await first.createSession(key);
    await first.close();
    disk.remount('ro');
    const store = await open(path).catch((error: unknown) => error);
    // SQLite may find out only when it is to write.
    const { code, text } = await errorOf(
      store instanceof Error ? Promise.reject(store) : (store as Store).appendEvent(key, userEvent('e')),
    );
    expect(['store_failed', 'store_unusable']).toContain(code);
    expect(text).toMatch(/read-only|cannot be opened/);
  });
});

test.skipIf(process.getuid?.() === 0)('a file that may only be read is a clear failure', async () => {
  const path = freshPath();
  const first = await open(path);
  await first.close();
  chmodSync(path, 0o400);
  chmodSync(dirname(path), 0o500);
  const { text } = await errorOf(open(path).then((store) => store.createSession(key)));
  chmodSync(dirname(path), 0o700);
  expect(text).toMatch(/read-only|cannot be opened/);
});
