/**
 * Names as both databases hold them, by the rules of `src/event/name-fault.ts`. A name that would come back as another one is refused before it is used.
 */
import { StoreError } from '../errors.js';
import { faultOfCharacters, faultOfName } from '../event/name-fault.js';
import type { SessionKey } from './store.js';

/** Whether anything can be stored under this name at all. */
export function isName(name: unknown): boolean {
  return faultOfName(name) === undefined;
}

/** @throws StoreError `store_refused`; the message does not hold the name, which may be a caller's number. */
export function checkName(what: string, name: unknown): void {
  const why = faultOfName(name);
  if (why !== undefined) throw new StoreError('store_refused', `${what} ${why}`);
}

/** Words, which are no name and in no index. @throws StoreError `store_refused`; the message does not hold them. */
export function checkText(what: string, text: unknown, charsMax: number): void {
  const why = faultOfText(text, charsMax);
  if (why !== undefined) throw new StoreError('store_refused', `${what} ${why}`);
}

function faultOfText(text: unknown, charsMax: number): string | undefined {
  if (typeof text !== 'string') return 'is not a string';
  if (text.trim() === '') return 'is empty';
  if (text.length > charsMax) return `is longer than ${charsMax} characters`;
  return faultOfCharacters(text);
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
