/**
 * State in the database: one row a key, owned by a session, a user or an app.
 */
import type { JsonObject } from '../event/event.js';
import { STATE_BATCH_KEYS } from '../limits.js';
import type { StateChange } from './prepared-event.js';
import type { Connection, StateTable } from './schema.js';
import { NOBODY, ownerOfKey } from './state-scopes.js';
import type { SessionKey } from './store.js';

export interface SessionChange extends StateChange {
  readonly session: SessionKey;
}

/** The session's keys with its user's and its app's. */
export async function readState(connection: Connection, session: SessionKey): Promise<JsonObject> {
  const rows = await connection
    .selectFrom('state')
    .select(['key', 'value'])
    .where('app_name', '=', session.appName)
    .where((eb) =>
      eb.or([
        eb.and({ user_id: session.userId, session_id: session.id }),
        eb.and({ user_id: session.userId, session_id: NOBODY }),
        eb.and({ user_id: NOBODY, session_id: NOBODY }),
      ]),
    )
    .orderBy('key')
    .execute();
  // Not by assignment: a key may be named `__proto__`.
  return Object.fromEntries(rows.map(({ key, value }) => [key, JSON.parse(value) as unknown]));
}

/**
 * Writes changes, the last of a key winning. In one order, whoever writes, so that two servers never wait for each other; the
 * session's row must be locked before.
 */
export async function writeState(
  trx: Connection,
  changes: readonly SessionChange[],
  nowMs: number,
): Promise<void> {
  const rows = new Map<string, StateTable>();
  for (const { session, key, value } of changes) {
    const owner = ownerOfKey(session, key);
    if (owner === undefined) continue;
    const { appName, userId, sessionId } = owner;
    const row = {
      app_name: appName,
      user_id: userId,
      session_id: sessionId,
      key,
      value,
      updated_at_ms: nowMs,
    };
    rows.set(JSON.stringify([appName, userId, sessionId, key]), row);
  }
  const ordered = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  for (let from = 0; from < ordered.length; from += STATE_BATCH_KEYS) {
    await trx
      .insertInto('state')
      .values(ordered.slice(from, from + STATE_BATCH_KEYS))
      .onConflict((conflict) =>
        conflict.columns(['app_name', 'user_id', 'session_id', 'key']).doUpdateSet((eb) => ({
          value: eb.ref('excluded.value'),
          updated_at_ms: eb.ref('excluded.updated_at_ms'),
        })),
      )
      .execute();
  }
}
