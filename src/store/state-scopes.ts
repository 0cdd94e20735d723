/**
 * State keys by their prefix, as in ADK: none is the session's, `user:` the user's in one app, `app:` the app's, and `temp:`
 * lives only as long as the run and is never stored.
 */
import type { JsonObject } from '../event/event.js';
import type { SessionKey } from './store.js';

export const USER_PREFIX = 'user:';
const APP_PREFIX = 'app:';
const TEMP_PREFIX = 'temp:';

/** Who a stored thing belongs to: no user, it is the app's; no session, the user's. No real name is empty. */
export interface Owner {
  readonly appName: string;
  readonly userId: string;
  readonly sessionId: string;
}

export const NOBODY = '';

/** The owner of a state key, which is stored with its prefix; undefined for what is not stored. */
export function ownerOfKey({ appName, userId, id }: SessionKey, key: string): Owner | undefined {
  if (key.startsWith(TEMP_PREFIX)) return undefined;
  if (key.startsWith(APP_PREFIX)) return { appName, userId: NOBODY, sessionId: NOBODY };
  if (key.startsWith(USER_PREFIX)) return { appName, userId, sessionId: NOBODY };
  return { appName, userId, sessionId: id };
}

/** The owner of an artifact. ADK knows no `app:` artifacts. */
export function ownerOfArtifact({ appName, userId, id }: SessionKey, name: string): Owner {
  return { appName, userId, sessionId: name.startsWith(USER_PREFIX) ? NOBODY : id };
}

/** A delta without the keys that are never stored. */
export function withoutTemp(delta: JsonObject): JsonObject {
  const kept = Object.entries(delta).filter(([key]) => !key.startsWith(TEMP_PREFIX));
  return Object.fromEntries(kept);
}
