/** What watchers are told, and when, while the store takes its time or fails. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storedMessages, type Frame } from '../../src/client/index.js';
import { nextTurn } from '../../src/clock.js';
import { StoreError } from '../../src/errors.js';
import type { Event } from '../../src/event/event.js';
import { RunEvents } from '../../src/event/run-events.js';
import { PLACE_HELD_MAX, STORE_PLACE_WAIT_MS, STORE_SILENCE_TOLD_MS } from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { StoredFirst } from '../../src/run/stored-first.js';
import type { AppendOutcome } from '../../src/store/store.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { MemorySink } from '../wire/memory-sink.js';

class Rig {
  readonly clock = new VirtualClock();
  readonly events: RunEvents;
  readonly teller: StoredFirst;
  readonly faults: unknown[] = [];
  /** Handed to the store, in order. */
  readonly committed: Event[] = [];
  readonly #sink = new MemorySink();
  readonly #appended: ((outcome: AppendOutcome) => void)[] = [];

  constructor() {
    const broadcast = new Broadcast({ clock: this.clock });
    broadcast.watch(this.#sink, { fromStart: true });
    this.teller = new StoredFirst({
      broadcast,
      append: (event) => {
        this.committed.push(event);
        return new Promise((resolve) => this.#appended.push(resolve));
      },
      clock: this.clock,
      onFault: (error) => this.faults.push(error),
    });
    this.events = new RunEvents({
      invocationId: 'i1',
      agentName: 'support',
      clock: this.clock,
      onFault: (error) => {
        throw error;
      },
    });
    this.events.stream.listen((item) => this.teller.hear(item));
  }

  get appends(): number {
    return this.#appended.length;
  }

  /** The oldest append that waits comes to an end. */
  async settle(outcome: AppendOutcome = { stored: true, seq: 1 }): Promise<void> {
    this.#appended.shift()?.(outcome);
    await nextTurn();
    await nextTurn();
  }

  get page() {
    return this.#sink.state;
  }

  /** Something is said in one piece, sealed and no word of it told before. */
  type(msg: string, text: string): void {
    this.events.opened(msg, 'user');
    this.events.sealed(msg, 'user', text, false);
  }

  /** What has been told until now. */
  async told(): Promise<string[]> {
    await nextTurn();
    await nextTurn();
    return this.#sink.frames.map(({ frame }) => brief(frame));
  }
}

function brief(frame: Frame): string {
  switch (frame.type) {
    case 'delta':
    case 'done':
    case 'flush':
      return `${frame.type} ${frame.msg} ${frame.text}`;
    case 'tool':
      return `tool ${frame.callId} ${frame.state}`;
    case 'error':
      return `error ${frame.code} ${frame.fatal ? 'fatal' : 'passing'}`;
    default:
      return frame.type;
  }
}

describe('what is told of a run', () => {
  it('is not called complete before it is stored, while deltas go on', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'One.');
    rig.events.sealed('m1', 'model', 'One.', false);
    rig.events.opened('m2', 'model');
    rig.events.delta('m2', 'model', 'Two.');
    expect(await rig.told()).toEqual(['delta m1 One.', 'delta m2 Two.']);
    await rig.settle();
    expect((await rig.told()).at(-1)).toBe('done m1 One.');
  });

  it('keeps a message that nobody has seen in front of what follows it', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'user');
    rig.events.sealed('m1', 'user', 'A question.', false);
    rig.events.opened('m2', 'model');
    rig.events.delta('m2', 'model', 'An ');
    rig.events.delta('m2', 'model', 'answer.');
    expect(await rig.told()).toEqual([]);
    await rig.settle();
    expect(await rig.told()).toEqual(['done m1 A question.', 'delta m2 An ', 'delta m2 answer.']);
  });

  it('leaves out what no frame can be made of, tells what stands around it, and nothing twice', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'One.');
    rig.events.called([{ id: '', name: '', args: {} }]);
    rig.events.delta('m1', 'model', ' Two.');
    rig.events.sealed('m1', 'model', 'One. Two.', false);
    while (rig.appends > 0) await rig.settle();
    expect(await rig.told()).toEqual(['delta m1 One.', 'delta m1  Two.', 'done m1 One. Two.']);
    expect(rig.faults).toHaveLength(1);
  });

  it('waits for a message’s place in the order, too', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'user');
    rig.events.delta('m1', 'user', 'Where');
    rig.events.opened('m2', 'model');
    rig.events.delta('m2', 'model', 'There.');
    rig.events.sealed('m2', 'model', 'There.', false);
    expect(rig.appends).toBe(0);
    rig.events.sealed('m1', 'user', 'Where?', false);
    await rig.settle();
    expect((await rig.told()).slice(2)).toEqual(['done m1 Where?']);
    await rig.settle();
    expect((await rig.told()).at(-1)).toBe('done m2 There.');
  });

  it('has functions at once in the middle of a message, and stored before where none is open', async () => {
    const rig = new Rig();
    rig.events.called([{ id: 'c1', name: 'lookup' }]);
    expect(await rig.told()).toEqual([]);
    await rig.settle();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'Let me see');
    rig.events.called([{ id: 'c2', name: 'lookup' }]);
    expect(await rig.told()).toEqual(['tool c1 running', 'delta m1 Let me see', 'tool c2 running']);
  });

  it('has no function withdrawn that is not told yet', async () => {
    const rig = new Rig();
    rig.events.called([
      { id: 'c1', name: 'look' },
      { id: 'c2', name: 'look' },
    ]);
    rig.events.withdrawn([{ id: 'c1', name: 'look', hasResult: false }]);
    expect(await rig.told()).toEqual([]);
    await rig.settle();
    expect(await rig.told()).toEqual(['tool c1 running', 'tool c2 running', 'tool c1 cancelled']);
    rig.events.withdrawn([{ id: 'c2', name: 'look', hasResult: false }]);
    expect((await rig.told()).at(-1)).toBe('tool c2 cancelled');
  });

  it('closes a message with the failure that ends it, and never stores that message', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'It is');
    rig.events.failed('model_unreachable', 'Lost.', { endsMsg: 'm1', fatal: true });
    rig.events.over();
    expect(rig.appends).toBe(1);
    await rig.settle();
    await rig.teller.told;
    expect(await rig.told()).toEqual(['delta m1 It is', 'error model_unreachable fatal']);
    expect(rig.teller.openMsg).toBeUndefined();
  });

  it('tells a loss, and then the text all the same', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'One.');
    rig.events.sealed('m1', 'model', 'One.', false);
    await rig.settle({ stored: false, error: new StoreError('store_failed', 'the disk is full') });
    expect(await rig.told()).toEqual(['delta m1 One.', 'error store_failed passing', 'done m1 One.']);
  });

  it('says once in a silence of the store that nothing is being stored', async () => {
    const rig = new Rig();
    const say = (msg: string): void => {
      rig.events.opened(msg, 'model');
      rig.events.delta(msg, 'model', msg);
      rig.events.sealed(msg, 'model', msg, false);
    };
    say('m1');
    rig.clock.advance(STORE_SILENCE_TOLD_MS - 1);
    expect(await rig.told()).toEqual(['delta m1 m1']);
    rig.clock.advance(1);
    say('m2');
    rig.clock.advance(3 * STORE_SILENCE_TOLD_MS);
    expect((await rig.told()).filter((each) => each.startsWith('error'))).toHaveLength(1);
    await rig.settle();
    await rig.settle();
    say('m3');
    rig.clock.advance(STORE_SILENCE_TOLD_MS);
    expect((await rig.told()).filter((each) => each.startsWith('error'))).toHaveLength(2);
  });

  it('says so even while one thing after the other is handed in', async () => {
    const rig = new Rig();
    for (let message = 0; message < 4; message += 1) {
      rig.events.opened(`m${message}`, 'model');
      rig.events.sealed(`m${message}`, 'model', 'One.', false);
      rig.clock.advance(STORE_SILENCE_TOLD_MS / 4);
    }
    expect(await rig.told()).toEqual(['error store_failed passing']);
  });

  it('is over when all of it is told', async () => {
    const rig = new Rig();
    let isTold = false;
    void rig.teller.told.then(() => (isTold = true));
    rig.events.opened('m1', 'model');
    rig.events.sealed('m1', 'model', 'One.', true);
    rig.events.over();
    expect(await rig.told()).toEqual([]);
    expect(isTold).toBe(false);
    await rig.settle();
    expect(await rig.told()).toEqual(['flush m1 One.']);
    expect(isTold).toBe(true);
  });
});

