/** Stored sessions over HTTP, on a whole server: what an operator reads, lets go of and is told about. */
import { join } from 'node:path';
import Database from 'libsql';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { nextTurn, systemClock } from '../../src/clock.js';
import { sessionJson } from '../../src/console/session-json.js';
import { EVENT_READ_SLICE, EVENT_READ_SLICE_BYTES } from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { openStore } from '../../src/store/open-store.js';
import { prepareEvent } from '../../src/store/prepared-event.js';
import type { SessionKey, Store } from '../../src/store/store.js';
import { Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';
import { collected, sessionKey, userEvent } from '../store/store-fixture.js';

let stage: Stage | undefined;
const stores: Store[] = [];

/** A server, and another store on its database. */
async function open(environment: Record<string, string> = {}): Promise<{ stage: Stage; store: Store }> {
  stage = await Stage.open(environment);
  const store = await openStore(`sqlite:${join(stage.folder, 'earshot.db')}`, {
    clock: systemClock,
    log: silentLog,
  });
  stores.push(store);
  return { stage, store };
}

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  await stage?.close();
  stage = undefined;
});

async function fill(store: Store, key: SessionKey, events: number): Promise<void> {
  await store.createSession(key);
  await store.appendPrepared(
    Array.from({ length: events }, (_, at) => prepareEvent(key, userEvent(`e${at}`))),
  );
}

const prune = (body: string, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body,
});

describe('letting old sessions go by a route', () => {
  it('deletes what had no activity for so many days, also for a part of one, and tells how much', async () => {
    const { stage: at, store } = await open();
    await fill(store, sessionKey('old'), 3);
    const kept = await at.json('/sessions/prune', prune('{"days":1}'));
    expect(kept).toEqual({
      status: 200,
      body: { deleted: { sessions: 0, events: 0, stateKeys: 0, artifactVersions: 0, memoryFacts: 0 } },
    });
    await waitUntil('the session to be old', async () => {
      const { body } = await at.json('/sessions/prune', prune('{"days":1e-9}'));
      return (
        JSON.stringify(body) ===
        '{"deleted":{"sessions":1,"events":3,"stateKeys":0,"artifactVersions":0,"memoryFacts":0}}'
      );
    });
    expect(await store.getSession(sessionKey('old'))).toBeUndefined();
  });

  it.each([
    '{}',
    '[]',
    '{"days":0}',
    '{"days":-1}',
    '{"days":"90"}',
    '{"days":null}',
    '{"days":1e999}',
    '{"days":1,"app":"support"}',
  ])('says what is wrong with %s, and deletes nothing', async (body) => {
    const { stage: at, store } = await open();
    await fill(store, sessionKey('s'), 1);
    expect(await at.json('/sessions/prune', prune(body))).toEqual({
      status: 400,
      body: { error: 'the body must be {"days": a number above 0}' },
    });
    expect(await store.getSession(sessionKey('s'))).toBeDefined();
  });

  it('and everything of a caller wants the token', async () => {
    const { stage: at, store } = await open({ CONSOLE_TOKEN: 'a-token-of-the-console' });
    await fill(store, sessionKey('s'), 1);
    const user = `/users/${encodeURIComponent(sessionKey('s').userId)}`;
    expect((await at.json('/sessions/prune', prune('{"days":1e-9}'))).status).toBe(401);
    expect((await at.json(user, { method: 'DELETE' })).status).toBe(401);
    expect(await store.getSession(sessionKey('s'))).toBeDefined();
    const headers = { Authorization: 'Bearer a-token-of-the-console' };
    expect((await at.json('/sessions/prune', prune('{"days":1}', headers))).status).toBe(200);
    expect((await at.json(user, { method: 'DELETE', headers })).status).toBe(200);
    expect(await store.getSession(sessionKey('s'))).toBeUndefined();
  });
});

