/**
 * The tables of what tools leave behind: what was done once, calls that wait, and what is remembered of callers.
 */
import { sql, type Kysely, type Migration, type RawBuilder } from 'kysely';

/** What was claimed, and what of it is done. It outlives its session, whose names are then empty. */
export interface LedgerTable {
  app_name: string;
  key: string;
  state: 'open' | 'done';
  tool: string;
  call_id: string;
  session_id: string;
  user_id: string;
  /** These four are there together or not at all. */
  account: string | null;
  amount_minor: number | null;
  currency: string | null;
  limit_minor: number | null;
  /** JSON, as is the response. */
  guards: string;
  approved_by: string | null;
  claimed_at_ms: number;
  settled_at_ms: number | null;
  response: string | null;
  /** Of the JSON in this row. */
  bytes: number;
}

/** One row for each account, to be locked by whoever claims of it. */
export interface LedgerAccountTable {
  app_name: string;
  account: string;
}

/** Waiting as long as it is neither decided nor settled; kept until its session is deleted. */
export interface PendingCallTable {
  id: string;
  app_name: string;
  user_id: string;
  session_id: string;
  call_sid: string;
  invocation_id: string;
  call_id: string;
  tool: string;
  /** JSON, as are the guards. */
  args: string;
  guards: string;
  kind: 'approval' | 'longRunning';
  requested_at_ms: number;
  decision: 'approve' | 'deny' | null;
  decided_by: string | null;
  decided_at_ms: number | null;
  settled_at_ms: number | null;
  /** When a server last said that the handler is at work; null where nothing is. */
  working_at_ms: number | null;
  /** Of the JSON in this row. */
  bytes: number;
}

/** What a person said of an entry that was open: kept for good, though a released entry is gone. Without names of callers. */
export interface LedgerClosingTable {
  id: string;
  app_name: string;
  key: string;
  action: 'settle' | 'release';
  tool: string;
  call_id: string;
  account: string | null;
  amount_minor: number | null;
  currency: string | null;
  limit_minor: number | null;
  claimed_at_ms: number;
  closed_by: string | null;
  reason: string;
  closed_at_ms: number;
}

export interface MemoryTable {
  app_name: string;
  user_id: string;
  /** A digest of the texts, which are too long for an index. */
  id: string;
  kind: 'fact' | 'relation';
  /** The entity of a fact; the source of a relation. */
  subject: string;
  /** Empty for a fact. */
  relation: string;
  /** A fact's words; the target of a relation. */
  object: string;
  at_ms: number;
  /** Rises with each that is kept of one user: tells the order of those of one moment. */
  place: number;
}

export interface ToolTables {
  ledger: LedgerTable;
  ledger_account: LedgerAccountTable;
  ledger_closing: LedgerClosingTable;
  pending_call: PendingCallTable;
  memory: MemoryTable;
}

/** `text` is the type of what is compared. */
export function toolMigrations(text: RawBuilder<unknown>): Record<string, Migration> {
  return {
    '0004-ledger': { up: (db: Kysely<unknown>) => createLedger(db, text) },
    '0005-pending-calls': { up: (db: Kysely<unknown>) => createPendingCalls(db, text) },
    '0006-memory': { up: (db: Kysely<unknown>) => createMemory(db, text) },
    '0007-working-calls': { up: addWorkingCalls },
    '0008-ledger-closings': { up: (db: Kysely<unknown>) => createLedgerClosings(db, text) },
  };
}