describe('what comes behind a message that nobody has seen, while the store does not answer', () => {
  it('waits a little, and is told behind that message’s text', async () => {
    const rig = new Rig();
    rig.type('m1', 'A question.');
    rig.events.opened('m2', 'model');
    rig.events.delta('m2', 'model', 'An ');
    rig.clock.advance(STORE_PLACE_WAIT_MS - 1);
    expect(await rig.told()).toEqual([]);
    rig.clock.advance(1);
    rig.events.delta('m2', 'model', 'answer.');
    rig.events.sealed('m2', 'model', 'An answer.', false);
    const places = ['delta m1 A question.', 'delta m2 An ', 'delta m2 answer.'];
    expect(await rig.told()).toEqual(places);
    await rig.settle();
    await rig.settle();
    expect(await rig.told()).toEqual([...places, 'done m1 A question.', 'done m2 An answer.']);
    expect(rig.clock.pendingTimers).toBe(1);
  });

  it('is told at once where there is much of it, and little waits: ten thousand pieces, a store that never answers', async () => {
    const rig = new Rig();
    rig.type('m1', 'A question.');
    rig.events.opened('m2', 'model');
    for (let piece = 0; piece < 10_000; piece += 1) {
      rig.events.delta('m2', 'model', 'word ');
      expect(rig.teller.waiting).toBeLessThanOrEqual(PLACE_HELD_MAX + 1);
      // A watcher that is two thousand frames behind would be cut.
      if (piece % 1_000 === 0) await rig.told();
    }
    expect(rig.teller.waiting).toBe(1);
    await rig.told();
    expect(rig.page.messages.map(({ text }) => text)).toEqual(['A question.', 'word '.repeat(10_000)]);
  });

  it('finds every such message in its place, and no message has one before it needs it', async () => {
    const rig = new Rig();
    rig.type('m1', 'One.');
    rig.type('m2', 'Two.');
    rig.clock.advance(STORE_PLACE_WAIT_MS);
    expect(await rig.told()).toEqual([]);
    rig.events.ready();
    expect(await rig.told()).toEqual(['ready']);
    rig.events.opened('m3', 'model');
    rig.events.delta('m3', 'model', 'Three.');
    rig.type('m4', 'Four.');
    rig.clock.advance(STORE_PLACE_WAIT_MS);
    expect(await rig.told()).toEqual([
      'ready',
      'delta m1 One.',
      'delta m2 Two.',
      'delta m3 Three.',
      'delta m4 Four.',
    ]);
    while (rig.appends > 0) await rig.settle();
    rig.events.sealed('m3', 'model', 'Three.', false);
    while (rig.appends > 0) await rig.settle();
    expect((await rig.told()).slice(5)).toEqual([
      'done m1 One.',
      'done m2 Two.',
      'done m3 Three.',
      'done m4 Four.',
    ]);
  });

  it('has its own place at once where it stands behind a message that is still being said', async () => {
    const rig = new Rig();
    rig.events.opened('m1', 'model');
    rig.events.delta('m1', 'model', 'Good day');
    for (const at of [2, 3, 4]) rig.type(`m${at}`, `Line ${at}.`);
    const shown = ['delta m1 Good day', 'delta m2 Line 2.', 'delta m3 Line 3.', 'delta m4 Line 4.'];
    expect(await rig.told()).toEqual(shown);
    expect(rig.appends).toBe(0);
    rig.events.sealed('m1', 'model', 'Good', true);
    while (rig.appends > 0) await rig.settle();
    expect((await rig.told()).slice(4)).toEqual([
      'flush m1 Good',
      'done m2 Line 2.',
      'done m3 Line 3.',
      'done m4 Line 4.',
    ]);
  });
});

