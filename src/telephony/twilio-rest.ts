/**
 * Twilio's REST client as the rest of this folder uses it: credentials, region, a compatible host in place of
 * Twilio's, a short timeout, and failures told without provider text, numbers or credentials.
 */
import twilio from 'twilio';
import { errorText } from '../errors.js';

export interface TwilioRestOptions {
  readonly accountSid: string | undefined;
  readonly authToken: string | undefined;
  /** An API key and its secret are used instead of the auth token, if both are there. */
  readonly apiKey: string | undefined;
  readonly apiSecret: string | undefined;
  readonly region: string | undefined;
  readonly edge: string | undefined;
  /** Origin (and base path) of a Twilio-compatible host. */
  readonly apiBaseUrl: string | undefined;
}

/** How a REST request failed. `status` and `code` are Twilio's; without a status nothing was answered. */
export interface RestFailure {
  readonly status: number | undefined;
  readonly code: number | undefined;
  /** For the log: statuses and system error codes only. */
  readonly cause: string;
}

const API_ORIGIN_PATTERN = /^https:\/\/[^/?#]+/;

/** Sends what the client meant for Twilio's host to another one. */
class RebasedRequestClient extends twilio.RequestClient {
  readonly #baseUrl: string;

  constructor(baseUrl: string, timeoutMs: number) {
    super({ timeout: timeoutMs });
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  override request<TData>(
    options: Parameters<typeof twilio.RequestClient.prototype.request<TData>>[0],
  ): ReturnType<typeof twilio.RequestClient.prototype.request<TData>> {
    return super.request<TData>({ ...options, uri: options.uri.replace(API_ORIGIN_PATTERN, this.#baseUrl) });
  }
}

/**
 * The client, or undefined without credentials. `timeoutMs` bounds one request. Throws what the library throws for
 * an account sid that is not one.
 */
export function createRestClient(options: TwilioRestOptions, timeoutMs: number): twilio.Twilio | undefined {
  const { accountSid, authToken, apiKey, apiSecret, region, edge, apiBaseUrl } = options;
  if (accountSid === undefined) return undefined;
  const byKey = apiKey !== undefined && apiSecret !== undefined;
  const password = byKey ? apiSecret : authToken;
  if (password === undefined) return undefined;
  return twilio(byKey ? apiKey : accountSid, password, {
    accountSid,
    timeout: timeoutMs,
    // Retries are ours: bounded together, on the clock that was passed in.
    autoRetry: false,
    ...(region !== undefined && { region }),
    ...(edge !== undefined && { edge }),
    ...(apiBaseUrl !== undefined && { httpClient: new RebasedRequestClient(apiBaseUrl, timeoutMs) }),
  });
}

function numberOf(error: object, field: 'status' | 'code'): number | undefined {
  const value: unknown = (error as Record<string, unknown>)[field];
  return typeof value === 'number' ? value : undefined;
}

/** Reads what the twilio library threw. Its messages carry provider text, so that none of it is passed on. */
export function readRestFailure(error: unknown): RestFailure {
  if (typeof error !== 'object' || error === null) {
    return { status: undefined, code: undefined, cause: `REST request failed: ${errorText(error)}` };
  }
  const status = numberOf(error, 'status');
  const code = numberOf(error, 'code');
  if (status !== undefined) {
    const detail = code === undefined ? '' : ` (code ${code})`;
    return { status, code, cause: `REST answered ${status}${detail}` };
  }
  const system = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return { status, code, cause: `REST request failed: ${system ?? 'unreadable answer'}` };
}
