/**
 * A call whose server is lost or stops, and another server of the same store: who goes on with it, with what, and who does not.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { type Event, NO_ACTIONS } from '../../src/event/event.js';
import { CALL_SETTLE_MAX_MS, CALL_TAKE_UP_MAX_MS, HOLDS_MAX } from '../../src/handover-limits.js';
import type { CallSid } from '../../src/ids.js';
import { DRAIN_MAX_MS } from '../../src/limits.js';
import type { CallRecord } from '../../src/store/call-records.js';
import type { VoiceAnswer } from '../../src/telephony/voice-door.js';
import { ANSWER, CallRig, NOTHING_LEFT, type RigOptions } from '../support/call-rig.js';
import { SOME_REQUEST } from '../support/scopes.js';
import { SharedCalls } from '../support/shared-calls.js';

const NEVER_IDLE = { idleRepromptMs: 0 };
const SAID: readonly Event[] = [
  {
    id: 'e1',
    invocationId: 'i1',
    author: 'user',
    timestamp: 1,
    content: { parts: [{ text: 'Where is my parcel?' }] },
    actions: NO_ACTIONS,
  },
];

let shared: SharedCalls;
beforeEach(() => {
  shared = new SharedCalls();
  shared.events = SAID;
});

function server(options: RigOptions = {}): CallRig {
  return new CallRig({ deps: NEVER_IDLE, ...options, shared });
}

function recordOf(callSid: CallSid): CallRecord {
  return shared.records.get(callSid)!;
}

/** A call on a server that then vanishes: nobody tells anything of it. */
async function lostWithItsServer(): Promise<CallSid> {
  const { callSid } = await server().greeted();
  return callSid;
}

async function handedOver(): Promise<CallSid> {
  const first = server();
  const { callSid } = await first.greeted();
  void first.calls.drain();
  await first.advance(DRAIN_MAX_MS + 100);
  return callSid;
}

describe('a call that another server had', () => {
  it.each([
    ['died', lostWithItsServer, CALL_SETTLE_MAX_MS + 200],
    ['handed it over', handedOver, 0],
  ])('goes on where its server %s, with what was said and without a greeting', async (_why, lose, waitMs) => {
    const callSid = await lose();
    const rig = server();
    const asked = Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST));
    await rig.advance(waitMs);
    await rig.turns();
    const answer = await asked;
    expect(answer.kind).toBe('stream');
    await rig.settle();
    const stream = rig.open(callSid, answer);
    await rig.settle();
    const [model] = rig.models;
    expect(model!.setup.instruction).toContain('User: "Where is my parcel?"');
    expect(model!.setup.instruction).toContain('You are on a telephone call.');
    expect(model!.texts).toEqual([expect.stringContaining('the caller is back')]);
    model!.say('There you are.', 1_000);
    await rig.advance(1_500);
    expect(stream.ear.playedMs).toBeGreaterThanOrEqual(1_000);
    expect(rig.seen('onCallTakenOver')).toHaveLength(1);
    stream.listener!.onStop();
    await rig.turns();
    expect(recordOf(callSid).ended).toMatchObject({ reason: 'caller_hangup', mayReturn: false });
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
  });

  it('keeps its caller, its agent and what the carrier attested', async () => {
    const callSid = await lostWithItsServer();
    shared.records.set(callSid, { ...recordOf(callSid), callerVerified: true, callDirection: 'outbound' });
    const seen: unknown[] = [];
    const rig = server({
      agent: defineAgent({
        name: 'support',
        instruction: (ctx) => {
          seen.push([ctx.userId, ctx.appName, ctx.sessionId, ctx.callerVerified]);
          return 'Be brief.';
        },
      }),
    });
    await rig.afterElsewhere(callSid);
    expect(seen).toEqual([['+15550100001', 'support', callSid, true]]);
    expect(rig.view(callSid).callDirection).toBe('outbound');
  });

  it('has no more time than it had left', async () => {
    const callSid = await lostWithItsServer();
    const deps = { ...NEVER_IDLE, callMaxMs: 60_000 };
    const rig = server({ deps });
    await rig.advance(50_000);
    rig.open(callSid, await rig.afterElsewhere(callSid));
    await rig.advance(10_000);
    expect(rig.models[0]!.texts.at(-1)).toContain('The call must end now');
  });

  it('is not touched any more by the server that still holds its lost line', async () => {
    const first = server();
    const { callSid, stream } = await first.greeted();
    stream.lose();
    await first.advance(100);
    const second = server();
    second.open(callSid, await second.afterElsewhere(callSid));
    const { owner } = recordOf(callSid);
    await first.advance(11_000);
    expect(first.view(callSid).endReason).toBe('carrier_lost');
    await first.turns();
    expect(recordOf(callSid)).toMatchObject({ owner });
    expect(recordOf(callSid).ended).toBeUndefined();
  });

  it('may be lost there as well, and come back to the first one', async () => {
    const first = server();
    const { callSid, stream } = await first.greeted();
    stream.lose();
    await first.advance(11_000);
    expect(first.view(callSid).endReason).toBe('carrier_lost');
    const answer = await first.afterElsewhere(callSid);
    expect(answer.kind).toBe('stream');
    const again = first.open(callSid, answer);
    await first.settle();
    expect(first.calls.list()).toHaveLength(1);
    again.listener!.onStop();
    await first.turns();
    expect(recordOf(callSid).ended).toMatchObject({ reason: 'caller_hangup' });
  });

  it('goes on once, however often it is asked for', async () => {
    const callSid = await lostWithItsServer();
    const rig = server();
    const twice = [1, 2].map(() => Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST)));
    await rig.advance(CALL_TAKE_UP_MAX_MS);
    const [one, other] = await Promise.all(twice);
    expect(one).toEqual(other);
    expect(rig.after(callSid)).toEqual(one);
    expect(rig.calls.counts()).toMatchObject({ calls: 1, models: 1 });
  });

  it('goes on at one of the servers that are asked at once; the other one asks for patience', async () => {
    const callSid = await lostWithItsServer();
    const rigs = [server(), server()];
    const answers = await Promise.all(rigs.map((rig) => rig.afterElsewhere(callSid)));
    expect(answers.map(({ kind }) => kind).toSorted()).toEqual(['hold', 'stream']);
  });

  it('waits until its server has stored what was said, before that is read', async () => {
    let stored: () => void = () => {};
    const flushed = new Promise<void>((resolve) => (stored = resolve));
    const rig = server();
    const kept = shared.open(rig.clock, undefined, () => flushed);
    const identity = {
      callSid: 'CA9',
      appName: 'support',
      userId: 'u',
      callDirection: 'inbound',
      callerVerified: false,
    };
    kept.begin(identity);
    kept.end(identity, { reason: 'server_draining', mayReturn: true });
    const asked = Promise.resolve(rig.calls.onAfter('CA9' as CallSid, SOME_REQUEST));
    await rig.advance(300);
    await rig.turns();
    expect(shared.asked).not.toContain('history');
    stored();
    await rig.advance(100);
    await rig.turns();
    expect(shared.asked.slice(-3)).toEqual(['find', 'claim', 'history']);
    expect((await asked).kind).toBe('stream');
  });

  it('is greeted as any caller where nothing had been said', async () => {
    shared.events = [];
    const callSid = await lostWithItsServer();
    const rig = server();
    rig.open(callSid, await rig.afterElsewhere(callSid));
    await rig.settle();
    expect(rig.models[0]!.texts).toEqual([expect.stringContaining('word for word')]);
  });
});

