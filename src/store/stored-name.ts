/**
 * Names as both databases hold them: PostgreSQL's text has no NUL, an index entry is bounded, and a lone surrogate has no
 * UTF-8. A name that would come back as another one is refused before it is used.
 */
import { StoreError } from '../errors.js';
import { isWholeText } from '../input-fault.js';
import { STORE_NAME_MAX_BYTES } from '../limits.js';
import type { SessionKey } from './store.js';

/** @throws StoreError `store_refused`; the message does not hold the name, which may be a caller's number. */
export function checkName(what: string, name: unknown): void {
  const why =
    typeof name !== 'string'
      ? 'is not a string'
      : name === ''
        ? 'is empty'
        : Buffer.byteLength(name) > STORE_NAME_MAX_BYTES
          ? `is longer than ${STORE_NAME_MAX_BYTES} bytes`
          : !isWholeText(name)
            ? 'holds a character that a name cannot have'
            : undefined;
  if (why !== undefined) throw new StoreError('store_refused', `${what} ${why}`);
}

/** RFC 9110, 8.3.1, in printable ASCII: anything else cannot be the value of a header. */
const TOKEN = String.raw`[!#$%&'*+.^_\`|~0-9A-Za-z-]+`;
const MIME_TYPE = new RegExp(
  String.raw`^${TOKEN}/${TOKEN}(?:[ \t]*;[ \t]*${TOKEN}=(?:${TOKEN}|"(?:[ !#-\[\]-~]|\\[ -~])*"))*$`,
);

/** Whether it can be told as `Content-Type`. */
export function isMimeType(text: string): boolean {
  return MIME_TYPE.test(text);
}

/** @throws StoreError `store_refused` */
export function checkMimeType(text: string): void {
  checkName('the MIME type', text);
  if (!isMimeType(text)) throw new StoreError('store_refused', 'the MIME type is none');
}

/** @throws StoreError `store_refused` */
export function checkSession({ appName, userId, id }: SessionKey): void {
  checkName('the app name', appName);
  checkName('the user id', userId);
  checkName('the session id', id);
}

/** @throws StoreError `store_refused` */
export function checkFilter({
  appName,
  userId,
}: {
  readonly appName?: string;
  readonly userId?: string;
}): void {
  if (appName !== undefined) checkName('the app name', appName);
  if (userId !== undefined) checkName('the user id', userId);
}
