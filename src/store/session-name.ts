/**
 * A session's key in one string, by which parts that keep something for each session find it.
 */
import type { SessionKey } from './store.js';

/** Two sessions have the same one only if all three names are the same. Personal, as the user's id is. */
export function sessionName({ appName, userId, id }: SessionKey): string {
  return JSON.stringify([appName, userId, id]);
}
