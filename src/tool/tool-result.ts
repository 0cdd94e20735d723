/**
 * What a handler or a callback returned, as the model is told it: an object as it is, anything else wrapped. The model's
 * own copy, which nobody changes afterwards.
 */
import { errorText } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { TOOL_ERROR_MAX_CHARS, TOOL_RESULT_MAX_CHARS } from '../tool-limits.js';

export type Response = JsonObject;

/** Of a handler. Never throws: what cannot be told becomes an error that says so. */
export function responseOf(value: unknown): Response {
  try {
    return tellable(value);
  } catch (error) {
    return errorResponse(`The tool ran, but ${errorText(error)}`);
  }
}

/** Of a guard: a content, too; undefined where it has nothing to say. Throws what is wrong with it. */
export function guardResponse(value: unknown): Response | undefined {
  return value === undefined || value === null ? undefined : tellable(contentOf(value));
}

export function errorResponse(error: string): Response {
  const told = error.trim() === '' ? 'It failed and did not say why.' : error;
  return { error: told.slice(0, TOOL_ERROR_MAX_CHARS) };
}

function tellable(value: unknown): Response {
  if (value instanceof Error) return errorResponse(errorText(value));
  let json: string | undefined;
  try {
    json = JSON.stringify(value, plain);
  } catch (error) {
    const [why] = errorText(error).split('\n');
    throw new TypeError(`what it returned cannot be told as JSON: ${why ?? ''}`, { cause: error });
  }
  if (json === undefined) return { result: null };
  if (json.length > TOOL_RESULT_MAX_CHARS)
    throw new RangeError(`its result is too long to tell (${json.length} characters).`);
  const told: unknown = JSON.parse(json);
  return isObject(told) ? told : { result: told };
}

/** What JSON would tell as an empty object, though there is something in it. */
function plain(_key: string, value: unknown): unknown {
  if (value instanceof Error) return errorText(value);
  if (value instanceof Map) return Object.fromEntries(value);
  return value instanceof Set ? [...value] : value;
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