async function createLedger(db: Kysely<unknown>, text: RawBuilder<unknown>): Promise<void> {
  await db.schema
    .createTable('ledger')
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('key', text, (column) => column.notNull())
    .addColumn('state', text, (column) => column.notNull())
    .addColumn('tool', text, (column) => column.notNull())
    .addColumn('call_id', text, (column) => column.notNull())
    .addColumn('session_id', text, (column) => column.notNull())
    .addColumn('user_id', text, (column) => column.notNull())
    .addColumn('account', text)
    .addColumn('amount_minor', 'bigint')
    .addColumn('currency', text)
    .addColumn('limit_minor', 'bigint')
    .addColumn('guards', 'text', (column) => column.notNull())
    .addColumn('approved_by', text)
    .addColumn('claimed_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('settled_at_ms', 'bigint')
    .addColumn('response', 'text')
    .addColumn('bytes', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('ledger_key', ['app_name', 'key'])
    .execute();
  await db.schema
    .createIndex('ledger_by_account')
    .on('ledger')
    .columns(['app_name', 'account'])
    .where(sql.ref('account'), 'is not', null)
    .execute();
  await db.schema
    .createIndex('ledger_by_age')
    .on('ledger')
    .columns(['claimed_at_ms', 'app_name', 'key'])
    .execute();
  await db.schema.createIndex('ledger_by_user').on('ledger').column('user_id').execute();
  await db.schema
    .createTable('ledger_account')
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('account', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('ledger_account_key', ['app_name', 'account'])
    .execute();
}

async function createPendingCalls(db: Kysely<unknown>, text: RawBuilder<unknown>): Promise<void> {
  await db.schema
    .createTable('pending_call')
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('user_id', text, (column) => column.notNull())
    .addColumn('session_id', text, (column) => column.notNull())
    .addColumn('call_sid', text, (column) => column.notNull())
    .addColumn('invocation_id', text, (column) => column.notNull())
    .addColumn('call_id', text, (column) => column.notNull())
    .addColumn('tool', text, (column) => column.notNull())
    .addColumn('args', 'text', (column) => column.notNull())
    .addColumn('guards', 'text', (column) => column.notNull())
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('requested_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('decision', text)
    .addColumn('decided_by', text)
    .addColumn('decided_at_ms', 'bigint')
    .addColumn('settled_at_ms', 'bigint')
    .addColumn('bytes', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('pending_call_key', ['id'])
    .execute();
  await db.schema
    .createIndex('pending_call_by_session')
    .on('pending_call')
    .columns(['app_name', 'user_id', 'session_id'])
    .execute();
  // What is settled is no longer looked for, and there is much more of it.
  await db.schema
    .createIndex('pending_call_by_age')
    .on('pending_call')
    .columns(['requested_at_ms', 'id'])
    .where(sql.ref('settled_at_ms'), 'is', null)
    .execute();
}

/** Of calls that were kept before this nobody knows, and they wait for a decision as they did. */
async function addWorkingCalls(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('pending_call').addColumn('working_at_ms', 'bigint').execute();
  await db.schema
    .createIndex('pending_call_by_work')
    .on('pending_call')
    .column('working_at_ms')
    .where(sql.ref('settled_at_ms'), 'is', null)
    .execute();
}

async function createLedgerClosings(db: Kysely<unknown>, text: RawBuilder<unknown>): Promise<void> {
  await db.schema
    .createTable('ledger_closing')
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('key', text, (column) => column.notNull())
    .addColumn('action', text, (column) => column.notNull())
    .addColumn('tool', text, (column) => column.notNull())
    .addColumn('call_id', text, (column) => column.notNull())
    .addColumn('account', text)
    .addColumn('amount_minor', 'bigint')
    .addColumn('currency', text)
    .addColumn('limit_minor', 'bigint')
    .addColumn('claimed_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('closed_by', text)
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('closed_at_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('ledger_closing_key', ['id'])
    .execute();
  await db.schema
    .createIndex('ledger_closing_by_age')
    .on('ledger_closing')
    .columns(['closed_at_ms', 'id'])
    .execute();
}

async function createMemory(db: Kysely<unknown>, text: RawBuilder<unknown>): Promise<void> {
  await db.schema
    .createTable('memory')
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('user_id', text, (column) => column.notNull())
    .addColumn('id', text, (column) => column.notNull())
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('relation', 'text', (column) => column.notNull())
    .addColumn('object', 'text', (column) => column.notNull())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('place', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('memory_key', ['app_name', 'user_id', 'id'])
    // Two that remember something of one user at once meet here, and the later one tries again.
    .addUniqueConstraint('memory_place', ['app_name', 'user_id', 'place'])
    .execute();
  await db.schema.createIndex('memory_by_user').on('memory').column('user_id').execute();
}
