/**
 * What is remembered of callers, in the database: one row a fact or relation, found again by a digest of its words.
 */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { StoreError } from '../errors.js';
import { MEMORY_FACT_MAX_CHARS, MEMORY_FACTS_MAX } from '../tool-limits.js';
import { noSession } from './event-rows.js';
import type { MemoryFact, MemoryOwner } from './memory.js';
import { isAfter } from './paging.js';
import type { Connection } from './schema.js';
import { checkName, checkText } from './stored-name.js';
import type { MemoryTable } from './tool-tables.js';

/** Callers without a number are made such an id each call. */
const ANONYMOUS = 'anonymous:';

/** The words of a fact or relation. */
export type MemoryWords = Pick<MemoryTable, 'id' | 'kind' | 'subject' | 'relation' | 'object'>;

/** @throws StoreError `store_refused` */
export function checkOwner({ appName, userId }: MemoryOwner): void {
  checkName('the app name', appName);
  checkName('the user id', userId);
  if (userId.startsWith(ANONYMOUS))
    throw new StoreError('store_refused', 'nothing is remembered of a caller whom nobody can know again');
}

/** @throws StoreError `store_refused` */
export function factWords(entity: string, fact: string): MemoryWords {
  return wordsOf({ kind: 'fact', subject: entity, relation: '', object: fact });
}

/** @throws StoreError `store_refused` */
export function relationWords(relation: { source: string; relation: string; target: string }): MemoryWords {
  checkWords(relation.relation);
  return wordsOf({
    kind: 'relation',
    subject: relation.source,
    relation: relation.relation,
    object: relation.target,
  });
}

function wordsOf(words: Omit<MemoryWords, 'id'>): MemoryWords {
  const { kind, subject, relation, object } = words;
  checkWords(subject);
  checkWords(object);
  const digest = createHash('sha256').update(JSON.stringify([kind, subject, relation, object]));
  return { id: digest.digest('base64url'), ...words };
}

function checkWords(text: string): void {
  checkText('what is to be remembered', text, MEMORY_FACT_MAX_CHARS);
}

/** Returns how many are new. */
export async function rememberWords(
  trx: Connection,
  owner: MemoryOwner,
  { words, nowMs }: { readonly words: readonly MemoryWords[]; readonly nowMs: number },
): Promise<number> {
  if (!(await lockUser(trx, owner))) throw noSession();
  const fresh = [...new Map(words.map((one) => [one.id, one])).values()];
  if (fresh.length === 0) return 0;
  const known = await ofOwner(trx, owner)
    .select('id')
    .where(
      'id',
      'in',
      fresh.map(({ id }) => id),
    )
    .execute();
  const place = await nextPlace(trx, owner);
  await trx
    .insertInto('memory')
    .values(
      fresh.map((one, at) => ({
        app_name: owner.appName,
        user_id: owner.userId,
        ...one,
        at_ms: nowMs,
        place: place + at,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['app_name', 'user_id', 'id']).doUpdateSet((eb) => ({
        at_ms: eb.ref('excluded.at_ms'),
        place: eb.ref('excluded.place'),
      })),
    )
    .execute();
  await forgetOldest(trx, owner);
  return fresh.length - known.length;
}

/** One that was kept elsewhere, with its time. `false`: it is known already. */
export async function insertMemory(
  trx: Connection,
  owner: MemoryOwner,
  { words, atMs }: { readonly words: MemoryWords; readonly atMs: number },
): Promise<boolean> {
  const place = await nextPlace(trx, owner);
  const added = await trx
    .insertInto('memory')
    .values({ app_name: owner.appName, user_id: owner.userId, ...words, at_ms: atMs, place })
    .onConflict((conflict) => conflict.columns(['app_name', 'user_id', 'id']).doNothing())
    .returning('id')
    .executeTakeFirst();
  if (added !== undefined) await forgetOldest(trx, owner);
  return added !== undefined;
}

/** Locks the newest session of the user until the commit, so that nothing is written behind a deletion's back. `false`: there is none. */
async function lockUser(trx: Connection, { appName, userId }: MemoryOwner): Promise<boolean> {
  const row = await trx
    .updateTable('session')
    .set((eb) => ({ last_seq: eb.ref('last_seq') }))
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('id', '=', (eb) =>
      eb
        .selectFrom('session as newest')
        .select('newest.id')
        .where('newest.app_name', '=', appName)
        .where('newest.user_id', '=', userId)
        .orderBy('newest.created_at_ms', 'desc')
        .orderBy('newest.id', 'desc')
        .limit(1),
    )
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

function ofOwner(connection: Connection, { appName, userId }: MemoryOwner) {
  return connection.selectFrom('memory').where('app_name', '=', appName).where('user_id', '=', userId);
}

async function nextPlace(trx: Connection, owner: MemoryOwner): Promise<number> {
  const { last } = await ofOwner(trx, owner)
    .select((eb) => eb.fn.max<number | null>('place').as('last'))
    .executeTakeFirstOrThrow();
  return (last ?? 0) + 1;
}

async function forgetOldest(trx: Connection, owner: MemoryOwner): Promise<void> {
  const surplus = await newestFirst(trx, owner)
    .select(['at_ms', 'place'])
    .limit(1)
    .offset(MEMORY_FACTS_MAX)
    .executeTakeFirst();
  if (surplus === undefined) return;
  await trx
    .deleteFrom('memory')
    .where('app_name', '=', owner.appName)
    .where('user_id', '=', owner.userId)
    .where((eb) => eb.not(isAfter(['at_ms', 'place'], [surplus.at_ms, surplus.place])))
    .execute();
}

function newestFirst(connection: Connection, owner: MemoryOwner) {
  return ofOwner(connection, owner).orderBy('at_ms', 'desc').orderBy('place', 'desc');
}

export async function recallFacts(
  connection: Connection,
  owner: MemoryOwner,
  limit: number,
): Promise<MemoryFact[]> {
  const rows = await newestFirst(connection, owner)
    .selectAll()
    .limit(Math.min(limit, MEMORY_FACTS_MAX))
    .execute();
  return rows.map(factOf);
}

function factOf({ kind, subject, relation, object, at_ms: atMs }: MemoryTable): MemoryFact {
  return kind === 'fact'
    ? { kind, entity: subject, fact: object, atMs }
    : { kind, source: subject, relation, target: object, atMs };
}

/** Returns how many. */
export async function deleteMemoryOf(
  trx: Connection,
  { appName, userId }: { readonly appName: string | undefined; readonly userId: string },
): Promise<number> {
  let query = trx.deleteFrom('memory').where('user_id', '=', userId);
  if (appName !== undefined) query = query.where('app_name', '=', appName);
  return Number((await query.executeTakeFirstOrThrow()).numDeletedRows);
}

/** What is older, of users who have no session left. Returns how many. */
export async function deleteOldMemory(trx: Connection, timeMs: number): Promise<number> {
  const deleted = await trx
    .deleteFrom('memory')
    .where('at_ms', '<', timeMs)
    .where(
      sql<boolean>`not exists (select 1 from session
        where session.app_name = memory.app_name and session.user_id = memory.user_id)`,
    )
    .executeTakeFirstOrThrow();
  return Number(deleted.numDeletedRows);
}
