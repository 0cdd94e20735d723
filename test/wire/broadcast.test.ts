import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import { initialState, restart, storedMessages, type ClientState } from '../../src/client/index.js';
import {
  WIRE_BATCH_FRAMES_MAX,
  WIRE_FINISH_MAX_MS,
  WIRE_HEARTBEAT_MS,
  WIRE_LOG_FRAMES_MAX,
  WIRE_UNREAD_MAX_MS,
  WIRE_WATCHERS_MAX,
} from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import type { Happening } from '../../src/wire/happening.js';
import { frameLists } from '../client/frame-lists.js';
import { fuzzed } from '../fuzz/seed.js';
import { MemorySink } from './memory-sink.js';

const delta = (text: string, msg = 'a'): Happening => ({ kind: 'delta', msg, role: 'model', text });
const done = (text: string, msg = 'a'): Happening => ({ kind: 'done', msg, role: 'model', text });
const tool = (state: 'running' | 'done'): Happening => ({
  kind: 'tool',
  msg: 'a',
  callId: 'c',
  name: 'n',
  state,
});

function setUp() {
  const clock = new VirtualClock();
  return { clock, broadcast: new Broadcast({ clock }) };
}

/** Enough turns for every watcher to have been served. */
async function served(): Promise<void> {
  for (let turn = 0; turn < 2 + WIRE_WATCHERS_MAX / 16; turn += 1) await nextTurn();
}

function typesOf(sink: MemorySink): string[] {
  return sink.frames.map(({ frame }) => frame.type);
}

function seqsOf(sink: MemorySink): number[] {
  return sink.frames.map(({ seq }) => seq);
}

describe('a watcher', () => {
  test('gets what is complete as history, what is not as one delta, then each frame as it comes', async () => {
    const { broadcast } = setUp();
    for (const each of [done('Hello.', 'h'), delta('One '), delta('two '), tool('running')])
      broadcast.publish(each);
    const sink = new MemorySink();
    broadcast.watch(sink);
    broadcast.publish(delta('three'));
    await served();
    expect(sink.frames.map(({ frame }) => frame)).toEqual([
      { type: 'history', seq: 2, messages: [{ msg: 'h', role: 'model', text: 'Hello.' }] },
      { type: 'delta', seq: 3, msg: 'a', role: 'model', text: 'One two ' },
      { type: 'tool', seq: 4, msg: 'a', callId: 'c', name: 'n', state: 'running' },
      { type: 'delta', seq: 5, msg: 'a', role: 'model', text: 'three' },
    ]);
  });

  test('gets the very frame that the others get, serialised once', async () => {
    const { broadcast } = setUp();
    const sinks = Array.from({ length: 200 }, () => new MemorySink());
    for (const sink of sinks) expect(broadcast.watch(sink)).toBe(true);
    broadcast.publish(delta('One'));
    await served();
    const [first, ...others] = sinks.map(({ frames }) => frames.at(-1));
    expect(others.every((frame) => frame === first)).toBe(true);
    expect(first?.frame).toMatchObject({ type: 'delta', text: 'One' });
  });

  test('is not served within publishing, and not all within one turn', async () => {
    const { broadcast } = setUp();
    const sinks = Array.from({ length: 100 }, () => new MemorySink());
    for (const sink of sinks) broadcast.watch(sink);
    const count = () => sinks.filter(({ frames }) => frames.length > 1).length;
    broadcast.publish(delta('One'));
    expect(count()).toBe(0);
    await nextTurn();
    await nextTurn();
    expect(count()).toBeGreaterThan(0);
    expect(count()).toBeLessThan(100);
    await served();
    expect(count()).toBe(100);
  });

  test('is refused beyond the bound, and when its connection is gone already', () => {
    const { broadcast } = setUp();
    const gone = new MemorySink();
    gone.cut();
    expect(broadcast.watch(gone)).toBe(false);
    for (let index = 0; index < WIRE_WATCHERS_MAX; index += 1) broadcast.watch(new MemorySink());
    expect(broadcast.watch(new MemorySink())).toBe(false);
    expect(broadcast.watchers).toBe(WIRE_WATCHERS_MAX);
  });

  test('that throws is cut, and the others are served', async () => {
    const { broadcast } = setUp();
    const [bad, good] = [new MemorySink(), new MemorySink()];
    broadcast.watch(bad);
    broadcast.watch(good);
    bad.write = () => {
      throw new Error('broken pipe');
    };
    broadcast.publish(done('One.'));
    await served();
    expect(bad.isGone).toBe(true);
    expect(storedMessages(good.state)).toHaveLength(1);
    expect(broadcast.watchers).toBe(1);
  });
});

