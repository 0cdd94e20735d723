/**
 * Events into the database. A session's row counts them: taking numbers from it locks it until the commit, so that appends to one
 * session from two servers come one after the other, each with its own numbers and its own state change.
 */
import { StoreError } from '../errors.js';
import type { PreparedEvent } from './prepared-event.js';
import type { Connection, EventTable } from './schema.js';
import { settleCalls } from './settled-calls.js';
import { writeState, type SessionChange } from './state-rows.js';
import { sessionName } from './session-name.js';
import type { AppendOutcome, SessionKey } from './store.js';

/** An event and its place in the batch. */
interface Member {
  readonly at: number;
  readonly event: PreparedEvent;
}

/** A session's events in one batch. */
interface Group {
  readonly session: SessionKey;
  readonly members: readonly Member[];
}

/** In one order, whoever appends, so that two servers never wait for each other. */
function groupsBySession(batch: readonly PreparedEvent[]): Group[] {
  const groups = new Map<string, { session: SessionKey; members: Member[] }>();
  for (const [at, event] of batch.entries()) {
    const name = sessionName(event.session);
    const group = groups.get(name) ?? { session: event.session, members: [] };
    group.members.push({ at, event });
    groups.set(name, group);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

/**
 * Stores a batch. `isRepeated` tells that it may be stored in part already: a try before met an event that was there, as after a
 * connection that broke at the commit. Then each id is looked up first.
 */
export async function appendBatch(
  trx: Connection,
  batch: readonly PreparedEvent[],
  { nowMs, isRepeated }: { readonly nowMs: number; readonly isRepeated: boolean },
): Promise<AppendOutcome[]> {
  const outcomes: AppendOutcome[] = [];
  const rows: EventTable[] = [];
  const settling: string[] = [];
  const changes: (SessionChange & { readonly at: number })[] = [];
  for (const group of groupsBySession(batch)) {
    const { session } = group;
    const { fresh: members, twins } = isRepeated
      ? await newMembers(trx, group, outcomes)
      : { fresh: group.members, twins: [] };
    if (members.length === 0) continue;
    const lastSeq = await takeNumbers(trx, session, members.length, nowMs);
    for (const [index, { at, event }] of members.entries()) {
      if (lastSeq === undefined) {
        outcomes[at] = { stored: false, error: noSession() };
        continue;
      }
      const seq = lastSeq - members.length + 1 + index;
      outcomes[at] = { stored: true, seq };
      rows.push(eventRow(event, seq, nowMs));
      if (event.maySettle) settling.push(event.id);
      changes.push(...event.changes.map((change) => ({ ...change, session, at })));
    }
    for (const [at, first] of twins) {
      const outcome = outcomes[first];
      if (outcome !== undefined) outcomes[at] = outcome;
    }
  }
  await insertEvents(trx, rows);
  await settleCalls(trx, settling, nowMs);
  changes.sort((a, b) => a.at - b.at);
  await writeState(trx, changes, nowMs);
  return outcomes;
}

export function noSession(): StoreError {
  return new StoreError('store_no_session', 'there is no such session, or it was deleted');
}

/** Counts events in, and returns the last one's number; undefined without the session. */
async function takeNumbers(
  trx: Connection,
  session: SessionKey,
  count: number,
  nowMs: number,
): Promise<number | undefined> {
  const row = await trx
    .updateTable('session')
    .set((eb) => ({ last_seq: eb('last_seq', '+', count), updated_at_ms: nowMs }))
    .where('app_name', '=', session.appName)
    .where('user_id', '=', session.userId)
    .where('id', '=', session.id)
    .returning('last_seq')
    .executeTakeFirst();
  return row?.last_seq;
}

/** Those that are not stored. The others get their outcome: now, or that of the same event earlier in the batch. */
async function newMembers(
  trx: Connection,
  { session, members }: Group,
  outcomes: AppendOutcome[],
): Promise<{ readonly fresh: Member[]; readonly twins: (readonly [at: number, first: number])[] }> {
  const rows = await trx
    .selectFrom('event')
    .select(['id', 'seq', 'body'])
    .where('app_name', '=', session.appName)
    .where('user_id', '=', session.userId)
    .where('session_id', '=', session.id)
    .where('id', 'in', [...new Set(members.map(({ event }) => event.id))])
    .execute();
  const stored = new Map(rows.map(({ id, seq, body }) => [id, { seq, body }]));
  const fresh = new Map<string, Member>();
  const twins: [number, number][] = [];
  for (const member of members) {
    const { at, event } = member;
    const known = stored.get(event.id);
    const first = fresh.get(event.id);
    if (known === undefined && first === undefined) fresh.set(event.id, member);
    else if ((known?.body ?? first?.event.body) !== event.body)
      outcomes[at] = {
        stored: false,
        error: new StoreError('store_conflict', 'another event with this id is stored'),
      };
    else if (known !== undefined) outcomes[at] = { stored: true, seq: known.seq };
    else if (first !== undefined) twins.push([at, first.at]);
  }
  return { fresh: [...fresh.values()], twins };
}

function eventRow({ session, id, bytes, body }: PreparedEvent, seq: number, nowMs: number): EventTable {
  const { appName, userId, id: sessionId } = session;
  return {
    app_name: appName,
    user_id: userId,
    session_id: sessionId,
    seq,
    id,
    stored_at_ms: nowMs,
    bytes,
    body,
  };
}

/** Eight values a row, and SQLite binds at most 32,766 of them. */
const ROWS_PER_INSERT = 500;

export async function insertEvents(trx: Connection, rows: readonly EventTable[]): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    await trx
      .insertInto('event')
      .values(rows.slice(from, from + ROWS_PER_INSERT))
      .execute();
  }
}
