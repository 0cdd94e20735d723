/**
 * What a name must be to be stored, in words for whoever chose it: the same for the store, which refuses others, and for tools,
 * which are told where they use one. PostgreSQL's text has no NUL, an index entry is bounded, and a lone surrogate has no UTF-8.
 */
import { isWholeText } from '../input-fault.js';
import { STORE_NAME_MAX_BYTES } from '../limits.js';

/** What is wrong with a name; undefined for a good one. */
export function faultOfName(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'is not a string';
  if (name === '') return 'is empty';
  if (Buffer.byteLength(name) > STORE_NAME_MAX_BYTES) return `is longer than ${STORE_NAME_MAX_BYTES} bytes`;
  return faultOfCharacters(name);
}

export function faultOfCharacters(text: string): string | undefined {
  return isWholeText(text) ? undefined : 'holds a character that cannot be stored';
}