describe('a stalled watcher', () => {
  test('costs the others nothing, and is told the whole at last, without what was overtaken', async () => {
    const { broadcast } = setUp();
    const [stalled, other] = [new MemorySink(), new MemorySink()];
    for (const sink of [stalled, other]) broadcast.watch(sink);
    stalled.stall();
    for (let turn = 0; turn < 1_000; turn += 1) {
      for (let part = 0; part < 10; part += 1) broadcast.publish(delta(`${part} `, `m${turn}`));
      broadcast.publish(done('0 1 2 3 4 5 6 7 8 9', `m${turn}`));
      if (turn % 100 === 0) await served();
    }
    broadcast.publish(delta('and ', 'last'));
    broadcast.publish(delta('now', 'last'));
    await served();
    expect(stalled.writes).toBeLessThan(4);
    expect(stalled.unread).toBeLessThanOrEqual(WIRE_BATCH_FRAMES_MAX);
    expect(broadcast.kept.frames).toBeLessThanOrEqual(WIRE_LOG_FRAMES_MAX);
    expect(other.state.messages).toHaveLength(1_001);
    expect(stalled.isGone).toBe(false);
    stalled.resume();
    await served();
    expect(stalled.isGone).toBe(true);
    const back = new MemorySink(stalled.state);
    broadcast.watch(back, { lastSeq: seqsOf(stalled).at(-1) });
    await served();
    expect(back.state.messages.map(({ text }) => text)).toEqual(other.state.messages.map(({ text }) => text));
  });

  test('that is not too far behind gets tools, ends and errors all, and one delta of what is open', async () => {
    const { broadcast } = setUp();
    const sink = new MemorySink();
    broadcast.watch(sink);
    sink.stall();
    broadcast.publish(delta('.'));
    await served();
    for (let part = 0; part < 50; part += 1) broadcast.publish(delta('x'));
    for (const state of ['running', 'done'] as const) broadcast.publish(tool(state));
    broadcast.publish({ kind: 'error', msg: 'e', code: 'busy', message: 'try later', fatal: false });
    broadcast.publish({ kind: 'flush', msg: 'a', text: '.xx' });
    for (let part = 0; part < 50; part += 1) broadcast.publish(delta('y', 'b'));
    sink.resume();
    await served();
    expect(typesOf(sink).filter((type) => type !== 'heartbeat')).toEqual(
      'history delta tool tool error flush delta'.split(' '),
    );
    expect(sink.state.messages.map(({ text }) => text)).toEqual(['.xx', 'y'.repeat(50)]);
    expect(sink.state.failures.map(({ code }) => code)).toEqual(['busy']);
    expect(sink.state.counts).toMatchObject({ missing: 0, lost: 0 });
  });

  test('is cut after a while, alone', async () => {
    const { broadcast, clock } = setUp();
    const [stalled, other] = [new MemorySink(), new MemorySink()];
    for (const sink of [stalled, other]) broadcast.watch(sink);
    stalled.stall();
    broadcast.publish(delta('.'));
    await served();
    clock.advance(WIRE_UNREAD_MAX_MS - 1);
    expect(stalled.isGone).toBe(false);
    clock.advance(WIRE_HEARTBEAT_MS);
    expect([stalled.isGone, other.isGone]).toEqual([true, false]);
  });
});

