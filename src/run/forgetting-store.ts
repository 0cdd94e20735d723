/**
 * The store as those see it who delete from it: what is deleted there is forgotten in memory too, once it is gone from the
 * database. A deletion that fails forgets nothing.
 */
import type { Store } from '../store/store.js';

/** Whose words are to be forgotten: all that is named must fit. */
export interface Deleted {
  readonly appName?: string;
  readonly userId?: string;
  readonly sessionId?: string;
  /** Only what ended before this time. */
  readonly beforeMs?: number;
}

export function forgettingStore(store: Store, forget: (deleted: Deleted) => void): Store {
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
      forget({ beforeMs: timeMs });
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
