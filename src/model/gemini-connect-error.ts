/**
 * Why a connect failed, in words that are safe to log. The API key travels in the URL, so everything that comes from
 * the socket or the SDK passes through `maskSecrets` first; the provider's own words are kept apart from the message.
 */
import { ModelError, type ErrorCode } from '../errors.js';
import type { SocketEnd } from './gemini-socket.js';

export type ConnectErrorCode = Extract<ErrorCode, `model_${string}`>;

/** Takes secrets out of text that may go into a log or an error. */
export type MaskSecrets = (text: string) => string;

/** A shorter secret guards nothing, and masking it would eat into ordinary words. Google's keys have 39 characters. */
const SECRET_MIN_CHARS = 8;

/** Masks `secrets`, plain and as a URL holds them, and whatever a URL calls a key. */
export function maskSecrets(secrets: readonly string[]): MaskSecrets {
  const hidden = secrets
    .filter((secret) => secret.length >= SECRET_MIN_CHARS)
    .flatMap((one) => [one, encodeURIComponent(one)]);
  return (text) => {
    const masked = hidden.reduce((sofar, secret) => sofar.replaceAll(secret, '***'), text);
    return masked.replaceAll(/([?&](?:key|access_token)=)[^&\s"'`]*/g, '$1***');
  };
}

export class ModelConnectError extends ModelError {
  /** The HTTP status where the handshake was refused. */
  readonly httpStatus: number | undefined;
  /** The WebSocket close code where the socket was closed before setup was complete. */
  readonly closeCode: number | undefined;
  readonly #providerReason: string;

  constructor(
    code: ConnectErrorCode,
    message: string,
    details: { cause?: unknown; httpStatus?: number; closeCode?: number; providerReason?: string } = {},
  ) {
    super(code, message, details.cause === undefined ? {} : { cause: details.cause });
    this.httpStatus = details.httpStatus;
    this.closeCode = details.closeCode;
    this.#providerReason = details.providerReason ?? '';
  }

  /** What the server said of the setup, at most 123 bytes, secrets masked. No caller was heard before it, so that an
   * operator may read it in the log. Not enumerable. */
  get providerReason(): string {
    return this.#providerReason;
  }
}

/** A copy of what was thrown that holds no secret, neither in its message nor in its stack. */
export function maskedCause(thrown: unknown, mask: MaskSecrets): Error {
  if (!(thrown instanceof Error)) return new Error(mask(String(thrown)));
  const copy = new Error(mask(thrown.message));
  copy.name = thrown.name;
  if (thrown.stack !== undefined) copy.stack = mask(thrown.stack);
  return copy;
}

/** The system's own name of a network fault, e.g. ECONNREFUSED. */
function networkCode(error: Error | undefined): string | undefined {
  const code = error === undefined || !('code' in error) ? undefined : error.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : undefined;
}

/** HTTP answers that another attempt may find changed. */
function isPassingStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}

/** 1007 and 1008 before setup mean that the setup, the model's name or the key was not accepted. */
const REFUSAL_CLOSE_CODES: ReadonlySet<number> = new Set([1007, 1008]);

/** The error for a socket that ended before `setupComplete`. */
export function connectErrorFor(end: SocketEnd, mask: MaskSecrets): ModelConnectError {
  if (end.httpStatus !== undefined) {
    const code = isPassingStatus(end.httpStatus) ? 'model_unreachable' : 'model_setup_refused';
    const message = `The model's server answered the handshake with HTTP ${end.httpStatus}`;
    return new ModelConnectError(code, message, { httpStatus: end.httpStatus });
  }
  if (end.error !== undefined) {
    const cause = networkCode(end.error);
    return new ModelConnectError(
      'model_unreachable',
      `The model could not be reached${cause === undefined ? '' : ` (${cause})`}`,
      { cause: maskedCause(end.error, mask), closeCode: end.code },
    );
  }
  return new ModelConnectError(
    REFUSAL_CLOSE_CODES.has(end.code) ? 'model_setup_refused' : 'model_unreachable',
    `The model closed the connection before setup was complete (code ${end.code})`,
    { closeCode: end.code, providerReason: mask(end.reason) },
  );
}