describe('a client that comes back', () => {
  test('is told what it missed, and nothing twice', async () => {
    const { broadcast } = setUp();
    const first = new MemorySink();
    broadcast.watch(first);
    broadcast.publish(delta('One '));
    await served();
    first.cut();
    broadcast.publish(delta('two '));
    broadcast.publish(tool('running'));
    const second = new MemorySink(first.state);
    broadcast.watch(second, { lastSeq: 1 });
    await served();
    expect(seqsOf(second)).toEqual([2, 3]);
    expect(second.state.messages[0]).toMatchObject({ text: 'One two ', tools: [{ state: 'running' }] });
  });

  test('is told everything anew when it was cut within a snapshot, which has the numbers of other frames', () => {
    const { broadcast } = setUp();
    for (const text of ['One ', 'two ', 'three ']) broadcast.publish(delta(text));
    broadcast.watch(new MemorySink());
    const back = new MemorySink();
    broadcast.watch(back, { lastSeq: 2 });
    expect(back.state.messages[0]?.text).toBe('One two three ');
  });

  test.each([-1, 10_000])('is told everything anew for a number that is none of ours: %d', (lastSeq) => {
    const { broadcast } = setUp();
    broadcast.publish(done('One.'));
    const sink = new MemorySink();
    broadcast.watch(sink, { lastSeq });
    expect(typesOf(sink)).toEqual(['history']);
  });
});

describe('heartbeats', () => {
  test('come when nothing else does, with numbers that rise', async () => {
    const { broadcast, clock } = setUp();
    const sink = new MemorySink();
    broadcast.watch(sink);
    for (let second = 0; second < 35; second += 1) {
      clock.advance(1_000);
      await served();
    }
    expect(typesOf(sink)).toEqual(['history', 'heartbeat', 'heartbeat']);
    expect(seqsOf(sink)).toEqual([0, 1, 2]);
    expect(clock.pendingTimers).toBe(1);
  });
});

