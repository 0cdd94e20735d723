/** What a page of another origin may have of a server without a token, in a browser on the same machine: nothing of the calls. */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Stage } from '../support/stage.js';

const TOKEN = 'a-token-of-the-console';
let open: Stage;
let locked: Stage;
beforeAll(async () => {
  open = await Stage.open();
  locked = await Stage.open({ CONSOLE_TOKEN: TOKEN });
});
afterAll(async () => {
  await open.close();
  await locked.close();
});

type Headers = Readonly<Record<string, string>>;

/** The status of a plain request: `fetch` sets some of these headers itself. */
function statusOf(stage: Stage, method: string, path: string, headers: Headers): Promise<number> {
  const { hostname, port } = new URL(stage.url);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end();
  });
}

/** 101 when a socket opens. */
function statusOfSocket(stage: Stage, headers: Headers): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${stage.url.replace('http', 'ws')}/run_live`, { headers });
    socket.on('error', reject);
    socket.on('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.on('unexpected-response', (_request, response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
  });
}

const ROUTES: readonly (readonly [string, string])[] = [
  ...[
    '/calls',
    '/calls/CA1',
    '/calls/CA1/stream',
    '/apps/support/users/u/sessions',
    '/apps/support/users/u/sessions/s/artifacts',
    '/approvals',
    '/ledger',
    '/debug/runs',
    '/metrics',
    '/run_live',
    '/',
  ].map((path) => ['GET', path] as const),
  ['HEAD', '/calls'],
  ['OPTIONS', '/run'],
  ['POST', '/run'],
  ['POST', '/run_sse'],
  ['POST', '/calls/CA1/hangup'],
  ['POST', '/sessions/prune'],
  ['DELETE', '/users/u'],
];

const FOREIGN: readonly (readonly [string, (url: string) => Headers])[] = [
  ['another host', () => ({ Origin: 'https://evil.example.com' })],
  ['another port', () => ({ Origin: 'http://127.0.0.1:3000' })],
  ['another scheme', (url) => ({ Origin: url.replace('http', 'https') })],
  ['an opaque origin', () => ({ Origin: 'null' })],
  ['a cross-site request without Origin', () => ({ 'Sec-Fetch-Site': 'cross-site' })],
  ['a same-site request, as of another port', () => ({ 'Sec-Fetch-Site': 'same-site' })],
  ['a site that no browser says', () => ({ 'Sec-Fetch-Site': 'x' })],
];

const OWN: readonly (readonly [string, (url: string) => Headers])[] = [
  ['no browser', () => ({})],
  ['its own page', (url) => ({ Origin: url, 'Sec-Fetch-Site': 'same-origin' })],
  ['the address bar', () => ({ 'Sec-Fetch-Site': 'none' })],
];

describe('without a token', () => {
  it.each(FOREIGN)('%s gets nothing, by no route and no socket', async (_what, headersOf) => {
    const headers = headersOf(open.url);
    for (const [method, path] of ROUTES)
      expect([method, path, await statusOf(open, method, path, headers)]).toEqual([method, path, 403]);
    expect(await statusOfSocket(open, headers)).toBe(403);
  });

  it.each(OWN)('%s is served', async (_what, headersOf) => {
    const headers = headersOf(open.url);
    for (const [method, path] of ROUTES)
      expect([method, path, await statusOf(open, method, path, headers)]).not.toEqual([method, path, 403]);
    expect(await statusOfSocket(open, headers)).toBe(101);
  });

  it('a link that a person follows is served, as a whole page and to read', async () => {
    const link = {
      'Sec-Fetch-Site': 'cross-site',
      'Sec-Fetch-Mode': 'navigate',
      'Sec-Fetch-Dest': 'document',
    };
    expect(await statusOf(open, 'GET', '/calls', link)).toBe(200);
    expect(await statusOf(open, 'POST', '/run', link)).toBe(403);
    expect(await statusOfSocket(open, link)).toBe(403);
    for (const other of [{ 'Sec-Fetch-Dest': 'iframe' }, { 'Sec-Fetch-Mode': 'cors' }, { Origin: 'null' }])
      expect(await statusOf(open, 'GET', '/calls', { ...link, ...other })).toBe(403);
  });

  it.each(FOREIGN)('%s may still learn that the server lives', async (_what, headersOf) => {
    for (const path of ['/healthz', '/readyz'])
      expect(await statusOf(open, 'GET', path, headersOf(open.url))).toBe(200);
  });
});

describe('a token', () => {
  it.each([...FOREIGN, ...OWN])('alone decides, for %s too', async (_what, headersOf) => {
    const headers = headersOf(locked.url);
    const bearer = { ...headers, Authorization: `Bearer ${TOKEN}` };
    for (const [method, path] of ROUTES)
      expect([method, path, await statusOf(locked, method, path, headers)]).toEqual([method, path, 401]);
    expect(await statusOfSocket(locked, headers)).toBe(401);
    expect(await statusOf(locked, 'GET', '/calls', bearer)).toBe(200);
    expect(await statusOfSocket(locked, bearer)).toBe(101);
  });
});
