/**
 * Events out of the database. A long session is read in small pieces, and each piece is parsed in a turn of the event loop of its own, so
 * that whoever reads ten thousand events never holds up a call's sound. Events do not change and have no gaps, so that pieces
 * that are read one after the other fit together.
 */
import { sql } from 'kysely';
import { nextTurn } from '../clock.js';
import { StoreError } from '../errors.js';
import { eventSchema, type Event } from '../event/event.js';
import {
  EVENT_PAGE_MAX,
  EVENT_PAGE_MAX_BYTES,
  EVENT_READ_SLICE,
  EVENT_READ_SLICE_BYTES,
  SESSION_EVENTS_MAX,
  SESSION_EVENTS_MAX_BYTES,
} from '../limits.js';
import type { Connection, EventTable } from './schema.js';
import type { EventBound, SessionKey } from './store.js';
import type { Transactions } from './transactions.js';

type EventRow = Pick<EventTable, 'seq' | 'bytes' | 'body'>;

export function readEvent(body: string): Event {
  const read = eventSchema.safeParse(JSON.parse(body));
  if (read.success) return read.data;
  throw new StoreError('store_unusable', 'a stored event cannot be read: the database is damaged');
}

/** Their events, in slices, between which the event loop does what else is to be done. */
export async function readEvents(rows: readonly Pick<EventTable, 'body'>[]): Promise<Event[]> {
  const events: Event[] = [];
  let slice = 0;
  let chars = 0;
  for (const { body } of rows) {
    if (slice >= EVENT_READ_SLICE || (slice > 0 && chars + body.length > EVENT_READ_SLICE_BYTES)) {
      await nextTurn();
      slice = chars = 0;
    }
    events.push(readEvent(body));
    slice += 1;
    chars += body.length;
  }
  return events;
}

export interface NewestRows {
  /** Of the newest events, in order. */
  readonly rows: readonly EventRow[];
  /** Older ones come before this number. */
  readonly before: number;
  readonly left: Required<EventBound>;
}

/** The last piece of a session that has `lastSeq` events; the others are `olderEvents`. */
export function newestRows(
  connection: Connection,
  session: SessionKey,
  { lastSeq, newest }: { readonly lastSeq: number; readonly newest: EventBound },
): Promise<NewestRows> {
  const left = {
    events: Math.min(newest.events ?? SESSION_EVENTS_MAX, SESSION_EVENTS_MAX),
    bytes: Math.min(newest.bytes ?? SESSION_EVENTS_MAX_BYTES, SESSION_EVENTS_MAX_BYTES),
  };
  return pieceBefore(connection, session, { rows: [], before: lastSeq + 1, left });
}

/** All events that fit into the bound, in order, from the piece that has been read. */
export async function newestEvents(
  direct: Transactions['direct'],
  session: SessionKey,
  newest: NewestRows,
): Promise<Event[]> {
  const pieces: Event[][] = [];
  let piece = newest;
  pieces.push(await readEvents(piece.rows));
  while (mayHaveMore(piece)) {
    // The answers of a database that is quick may all come in one turn.
    await nextTurn();
    const last = piece;
    piece = await direct((db) => pieceBefore(db, session, last));
    pieces.push(await readEvents(piece.rows));
  }
  return pieces.toReversed().flat();
}

/** Whether there may be older ones that fit. */
export function mayHaveMore({ rows, before, left }: NewestRows): boolean {
  return rows.length > 0 && before > 1 && left.events > 0 && left.bytes > 0;
}

/** The piece before another, and what is left of the bound behind it; no rows where nothing more fits. */
async function pieceBefore(
  connection: Connection,
  session: SessionKey,
  { before, left }: NewestRows,
): Promise<NewestRows> {
  const first = Math.max(1, before - Math.min(left.events, EVENT_READ_SLICE));
  const piece = connection
    .selectFrom('event')
    .select(['seq', 'bytes', 'body', sql<number>`sum(bytes) over (order by seq desc)`.as('total')])
    .where('app_name', '=', session.appName)
    .where('user_id', '=', session.userId)
    .where('session_id', '=', session.id)
    .where('seq', '>=', first)
    .where('seq', '<', before);
  const rows = await connection
    .selectFrom(piece.as('piece'))
    .select(['seq', 'bytes', 'body'])
    .where('total', '<=', left.bytes)
    // One that is larger than a piece is a piece of its own.
    .where((eb) => eb.or([eb('total', '<=', EVENT_READ_SLICE_BYTES), eb('seq', '=', before - 1)]))
    .orderBy('seq')
    .execute();
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  return {
    rows,
    before: rows[0]?.seq ?? before,
    left: { events: left.events - rows.length, bytes: left.bytes - bytes },
  };
}

/** Rows after `after`, in order, bounded in number and bytes; at least one where there is one. */
export async function rowsAfter(
  connection: Connection,
  session: SessionKey,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<Pick<EventTable, 'seq' | 'body' | 'stored_at_ms'>[]> {
  const following = connection
    .selectFrom('event')
    .select(['seq', 'body', 'stored_at_ms', sql<number>`sum(bytes) over (order by seq)`.as('total')])
    .where('app_name', '=', session.appName)
    .where('user_id', '=', session.userId)
    .where('session_id', '=', session.id)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(Math.min(limit, EVENT_PAGE_MAX));
  return connection
    .selectFrom(following.as('following'))
    .select(['seq', 'body', 'stored_at_ms'])
    .where('total', '<=', EVENT_PAGE_MAX_BYTES)
    .orderBy('seq')
    .execute();
}
