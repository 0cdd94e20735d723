/**
 * Records of phone calls in the database, and their table. They go with the session of their call; those of a user with the user, and
 * what has none left by age.
 */
import { sql, type Kysely, type Migration, type RawBuilder } from 'kysely';
import type { CallRecord, NewCall } from './call-records.js';
import type { Connection } from './schema.js';
import type { SessionKey } from './store.js';

/** Ended or not; of one that has not ended `end_reason` is null as well. */
export interface CallTable {
  /** Also the id of its session. */
  call_sid: string;
  app_name: string;
  user_id: string;
  direction: 'inbound' | 'outbound';
  /** 0 or 1, as is `may_return`: the databases have no type for it in common. */
  caller_verified: number;
  owner: string;
  started_at_ms: number;
  ended_at_ms: number | null;
  end_reason: string | null;
  may_return: number;
}

/** `text` is the type of what is compared. */
export function callMigrations(text: RawBuilder<unknown>): Record<string, Migration> {
  return { '0009-calls': { up: (db: Kysely<unknown>) => createCalls(db, text) } };
}

async function createCalls(db: Kysely<unknown>, text: RawBuilder<unknown>): Promise<void> {
  await db.schema
    .createTable('calls')
    .addColumn('call_sid', text, (column) => column.notNull())
    .addColumn('app_name', text, (column) => column.notNull())
    .addColumn('user_id', text, (column) => column.notNull())
    .addColumn('direction', text, (column) => column.notNull())
    .addColumn('caller_verified', 'integer', (column) => column.notNull())
    .addColumn('owner', text, (column) => column.notNull())
    .addColumn('started_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('ended_at_ms', 'bigint')
    .addColumn('end_reason', text)
    .addColumn('may_return', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('calls_key', ['call_sid'])
    .execute();
  await db.schema.createIndex('calls_by_user').on('calls').column('user_id').execute();
  await db.schema.createIndex('calls_by_age').on('calls').column('started_at_ms').execute();
}

const GOES_ON = { ended_at_ms: null, end_reason: null, may_return: 0 } as const;

export async function insertCall(trx: Connection, call: NewCall, nowMs: number): Promise<void> {
  const columns = {
    app_name: call.appName,
    user_id: call.userId,
    direction: call.callDirection,
    caller_verified: call.callerVerified ? 1 : 0,
    owner: call.owner,
    ...GOES_ON,
  };
  await trx
    .insertInto('calls')
    .values({ ...columns, call_sid: call.callSid, started_at_ms: nowMs })
    .onConflict((conflict) => conflict.column('call_sid').doUpdateSet(columns))
    .execute();
}

export async function findCallRow(connection: Connection, callSid: string): Promise<CallRecord | undefined> {
  const row = await connection
    .selectFrom('calls')
    .selectAll()
    .where('call_sid', '=', callSid)
    .executeTakeFirst();
  return row && recordOf(row);
}

function recordOf(row: CallTable): CallRecord {
  const { call_sid: callSid, app_name: appName, user_id: userId, direction: callDirection, owner } = row;
  const { ended_at_ms: atMs, end_reason: reason, started_at_ms: startedAtMs } = row;
  const isEnded = atMs !== null && reason !== null;
  return {
    callSid,
    appName,
    userId,
    callDirection,
    callerVerified: row.caller_verified === 1,
    owner,
    startedAtMs,
    ...(isEnded && { ended: { atMs, reason, mayReturn: row.may_return === 1 } }),
  };
}

export async function endCallRow(
  trx: Connection,
  callSid: string,
  {
    owner,
    reason,
    mayReturn,
    nowMs,
  }: { readonly owner: string; readonly reason: string; readonly mayReturn: boolean; readonly nowMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('calls')
    .set({ ended_at_ms: nowMs, end_reason: reason, may_return: mayReturn ? 1 : 0 })
    .where('call_sid', '=', callSid)
    .where('owner', '=', owner)
    .where('ended_at_ms', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows) > 0;
}

/** One statement, which locks the row: whoever comes second finds another owner. */
export async function claimCallRow(
  trx: Connection,
  callSid: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('calls')
    .set({ owner: to, ...GOES_ON })
    .where('call_sid', '=', callSid)
    .where('owner', '=', from)
    .where((eb) => eb.or([eb('ended_at_ms', 'is', null), eb('may_return', '=', 1)]))
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows) > 0;
}

/** Those of one session, which its call gave its name. */
export async function deleteCallsOfSession(
  trx: Connection,
  { appName, userId, id }: SessionKey,
): Promise<void> {
  await trx
    .deleteFrom('calls')
    .where('call_sid', '=', id)
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .execute();
}

export async function deleteCallsOfUser(
  trx: Connection,
  { appName, userId }: { readonly appName: string | undefined; readonly userId: string },
): Promise<void> {
  let query = trx.deleteFrom('calls').where('user_id', '=', userId);
  if (appName !== undefined) query = query.where('app_name', '=', appName);
  await query.execute();
}

/** Older ones whose session is gone: its deletion came before the call was noted, or it was never made. */
export async function deleteOldCalls(trx: Connection, timeMs: number): Promise<void> {
  await trx
    .deleteFrom('calls')
    .where('started_at_ms', '<', timeMs)
    .where(
      sql<boolean>`not exists (select 1 from session where session.app_name = calls.app_name
        and session.user_id = calls.user_id and session.id = calls.call_sid)`,
    )
    .execute();
}

/** The record of a session's call, where that has ended: one that goes on is its server's to tell. */
export async function endedCallOf(
  connection: Connection,
  { appName, userId, id }: SessionKey,
): Promise<CallRecord | undefined> {
  const record = await findCallRow(connection, id);
  const isOfSession = record?.appName === appName && record.userId === userId;
  return isOfSession && record.ended !== undefined ? record : undefined;
}

/** Takes an ended call in as it was. No server has it, and none may go on with it. */
export async function importCall(
  trx: Connection,
  record: Required<Omit<CallRecord, 'owner'>>,
): Promise<void> {
  await trx
    .insertInto('calls')
    .values({
      call_sid: record.callSid,
      app_name: record.appName,
      user_id: record.userId,
      direction: record.callDirection,
      caller_verified: record.callerVerified ? 1 : 0,
      owner: '',
      started_at_ms: record.startedAtMs,
      ended_at_ms: record.ended.atMs,
      end_reason: record.ended.reason,
      may_return: 0,
    })
    .onConflict((conflict) => conflict.column('call_sid').doNothing())
    .execute();
}
