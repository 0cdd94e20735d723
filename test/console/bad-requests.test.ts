/** What an operator's or a client's request is answered that is not as it should be: what is wrong, where, and nothing else. */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HTTP_BODY_MAX_BYTES } from '../../src/limits.js';
import { openStore } from '../../src/store/open-store.js';
import { systemClock } from '../../src/clock.js';
import { silentLog } from '../../src/observe/log.js';
import { Stage } from '../support/stage.js';

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

const JSON_BODY = { 'Content-Type': 'application/json' };

async function post(path: string, body: string | Uint8Array, headers: Record<string, string> = JSON_BODY) {
  const response = await fetch(`${stage.url}${path}`, { method: 'POST', headers, body });
  return { status: response.status, error: String(((await response.json()) as { error?: unknown }).error) };
}

function message(changes: object): string {
  return JSON.stringify({ userId: 'u', newMessage: { parts: [{ text: 'Hello' }] }, ...changes });
}

describe('a body that cannot be read', () => {
  it.each([
    ['broken JSON', '{"userId":', JSON_BODY, 400, /JSON/],
    ['null', 'null', JSON_BODY, 400, /JSON/],
    [
      'more than is taken',
      message({ userId: 'x'.repeat(HTTP_BODY_MAX_BYTES) }),
      JSON_BODY,
      413,
      /larger than \d+ bytes/,
    ],
    [
      'a charset of its own',
      message({}),
      { 'Content-Type': 'application/json; charset=iso-8859-1' },
      415,
      /charset/,
    ],
    ['what is not gzip', 'abc', { ...JSON_BODY, 'Content-Encoding': 'gzip' }, 400, /Content-Encoding/],
    ['an encoding of its own', 'abc', { ...JSON_BODY, 'Content-Encoding': 'rot13' }, 415, /encoding/],
  ] as const)('for %s is told as that', async (_what, body, headers, status, told) => {
    const answer = await post('/run', body, headers);
    expect(answer).toEqual({ status, error: expect.stringMatching(told) });
  });

  it('is told of a path, too', async () => {
    const response = await fetch(`${stage.url}/apps/%ff/users/u/sessions/s`);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: 'the path is not percent-encoded UTF-8' });
  });

  it('is none where it is packed as it says', async () => {
    const answer = await post('/run', gzipSync('{"userId":7}'), { ...JSON_BODY, 'Content-Encoding': 'gzip' });
    expect(answer).toEqual({ status: 400, error: 'userId: must be a string' });
  });
});

describe('a message that is none', () => {
  it.each([
    [message({ extra: 1 }), 'the body: has a field that it cannot have'],
    ['[]', 'the body: must be an object'],
    [message({ userId: '' }), 'userId: is empty'],
    [message({ newMessage: { parts: [] } }), 'newMessage.parts: is empty'],
    [message({ newMessage: { parts: [{ text: ' ' }] } }), 'newMessage: is empty'],
    [message({ newMessage: { parts: [{ text: 'a\0b' }] } }), 'newMessage.parts.0.text: holds NUL'],
    [message({ newMessage: { parts: [{ text: '\ud800' }] } }), 'newMessage.parts.0.text: holds NUL or half'],
    [message({ sessionId: 'x'.repeat(257) }), 'sessionId: is longer than 256 characters'],
  ])('is refused by its place: %s', async (body, told) => {
    for (const path of ['/run', '/run_sse']) {
      const { status, error } = await post(path, body);
      expect([status, error]).toEqual([400, expect.stringContaining(told)]);
    }
  });
});

describe('a page', () => {
  const lists = ['/calls', '/apps/support/users/u/sessions', '/apps/support/users/u/sessions/s/artifacts'];

  it.each(
    lists.flatMap((path) =>
      ['1e3', '0x10', '+1', '%201', '-1', '0', '1.5', ''].map((limit) => [path, limit]),
    ),
  )('of %s has no limit %s', async (path, limit) => {
    const response = await fetch(`${stage.url}${path}?limit=${limit}`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toMatch(
      /limit must be a whole number from 1 to/,
    );
  });

  it.each(lists)('of %s has no limit with members, and takes one that is right', async (path) => {
    expect((await fetch(`${stage.url}${path}?limit[a]=1`)).status).toBe(400);
    const response = await fetch(`${stage.url}${path}?limit=1`);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('etag')).toBeNull();
  });
});

it('a session id that no header can hold is told encoded, and found again by itself', async () => {
  for (const sessionId of ['☎', 'a\r\nb', 'é', 'plain']) {
    const response = await fetch(`${stage.url}/run_sse`, {
      method: 'POST',
      headers: JSON_BODY,
      body: message({ sessionId }),
    });
    await response.text();
    expect([response.status, decodeURIComponent(response.headers.get('x-session-id') ?? '')]).toEqual([
      200,
      sessionId,
    ]);
    const path = `/apps/support/users/u/sessions/${encodeURIComponent(sessionId)}`;
    expect((await fetch(`${stage.url}${path}`)).status).toBe(200);
  }
});

it('a type that no header can hold is refused when it is saved, and what is imported belongs where it says', async () => {
  const store = await openStore(`sqlite:${stage.folder}/other.db`, { clock: systemClock, log: silentLog });
  const session = { appName: 'a', userId: 'u', id: 's' };
  await store.createSession(session);
  for (const mimeType of ['text/plain; charset=utf-8\r\nX-Evil: 1', 'text/☎', 'text', ''])
    await expect(store.saveArtifact(session, 'n', Buffer.from('x'), mimeType)).rejects.toMatchObject({
      code: 'store_refused',
    });
  expect(await store.saveArtifact(session, 'n', Buffer.from('x'), 'text/plain; charset="utf-8"')).toBe(0);
  const line = { type: 'artifact', appName: 'a', userId: 'u', version: 0, createdAtMs: 1, data: 'eA==' };
  for (const wrong of [
    { ...line, sessionId: 's', name: 'user:pic', mimeType: 'image/png' },
    { ...line, name: 'pic', mimeType: 'image/png' },
    { ...line, sessionId: 's', name: 'pic', mimeType: 'text/☎' },
  ])
    await expect(store.importSessions([JSON.stringify(wrong)])).rejects.toMatchObject({
      code: 'store_refused',
    });
  await store.close();
});
