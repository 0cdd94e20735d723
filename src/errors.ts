/**
 * Every error code of the server, once: whether a retry can help and who is told. Expected outcomes (busy, not found)
 * are returned values, not errors; broken invariants are asserts. `docs/errors.md` holds the same list.
 */
import { THROWN_TEXT_TOLD_MAX_CHARS, THROWN_VALUES_TOLD_MAX } from './limits.js';

export const ERROR_CODES = {
  config_invalid: { retryable: false, told: 'operator' },
  listen_failed: { retryable: true, told: 'operator' },
  agent_invalid: { retryable: false, told: 'operator' },
  model_unreachable: { retryable: true, told: 'caller' },
  model_setup_refused: { retryable: false, told: 'caller' },
  model_connect_timeout: { retryable: true, told: 'caller' },
  model_connect_aborted: { retryable: false, told: 'nobody' },
  rehearsal_failed: { retryable: false, told: 'operator' },
  speech_failed: { retryable: true, told: 'operator' },
  twilio_rest_failed: { retryable: true, told: 'operator' },
  sound_file_invalid: { retryable: false, told: 'operator' },
  run_conflict: { retryable: true, told: 'nobody' },
  run_refused: { retryable: true, told: 'nobody' },
  server_draining: { retryable: true, told: 'nobody' },
  fixture_invalid: { retryable: false, told: 'operator' },
  phone_failed: { retryable: true, told: 'operator' },
  store_failed: { retryable: true, told: 'operator' },
  store_unusable: { retryable: false, told: 'operator' },
  store_refused: { retryable: false, told: 'operator' },
  store_conflict: { retryable: false, told: 'operator' },
  store_no_session: { retryable: false, told: 'operator' },
} as const satisfies Record<string, { retryable: boolean; told: 'operator' | 'caller' | 'nobody' }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The base of all operating failures. The message carries no personal data. */
export class AppError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }

  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable;
  }
}

/** A variable or an agent module that the server cannot start with. */
export class ConfigError extends AppError {}
/** The live model or its stand-in. */
export class ModelError extends AppError {}
/** The carrier: sockets, webhooks, REST. */
export class TelephonyError extends AppError {}
/** Sound files and speech synthesis. */
export class AudioError extends AppError {}

/** A recorded call, or one written by hand, that cannot be read. */
export class FixtureError extends AppError {}

/** The database: what it holds, what it takes, and whether it answers. */
export class StoreError extends AppError {}

/** What a command says of an error on standard error: each line of it behind the command's name. */
export function complaint(command: string, error: unknown): string {
  const lines = errorText(error).split('\n');
  return lines.map((line) => `${command}: ${line}\n`).join('');
}

/** The text of anything that was thrown: authors' code may throw what has no text, or a message that is none. Never throws. */
export function errorText(error: unknown): string {
  try {
    const text: unknown = error instanceof Error ? error.message : error;
    if (typeof text === 'string') return text;
    return typeof text === 'object' && text !== null ? objectText(text) : String(text);
  } catch {
    return NO_TEXT;
  }
}

const NO_TEXT = 'what was thrown has no text';

/** As it words itself, otherwise as short JSON. */
function objectText(thrown: object): string {
  const isPlain = [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(thrown) as null);
  const own = isPlain ? '' : (thrown as { toString(): unknown }).toString();
  if (typeof own === 'string' && own !== '' && !own.startsWith('[object ')) return own;
  const json = shortJson(thrown);
  return json === '{}' ? NO_TEXT : json;
}

/** Values beyond the bounds are left out whole, never cut: half a secret would not be found in it. */
function shortJson(thrown: object): string {
  const seen = new Set<unknown>();
  let left = THROWN_VALUES_TOLD_MAX;
  return JSON.stringify(thrown, (_key, value: unknown) => {
    if ((left -= 1) < 0) return undefined;
    if (typeof value === 'string')
      return value.length <= THROWN_TEXT_TOLD_MAX_CHARS ? value : `(${value.length} characters)`;
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return '…';
    seen.add(value);
    if (value instanceof Error) return errorText(value);
    return Array.isArray(value) ? value.slice(0, left) : value;
  });
}
