import { describe, expect, test } from 'vitest';
import { StoreError } from '../../src/errors.js';
import type { Event, JsonObject } from '../../src/event/event.js';
import {
  EVENT_MAX_BYTES,
  STORE_BATCH_MAX_EVENTS,
  STORE_CLOSE_MAX_MS,
  STORE_NAME_MAX_BYTES,
  STORE_PATIENCE_MS,
  STORE_QUEUE_MAX_BYTES,
  STORE_QUEUE_MAX_EVENTS,
  STORE_RETRY_MAX_MS,
} from '../../src/limits.js';
import { nextTurn } from '../../src/clock.js';
import { EventWriter, type LostWrite } from '../../src/store/event-writer.js';
import type { PreparedEvent } from '../../src/store/prepared-event.js';
import type { AppendOutcome, SessionKey } from '../../src/store/store.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { changeEvent, KeptLog, sessionKey, userEvent } from './store-fixture.js';

const unusable = new StoreError('store_unusable', 'the database does not let this user do that');
const away = new StoreError('store_failed', 'the database server cannot be reached (ECONNREFUSED)');

/** A database that a test turns off and on, and that can refuse or hold single events. */
class SwitchedStore {
  readonly batches: string[][] = [];
  readonly stored: string[] = [];
  readonly sessions = new Set<string>();
  failure: StoreError | undefined;
  /** Ids that fail with the whole batch, and how. */
  readonly poison = new Set<string>();
  poisonous = away;
  /** Set: no answer comes until it is called. */
  held: (() => void) | undefined;
  #hold = false;

  hold(): void {
    this.#hold = true;
  }

  async createSession({ id }: SessionKey): Promise<boolean> {
    if (this.failure !== undefined) throw this.failure;
    this.sessions.add(id);
    this.stored.push(`session ${id}`);
    return true;
  }

