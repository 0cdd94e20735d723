/**
 * What a handler or a callback returned, as the model is told it: an object as it is, anything else wrapped. The model's
 * own copy, which nobody changes afterwards.
 */
import { errorText } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { ignoreRejection, isInstance } from '../foreign.js';
import { TOOL_ERROR_MAX_CHARS, TOOL_RESULT_MAX_CHARS } from '../tool-limits.js';

export type Response = JsonObject;

/** The text of what was thrown; of a run that knows secrets, without them. */
type TextOf = (error: unknown) => string;

/** Of a handler. Never throws: what cannot be told becomes an error that says so. */
export function responseOf(value: unknown, textOf: TextOf = errorText): Response {
  try {
    return tellable(value, textOf);
  } catch (error) {
    return errorResponse(`The tool ran, but ${textOf(error)}`);
  }
}

/** Of a guard: a content, too; undefined where it has nothing to say. Throws what is wrong with it. */
export function guardResponse(value: unknown, textOf: TextOf = errorText): Response | undefined {
  return value === undefined || value === null ? undefined : tellable(contentOf(value), textOf);
}

export function errorResponse(error: string): Response {
  const told = error.trim() === '' ? 'It failed and did not say why.' : error;
  return { error: told.slice(0, TOOL_ERROR_MAX_CHARS) };
}

function tellable(value: unknown, textOf: TextOf): Response {
  if (isInstance(value, Error)) return errorResponse(textOf(value));
  let json: string | undefined;
  try {
    json = jsonOf(value);
  } catch (error) {
    // Cut behind its secrets: half of one would not be found.
    const [why = ''] = textOf(error).split('\n');
    throw new TypeError(why, { cause: error });
  }
  if (json === undefined) return { result: null };
  if (json.length > TOOL_RESULT_MAX_CHARS)
    throw new RangeError(`its result is too long to tell (${json.length} characters).`);
  const told: unknown = JSON.parse(json);
  return isObject(told) ? told : { result: told };
}

/** Undefined for undefined. Throws a TypeError, in words that follow "the tool ran, but", for what JSON does not tell. */
export function jsonOf(value: unknown): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError(`it returned a ${typeof value}: return what the model is to be told.`);
  try {
    return JSON.stringify(value, plain);
  } catch (error) {
    if (isInstance(error, Untold)) throw error;
    throw new TypeError(`what it returned cannot be told as JSON: ${errorText(error)}`, { cause: error });
  }
}

/** JSON would tell it as an empty object, which passes for success. */
class Untold extends TypeError {}

/** What JSON would tell as an empty object, though there is something in it. */
function plain(key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (value instanceof Error) return errorText(value);
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  const what = hidden(value, key === '');
  if (what === undefined) return value;
  ignoreRejection(value);
  const where = key === '' ? '' : ` in ${key}`;
  throw new Untold(`it returned ${what.name}${where}: ${what.instead}.`);
}

/** What an object is that shows nothing of what it holds, and what to return in its place; undefined for any other. One that is
 * only part of a result must be of a kind that was certainly meant to be told. */
function hidden(
  value: object,
  isAll: boolean,
): { readonly name: string; readonly instead: string } | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null || Object.keys(value).length > 0) return undefined;
  // Bytes, and what stands for a plain value.
  if (ArrayBuffer.isView(value) || typeof value.valueOf() !== 'object') return undefined;
  const name = nameOf(value);
  const instead = insteadOf(value, name) ?? (isAll ? 'nothing of it can be told as JSON' : undefined);
  return instead === undefined
    ? undefined
    : { name: `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`, instead };
}

function insteadOf(value: object, name: string): string | undefined {
  if (name === 'Response') return 'return what it holds, such as await response.json()';
  if (value instanceof Promise) return 'await it';
  if (Symbol.asyncIterator in value || Symbol.iterator in value)
    return 'return the values that it gives, such as [...values]';
  return undefined;
}

/** Of its class, as far as it tells. */
function nameOf(value: object): string {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const ofClass = (value.constructor as { readonly name?: unknown } | undefined)?.name;
  return tag !== 'Object' || typeof ofClass !== 'string' || ofClass === '' ? tag : ofClass;
}

/** Whether it says that something went wrong; `error: false`, `null` and `''` say that nothing did. */
export function isError(response: Response): boolean {
  return Boolean(response['error']);
}

/** Nothing that a model could speak about: some ask again at once when they get it. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return isObject(value) && Object.keys(value).length === 0;
}

/** A content, as a callback may return one: its function response's payload, or its text. */
function contentOf(value: unknown): unknown {
  if (!isObject(value) || !Array.isArray(value['parts'])) return value;
  if (Object.keys(value).some((key) => key !== 'role' && key !== 'parts')) return value;
  const parts: readonly unknown[] = value['parts'];
  const isContent = (part: unknown): part is Record<string, unknown> =>
    isObject(part) && (typeof part['text'] === 'string' || isObject(part['functionResponse']));
  if (!parts.every(isContent)) return value;
  for (const { functionResponse } of parts) {
    if (isObject(functionResponse)) return functionResponse['response'] ?? {};
  }
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
