/**
 * What a handler or a callback returned, as the model is told it: an object as it is, anything else wrapped. The model's
 * own copy, which nobody changes afterwards.
 */
import { errorText } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { TOOL_ERROR_MAX_CHARS, TOOL_RESULT_MAX_CHARS } from '../tool-limits.js';

export type Response = JsonObject;

/** Of a handler. Never throws: what cannot be told becomes an error that says so; `textOf` is the error's text. */
export function responseOf(value: unknown, textOf: (error: unknown) => string = errorText): Response {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    const [why] = textOf(error).split('\n');
    return errorResponse(`The tool ran, but what it returned cannot be told as JSON: ${why ?? ''}`);
  }
  if (json === undefined) return { result: null };
  if (json.length > TOOL_RESULT_MAX_CHARS) {
    return errorResponse(`The tool ran, but its result is too long to tell (${json.length} characters).`);
  }
  const told: unknown = JSON.parse(json);
  return isObject(told) ? told : { result: told };
}

export function errorResponse(error: string): Response {
  return { error: error.slice(0, TOOL_ERROR_MAX_CHARS) };
}

/** Of a guard: a content, too. Never throws. */
export function guardResponse(value: unknown, textOf: (error: unknown) => string = errorText): Response {
  return responseOf(contentOf(value), textOf);
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
  if (!parts.every(isObject)) return value;
  for (const { functionResponse } of parts) {
    if (isObject(functionResponse)) return functionResponse['response'] ?? {};
  }
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
