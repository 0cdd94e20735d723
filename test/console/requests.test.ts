/** What any request may hold and how it is answered, on a whole server: the whole of what `bad-requests.test.ts` shows by examples. */
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import {
  ARTIFACT_LIST_MAX,
  EVENT_PAGE_MAX,
  HTTP_BODY_MAX_BYTES,
  SESSION_PAGE_MAX,
} from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { openStore } from '../../src/store/open-store.js';
import type { Store } from '../../src/store/store.js';
import { Stage } from '../support/stage.js';
import { userEvent } from '../store/store-fixture.js';

let stage: Stage;
let store: Store;
const key = { appName: 'support', userId: 'ada', id: 'kept' };
const SESSION = '/apps/support/users/ada/sessions/kept';

beforeAll(async () => {
  stage = await Stage.open();
  const address = `sqlite:${join(stage.folder, 'earshot.db')}`;
  store = await openStore(address, { clock: systemClock, log: silentLog });
  await store.createSession(key);
  await store.appendEvent(key, userEvent('e1'));
  await store.saveArtifact(key, 'note.txt', Buffer.from('note'), 'text/plain; charset=utf-8');
});

afterAll(async () => {
  await store.close();
  await stage.close();
});

function post(body: string | Buffer, headers: Record<string, string> = {}, path = '/run') {
  return stage.json(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: new Uint8Array(typeof body === 'string' ? Buffer.from(body) : body),
  });
}

const message = (more: object = {}) => ({ ...Stage.message('s1', 'Hi', 'ada'), ...more });
const parts = (...all: unknown[]) => message({ newMessage: { parts: all } });

/** No word of a library, and nothing of what was sent. */
function expectPlain(error: unknown): void {
  expect(error).not.toMatch(/expected|received|Unrecognized|Invalid|Too (?:small|big)|>=|secret/u);
}

describe('a request that cannot be read', () => {
  it.each([
    ['malformed JSON', 400, 'the body is not JSON', '{"secret":', {}],
    ['null', 400, 'the body is not JSON', 'null', {}],
    ['what is no gzip', 400, 'Content-Encoding', '{}', { 'Content-Encoding': 'gzip' }],
    [
      'half a gzip',
      400,
      'Content-Encoding',
      gzipSync('{"a":1}').subarray(0, 15),
      { 'Content-Encoding': 'gzip' },
    ],
    ['an unknown encoding', 415, 'content encoding', '{}', { 'Content-Encoding': 'secret' }],
    ['another charset', 415, 'charset', '{}', { 'Content-Type': 'application/json; charset=latin1' }],
    ['too much', 413, `${HTTP_BODY_MAX_BYTES} bytes`, JSON.stringify(' '.repeat(HTTP_BODY_MAX_BYTES)), {}],
    [
      'too much, packed',
      413,
      `${HTTP_BODY_MAX_BYTES} bytes`,
      gzipSync(JSON.stringify([' '.repeat(HTTP_BODY_MAX_BYTES)])),
      { 'Content-Encoding': 'gzip' },
    ],
  ] as [string, number, string, string | Buffer, Record<string, string>][])(
    'says that it is %s',
    async (_what, status, told, body, headers) => {
      const answered = await post(body, headers);
      expect(answered.status).toBe(status);
      expect(answered.body['error']).toContain(told);
      expectPlain(answered.body['error']);
    },
  );

  it('says that a path is not percent-encoded', async () => {
    const { status, body } = await stage.json('/calls/%ff');
    expect([status, body['error']]).toEqual([400, 'the path is not percent-encoded UTF-8']);
  });

  it.each([
    ['the body: has a field', message({ secret: 1 })],
    ['the body: must be an object', []],
    ['userId: is empty', message({ userId: '' })],
    ['userId: must be a string', message({ userId: 7 })],
    ['userId: is longer than 256 characters', message({ userId: 'u'.repeat(257) })],
    ['newMessage: must be an object', { userId: 'ada' }],
    ['newMessage: has a field', message({ newMessage: { parts: [{ text: 'x' }], secret: 1 } })],
    ['newMessage.role: must be user', message({ newMessage: { role: 'secret', parts: [{ text: 'x' }] } })],
    ['newMessage.parts: must be a list', message({ newMessage: { parts: 'secret' } })],
    ['newMessage.parts: is empty', parts()],
    ['newMessage.parts.0: has a field', parts({ text: 'x', secret: 1 })],
    ['newMessage.parts.1.text: is longer', parts({ text: '' }, { text: 'x'.repeat(20_001) })],
    ['newMessage: is empty', parts({ text: ' ' })],
  ])('says "%s" at the right place', async (told, body) => {
    for (const path of ['/run', '/run_sse']) {
      const answered = await post(JSON.stringify(body), {}, path);
      expect(answered.status).toBe(400);
      expect(answered.body['error']).toContain(told);
      expectPlain(answered.body['error']);
    }
  });

  it.each(['\0', 'a\0b', '\ud800', 'x\udc00y', '\udc00\ud800'])(
    'refuses a text and every id with %j in it, and names the field',
    async (text) => {
      for (const path of ['/run', '/run_sse']) {
        const { status, body } = await post(JSON.stringify(Stage.message('s1', text, 'ada')), {}, path);
        const told = 'newMessage.parts.0.text: holds NUL or half of a surrogate pair';
        expect([status, body['error']]).toEqual([400, told]);
        for (const ids of [Stage.message('s1', 'Hi', text), Stage.message(text, 'Hi', 'ada')])
          expect((await post(JSON.stringify(ids), {}, path)).status).toBe(400);
      }
    },
  );

  it('is not one with any whole text, which comes back as it was', async () => {
    const text = '😀 é ☎ \u2028 \ufeff';
    expect((await stage.run('whole', text, 'ada')).status).toBe(200);
    expect((await stage.said('whole', 'ada'))[0]).toBe(`user: ${text}`);
  });

  it.each([
    { 'Sec-WebSocket-Key': 'short', 'Sec-WebSocket-Version': '13' },
    { 'Sec-WebSocket-Version': '13' },
    { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': '7' },
  ])('is told as JSON where it is no handshake of a WebSocket: %j', async (headers) => {
    const { status, type, text } = await upgrade(headers);
    expect([status, type]).toEqual([400, 'application/json; charset=utf-8']);
    expect(JSON.parse(text)).toEqual({ error: expect.stringContaining('no WebSocket can be opened') });
  });
});

interface Refused {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

function upgrade(more: Record<string, string>): Promise<Refused> {
  return new Promise((resolve, reject) => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket', ...more };
    const request = httpRequest(`${stage.url}/run_live`, { headers });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () =>
        resolve({ status: response.statusCode, type: response.headers['content-type'], text }),
      );
    });
    request.end();
  });
}