describe('a call that comes back', () => {
  const ASKED_IN_VAIN: [string, VoiceAnswer['kind'], (callSid: CallSid) => void][] = [
    ['was never anywhere', 'apology', (callSid) => shared.records.delete(callSid)],
    [
      'is over',
      'hangup',
      (callSid) =>
        shared.records.set(callSid, {
          ...recordOf(callSid),
          ended: { atMs: 1, reason: 'agent_ended', mayReturn: false },
        }),
    ],
    [
      'has an agent that is not here',
      'apology',
      (callSid) => shared.records.set(callSid, { ...recordOf(callSid), appName: 'sales' }),
    ],
    ['cannot be looked up', 'hold', () => void (shared.failures = 1)],
  ];
  it.each(ASKED_IN_VAIN)('and %s hears what it comes to: %s', async (_why, kind, spoil) => {
    const callSid = await lostWithItsServer();
    const rig = server();
    spoil(callSid);
    expect(await rig.afterElsewhere(callSid)).toEqual({ kind });
    expect(shared.asked).not.toContain('claim');
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it.each(['find', 'claim', 'history'])(
    'to a store that takes long (%s) is asked for patience in time, and is not kept from others',
    async (slow) => {
      const callSid = await lostWithItsServer();
      const rig = server();
      let go: () => void = () => {};
      const stuck = new Promise<void>((resolve) => (go = resolve));
      shared.before = (what) => (what === slow ? stuck : Promise.resolve());
      const asked = Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST));
      await rig.advance(CALL_TAKE_UP_MAX_MS);
      expect(await asked).toEqual({ kind: 'hold' });
      shared.before = () => Promise.resolve();
      go();
      await rig.turns();
      await rig.advance(1_000);
      await rig.turns();
      expect(recordOf(callSid).ended).toMatchObject({ mayReturn: true });
      expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
      expect((await server().afterElsewhere(callSid)).kind).toBe('stream');
    },
  );

  it.each(['claim', 'history'])(
    'and asks again while the store still takes long (%s) is taken up once, and stays taken up',
    async (slow) => {
      const callSid = await lostWithItsServer();
      const rig = server();
      let go: () => void = () => {};
      const stuck = new Promise<void>((resolve) => (go = resolve));
      shared.before = (what) => (what === slow ? stuck : Promise.resolve());
      const first = Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST));
      await rig.advance(CALL_TAKE_UP_MAX_MS);
      expect(await first).toEqual({ kind: 'hold' });
      const second = Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST));
      await rig.turns();
      go();
      await rig.turns();
      const answer = await second;
      expect(answer.kind).toBe('stream');
      await rig.settle();
      rig.open(callSid, answer);
      await rig.turns();
      expect(recordOf(callSid).ended).toBeUndefined();
    },
  );

  it('and opens no stream at the server that took it up may go on at another one', async () => {
    const callSid = await lostWithItsServer();
    const rig = server();
    expect((await rig.afterElsewhere(callSid)).kind).toBe('stream');
    await rig.advance(11_000);
    await rig.turns();
    expect(rig.view(callSid).endReason).toBe('no_stream');
    expect(recordOf(callSid).ended).toMatchObject({ mayReturn: true });
    expect((await server().afterElsewhere(callSid)).kind).toBe('stream');
  });

  it('and whose history cannot be read is asked for patience, and may go on elsewhere', async () => {
    const callSid = await lostWithItsServer();
    const rig = server();
    shared.before = async (what) => {
      if (what === 'history') shared.failures = 1;
    };
    expect(await rig.afterElsewhere(callSid)).toEqual({ kind: 'hold' });
    await rig.turns();
    shared.before = () => Promise.resolve();
    expect((await server().afterElsewhere(callSid)).kind).toBe('stream');
  });

  it('to a server that stops or is full is asked for patience, then told so', async () => {
    const callSid = await lostWithItsServer();
    const stopping = server();
    void stopping.calls.drain();
    const full = server({ callsMax: 1 });
    const { callSid: busyWith, answer } = full.ring('CA77');
    full.open(busyWith, answer);
    for (const [rig, last] of [
      [stopping, 'apology'],
      [full, 'busy'],
    ] as const) {
      const answers = Array.from({ length: HOLDS_MAX + 1 }, () => rig.after(callSid).kind);
      expect(answers).toEqual([...Array.from({ length: HOLDS_MAX }, () => 'hold'), last]);
    }
    expect(shared.asked).not.toContain('find');
  });

  it('while the server begins to stop is asked for patience, and may go on elsewhere', async () => {
    const callSid = await lostWithItsServer();
    const rig = server();
    const asked = Promise.resolve(rig.calls.onAfter(callSid, SOME_REQUEST));
    await rig.advance(200);
    void rig.calls.drain();
    await rig.advance(CALL_TAKE_UP_MAX_MS);
    expect(await asked).toEqual({ kind: 'hold' });
    await rig.turns();
    expect((await server().afterElsewhere(callSid)).kind).toBe('stream');
  });
});

