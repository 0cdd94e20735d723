/**
 * The carrier's way to the server's doors: HTTP requests and the upgrade of the media socket, signed as Twilio signs
 * them when an auth token is given. Addresses are kept as Twilio sees them (`publicUrl`), because those are what is
 * signed; only the connection itself goes to `url`, where the server really listens.
 */
import twilio from 'twilio';
import { WebSocket } from 'ws';
import type { Clock } from '../clock.js';
import { errorText, TelephonyError } from '../errors.js';
import { PHONE_WEBHOOK_TIMEOUT_MS } from '../limits.js';
import type { HttpMethod } from './twiml-reader.js';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

export interface CarrierDoorsOptions {
  readonly clock: Clock;
  /** Origin at which the server can be reached, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Origin by which the server is known to Twilio; requests are signed for it. Default: `url`. */
  readonly publicUrl?: string | undefined;
  readonly authToken?: string | undefined;
}

export interface DoorRequest {
  readonly method: HttpMethod;
  /** Absolute, as Twilio sees it. */
  readonly url: string;
  readonly params: Readonly<Record<string, string>>;
  /** Gives up early, without an error code of its own. */
  readonly signal?: AbortSignal;
  readonly bodyMaxBytes: number;
}

export interface DoorAnswer {
  readonly status: number;
  /** Lower case, without parameters; empty when there is none. */
  readonly contentType: string;
  readonly body: Uint8Array;
}

export class CarrierDoors {
  readonly #clock: Clock;
  readonly #local: URL;
  readonly #public: URL;
  readonly #authToken: string | undefined;

  constructor(options: CarrierDoorsOptions) {
    this.#clock = options.clock;
    this.#local = new URL(options.url);
    this.#public = new URL(options.publicUrl ?? options.url);
    this.#authToken = options.authToken;
  }

  /** `path` at the server, as Twilio sees it. */
  publicAddress(path: string): string {
    return new URL(path, this.#public).href;
  }

  /** Makes one request. Any HTTP status is an answer; no answer at all is a TelephonyError `phone_failed`. */
  async request(request: DoorRequest): Promise<DoorAnswer> {
    const { method, params } = request;
    const asked = new URL(request.url);
    // Connection overrides in a fragment stay with Twilio: they are neither sent nor signed.
    asked.hash = '';
    if (method === 'GET')
      for (const [name, value] of Object.entries(params)) asked.searchParams.set(name, value);
    const signed = method === 'GET' ? {} : params;
    const headers: Record<string, string> = { 'user-agent': 'TwilioProxy/1.1', accept: '*/*' };
    if (method === 'POST') headers['content-type'] = 'application/x-www-form-urlencoded; charset=utf-8';
    this.#sign(headers, asked.href, signed);
    const abort = new AbortController();
    const giveUp = (): void => abort.abort();
    const timer = this.#clock.setTimer(PHONE_WEBHOOK_TIMEOUT_MS, giveUp);
    request.signal?.addEventListener('abort', giveUp);
    if (request.signal?.aborted === true) giveUp();
    try {
      const response = await fetch(this.#reach(asked), {
        method,
        headers,
        redirect: 'manual',
        signal: abort.signal,
        ...(method === 'POST' && { body: new URLSearchParams(params).toString() }),
      });
      const body = await readBody(response, request.bodyMaxBytes);
      const contentType = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
      return { status: response.status, contentType: contentType.trim().toLowerCase(), body };
    } catch (error) {
      const late = abort.signal.aborted && request.signal?.aborted !== true;
      const why = late ? `no answer within ${PHONE_WEBHOOK_TIMEOUT_MS / 1_000} s` : reasonOf(error);
      throw new TelephonyError('phone_failed', `${method} ${asked.href}: ${why}`, { cause: error });
    } finally {
      timer.cancel();
      request.signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Begins the upgrade to a media socket, signed over `url` itself. Throws for a URL that Twilio would refuse. */
  openSocket(url: string): WebSocket {
    const asked = new URL(url);
    const refuse = (why: string): never => {
      throw new TelephonyError('phone_failed', `<Stream url="${url}">: ${why}`);
    };
    // Twilio takes only wss; ws to this machine itself is the one exception, for a server without PUBLIC_URL.
    const isLocal = asked.protocol === 'ws:' && LOOPBACK.test(asked.hostname);
    if (asked.protocol !== 'wss:' && !isLocal) refuse('the scheme must be wss (31922)');
    if (asked.search !== '') refuse('Twilio does not pass on a query string; use <Parameter>');
    const headers: Record<string, string> = {};
    this.#sign(headers, url, {});
    return new WebSocket(this.#reach(asked), { headers, perMessageDeflate: false, followRedirects: false });
  }

  #sign(headers: Record<string, string>, url: string, params: Readonly<Record<string, string>>): void {
    if (this.#authToken === undefined) return;
    headers['x-twilio-signature'] = twilio.getExpectedTwilioSignature(this.#authToken, url, params);
  }

  /** Where `asked` is really connected to: the server's own address if it is meant, else the URL itself. */
  #reach(asked: URL): URL {
    const socket = asked.protocol === 'ws:' || asked.protocol === 'wss:';
    const sameServer =
      asked.hostname === this.#public.hostname && effectivePort(asked) === effectivePort(this.#public);
    if (!sameServer) return asked;
    const reached = new URL(asked.pathname + asked.search, this.#local);
    if (socket) reached.protocol = this.#local.protocol === 'https:' ? 'wss:' : 'ws:';
    return reached;
  }
}

function effectivePort(url: URL): string {
  if (url.port !== '') return url.port;
  return url.protocol === 'https:' || url.protocol === 'wss:' ? '443' : '80';
}

/** fetch hides the interesting part (ECONNREFUSED and the like) in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return errorText(cause ?? error);
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  if (response.body !== null) {
    for await (const part of response.body) {
      length += part.length;
      if (length > maxBytes) throw new Error(`the answer is over ${maxBytes} bytes`);
      parts.push(part);
    }
  }
  return new Uint8Array(Buffer.concat(parts));
}