describe('pages', () => {
  const ROUTES = [
    ['/calls', 200],
    ['/apps/support/users/ada/sessions', SESSION_PAGE_MAX],
    [SESSION, EVENT_PAGE_MAX],
    [`${SESSION}/artifacts`, ARTIFACT_LIST_MAX],
  ] as const;
  const WRONG = ['', '0', '-1', '+1', '1.5', '1e1', '0x10', ' 1', '1 ', '١', '9999999999', 'x'];

  it.each(ROUTES)('of %s take decimal digits from 1 to %i and nothing else', async (path, limitMax) => {
    for (const limit of [1, limitMax, '007'])
      expect((await stage.json(`${path}?limit=${limit}`)).status).toBe(200);
    const wrong = [...WRONG, String(limitMax + 1)].map((text) => `limit=${encodeURIComponent(text)}`);
    for (const query of [...wrong, 'limit[a]=1', 'limit[]=1', 'limit=1&limit=2']) {
      const { status, body } = await stage.json(`${path}?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(body['error']).toBe(`limit must be a whole number from 1 to ${limitMax}, in decimal digits`);
    }
  });

  it.each(ROUTES)('of %s refuse a cursor that none gave', async (path) => {
    const name = path === '/calls' ? 'before' : 'after';
    for (const query of [`${name}[a]=1`, `${name}=1&${name}=2`]) {
      const { status, body } = await stage.json(`${path}?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(body['error']).toContain(`${name} must be`);
    }
  });
});

describe('what is private', () => {
  it.each([
    '/calls',
    '/calls/none',
    '/calls/%ff',
    '/nowhere',
    '/debug/runs',
    '/apps/support/users/ada/sessions',
    SESSION,
    `${SESSION}?limit=1`,
    `${SESSION}/artifacts`,
    `${SESSION}/artifacts/note.txt`,
  ])('is kept by nobody on the way: %s', async (path) => {
    const { headers } = await fetch(`${stage.url}${path}`);
    expect([headers.get('etag'), headers.get('cache-control')]).toEqual([null, 'no-store']);
  });

  it('is kept by nobody on the way: an answer', async () => {
    const { headers } = await fetch(`${stage.url}/run`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(message()),
    });
    expect([headers.get('etag'), headers.get('cache-control')]).toEqual([null, 'no-store']);
  });
});

describe('an artifact of an older version whose type is none', () => {
  it.each(['text/☎', 'text/plain\r\nX-Evil: 1', 'none'])('is given as bytes: %j', async (type) => {
    const database = new Database(join(stage.folder, 'earshot.db'));
    database.prepare('update artifact set mime_type = ? where name = ?').run(type, 'note.txt');
    database.close();
    const response = await fetch(`${stage.url}${SESSION}/artifacts/note.txt`);
    expect([response.status, await response.text()]).toEqual([200, 'note']);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('x-evil')).toBeNull();
  });
});
