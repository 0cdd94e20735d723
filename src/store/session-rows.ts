/**
 * Sessions in the database: made, found, listed by pages, newest first.
 */
import { sql } from 'kysely';
import { z } from 'zod';
import { StoreError } from '../errors.js';
import { SESSION_PAGE_MAX } from '../limits.js';
import type { Connection, SessionTable } from './schema.js';
import { checkName } from './stored-name.js';
import type { Page, PageRequest, SessionKey, SessionSummary } from './store.js';

/** `false`: it was there already. */
export async function insertSession(trx: Connection, row: SessionTable): Promise<boolean> {
  const made = await trx
    .insertInto('session')
    .values(row)
    .onConflict((conflict) => conflict.columns(['app_name', 'user_id', 'id']).doNothing())
    .returning('last_seq')
    .executeTakeFirst();
  return made !== undefined;
}

export function findSession(
  connection: Connection,
  { appName, userId, id }: SessionKey,
): Promise<SessionTable | undefined> {
  return connection
    .selectFrom('session')
    .selectAll()
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Notes activity, and locks the session until the commit. `false`: there is none. */
export async function touchSession(
  trx: Connection,
  { appName, userId, id }: SessionKey,
  nowMs: number,
): Promise<boolean> {
  const row = await trx
    .updateTable('session')
    .set({ updated_at_ms: nowMs })
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning('last_seq')
    .executeTakeFirst();
  return row !== undefined;
}

export function summaryOf(row: SessionTable): SessionSummary {
  const {
    app_name: appName,
    user_id: userId,
    id,
    created_at_ms: createdAtMs,
    updated_at_ms: updatedAtMs,
  } = row;
  return { appName, userId, id, createdAtMs, updatedAtMs };
}

export interface SessionFilter {
  readonly appName?: string;
  readonly userId?: string;
}

const cursorSchema = z.tuple([z.int(), z.string(), z.string(), z.string()]);
type Cursor = z.infer<typeof cursorSchema>;

export async function pageOfSessions(
  connection: Connection,
  filter: SessionFilter,
  { after, limit = SESSION_PAGE_MAX }: PageRequest<string>,
): Promise<Page<SessionSummary, string>> {
  const count = Math.min(limit, SESSION_PAGE_MAX);
  let query = connection.selectFrom('session').selectAll();
  if (filter.appName !== undefined) query = query.where('app_name', '=', filter.appName);
  if (filter.userId !== undefined) query = query.where('user_id', '=', filter.userId);
  if (after !== undefined) query = query.where(isBefore(readCursor(after)));
  const rows = await query
    .orderBy('created_at_ms', 'desc')
    .orderBy('app_name', 'desc')
    .orderBy('user_id', 'desc')
    .orderBy('id', 'desc')
    .limit(count + 1)
    .execute();
  const last = rows.length > count ? rows[count - 1] : undefined;
  return { items: rows.slice(0, count).map(summaryOf), ...(last && { next: writeCursor(last) }) };
}

function isBefore([createdAtMs, appName, userId, id]: Cursor) {
  return sql<boolean>`(created_at_ms, app_name, user_id, id) < (${sql.lit(createdAtMs)}, ${appName}, ${userId}, ${id})`;
}

function writeCursor({
  created_at_ms: createdAtMs,
  app_name: appName,
  user_id: userId,
  id,
}: SessionTable): string {
  return Buffer.from(JSON.stringify([createdAtMs, appName, userId, id])).toString('base64url');
}

function readCursor(cursor: string): Cursor {
  try {
    const read = cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    for (const name of read.slice(1)) checkName('a name in the cursor', name);
    return read;
  } catch {
    throw new StoreError('store_refused', 'the cursor is not one that a page of sessions gave');
  }
}