describe('the end', () => {
  test('lets every watcher have the rest, then ends it, and leaves no timer', async () => {
    const { broadcast, clock } = setUp();
    const [sink, stalled, dead] = [new MemorySink(), new MemorySink(), new MemorySink()];
    for (const each of [sink, stalled, dead]) broadcast.watch(each);
    stalled.stall();
    dead.stall();
    broadcast.publish(done('Bye.'));
    await served();
    broadcast.end();
    expect(broadcast.publish(delta('late', 'z'))).toBe(false);
    stalled.resume();
    await served();
    for (const each of [sink, stalled]) {
      expect(each.hasEnded).toBe(true);
      expect(storedMessages(each.state)).toHaveLength(1);
    }
    expect(dead.isGone).toBe(false);
    clock.advance(WIRE_FINISH_MAX_MS);
    expect([dead.isGone, dead.hasEnded, broadcast.watchers]).toEqual([true, false, 0]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('is told to whoever comes later', async () => {
    const { broadcast, clock } = setUp();
    broadcast.publish(done('Bye.'));
    broadcast.end();
    const sink = new MemorySink();
    broadcast.watch(sink);
    await served();
    expect([typesOf(sink), sink.hasEnded, clock.pendingTimers]).toEqual([['history'], true, 0]);
    expect([broadcast.isFinishedAfter(1), broadcast.isFinishedAfter(0)]).toEqual([true, false]);
  });
});

/** What a step of the property does to the clients. */
interface Step {
  readonly client: number;
  readonly act: 'none' | 'stall' | 'resume' | 'cut' | 'come back' | 'come anew';
}

const steps = fc.array(
  fc.record({
    client: fc.nat({ max: 3 }),
    act: fc.constantFrom<Step['act']>('none', 'none', 'stall', 'resume', 'cut', 'come back', 'come anew'),
  }),
  { minLength: 1, maxLength: 60 },
);

/** A page that watches over one connection after the other, as `connectEvents` does it. */
class Page {
  sink = new MemorySink();

  constructor(readonly broadcast: Broadcast) {
    broadcast.watch(this.sink);
  }

  come(anew: boolean): void {
    this.sink.cut();
    const { state } = this.sink;
    const begun: ClientState = anew ? initialState : state;
    const next = new MemorySink(begun);
    const lastSeq = anew ? undefined : state.lastSeq;
    const write = next.write.bind(next);
    next.write = (frames) => {
      // The first frame of a connection at or below the last number: all is told anew.
      const last = next.state.lastSeq;
      if (next.writes === 0 && last !== undefined && (frames[0]?.seq ?? 0) <= last)
        next.state = restart(next.state);
      return write(frames);
    };
    this.broadcast.watch(next, { lastSeq });
    this.sink = next;
  }
}

describe('whatever watchers do', () => {
  test('all of them show in the end the same texts, in one order, and those are the ones that are stored', async () => {
    await fc.assert(
      fc.asyncProperty(frameLists, steps, async ({ frames, stored }, plan) => {
        const { broadcast } = setUp();
        const pages = Array.from({ length: 4 }, () => new Page(broadcast));
        for (const [index, { type, seq: _, ...rest }] of frames.entries()) {
          broadcast.publish({ kind: type, ...rest } as Happening);
          const { client, act } = plan[index % plan.length]!;
          const page = pages[client]!;
          if (act === 'stall') page.sink.stall();
          if (act === 'resume') page.sink.resume();
          if (act === 'cut') page.sink.cut();
          if (act === 'come back' || act === 'come anew') page.come(act === 'come anew');
          if (index % 3 === 0) await nextTurn();
        }
        for (const page of pages) {
          if (page.sink.isGone) page.come(false);
          page.sink.resume();
        }
        await served();
        for (const { sink } of pages) {
          expect(storedMessages(sink.state)).toEqual(stored);
          expect(sink.state.counts).toMatchObject({ missing: 0, lost: 0, refused: 0 });
        }
        broadcast.end();
      }),
      fuzzed(200),
    );
  });
});

describe('a fatal error', () => {
  const fatal: Happening = { kind: 'error', msg: 'e', code: 'model_lost', message: 'Over.', fatal: true };

  test('is the last word: nothing follows it but what closes a message', async () => {
    const { broadcast } = setUp();
    const sink = new MemorySink();
    broadcast.watch(sink);
    broadcast.publish(delta('One'));
    expect(broadcast.publish(fatal)).toBe(true);
    expect(broadcast.publish(delta(' two'))).toBe(false);
    expect(broadcast.publish(tool('running'))).toBe(false);
    expect(broadcast.publish({ kind: 'ready' })).toBe(false);
    expect(broadcast.publish({ ...fatal, msg: 'f', fatal: false })).toBe(false);
    expect(broadcast.publish(done('One'))).toBe(true);
    broadcast.end();
    await served();
    expect(typesOf(sink)).toEqual(['history', 'delta', 'error', 'done']);
  });

  test('is followed by whatever comes where it is not fatal', () => {
    const { broadcast } = setUp();
    broadcast.publish({ ...fatal, fatal: false });
    expect(broadcast.publish(delta('On'))).toBe(true);
  });
});

describe('the end of a stream', () => {
  test('is finished when the last watcher has read it and gone', async () => {
    const { broadcast } = setUp();
    const [quick, stalled] = [new MemorySink(), new MemorySink()];
    for (const sink of [quick, stalled]) broadcast.watch(sink);
    stalled.stall();
    let isFinished = false;
    void broadcast.finished.then(() => (isFinished = true));
    broadcast.publish(done('All.'));
    broadcast.end();
    await served();
    expect([quick.hasEnded, isFinished]).toEqual([true, false]);
    stalled.resume();
    await served();
    expect([stalled.hasEnded, isFinished]).toEqual([true, true]);
  });

  test('is finished at once where nobody watches', async () => {
    const { broadcast } = setUp();
    broadcast.end();
    await expect(broadcast.finished).resolves.toBeUndefined();
  });
});
