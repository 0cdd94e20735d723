/**
 * Who may use the routes that are not Twilio's: a bearer token where one is configured; without one only requests that
 * address this machine's loopback by name and that no foreign page sent. A token never travels in a query.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { isLoopbackHost, isLoopbackHostHeader } from '../loopback.js';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Lets a request pass or answers 401, 403 or 415. */
export function requireToken(token: string | undefined): RequestHandler {
  const expected = token === undefined ? undefined : digest(token);
  return (request, response, next) => {
    if (expected === undefined) passLocal(request, response, next);
    else passBearer(expected, request, response, next);
  };
}

function passBearer(expected: Buffer, request: Request, response: Response, next: NextFunction): void {
  const given = /^Bearer +(\S+)$/i.exec(request.get('authorization') ?? '')?.[1];
  if (given === undefined || !timingSafeEqual(digest(given), expected)) {
    response
      .set('WWW-Authenticate', 'Bearer')
      .status(401)
      .json({ error: 'a valid bearer token is required' });
    return;
  }
  passJson(request, response, next);
}

function passLocal(request: Request, response: Response, next: NextFunction): void {
  if (!isLoopbackHostHeader(request.get('host'))) {
    response.status(403).json({ error: 'without CONSOLE_TOKEN only a loopback Host is served' });
    return;
  }
  const origin = request.get('origin');
  if (
    !SAFE_METHODS.has(request.method) &&
    origin !== undefined &&
    !isLoopbackOrigin(origin, request.get('host'))
  ) {
    response.status(403).json({ error: 'a foreign Origin is refused' });
    return;
  }
  passJson(request, response, next);
}

/** Bodies must be JSON: a form that a foreign page posts without asking is never read. */
function passJson(request: Request, response: Response, next: NextFunction): void {
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
