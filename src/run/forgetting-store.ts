/**
 * The store as those see it who delete from it: what is deleted there is forgotten in memory too, once it is gone from the
 * database. A deletion that fails forgets nothing.
 */
import type { SessionKey, Store } from '../store/store.js';

/** Whose words are to be forgotten: all that is named must fit. */
export interface Deleted {
  readonly appName?: string;
  readonly userId?: string;
  readonly sessionId?: string;
}

export interface Memory {
  /** Sessions whose words are in memory though their calls are over. */
  kept(): Iterable<SessionKey>;
  forget(deleted: Deleted): void;
}

export function forgettingStore(store: Store, memory: Memory): Store {
  const forget = (deleted: Deleted): void => memory.forget(deleted);
  const deletions: Pick<Store, 'deleteSession' | 'deleteUser' | 'deleteOlderThan'> = {
    async deleteSession(session) {
      const wasThere = await store.deleteSession(session);
      forget({ appName: session.appName, userId: session.userId, sessionId: session.id });
      return wasThere;
    },
    async deleteUser(app, userId) {
      const counts = await store.deleteUser(app, userId);
      forget({ ...(app !== 'all' && app), userId });
      return counts;
    },
    async deleteOlderThan(timeMs) {
      const counts = await store.deleteOlderThan(timeMs);
      // By what is gone, not by time: the database goes by a session's last event, and memory by a call's end.
      for (const session of counts.sessions > 0 ? [...memory.kept()] : []) {
        if ((await store.getSession(session, { events: 1 })) !== undefined) continue;
        forget({ appName: session.appName, userId: session.userId, sessionId: session.id });
      }
      return counts;
    },
  };
  return new Proxy(store, {
    get(target, key) {
      if (Object.hasOwn(deletions, key)) return Reflect.get(deletions, key) as unknown;
      const member: unknown = Reflect.get(target, key);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