describe('the record of a call', () => {
  it('is made when its stream opens, once, and ended when it ends', async () => {
    const rig = server();
    const { callSid, answer } = rig.ring();
    await rig.turns();
    expect(shared.records.size).toBe(0);
    const stream = rig.open(callSid, answer);
    await rig.turns();
    expect(recordOf(callSid)).toMatchObject({ appName: 'support', userId: '+15550100001' });
    stream.lose();
    await rig.advance(100);
    const again = rig.reopen(callSid);
    again.listener!.onStop();
    await rig.turns();
    expect(recordOf(callSid).ended).toMatchObject({ reason: 'caller_hangup', mayReturn: false });
    expect(shared.asked).toEqual(['begin', 'end']);
  });

  it('is not made of a call that no stream opened for', async () => {
    const rig = server();
    rig.ring();
    await rig.advance(11_000);
    await rig.turns();
    expect(shared.asked).toEqual([]);
  });

  it('says that the caller was left where the server was cut short', async () => {
    const rig = server();
    const { callSid } = await rig.greeted();
    rig.calls.close();
    await rig.turns();
    expect(recordOf(callSid).ended).toMatchObject({ reason: 'server_draining', mayReturn: true });
  });

  it('says so only of callers who were told nothing and whose line was not cut', async () => {
    const rig = server({ deps: { ...NEVER_IDLE, callMaxMs: DRAIN_MAX_MS } });
    const { callSid } = await rig.greeted();
    void rig.calls.drain();
    await rig.advance(DRAIN_MAX_MS - 1_600);
    // The longest duration is reached, and the drain's limit in the goodbye.
    rig.models[0]!.say(ANSWER, 4_000);
    await rig.advance(30_000);
    await rig.turns();
    expect(rig.hungUp).toEqual([callSid]);
    expect(recordOf(callSid).ended).toMatchObject({ mayReturn: false });
  });

  it('is written once the database is back; no call is harmed meanwhile', async () => {
    const rig = server();
    shared.failures = 3;
    const { callSid, stream, model } = await rig.greeted();
    expect(shared.records.size).toBe(0);
    await rig.advance(10_000);
    await rig.turns();
    expect(recordOf(callSid)).toMatchObject({ userId: '+15550100001' });
    shared.failures = 100;
    model.say('Bye.', 500);
    await rig.advance(1_000);
    stream.listener!.onStop();
    await rig.advance(20_000);
    await rig.turns();
    expect(rig.view(callSid).endReason).toBe('caller_hangup');
    expect(recordOf(callSid).ended).toBeUndefined();
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