describe('page and store', () => {
  const step = fc.oneof(
    fc.constantFrom('type', 'clip', 'open', 'piece', 'seal', 'cut', 'call', 'ready', 'settle', 'lose'),
    fc.constantFrom('settle', 'wait', 'piece'),
  );

  it('say the same in the end, in the order in which messages began, whenever the store answers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const rig = new Rig();
        const begun: string[] = [];
        const begin = (msg: string): void => {
          if (!begun.includes(msg)) begun.push(msg);
        };
        let count = 0;
        let open: { msg: string; text: string } | undefined;
        const close = (interrupted: boolean): void => {
          if (open === undefined) return;
          rig.events.sealed(open.msg, 'model', open.text, interrupted);
          open = undefined;
        };
        const whole = (role: 'user' | 'model'): void => {
          begin(`w${(count += 1)}`);
          rig.events.opened(`w${count}`, role);
          rig.events.sealed(`w${count}`, role, `whole ${count}`, false);
        };
        for (const each of steps) {
          if (each === 'type' || each === 'clip') whole(each === 'type' ? 'user' : 'model');
          else if (each === 'open' && open === undefined) {
            open = { msg: `m${(count += 1)}`, text: '' };
            rig.events.opened(open.msg, 'model');
          } else if (each === 'piece' && open !== undefined) {
            begin(open.msg);
            open.text += 'word ';
            rig.events.delta(open.msg, 'model', 'word ');
          } else if (each === 'seal' || each === 'cut') close(each === 'cut');
          else if (each === 'call') {
            if (open !== undefined) begin(open.msg);
            rig.events.called([{ id: `c${(count += 1)}`, name: 'lookup' }]);
          } else if (each === 'ready') rig.events.ready();
          else if (each === 'wait') rig.clock.advance(STORE_PLACE_WAIT_MS);
          else if (each === 'settle') await rig.settle();
          else if (each === 'lose')
            await rig.settle({ stored: false, error: new StoreError('store_failed', 'full') });
        }
        close(false);
        rig.events.over();
        while (rig.appends > 0) await rig.settle();
        await rig.teller.told;
        await rig.told();
        const words = rig.committed.flatMap(({ content }) => content?.parts?.[0]?.text ?? []);
        const shown = storedMessages(rig.page);
        expect(shown.map(({ text }) => text).toSorted()).toEqual(words.toSorted());
        expect(shown.map(({ msg }) => msg)).toEqual(
          begun.filter((msg) => shown.some((one) => one.msg === msg)),
        );
        expect([rig.teller.waiting, rig.faults]).toEqual([0, []]);
      }),
      { numRuns: 200 },
    );
  });
});
