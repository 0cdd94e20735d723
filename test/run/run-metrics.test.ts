/** The numbers of a run, from its stream alone. */
import { describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import { RunEvents } from '../../src/event/run-events.js';
import { STREAM_OUTCOMES } from '../../src/event/run-stream.js';
import { STORE_PLACE_WAIT_MS } from '../../src/limits.js';
import type { RunObserver } from '../../src/observe/run-observer.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { RunHappenings } from '../../src/run/run-happenings.js';
import { RunMetrics } from '../../src/run/run-metrics.js';
import { StoredFirst } from '../../src/run/stored-first.js';
import type { AppendOutcome } from '../../src/store/store.js';
import { Broadcast } from '../../src/wire/broadcast.js';

const STORED: AppendOutcome = { stored: true, seq: 1 };

function rig() {
  const clock = new VirtualClock(5_000);
  const observed: unknown[][] = [];
  const observer = new Proxy({} as RunObserver, {
    get:
      (_target, name) =>
      (...args: unknown[]) =>
        void observed.push([name, ...args]),
  });
  const onFault = (error: unknown): void => {
    throw error;
  };
  const events = new RunEvents({ invocationId: 'i1', agentName: 'support', clock, onFault });
  const metrics = new RunMetrics({ run: events.stream, observer });
  events.stream.listen((item) => metrics.hear(item));
  return {
    clock,
    events,
    metrics,
    observed,
    onFault,
    seen: (name: keyof RunObserver) => observed.filter(([each]) => each === name).map(([, ...args]) => args),
  };
}

/** The same with the store and the watchers of a run in text; `settle` lets the store answer. */
function textRig() {
  const parts = rig();
  const { clock, events, metrics, onFault } = parts;
  const appended: ((outcome: AppendOutcome) => void)[] = [];
  const teller = new StoredFirst({
    broadcast: new Broadcast({ clock }),
    append: () => new Promise((resolve) => appended.push(resolve)),
    clock,
    onTold: (item) => metrics.told(item),
    onFault,
  });
  events.asked(clock.nowMs());
  events.stream.listen((item) => teller.hear(item));
  events.opened('m1', 'user');
  events.sealed('m1', 'user', 'Well?', false);
  const settle = async (): Promise<void> => {
    for (const resolve of appended.splice(0)) resolve(STORED);
    await nextTurn();
  };
  return { ...parts, settle };
}

describe('the numbers of a line', () => {
  it('are of messages that answer: neither of the caller nor of a recorded clip', () => {
    const { events, observed } = rig();
    events.opened('m1', 'user');
    events.delta('m1', 'user', 'Where ');
    events.delta('m1', 'user', 'is it?');
    events.sealed('m1', 'user', 'Where is it?', false);
    events.opened('m2', 'model');
    events.sealed('m2', 'model', 'We are sorry.', false);
    events.over();
    expect(observed).toEqual([]);
  });

  it('count each answer once, from the start of its turn to its opening, and how it ended', () => {
    const { clock, events, seen } = rig();
    for (const [at, outcome] of STREAM_OUTCOMES.entries()) {
      const kind = at === 0 ? 'greeting' : 'reply';
      const startedAtMs = clock.nowMs();
      clock.advance(100 * (at + 1));
      events.opened(`m${at}`, 'model', undefined, { kind, startedAtMs });
      clock.advance(1_000);
      events.delta(`m${at}`, 'model', 'Yes.');
      events.sealed(`m${at}`, 'model', 'Yes.', outcome !== 'done', outcome);
    }
    events.over();
    expect(seen('onStreamStarted')).toHaveLength(STREAM_OUTCOMES.length);
    expect(seen('onFirstEvent')).toEqual([
      ['greeting', 100],
      ['reply', 200],
      ['reply', 300],
      ['reply', 400],
    ]);
    expect(seen('onStreamEnded')).toEqual(STREAM_OUTCOMES.map((outcome) => [outcome]));
  });

  it('count no wait where nobody waited, and the end of an answer of which nothing was heard', () => {
    const { events, observed } = rig();
    events.opened('m1', 'model', undefined, { kind: 'reply', startedAtMs: undefined });
    events.sealed('m1', 'model', '', true, 'interrupted');
    expect(observed).toEqual([['onStreamStarted'], ['onStreamEnded', 'interrupted']]);
  });

  it('know the gaps in a message from those between messages, and what a function was the cause of', () => {
    const { clock, events, seen } = rig();
    const say = (msg: string, afterMs: number): void => {
      clock.advance(afterMs);
      events.delta(msg, 'model', 'word ');
    };
    say('m1', 0);
    say('m1', 30);
    events.called([{ id: 'c1', name: 'end_call' }]);
    events.responded([{ id: 'c1', name: 'end_call', response: { status: 'ending' } }]);
    events.delta('m9', 'user', 'in between');
    say('m1', 500);
    say('m1', 40);
    say('m2', 9_000);
    say('m2', 50);
    expect(seen('onDeltaGap')).toEqual([
      ['model', 30],
      ['tool', 500],
      ['model', 40],
      ['model', 50],
    ]);
  });

  it('count functions as they are answered, and tokens as they are reported', () => {
    const { events, seen } = rig();
    events.called([
      { id: 'c1', name: 'end_call' },
      { id: 'c2', name: 'nope' },
    ]);
    expect(seen('onToolCall')).toEqual([]);
    events.responded([
      { id: 'c1', name: 'end_call', response: { status: 'ending' } },
      { id: 'c2', name: 'nope', response: { error: 'There is no tool named nope.' } },
    ]);
    events.used({ promptTokens: { AUDIO: 3 }, responseTokens: { AUDIO: 4, TEXT: 5 } });
    expect(seen('onToolCall')).toEqual([
      ['end_call', 'done'],
      ['nope', 'error'],
    ]);
    expect(seen('onTokens')).toEqual([
      ['input', 'AUDIO', 3],
      ['output', 'AUDIO', 4],
      ['output', 'TEXT', 5],
    ]);
  });
});

describe('a function that the model takes back', () => {
  it.each([
    ['before it has a result', false, [['f', 'cancelled']], ['running', 'cancelled']],
    ['while its result waits', true, [['f', 'done']], ['running', 'done', 'cancelled']],
  ])(
    '%s is counted once, and what it comes to late is neither counted nor shown',
    (_when, hasResult, counted, shown) => {
      const { events, seen } = rig();
      const happenings = new RunHappenings();
      const states: string[] = [];
      events.stream.listen((item) => {
        for (const happening of happenings.of(item))
          if (happening.kind === 'tool') states.push(happening.state);
      });
      const call = { id: 'c1', name: 'f' };
      events.called([call]);
      if (hasResult) events.responded([{ ...call, response: {} }]);
      events.withdrawn([{ ...call, hasResult }]);
      if (!hasResult) events.responded([{ ...call, response: { error: 'the call was withdrawn' } }]);
      events.responded([{ ...call, response: { paid: true } }], { isLate: true });
      expect(seen('onToolCall')).toEqual(counted);
      expect(states).toEqual(shown);
      // Another connection of the model gives out the same id.
      events.called([call]);
      events.responded([{ ...call, response: {} }]);
      expect(states.slice(shown.length)).toEqual(['running', 'done']);
    },
  );
});

describe('an answer’s error', () => {
  it.each([
    [{ error: 'no' }, 'error'],
    [{ error: { code: 1 } }, 'error'],
    [{ error: false, message: 'fine' }, 'done'],
    [{ error: null }, 'done'],
    [{ error: '' }, 'done'],
    [{}, 'done'],
  ])('%j is told and counted as %s', (response, outcome) => {
    const { events, seen } = rig();
    const happenings = new RunHappenings();
    const states: string[] = [];
    events.stream.listen((item) => {
      for (const happening of happenings.of(item))
        if (happening.kind === 'tool') states.push(happening.state);
    });
    events.called([{ id: 'c1', name: 'f' }]);
    events.responded([{ id: 'c1', name: 'f', response }]);
    expect(seen('onToolCall')).toEqual([['f', outcome]]);
    expect(states).toEqual(['running', outcome]);
  });
});

describe('the numbers of a run in text', () => {
  it('are of one answer, from the message’s receipt to its first word', async () => {
    const { clock, events, seen, settle } = textRig();
    await settle();
    clock.advance(400);
    events.opened('m2', 'model');
    events.delta('m2', 'model', 'Yes.');
    events.delta('m2', 'model', 'No.');
    events.sealed('m2', 'model', 'Yes. No.', false);
    events.over('done');
    expect(seen('onStreamStarted')).toHaveLength(1);
    expect(seen('onFirstEvent')).toEqual([['reply', 400]]);
    expect(seen('onStreamEnded')).toEqual([['done']]);
  });

  it('take the first word when it is forwarded, not when it comes from the model', async () => {
    const { clock, events, seen } = textRig();
    clock.advance(100);
    events.opened('m2', 'model');
    events.delta('m2', 'model', 'Yes.');
    expect(seen('onFirstEvent')).toEqual([]);
    clock.advance(STORE_PLACE_WAIT_MS);
    expect(seen('onFirstEvent')).toEqual([['reply', 100 + STORE_PLACE_WAIT_MS]]);
  });

  it('take a function call for the first event, when it is stored and told', async () => {
    const { clock, events, seen, settle } = textRig();
    await settle();
    clock.advance(100);
    events.called([{ id: 'c1', name: 'lookup' }]);
    clock.advance(50);
    expect(seen('onFirstEvent')).toEqual([]);
    await settle();
    expect(seen('onFirstEvent')).toEqual([['reply', 150]]);
    events.delta('m2', 'model', 'Yes.');
    expect(seen('onFirstEvent')).toHaveLength(1);
  });

  it('have no first event where the run failed before its first word', async () => {
    const { events, seen, settle } = textRig();
    events.failed('model_unreachable', 'Lost.', { fatal: true });
    events.over('error');
    await settle();
    expect(seen('onFirstEvent')).toEqual([]);
    expect(seen('onStreamEnded')).toEqual([['error']]);
  });
});