describe('forgetting a caller by a route', () => {
  it('takes everything in one app, or in all', async () => {
    const { stage: at, store } = await open();
    const keys = ['support', 'sales', 'other'].map((appName) => sessionKey('s', { appName }));
    const stranger = sessionKey('s', { userId: 'stranger' });
    for (const key of [...keys, stranger]) await fill(store, key, 2);
    const user = encodeURIComponent(sessionKey('s').userId);
    const counts = { sessions: 1, events: 2, stateKeys: 0, artifactVersions: 0, memoryFacts: 0 };
    expect(await at.json(`/apps/support/users/${user}`, { method: 'DELETE' })).toEqual({
      status: 200,
      body: { deleted: counts },
    });
    expect(await store.getSession(keys[1]!)).toBeDefined();
    expect((await at.json(`/users/${user}`, { method: 'DELETE' })).body).toEqual({
      deleted: { ...counts, sessions: 2, events: 4 },
    });
    for (const key of keys) expect(await store.getSession(key)).toBeUndefined();
    expect(await store.getSession(stranger)).toBeDefined();
    expect((await at.json(`/users/${'x'.repeat(300)}`, { method: 'DELETE' })).status).toBe(400);
  });
});

describe('a long session as JSON', () => {
  it('is what it was in one piece, and is written slice by slice', async () => {
    const { stage: at, store } = await open();
    const key = sessionKey('long', { userId: 'u' });
    await fill(store, key, 3 * EVENT_READ_SLICE + 1);
    const session = (await store.getSession(key))!;
    const { createdAtMs: _made, updatedAtMs: _changed, omittedEvents: _none, ...shown } = session;
    expect((await at.json('/apps/support/users/u/sessions/long')).body).toEqual(shown);
    const pieces = await collected(sessionJson({ ...session, omittedEvents: 5 }));
    expect(pieces.length).toBeGreaterThanOrEqual(4);
    for (const piece of pieces) expect(piece.length).toBeLessThan(2 * EVENT_READ_SLICE_BYTES);
    expect(JSON.parse(pieces.join(''))).toEqual({ ...shown, omittedEvents: 5 });
    const [empty] = await collected(sessionJson({ ...session, events: [] }));
    expect(JSON.parse(empty!)).toEqual({ ...shown, events: [] });
    const stringify = vi.spyOn(JSON, 'stringify');
    const writing = sessionJson(session);
    await writing.next();
    expect(stringify.mock.calls.length).toBeLessThanOrEqual(EVENT_READ_SLICE + 1);
    stringify.mockRestore();
    await writing.return(undefined);
    await nextTurn();
  });
});

describe('a store that fails', () => {
  it('is told by the metrics, and not by /readyz', async () => {
    const { stage: at } = await open();
    const metrics = () =>
      Promise.all(['earshot_store_failing', 'earshot_store_waiting_events'].map((name) => at.metric(name)));
    expect(await metrics()).toEqual([0, 0]);
    const database = new Database(join(at.folder, 'earshot.db'));
    database.exec(`CREATE TRIGGER broken BEFORE INSERT ON event BEGIN SELECT RAISE(FAIL, 'broken'); END`);
    at.textModel.answer = (asked) => asked.answers('Late.');
    const run = at.run('s', 'Well?');
    await waitUntil('it to be told', async () => {
      const [failing, waiting = 0] = await metrics();
      return failing === 1 && waiting > 0;
    });
    expect(await at.metric('earshot_store_waiting_bytes')).toBeGreaterThan(0);
    expect((await at.json('/readyz')).status).toBe(200);
    database.exec('DROP TRIGGER broken');
    database.close();
    expect((await run).status).toBe(200);
    expect(await metrics()).toEqual([0, 0]);
    expect(await at.metric('earshot_events_lost_total{reason="store_no_session"}')).toBe(0);
  });

  it('or a session that is deleted while something is said in it is counted as lost', async () => {
    const { stage: at, store } = await open();
    const { phone, over, model, callSid } = await at.call();
    await waitUntil('the session', async () => (await store.listSessions({})).items.length === 1);
    expect((await at.json(`/users/${encodeURIComponent('+12025550123')}`, { method: 'DELETE' })).status).toBe(
      200,
    );
    const [left] = (await store.listSessions({})).items;
    if (left !== undefined) await store.deleteSession(left);
    model.sendInputTranscription('Who am I?');
    // The model's socket and the carrier's are not ordered among each other: who hangs up before has said nothing.
    await waitUntil('the words', async () =>
      JSON.stringify((await at.json(`/calls/${callSid}`)).body).includes('Who am I?'),
    );
    phone.hangUp();
    await over;
    await at.ended(callSid);
    await waitUntil('the loss', async () => {
      return ((await at.metric('earshot_events_lost_total{reason="store_no_session"}')) ?? 0) > 0;
    });
  });
});