  async appendPrepared(batch: readonly PreparedEvent[]): Promise<AppendOutcome[]> {
    this.batches.push(batch.map(({ id }) => id));
    if (this.#hold)
      await new Promise<void>((resolve) => {
        this.held = resolve;
      });
    if (this.failure !== undefined) throw this.failure;
    if (batch.some(({ id }) => this.poison.has(id))) throw this.poisonous;
    return batch.map(({ id, session }) => {
      if (id === 'refused') return { stored: false, error: new StoreError('store_no_session', 'gone') };
      this.stored.push(`${session.id}/${id}`);
      return { stored: true, seq: this.stored.length };
    });
  }
}

function rig() {
  const store = new SwitchedStore();
  const clock = new VirtualClock();
  const log = new KeptLog();
  const lost: LostWrite[] = [];
  const writer = new EventWriter({ store, clock, log });
  writer.watchLosses((one) => lost.push(one));
  return { store, clock, log, lost, writer };
}

/** Lets what can go on without time passing come to rest. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
}

/** Time passes in small steps, in which everything comes to rest. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50);
    await settle();
  }
}

const one = sessionKey('CA1');
const two = sessionKey('CA2');

describe('the event writer', () => {
  test('stores what it was given in one turn together and in order, and tells where', async () => {
    const { store, writer } = rig();
    const outcomes = [
      writer.createSession(one),
      writer.append(one, userEvent('a')),
      writer.append(two, userEvent('b')),
      writer.append(one, userEvent('c')),
    ];
    expect(store.batches).toEqual([]);
    expect(writer.waiting.events).toBe(4);
    expect(await Promise.all(outcomes)).toEqual([
      { stored: true, seq: 0 },
      { stored: true, seq: 2 },
      { stored: true, seq: 3 },
      { stored: true, seq: 4 },
    ]);
    expect(store.stored).toEqual(['session CA1', 'CA1/a', 'CA2/b', 'CA1/c']);
    expect(store.batches).toEqual([['a', 'b', 'c']]);
    expect(writer.waiting).toEqual({ events: 0, bytes: 0 });
  });

  test('does not tell before it is stored', async () => {
    const { store, writer } = rig();
    store.hold();
    let told = false;
    const outcome = writer.append(one, userEvent('a')).then(() => (told = true));
    const flushed = writer.flushed();
    await settle();
    expect(told).toBe(false);
    store.held?.();
    await outcome;
    await flushed;
    await writer.flushed();
  });

  test('stores an event as it was when it was handed over', async () => {
    const { store, writer } = rig();
    const bodies: string[] = [];
    store.appendPrepared = async (batch) => {
      bodies.push(...batch.map(({ body }) => body));
      return batch.map(() => ({ stored: true, seq: 1 }));
    };
    const event = { ...userEvent('a', 'as said'), actions: { stateDelta: { k: 1 }, artifactDelta: {} } };
    const outcome = writer.append(one, event);
    event.actions.stateDelta.k = 2;
    (event.content as { parts: unknown[] }).parts.length = 0;
    await outcome;
    expect(bodies[0]).toContain('as said');
    expect(bodies[0]).toContain('"k":1');
  });

  test('writes a long queue in bounded batches', async () => {
    const { store, writer } = rig();
    const count = 2 * STORE_BATCH_MAX_EVENTS + 1;
    await Promise.all(Array.from({ length: count }, (_, at) => writer.append(one, userEvent(`e${at}`))));
    expect(store.batches.map(({ length }) => length)).toEqual([
      STORE_BATCH_MAX_EVENTS,
      STORE_BATCH_MAX_EVENTS,
      1,
    ]);
    expect(store.stored).toEqual(Array.from({ length: count }, (_, at) => `CA1/e${at}`));
  });

  test('never throws into a call, whatever it is given', async () => {
    const { writer, lost, store } = rig();
    const bad = [
      writer.append(one, { ...userEvent('a'), partial: true }),
      writer.append(sessionKey(''), userEvent('b')),
      writer.append(one, undefined as never),
      writer.append(undefined as never, userEvent('c')),
      writer.append(one, { ...userEvent('d'), usageMetadata: { n: 1n } }),
      writer.createSession(sessionKey('a\0')),
      writer.createSession(one, { loop: { n: 1n } }),
    ];
    for (const outcome of await Promise.all(bad)) expect(outcome).toMatchObject({ stored: false });
    expect(lost).toHaveLength(bad.length);
    expect(store.batches).toEqual([]);
    expect(await writer.append(one, userEvent('good'))).toMatchObject({ stored: true });
  });

  test('goes on when the one who is told of losses throws', async () => {
    const { store, clock, log } = rig();
    const writer = new EventWriter({ store, clock, log });
    writer.watchLosses(() => {
      throw new Error('not my day');
    });
    const outcomes = await Promise.all(['refused', 'a'].map((id) => writer.append(one, userEvent(id))));
    expect(outcomes.map(({ stored }) => stored)).toEqual([false, true]);
    expect(await writer.append(one, { ...userEvent('b'), partial: true })).toMatchObject({ stored: false });
  });

  test('tells of an event that the store refuses, and stores its neighbours', async () => {
    const { writer, lost } = rig();
    const outcomes = await Promise.all(['a', 'refused', 'b'].map((id) => writer.append(one, userEvent(id))));
    expect(outcomes.map(({ stored }) => stored)).toEqual([true, false, true]);
    expect(lost).toMatchObject([{ session: one, eventId: 'refused', error: { code: 'store_no_session' } }]);
  });

  test('keeps events while the database is away, and stores them in order when it is back', async () => {
    const { store, clock, log, lost, writer } = rig();
    store.failure = away;
    const outcomes = [writer.createSession(one)];
    for (let at = 0; at < 20; at += 1) {
      outcomes.push(writer.append(at % 3 === 0 ? two : one, userEvent(`e${at}`)));
      await pass(clock, 500);
    }
    expect(writer.isFailing).toBe(true);
    store.failure = undefined;
    await pass(clock, STORE_RETRY_MAX_MS);
    for (const outcome of await Promise.all(outcomes)) expect(outcome.stored).toBe(true);
    for (const session of ['CA1', 'CA2']) {
      const ids = store.stored
        .filter((line) => line.startsWith(`${session}/`))
        .map((line) => Number(line.slice(5)));
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    }
    expect(store.stored.indexOf('session CA1')).toBeLessThan(store.stored.indexOf('CA1/e1'));
    expect(writer.isFailing).toBe(false);
    expect(lost).toEqual([]);
    expect(log.lines.map(({ message }) => message)).toEqual([
      'events are not being stored; they wait, and the calls go on',
      'events are stored again',
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('tries less and less often, and gives an event up after its patience', async () => {
    const { store, clock, lost, log, writer } = rig();
    store.failure = away;
    const first = writer.append(one, userEvent('a'));
    await pass(clock, STORE_PATIENCE_MS / 2);
    const later = writer.append(one, userEvent('b'));
    await pass(clock, STORE_PATIENCE_MS / 2 + STORE_RETRY_MAX_MS);
    expect(await first).toMatchObject({ stored: false, error: away });
    expect(store.batches.length).toBeLessThan(STORE_PATIENCE_MS / STORE_RETRY_MAX_MS + 10);
    expect(lost.map(({ eventId }) => eventId)).toEqual(['a']);
    expect(writer.waiting.events).toBe(1);
    store.failure = undefined;
    await pass(clock, STORE_RETRY_MAX_MS);
    expect(await later).toMatchObject({ stored: true });
    expect(log.lines.at(-1)).toMatchObject({ fields: { lost: 1 } });
  });

  test('gives up at once where no try helps', async () => {
    const { store, clock, lost, writer } = rig();
    store.failure = unusable;
    expect(await writer.append(one, userEvent('a'))).toMatchObject({ stored: false });
    expect(lost).toHaveLength(1);
    expect(writer.isFailing).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    store.failure = undefined;
    expect(await writer.append(one, userEvent('b'))).toMatchObject({ stored: true });
    expect(writer.isFailing).toBe(false);
  });

  test('loses of a batch only what is refused where no try helps, and keeps the order of the rest', async () => {
    const { store, clock, lost, writer } = rig();
    store.poisonous = unusable;
    for (const at of [0, 57, 58, STORE_BATCH_MAX_EVENTS - 1]) store.poison.add(`e${at}`);
    const outcomes = Array.from({ length: STORE_BATCH_MAX_EVENTS }, (_, at) =>
      writer.append(at % 2 === 0 ? one : two, userEvent(`e${at}`)),
    );
    await pass(clock, 10 * STORE_RETRY_MAX_MS);
    const settled = await Promise.all(outcomes);
    expect(settled.flatMap(({ stored }, at) => (stored ? [] : [`e${at}`]))).toEqual([...store.poison]);
    expect(new Set(lost.map(({ eventId }) => eventId))).toEqual(store.poison);
    expect(lost).toHaveLength(store.poison.size);
    for (const session of ['CA1', 'CA2']) {
      const numbers = store.stored.flatMap((line) => {
        const [whose, id = ''] = line.split('/e');
        return whose === session ? [Number(id)] : [];
      });
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
  });

  test('holds what waits, for its patience, while the database is of no use', async () => {
    const { store, clock, lost, writer } = rig();
    store.failure = unusable;
    const outcomes = Array.from({ length: STORE_BATCH_MAX_EVENTS }, (_, at) =>
      writer.append(one, userEvent(`e${at}`)),
    );
    await pass(clock, STORE_PATIENCE_MS / 3);
    // One event a try.
    expect(lost.length).toBeLessThan(STORE_PATIENCE_MS / 3 / STORE_RETRY_MAX_MS + 10);
    store.failure = undefined;
    await pass(clock, STORE_RETRY_MAX_MS);
    const kept = (await Promise.all(outcomes)).filter(({ stored }) => stored);
    expect(kept).toHaveLength(STORE_BATCH_MAX_EVENTS - lost.length);
    store.failure = unusable;
    const late = Array.from({ length: STORE_BATCH_MAX_EVENTS }, (_, at) =>
      writer.append(one, userEvent(`late${at}`)),
    );
    await pass(clock, STORE_PATIENCE_MS + STORE_RETRY_MAX_MS);
    for (const outcome of await Promise.all(late)) expect(outcome).toMatchObject({ stored: false });
    expect(writer.waiting).toEqual({ events: 0, bytes: 0 });
    expect(clock.pendingTimers).toBe(0);
  });

  test('waits for what one session has handed over, and for no other', async () => {
    const { store, writer, clock } = rig();
    store.poison.add('poison');
    void writer.append(two, userEvent('poison'));
    const mine = writer.append(one, userEvent('mine'));
    let all = false;
    void writer.flushed().then(() => (all = true));
    const flushed = writer.flushed({ ...one });
    await writer.flushed(sessionKey('CA1', { userId: 'another' }));
    await pass(clock, STORE_RETRY_MAX_MS);
    await flushed;
    expect(await mine).toMatchObject({ stored: true });
    expect([all, writer.waiting.events]).toEqual([false, 1]);
    await pass(clock, STORE_PATIENCE_MS + STORE_RETRY_MAX_MS);
    expect(all).toBe(true);
  });

  test.each([
    ['a call', `CA${'0a'.repeat(16)}`, { callSid: `CA${'0a'.repeat(16)}` }],
    ['a web client', 'ada@example.com', { pii: { sessionId: 'ada@example.com' } }],
  ])('names the session of %s in the log so that nothing personal is shown', async (_, id, fields) => {
    const { store, log, writer } = rig();
    store.failure = unusable;
    await writer.append(sessionKey(id), userEvent('a'));
    const line = log.lines.find(({ message }) => message === 'an event is not stored');
    expect(line?.fields).toEqual({ errorCode: 'store_unusable', why: unusable.message, ...fields });
  });

  test('lets an event that cannot be stored hold up its own session only', async () => {
    const { store, clock, lost, writer } = rig();
    store.poison.add('poison');
    const outcomes = ['a', 'poison', 'after'].map((id) => writer.append(one, userEvent(id)));
    const others = ['b', 'c'].map((id) => writer.append(two, userEvent(id)));
    await pass(clock, 2_000);
    expect(await Promise.all(others)).toMatchObject([{ stored: true }, { stored: true }]);
    expect(await outcomes[0]).toMatchObject({ stored: true });
    // New ones of others pass as well, time and again.
    for (let at = 0; at < 5; at += 1) {
      const next = writer.append(two, userEvent(`n${at}`));
      await pass(clock, 2 * STORE_RETRY_MAX_MS);
      expect(await next).toMatchObject({ stored: true });
    }
    expect(store.stored).not.toContain('CA1/after');
    await pass(clock, STORE_PATIENCE_MS + STORE_RETRY_MAX_MS);
    expect(await outcomes[1]).toMatchObject({ stored: false });
    expect(lost.map(({ eventId }) => eventId)).toContain('poison');
  });

  test.each([
    ['events', STORE_QUEUE_MAX_EVENTS, ''],
    ['bytes', Math.floor(STORE_QUEUE_MAX_BYTES / 1_000_000), 'x'.repeat(1_000_000)],
  ])('refuses the newest when too many %s wait', async (_, fits, text) => {
    const { store, lost, log, writer } = rig();
    store.hold();
    for (let at = 0; at < fits; at += 1) void writer.append(one, userEvent(`e${at}`, text));
    const refused = Array.from({ length: 5 }, (__, at) =>
      writer.append(one, userEvent(`late${at}`, text || 'x')),
    );
    for (const outcome of await Promise.all(refused)) {
      expect(outcome).toMatchObject({ stored: false, error: { code: 'store_failed' } });
    }
    expect(lost).toHaveLength(5);
    expect(log.lines.filter(({ message }) => message === 'an event is not stored')).toHaveLength(1);
    expect(writer.waiting.bytes).toBeLessThanOrEqual(STORE_QUEUE_MAX_BYTES);
  });

  test('writes what waits before it closes, and takes nothing more', async () => {
    const { store, writer, clock } = rig();
    const outcomes = Array.from({ length: 500 }, (_, at) => writer.append(one, userEvent(`e${at}`)));
    expect(await writer.close()).toBe(0);
    expect((await Promise.all(outcomes)).every(({ stored }) => stored)).toBe(true);
    expect(store.stored).toHaveLength(500);
    expect(await writer.append(one, userEvent('late'))).toMatchObject({ stored: false });
    expect(await writer.close()).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  test.each([
    ['is away', (store: SwitchedStore) => void (store.failure = away)],
    ['does not answer', (store: SwitchedStore) => store.hold()],
  ])('closes within its bound when the database %s, and tells what is lost', async (_, breakIt) => {
    const { store, writer, clock, lost } = rig();
    breakIt(store);
    const outcomes = ['a', 'b', 'c'].map((id) => writer.append(one, userEvent(id)));
    await settle();
    let count: number | undefined;
    const closing = writer.close().then((given) => (count = given));
    await pass(clock, STORE_CLOSE_MAX_MS - 100);
    expect(count).toBeUndefined();
    await pass(clock, 200);
    await closing;
    expect(count).toBe(3);
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ stored: false });
    expect(lost.map(({ eventId }) => eventId)).toEqual(['a', 'b', 'c']);
    store.held?.();
    await settle();
    expect(lost).toHaveLength(3);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('an event whose change cannot be stored', () => {
  const answer = (stateDelta: JsonObject): Event => ({
    ...changeEvent('e1', stateDelta),
    content: { role: 'user', parts: [{ functionResponse: { name: 'pay', response: { ok: 1 } } }] },
  });
  test.each([
    ['a key that is too long', { ['x'.repeat(STORE_NAME_MAX_BYTES + 1)]: 1 }],
    ['a key with NUL', { 'a\0b': 1 }],
    ['a value that is too large', { big: 'x'.repeat(EVENT_MAX_BYTES) }],
  ])('is stored without it, and the log says so: %s', async (_what, stateDelta) => {
    const log = new KeptLog();
    const bodies: PreparedEvent[] = [];
    const lost: LostWrite[] = [];
    const writer = new EventWriter({
      store: {
        createSession: () => Promise.resolve(true),
        appendPrepared: (batch) => {
          bodies.push(...batch);
          return Promise.resolve(batch.map(() => ({ stored: true, seq: 1 }) as const));
        },
      },
      clock: new VirtualClock(),
      log,
    });
    writer.watchLosses((loss) => lost.push(loss));
    expect(await writer.append(sessionKey('s'), answer(stateDelta))).toEqual({ stored: true, seq: 1 });
    expect(bodies.map(({ body }) => JSON.parse(body) as Event)).toEqual([answer({})]);
    expect(bodies[0]?.changes).toEqual([]);
    expect(lost).toEqual([]);
    expect(log.lines.filter(({ message }) => message.includes('without what it changes'))).toHaveLength(1);
    // One that says nothing else is lost, and told as that.
    const { content: _content, ...bare } = answer(stateDelta);
    expect(await writer.append(sessionKey('s'), { ...bare, id: 'e2' })).toMatchObject({ stored: false });
    expect(lost).toMatchObject([{ eventId: 'e2' }]);
  });
});
