/** The runs of calls: what becomes of one whose database is away. */
import { describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import { StoreError } from '../../src/errors.js';
import { RunEvents } from '../../src/event/run-events.js';
import { silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Runs } from '../../src/run/runs.js';
import type { AppendOutcome } from '../../src/store/store.js';
import { MemorySink } from '../wire/memory-sink.js';

const GIVEN_UP: AppendOutcome = {
  stored: false,
  error: new StoreError('store_failed', 'the database took too long'),
};
const STORED: AppendOutcome = { stored: true, seq: 1 };
const NO_SESSION: AppendOutcome = {
  stored: false,
  error: new StoreError('store_no_session', 'there is no such session'),
};

/** A call whose writer answers as it is told. */
function follow() {
  const clock = new VirtualClock();
  const handed: string[] = [];
  const answers = { session: STORED, event: STORED };
  const runs = new Runs({
    writer: {
      createSession: async () => {
        handed.push('session');
        return answers.session;
      },
      append: async () => {
        handed.push('event');
        return answers.event;
      },
    },
    clock,
    log: silentLog,
  });
  const events = new RunEvents({
    invocationId: 'i1',
    agentName: 'support',
    clock,
    onFault: (error) => {
      throw error;
    },
  });
  const call = { invocationId: 'i1', callSid: 'CA1', appName: 'support', userId: 'u', callerVerified: false };
  const begin = () => runs.followCall({ ...call, sessionId: 's1' }, events.stream);
  const say = async (msg: string) => {
    events.opened(msg, 'model');
    events.sealed(msg, 'model', 'One.', false);
    await nextTurn();
  };
  return { answers, handed, begin, say, runs, events, clock };
}

describe('the session of a call', () => {
  it('is made once, before its events', async () => {
    const { handed, begin, say } = follow();
    begin();
    await say('m1');
    await say('m2');
    expect(handed).toEqual(['session', 'event', 'event']);
  });

  it('is handed in again as long as its making was given up', async () => {
    const { answers, handed, begin, say } = follow();
    answers.session = GIVEN_UP;
    begin();
    await nextTurn();
    await say('m1');
    answers.session = STORED;
    await say('m2');
    await say('m3');
    expect(handed).toEqual(['session', 'session', 'event', 'session', 'event', 'event']);
  });

  it('is not made anew once it was deleted', async () => {
    const { answers, handed, begin, say } = follow();
    begin();
    await say('m1');
    answers.event = NO_SESSION;
    await say('m2');
    await say('m3');
    expect(handed).toEqual(['session', 'event', 'event', 'event']);
  });
});

describe('a server that closes', () => {
  it('tells a call’s watchers all that is stored, and then ends them', async () => {
    const { begin, say, runs, events } = follow();
    begin();
    const sink = new MemorySink();
    runs.broadcastOf('CA1')!.watch(sink);
    await say('m1');
    events.failed('server_draining', 'Over.', { fatal: true });
    events.over();
    await runs.told();
    await runs.close();
    expect(sink.hasEnded).toBe(true);
    expect(sink.frames.map(({ frame }) => frame.type)).toEqual(['history', 'done', 'error']);
  });

  it('tells them why, and nothing as complete, where the store does not answer', async () => {
    const { answers, begin, say, runs, events, clock } = follow();
    answers.event = new Promise(() => {}) as never;
    begin();
    const sink = new MemorySink();
    runs.broadcastOf('CA1')!.watch(sink);
    events.delta('m1', 'model', 'One.');
    await say('m1');
    events.over();
    await runs.close();
    expect(sink.hasEnded).toBe(true);
    expect(sink.frames.map(({ frame }) => frame.type)).toEqual(['history', 'delta', 'error']);
    expect(sink.frames.at(-1)!.frame).toMatchObject({ code: 'server_draining', fatal: true });
    expect(runs.counts()).toEqual({ runs: 0, watchers: 0 });
    expect(clock.pendingTimers).toBeLessThanOrEqual(1);
  });
});
