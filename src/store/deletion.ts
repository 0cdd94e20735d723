/**
 * What is deleted together. A session's row goes first: whoever appends to it holds that row until its commit, so that nothing is
 * written behind the deletion's back, and what comes later finds no session.
 */
import { sql } from 'kysely';
import { DELETE_BATCH_SESSIONS } from '../limits.js';
import { deleteCallsOfSession, deleteCallsOfUser, deleteOldCalls } from './call-record-rows.js';
import { blankEntries } from './ledger-rows.js';
import { deleteMemoryOf, deleteOldMemory } from './memory-rows.js';
import type { Connection } from './schema.js';
import { NOBODY } from './state-scopes.js';
import type { DeletedCounts, SessionKey } from './store.js';
import type { Transactions } from './transactions.js';

type Change = Transactions['change'];

export const NOTHING_DELETED: DeletedCounts = {
  sessions: 0,
  events: 0,
  stateKeys: 0,
  artifactVersions: 0,
  memoryFacts: 0,
};

export function sumOf(a: DeletedCounts, b: DeletedCounts): DeletedCounts {
  return {
    sessions: a.sessions + b.sessions,
    events: a.events + b.events,
    stateKeys: a.stateKeys + b.stateKeys,
    artifactVersions: a.artifactVersions + b.artifactVersions,
    memoryFacts: a.memoryFacts + b.memoryFacts,
  };
}

/** One session, if its last activity was before `quietSinceMs`. */
export async function deleteOneSession(
  trx: Connection,
  { appName, userId, id }: SessionKey,
  quietSinceMs?: number,
): Promise<DeletedCounts> {
  let row = trx
    .deleteFrom('session')
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('id', '=', id);
  if (quietSinceMs !== undefined) row = row.where('updated_at_ms', '<', quietSinceMs);
  const { numDeletedRows: sessions } = await row.executeTakeFirstOrThrow();
  if (Number(sessions) === 0) return NOTHING_DELETED;
  const counts: number[] = [];
  // One after the other: a connection takes one statement at a time.
  for (const table of ['event', 'state', 'artifact', 'pending_call'] as const) {
    const deleted = await trx
      .deleteFrom(table)
      .where('app_name', '=', appName)
      .where('user_id', '=', userId)
      .where('session_id', '=', id)
      .executeTakeFirstOrThrow();
    counts.push(Number(deleted.numDeletedRows));
  }
  await deleteCallsOfSession(trx, { appName, userId, id });
  const [events = 0, stateKeys = 0, artifactVersions = 0] = counts;
  return { ...NOTHING_DELETED, sessions: Number(sessions), events, stateKeys, artifactVersions };
}

/** Batch by batch, each in its own transaction, until `find` finds none. */
async function deleteSessions(
  change: Change,
  find: (trx: Connection) => Promise<SessionKey[]>,
  quietSinceMs?: number,
): Promise<DeletedCounts> {
  let counts = NOTHING_DELETED;
  for (;;) {
    const { found, deleted } = await change(async (trx) => {
      const sessions = await find(trx);
      let sum = NOTHING_DELETED;
      for (const session of sessions) sum = sumOf(sum, await deleteOneSession(trx, session, quietSinceMs));
      return { found: sessions.length, deleted: sum };
    });
    counts = sumOf(counts, deleted);
    if (found < DELETE_BATCH_SESSIONS) return counts;
  }
}

/** Everything of one user, in one app or in all; the ledger's entries stay, without the user's names. What is written during the deletion is found, too, as long as it goes on. */
export async function deleteUserRows(
  change: Change,
  { appName, userId }: { readonly appName: string | undefined; readonly userId: string },
): Promise<DeletedCounts> {
  const sessions = await deleteSessions(change, (trx) => {
    let query = trx.selectFrom('session').select(['app_name as appName', 'user_id as userId', 'id']);
    query = query.where('user_id', '=', userId);
    if (appName !== undefined) query = query.where('app_name', '=', appName);
    return query.limit(DELETE_BATCH_SESSIONS).execute();
  });
  const rest = await change(async (trx) => {
    const counts: number[] = [];
    for (const table of ['state', 'artifact'] as const) {
      let query = trx.deleteFrom(table).where('user_id', '=', userId).where('session_id', '=', NOBODY);
      if (appName !== undefined) query = query.where('app_name', '=', appName);
      counts.push(Number((await query.executeTakeFirstOrThrow()).numDeletedRows));
    }
    const [stateKeys = 0, artifactVersions = 0] = counts;
    await blankEntries(trx, { appName, userId });
    await deleteCallsOfUser(trx, { appName, userId });
    const memoryFacts = await deleteMemoryOf(trx, { appName, userId });
    return { ...NOTHING_DELETED, stateKeys, artifactVersions, memoryFacts };
  });
  return sumOf(sessions, rest);
}

/** Sessions that were quiet since `timeMs`; then what is older of users who have no session left. */
export async function deleteOldRows(change: Change, timeMs: number): Promise<DeletedCounts> {
  const sessions = await deleteSessions(
    change,
    (trx) =>
      trx
        .selectFrom('session')
        .select(['app_name as appName', 'user_id as userId', 'id'])
        .where('updated_at_ms', '<', timeMs)
        .orderBy('updated_at_ms')
        .limit(DELETE_BATCH_SESSIONS)
        .execute(),
    timeMs,
  );
  const users = await change(async (trx) => {
    await deleteOldCalls(trx, timeMs);
    return {
      ...NOTHING_DELETED,
      stateKeys: await deleteOldState(trx, timeMs),
      artifactVersions: await deleteOldArtifacts(trx, timeMs),
      memoryFacts: await deleteOldMemory(trx, timeMs),
    };
  });
  return sumOf(sessions, users);
}

async function deleteOldState(trx: Connection, timeMs: number): Promise<number> {
  const deleted = await trx
    .deleteFrom('state')
    .where('user_id', '!=', NOBODY)
    .where('session_id', '=', NOBODY)
    .where('updated_at_ms', '<', timeMs)
    .where(
      sql<boolean>`not exists (select 1 from session
        where session.app_name = state.app_name and session.user_id = state.user_id)`,
    )
    .executeTakeFirstOrThrow();
  return Number(deleted.numDeletedRows);
}

/** All versions of a name or none: the next version must not be a number that was there before. */
async function deleteOldArtifacts(trx: Connection, timeMs: number): Promise<number> {
  const deleted = await trx
    .deleteFrom('artifact')
    .where('session_id', '=', NOBODY)
    .where(
      sql<boolean>`not exists (select 1 from artifact as newer
        where newer.app_name = artifact.app_name and newer.user_id = artifact.user_id and newer.session_id = ${NOBODY}
        and newer.name = artifact.name and newer.created_at_ms >= ${sql.lit(timeMs)})`,
    )
    .where(
      sql<boolean>`not exists (select 1 from session
        where session.app_name = artifact.app_name and session.user_id = artifact.user_id)`,
    )
    .executeTakeFirstOrThrow();
  return Number(deleted.numDeletedRows);
}
