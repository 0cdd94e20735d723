/**
 * Waiting function calls in the database. A session's row is locked while one is added, so that their number is exact and none is
 * written behind a deletion's back; of two that decide or settle, the database lets one change the row.
 */
import { z } from 'zod';
import { StoreError } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { PENDING_CALLS_MAX, PENDING_PAGE_MAX } from '../tool-limits.js';
import { noSession } from './event-rows.js';
import { isAfter, readCursor, readPage } from './paging.js';
import type { DecidedCall, DecideOutcome, Decision, KnownCall, PendingCall } from './pending-calls.js';
import type { Connection } from './schema.js';
import { touchSession } from './session-rows.js';
import { storedJson } from './stored-json.js';
import { checkName, checkSession } from './stored-name.js';
import type { Page, PageRequest, SessionKey } from './store.js';
import type { PendingCallTable } from './tool-tables.js';

/** @throws StoreError `store_refused` */
export function pendingRow(call: PendingCall): PendingCallTable {
  const { id, session, callSid, invocationId, callId, tool, kind, requestedAtMs } = call;
  checkSession(session);
  checkName("the pending call's id", id);
  if (callSid !== '') checkName('the CallSid', callSid);
  checkName('the invocation id', invocationId);
  checkName('the call id', callId);
  checkName('the tool', tool);
  if (!Number.isFinite(requestedAtMs))
    throw new StoreError('store_refused', 'the time is not a number of milliseconds');
  const args = storedJson('the arguments', call.args);
  const guards = storedJson('the guards', call.guards);
  return {
    id,
    app_name: session.appName,
    user_id: session.userId,
    session_id: session.id,
    call_sid: callSid,
    invocation_id: invocationId,
    call_id: callId,
    tool,
    args,
    guards,
    kind,
    requested_at_ms: Math.floor(requestedAtMs),
    decision: null,
    decided_by: null,
    decided_at_ms: null,
    settled_at_ms: null,
    working_at_ms: call.isWorking === true ? Math.floor(requestedAtMs) : null,
    bytes: Buffer.byteLength(args) + Buffer.byteLength(guards),
  };
}

export async function insertPendingCall(
  trx: Connection,
  row: PendingCallTable,
  nowMs: number,
): Promise<void> {
  if (!(await touchSession(trx, sessionOf(row), nowMs))) throw noSession();
  const { waiting } = await trx
    .selectFrom('pending_call')
    .select((eb) => eb.fn.countAll<number>().as('waiting'))
    .where('app_name', '=', row.app_name)
    .where('user_id', '=', row.user_id)
    .where('session_id', '=', row.session_id)
    .where('settled_at_ms', 'is', null)
    .executeTakeFirstOrThrow();
  if (waiting >= PENDING_CALLS_MAX)
    throw new StoreError('store_refused', `a session has at most ${PENDING_CALLS_MAX} calls that wait`);
  const added = await trx
    .insertInto('pending_call')
    .values({ ...row, ...(row.working_at_ms !== null && { working_at_ms: nowMs }) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst();
  if (added === undefined)
    throw new StoreError('store_conflict', 'a pending call with this id is stored already');
}

const ORDER = ['requested_at_ms', 'id'] as const;
const cursorSchema = z.tuple([z.int(), z.string()]);

/** Oldest first. */
export async function pageOfPendingCalls(
  connection: Connection,
  { after, limit = PENDING_PAGE_MAX }: PageRequest<string>,
): Promise<Page<PendingCall, string>> {
  let query = connection
    .selectFrom('pending_call')
    .where('settled_at_ms', 'is', null)
    .where('decision', 'is', null);
  if (after !== undefined)
    query = query.where(isAfter(ORDER, readCursor(cursorSchema, after, 'pending calls')));
  for (const column of ORDER) query = query.orderBy(column);
  return readPage({
    order: ORDER,
    rowsMax: Math.min(limit, PENDING_PAGE_MAX),
    sizes: (rowsMax) =>
      query
        .select([...ORDER, 'bytes'])
        .limit(rowsMax)
        .execute(),
    upTo: async (last) => {
      const rows = await query
        .selectAll()
        .where((eb) => eb.not(isAfter(ORDER, last)))
        .execute();
      return rows.map(callOf);
    },
  });
}

export async function findCall(connection: Connection, id: string): Promise<KnownCall | undefined> {
  const row = await connection
    .selectFrom('pending_call')
    .select(['id', 'decision', 'settled_at_ms'])
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { decision, settled_at_ms: settledAtMs } = row;
  return { id, isSettled: settledAtMs !== null, ...(decision !== null && { decision }) };
}

export async function decideCall(
  trx: Connection,
  id: string,
  {
    decision,
    by,
    nowMs,
  }: { readonly decision: Decision; readonly by: string | undefined; readonly nowMs: number },
): Promise<DecideOutcome> {
  const row = await trx
    .updateTable('pending_call')
    .set({ decision, decided_by: by ?? null, decided_at_ms: nowMs })
    .where('id', '=', id)
    .where('decision', 'is', null)
    .where('settled_at_ms', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined)
    return { kind: 'decided', call: { ...callOf(row), decision, by, decidedAtMs: nowMs } };
  const known = await findCall(trx, id);
  if (known === undefined) return { kind: 'unknown' };
  return { kind: 'repeat', ...(known.decision && { decision: known.decision }) };
}

export async function handOverCall(trx: Connection, id: string): Promise<void> {
  await trx.updateTable('pending_call').set({ working_at_ms: null }).where('id', '=', id).execute();
}

export async function keepCalls(trx: Connection, ids: readonly string[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  await trx
    .updateTable('pending_call')
    .set({ working_at_ms: nowMs })
    .where('id', 'in', ids)
    .where('settled_at_ms', 'is', null)
    .where('working_at_ms', 'is not', null)
    .execute();
}

export async function lostCalls(connection: Connection, beforeMs: number): Promise<PendingCall[]> {
  const rows = await connection
    .selectFrom('pending_call')
    .selectAll()
    .where('settled_at_ms', 'is', null)
    .where('decision', 'is', null)
    .where('working_at_ms', '<', beforeMs)
    .orderBy('working_at_ms')
    .limit(PENDING_PAGE_MAX)
    .execute();
  return rows.map(callOf);
}

/** In the order of the decisions. */
export async function decidedCalls(connection: Connection): Promise<DecidedCall[]> {
  const rows = await connection
    .selectFrom('pending_call')
    .selectAll()
    .where('settled_at_ms', 'is', null)
    .where('decision', 'is not', null)
    .orderBy('decided_at_ms')
    .orderBy('id')
    .execute();
  return rows.flatMap((row) => {
    const { decision, decided_by: by, decided_at_ms: decidedAtMs } = row;
    if (decision === null || decidedAtMs === null) return [];
    return [{ ...callOf(row), decision, by: by ?? undefined, decidedAtMs }];
  });
}

function sessionOf({ app_name: appName, user_id: userId, session_id: id }: PendingCallTable): SessionKey {
  return { appName, userId, id };
}

function callOf(row: PendingCallTable): PendingCall {
  return {
    id: row.id,
    session: sessionOf(row),
    callSid: row.call_sid,
    invocationId: row.invocation_id,
    callId: row.call_id,
    tool: row.tool,
    args: JSON.parse(row.args) as JsonObject,
    kind: row.kind,
    guards: JSON.parse(row.guards) as string[],
    requestedAtMs: row.requested_at_ms,
    ...(row.working_at_ms !== null && { isWorking: true }),
  };
}
