/**
 * Values that are kept as JSON in which NUL and half characters are escapes, so that both databases give them back as they were.
 */
import { StoreError } from '../errors.js';
import { EVENT_MAX_BYTES } from '../limits.js';

/** As it is now, whatever becomes of the value. @throws StoreError `store_refused`; the message does not hold the value. */
export function storedJson(what: string, value: object): string {
  const json = jsonOf(value);
  // Also what JSON has no word for, such as a function.
  if (typeof json !== 'string') throw new StoreError('store_refused', `${what} cannot be written as JSON`);
  const bytes = Buffer.byteLength(json);
  if (bytes > EVENT_MAX_BYTES)
    throw new StoreError(
      'store_refused',
      `${what} would take ${bytes} bytes, above the bound of ${EVENT_MAX_BYTES}`,
    );
  return json;
}

function jsonOf(value: object): unknown {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
