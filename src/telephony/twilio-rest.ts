/**
 * Twilio's REST client as the rest of this folder uses it: credentials, region, a compatible host in place of
 * Twilio's, a short timeout, and failures told without provider text, numbers or credentials.
 */
import twilio from 'twilio';
import type { RestScope } from '../call-tap.js';
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
  /** Carries the requests in place of HTTP. */
  readonly transport?: RestTransport | undefined;
}

export interface RestRequest {
  readonly method: string;
  readonly uri: string;
  /** The form's fields; without the ones that are not set. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Resolves with whatever status was answered; rejects when there was no answer. */
export type RestTransport = (request: RestRequest) => Promise<{ statusCode: number; body: unknown }>;

/** How a REST request failed. `status` and `code` are Twilio's; without a status nothing was answered. */
export interface RestFailure {
  readonly status: number | undefined;
  readonly code: number | undefined;
  /** For the log: statuses and system error codes only. */
  readonly cause: string;
}

const API_ORIGIN_PATTERN = /^https:\/\/[^/?#]+/;

type SdkRequest<TData> = Parameters<typeof twilio.RequestClient.prototype.request<TData>>[0];
type SdkResponse<TData> = Awaited<ReturnType<typeof twilio.RequestClient.prototype.request<TData>>>;

/** The client's own HTTP, to a compatible host where one is named, overheard for the call that asks. */
class EarshotRequestClient extends twilio.RequestClient {
  readonly #baseUrl: string | undefined;
  readonly #transport: RestTransport | undefined;
  readonly #scope: RestScope | undefined;

  constructor(options: TwilioRestOptions, timeoutMs: number, scope: RestScope | undefined) {
    super({ timeout: timeoutMs });
    this.#baseUrl = options.apiBaseUrl?.replace(/\/+$/, '');
    this.#transport = options.transport;
    this.#scope = scope;
  }

  override async request<TData>(options: SdkRequest<TData>): Promise<SdkResponse<TData>> {
    const { method, data } = options;
    const uri =
      this.#baseUrl === undefined ? options.uri : options.uri.replace(API_ORIGIN_PATTERN, this.#baseUrl);
    const tap = this.#scope?.tap;
    tap?.requested(method, uri, data ?? {});
    try {
      const answer =
        this.#transport === undefined
          ? await super.request<TData>({ ...options, uri })
          : ((await this.#transport({ method, uri, data: data ?? {} })) as SdkResponse<TData>);
      this.#scope?.clock.enter();
      tap?.answered(answer.statusCode, answer.body);
      return answer;
    } catch (error) {
      this.#scope?.clock.enter();
      tap?.answered(undefined, undefined);
      throw error;
    }
  }
}

/**
 * The client, or undefined without credentials. `timeoutMs` bounds one request; `scope` is the call's that asks, if
 * one does. Throws what the library throws for an account sid that is not one.
 */
export function createRestClient(
  options: TwilioRestOptions,
  timeoutMs: number,
  scope?: RestScope,
): twilio.Twilio | undefined {
  const { accountSid, authToken, apiKey, apiSecret, region, edge } = options;
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
    httpClient: new EarshotRequestClient(options, timeoutMs, scope),
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
