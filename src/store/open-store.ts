/**
 * From `DATABASE_URL` to a Store whose tables are up to date: `sqlite:PATH` or `postgres://…`.
 */
import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Kysely, PostgresDialect, sql } from 'kysely';
import type { Clock } from '../clock.js';
import { errorText, StoreError } from '../errors.js';
import type { Log } from '../observe/log.js';
import { makeFolder } from '../make-folder.js';
import { maskOf } from './database-address.js';
import { createPostgresPool } from './postgres-pool.js';
import { migrate, type Backend, type Tables } from './schema.js';
import { SqliteThreadDialect } from './sqlite-dialect.js';
import { SqliteThread } from './sqlite-thread-client.js';
import { SqlStore } from './sql-store.js';
import type { Store } from './store.js';
import { storeFailure } from './store-failure.js';
import { Transactions } from './transactions.js';

export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
}

interface Opened {
  readonly backend: Backend;
  readonly db: Kysely<Tables>;
  /** The address for the log. */
  readonly address: string;
  readonly mask: (text: string) => string;
  readonly afterDeletion: () => Promise<void>;
}

/**
 * `sqlite:PATH` is relative to the working directory; the file and its folder are made where they are missing, for this user only.
 * No error and no log line holds the password of a `postgres://` address.
 * @throws StoreError `store_unusable` where there can be no database, `store_failed` where there is none at the moment.
 */
export async function openStore(databaseUrl: string, { clock, log }: OpenStoreOptions): Promise<Store> {
  const { backend, db, address, mask, afterDeletion } = open(databaseUrl, { clock, log });
  try {
    await migrate(db, backend);
  } catch (error) {
    await db.destroy().catch(() => undefined);
    const { code, message, cause } = storeFailure(error, mask);
    throw new StoreError(code, `${message}: ${address}`, { cause });
  }
  log.info({ address }, 'the store is open');
  return new SqlStore({ transactions: new Transactions({ db, clock, mask }), clock, afterDeletion });
}

function open(databaseUrl: string, options: OpenStoreOptions): Opened {
  if (databaseUrl.startsWith('sqlite:')) return openSqlite(databaseUrl.slice('sqlite:'.length), options);
  if (/^postgres(ql)?:/.test(databaseUrl)) return openPostgres(databaseUrl, options);
  throw new StoreError('store_unusable', 'DATABASE_URL is neither sqlite:PATH nor postgres://…');
}

function openSqlite(givenPath: string, { clock, log }: OpenStoreOptions): Opened {
  if (givenPath === '' || givenPath.includes('\0'))
    throw new StoreError('store_unusable', 'DATABASE_URL names no file');
  const path = resolve(givenPath);
  try {
    makeFile(path);
  } catch (error) {
    throw new StoreError(
      'store_unusable',
      `the database file cannot be made: ${errorText(error)}: sqlite:${path}`,
    );
  }
  const db = new Kysely<Tables>({ dialect: new SqliteThreadDialect(new SqliteThread({ path, clock, log })) });
  return {
    backend: 'sqlite',
    db,
    address: `sqlite:${path}`,
    mask: (text) => text,
    // The write-ahead log still holds what was deleted, until it is carried over and cut.
    afterDeletion: async () => {
      await sql`pragma wal_checkpoint(truncate)`.execute(db).catch((error: unknown) => {
        log.warn({ why: errorText(error) }, "SQLite's log still holds what was deleted");
      });
    },
  };
}

/** SQLite gives its other files the mode of this one. */
function makeFile(path: string): void {
  makeFolder(dirname(path));
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
}

function openPostgres(url: string, { log }: OpenStoreOptions): Opened {
  const { address, mask } = maskOf(url);
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: createPostgresPool({ url, log, mask }) }),
  });
  return { backend: 'postgres', db, address, mask, afterDeletion: async () => {} };
}
