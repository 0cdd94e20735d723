/**
 * Who may use the routes that are not Twilio's, and open sockets: a bearer token where one is configured; without one only
 * requests that address this machine's loopback by name and that no page of another origin sent, whatever their method: what
 * is read here was said by callers. A token never travels in a query.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { cameThroughProxy, isLoopbackHost, isLoopbackHostHeader } from '../loopback.js';

export interface DoorRefusal {
  readonly status: 401 | 403;
  readonly error: string;
}

/** Tells why a request may not come in, or undefined. */
export type Gatekeeper = (request: IncomingMessage) => DoorRefusal | undefined;

/** `bySubprotocol`: the token may also come as a WebSocket subprotocol, because a page cannot set a socket's headers. */
export function createGatekeeper(
  token: string | undefined,
  options: { readonly bySubprotocol?: boolean } = {},
): Gatekeeper {
  if (token === undefined) return localRefusal;
  const expected = digest(token);
  return ({ headers }) => {
    const given =
      bearerOf(headers) ?? (options.bySubprotocol === true ? subprotocolToken(headers) : undefined);
    return bearerRefusal(expected, given);
  };
}

/** Lets a request pass or answers 401 or 403. */
export function requireToken(token: string | undefined): RequestHandler {
  const refusalOf = createGatekeeper(token);
  return (request, response, next) => {
    const refusal = refusalOf(request);
    if (refusal === undefined) {
      next();
      return;
    }
    if (refusal.status === 401) response.set('WWW-Authenticate', 'Bearer');
    response.status(refusal.status).json({ error: refusal.error });
  };
}

function bearerRefusal(expected: Buffer, given: string | undefined): DoorRefusal | undefined {
  if (given !== undefined && timingSafeEqual(digest(given), expected)) return undefined;
  return { status: 401, error: 'a valid bearer token is required' };
}

function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
}

/** `bearer.` and the token's bytes as base64url: a subprotocol's name takes no other characters. */
function subprotocolToken(headers: IncomingHttpHeaders): string | undefined {
  const encoded = /(?:^|,)\s*bearer\.([\w-]+)\s*(?:,|$)/.exec(headers['sec-websocket-protocol'] ?? '')?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString();
}

function localRefusal({ headers, method }: IncomingMessage): DoorRefusal | undefined {
  const { host } = headers;
  if (!isLoopbackHostHeader(host)) {
    return { status: 403, error: 'without CONSOLE_TOKEN only a loopback Host is served' };
  }
  if (cameThroughProxy(headers)) {
    return { status: 403, error: 'without CONSOLE_TOKEN nothing that a proxy or tunnel passed on is served' };
  }
  if (!isFromForeignPage(headers) || isFollowedLink(headers, method)) return undefined;
  return {
    status: 403,
    error: 'without CONSOLE_TOKEN nothing that a page of another origin sends is served',
  };
}

/** A person follows a link, such as one from Grafana, in a tab of its own: the page that has it learns nothing of the answer. */
function isFollowedLink({ origin, ...headers }: IncomingHttpHeaders, method: string | undefined): boolean {
  const isWholePage = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return method === 'GET' && isWholePage && headers.upgrade === undefined && origin === undefined;
}

/** By what browsers say of a request and no page can change: `Sec-Fetch-Site` on what they send to loopback
 * (https://www.w3.org/TR/fetch-metadata/), and `Origin` on sockets, unsafe methods and whatever would let
 * the page read the answer. `none` is the address bar. */
function isFromForeignPage({ origin, host, ...headers }: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  return origin !== undefined && !isLoopbackOrigin(origin, host);
}

/** Answers 415 unless the body is JSON or there is none: a form that a foreign page posts without asking is never read. */
export function requireJson(request: Request, response: Response, next: NextFunction): void {
  const hasBody =
    (request.get('content-length') ?? '0') !== '0' || request.get('transfer-encoding') !== undefined;
  if (hasBody && request.is('json') === false) {
    response.status(415).json({ error: 'the body must be application/json' });
    return;
  }
  next();
}

/** An origin of this very server: same loopback host and port as the `Host` header names. */
function isLoopbackOrigin(origin: string, host: string | undefined): boolean {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  return url.protocol === 'http:' && isLoopbackHost(url.hostname) && url.host === host;
}

/** Compared by digest, so that neither length nor content shows in the time it takes. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
