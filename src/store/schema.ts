/**
 * The tables, and how they came to be: one list of migrations for both databases, in which only column types differ.
 * A migration that has been released never changes; the next one has the next number.
 */
import { Migrator, sql, type Kysely, type Migration, type RawBuilder, type Transaction } from 'kysely';
import { StoreError } from '../errors.js';
import { STORE_TRIES_MAX } from '../limits.js';
import { type CallTable, callMigrations } from './call-record-rows.js';
import { toolMigrations, type ToolTables } from './tool-tables.js';

export interface Tables extends ToolTables {
  session: SessionTable;
  event: EventTable;
  state: StateTable;
  artifact: ArtifactTable;
  calls: CallTable;
}

export interface SessionTable {
  app_name: string;
  user_id: string;
  id: string;
  created_at_ms: number;
  updated_at_ms: number;
  /** The `seq` of its last event, 0 without one. */
  last_seq: number;
}

export interface EventTable {
  app_name: string;
  user_id: string;
  session_id: string;
  seq: number;
  id: string;
  stored_at_ms: number;
  bytes: number;
  body: string;
}

/** Owned by a session; by a user, where `session_id` is empty; by an app, where `user_id` is empty as well. */
export interface StateTable {
  app_name: string;
  user_id: string;
  session_id: string;
  /** With its prefix. */
  key: string;
  value: string;
  updated_at_ms: number;
}

/** Owned by a session, or by a user, where `session_id` is empty. */
export interface ArtifactTable {
  app_name: string;
  user_id: string;
  session_id: string;
  name: string;
  version: number;
  mime_type: string;
  created_at_ms: number;
  size: number;
  /** PostgreSQL gives a Buffer, SQLite an ArrayBuffer. */
  bytes: Uint8Array | ArrayBuffer;
}

export type Database = Kysely<Tables>;
/** A transaction, or the database itself. */
export type Connection = Kysely<Tables> | Transaction<Tables>;
export type Backend = 'sqlite' | 'postgres';

/** Text is compared byte by byte in both, whatever language the database was made for. */
function columnTypes(backend: Backend): {
  readonly text: RawBuilder<unknown>;
  readonly bytes: RawBuilder<unknown>;
} {
  return backend === 'sqlite'
    ? { text: sql`text`, bytes: sql`blob` }
    : { text: sql`text collate "C"`, bytes: sql`bytea` };
}

function migrations(backend: Backend): Record<string, Migration> {
  const { text, bytes } = columnTypes(backend);
  return {
    '0001-sessions': {
      async up(db: Kysely<unknown>) {
        await db.schema
          .createTable('session')
          .addColumn('app_name', text, (column) => column.notNull())
          .addColumn('user_id', text, (column) => column.notNull())
          .addColumn('id', text, (column) => column.notNull())
          .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
          .addColumn('updated_at_ms', 'bigint', (column) => column.notNull())
          .addColumn('last_seq', 'integer', (column) => column.notNull())
          .addPrimaryKeyConstraint('session_key', ['app_name', 'user_id', 'id'])
          .execute();
        await db.schema.createIndex('session_by_user').on('session').column('user_id').execute();
        await db.schema.createIndex('session_by_activity').on('session').column('updated_at_ms').execute();
        await db.schema.createIndex('session_by_age').on('session').column('created_at_ms').execute();
        await db.schema
          .createTable('event')
          .addColumn('app_name', text, (column) => column.notNull())
          .addColumn('user_id', text, (column) => column.notNull())
          .addColumn('session_id', text, (column) => column.notNull())
          .addColumn('seq', 'integer', (column) => column.notNull())
          .addColumn('id', text, (column) => column.notNull())
          .addColumn('stored_at_ms', 'bigint', (column) => column.notNull())
          .addColumn('bytes', 'integer', (column) => column.notNull())
          .addColumn('body', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('event_key', ['app_name', 'user_id', 'session_id', 'seq'])
          .addUniqueConstraint('event_id', ['app_name', 'user_id', 'session_id', 'id'])
          .execute();
      },
    },
    '0002-state': {
      async up(db: Kysely<unknown>) {
        await db.schema
          .createTable('state')
          .addColumn('app_name', text, (column) => column.notNull())
          .addColumn('user_id', text, (column) => column.notNull())
          .addColumn('session_id', text, (column) => column.notNull())
          .addColumn('key', text, (column) => column.notNull())
          .addColumn('value', 'text', (column) => column.notNull())
          .addColumn('updated_at_ms', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('state_key', ['app_name', 'user_id', 'session_id', 'key'])
          .execute();
        await db.schema.createIndex('state_by_user').on('state').column('user_id').execute();
      },
    },
    '0003-artifacts': {
      async up(db: Kysely<unknown>) {
        await db.schema
          .createTable('artifact')
          .addColumn('app_name', text, (column) => column.notNull())
          .addColumn('user_id', text, (column) => column.notNull())
          .addColumn('session_id', text, (column) => column.notNull())
          .addColumn('name', text, (column) => column.notNull())
          .addColumn('version', 'integer', (column) => column.notNull())
          .addColumn('mime_type', text, (column) => column.notNull())
          .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
          .addColumn('size', 'integer', (column) => column.notNull())
          // Last, so that SQLite finds the other columns without walking through the bytes.
          .addColumn('bytes', bytes, (column) => column.notNull())
          .addPrimaryKeyConstraint('artifact_key', ['app_name', 'user_id', 'session_id', 'name', 'version'])
          .execute();
        await db.schema.createIndex('artifact_by_user').on('artifact').column('user_id').execute();
      },
    },
    ...toolMigrations(text),
  };
}

/**
 * Brings the tables to this version. Servers that start at once wait for one another: PostgreSQL's advisory lock, or SQLite's
 * write lock, is held meanwhile.
 * @throws StoreError `store_unusable` for a database that a newer version made; whatever the database throws.
 */
export async function migrate(db: Database, backend: Backend): Promise<void> {
  const all = { ...migrations(backend), ...callMigrations(columnTypes(backend).text) };
  const migrator = new Migrator({ db, provider: { getMigrations: async () => all } });
  for (let tries = 1; ; tries += 1) {
    const { error } = await migrator.migrateToLatest();
    if (error === undefined) return;
    if (error instanceof Error && error.message.startsWith('corrupted migrations'))
      throw new StoreError('store_unusable', 'the database was made by a newer version of the server');
    // The migrator makes its own tables outside the lock, and two that start at once may both try to.
    if (!isRaceForTables(error) || tries === STORE_TRIES_MAX) throw error;
  }
}

function isRaceForTables(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return code === '23505' || code === '42P07' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY';
}
