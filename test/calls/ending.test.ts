import { describe, expect, it } from 'vitest';
import { END_REASONS } from '../../src/call/end-reason.js';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { HOLDS_MAX } from '../../src/handover-limits.js';
import { parseCallSid } from '../../src/ids.js';
import { CUT_MAX_MS } from '../../src/limits.js';
import { ANSWER, CallRig, END_CALL, type FakeModel, FakeStream, NOTHING_LEFT } from '../support/call-rig.js';
import { entering } from '../support/scopes.js';

const endsWith = (rig: CallRig): unknown => rig.seen('onCallEnded').at(-1)?.[1];

describe('a call ends', () => {
  it('with the model closed at once when the caller hangs up', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    stream.listener!.onStop();
    expect(model.closed).toBe(true);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'caller_hangup' });
    expect(rig.hungUp).toEqual([]);
  });

  it('with a connect that is under way called off', async () => {
    const rig = new CallRig({ modelReadyMs: 'never' });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    stream.listener!.onStop();
    await rig.advance(20);
    expect(endsWith(rig)).toBe('caller_hangup');
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('after the agent’s goodbye was heard to its last mark, through REST', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('Thank you for calling. Goodbye.', 2_000, { generationComplete: false, turnComplete: false });
    model.listener.onToolCall([{ id: 'c1', name: 'end_call', args: {} }]);
    expect(model.responses).toMatchObject([{ id: 'c1', name: 'end_call' }]);
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_500);
    expect(rig.hungUp).toEqual([]);
    await rig.advance(1_000);
    expect(rig.hungUp).toEqual([callSid]);
    await rig.advance(200);
    expect(stream.closed).toBe(true);
    const { endReason, messages } = rig.view(callSid);
    expect(endReason).toBe('agent_ended');
    expect(messages.at(-1)).toMatchObject({ text: 'Thank you for calling. Goodbye.', interrupted: false });
    expect(stream.ear.playedMs).toBeGreaterThanOrEqual(2_000);
  });

  it('with a goodbye that comes after end_call, heard too', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    const playedMs = stream.ear.playedMs;
    model.listener.onToolCall([{ id: 'c1', name: 'end_call', args: {} }]);
    await rig.advance(1_000);
    model.say('Goodbye!', 1_000);
    await rig.advance(1_300);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(1_000);
    expect(rig.hungUp).toEqual([callSid]);
    expect(endsWith(rig)).toBe('agent_ended');
  });

  it('not while the caller speaks into the goodbye', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say('Goodbye then, and thank you.', 2_000, { turnComplete: false });
    model.listener.onToolCall([{ id: 'c1', name: 'end_call', args: {} }]);
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(3_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(rig.hungUp).toEqual([]);
  });

  it('with a reprompt first and a goodbye then when the caller says nothing', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    await rig.advance(15_500);
    expect(model.texts.at(-1)).toBe(
      'The caller has said nothing for 15 seconds. Ask whether they are still there.',
    );
    model.say('Are you still there?', 1_000);
    await rig.advance(17_500);
    expect(model.texts.at(-1)).toContain('Say goodbye');
    model.say('Goodbye.', 800);
    await rig.advance(1_500);
    expect(endsWith(rig)).toBe('caller_idle');
    expect(rig.hungUp).toEqual([callSid]);
  });

  it('with a recorded goodbye when the model says none', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 5_000 } });
    const { callSid } = await rig.greeted();
    await rig.advance(20_000);
    expect(endsWith(rig)).toBe('caller_idle');
    expect(rig.view(callSid).messages.at(-1)?.text).toBe(PROMPT_TEXTS.goodbye);
  });

  it('not by idleness while the caller presses keys or speaks', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    for (let second = 0; second < 60; second += 10) {
      await rig.advance(10_000);
      stream.listener!.onDtmf('1');
      model.say('One.', 200);
    }
    expect(rig.view(callSid).state).toBe('live');
    expect(model.texts.filter((text) => text.includes('said nothing'))).toEqual([]);
  });

  it('after its longest time, with a goodbye', async () => {
    const rig = new CallRig({ deps: { callMaxMs: 60_000, idleRepromptMs: 0 } });
    const { model } = await rig.greeted();
    await rig.advance(59_000);
    expect(model.texts.at(-1)).toContain('Say goodbye');
    model.say('Our time is up. Goodbye.', 1_000);
    await rig.advance(2_000);
    expect(endsWith(rig)).toBe('max_duration');
  });

  it('with an apology when the model is lost, and then leaves the line to /twilio/after', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('This is a long', 1_000, { generationComplete: false, turnComplete: false });
    await rig.advance(300);
    const playedMs = stream.ear.playedMs;
    rig.loseModel(model);
    await rig.advance(20_000);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThan(4_000);
    expect(stream.closed).toBe(true);
    expect(rig.hungUp).toEqual([]);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
    expect(rig.view(callSid)).toMatchObject({ endReason: 'model_lost' });
    expect(rig.view(callSid).messages.at(-1)?.text).toBe(PROMPT_TEXTS.apology);
    expect(rig.seen('onStreamEnded')).toContainEqual(['error']);
  });

  it('with an apology when the model cannot be reached at all', async () => {
    const rig = new CallRig({ modelReadyMs: 'fails' });
    const { callSid, answer } = rig.ring();
    await rig.settle();
    const stream = rig.open(callSid, answer);
    await rig.advance(10_000);
    expect(stream.ear.playedMs).toBeGreaterThan(3_000);
    expect(endsWith(rig)).toBe('model_unreachable');
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
  });

  it('owing an apology that /twilio/after says, when the clip could not be played out', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    rig.loseModel(model);
    await rig.advance(8_000);
    expect(rig.view(callSid).state).toBe('ending');
    stream.lose();
    await rig.advance(100);
    expect(rig.after(callSid)).toEqual({ kind: 'apology' });
  });

  it('when an operator says so, at once', async () => {
    const rig = new CallRig();
    const { callSid, stream } = await rig.greeted();
    expect(rig.calls.hangUp(callSid)).toBe(true);
    await rig.advance(200);
    expect(rig.hungUp).toEqual([callSid]);
    expect(stream.closed).toBe(true);
    expect(endsWith(rig)).toBe('operator_hangup');
    expect(rig.calls.hangUp(callSid)).toBe(false);
  });

  it('although REST fails: closing the stream ends the line', async () => {
    const rig = new CallRig({ hangUp: { kind: 'failed', cause: '500' } });
    const { callSid, stream } = await rig.greeted();
    rig.calls.hangUp(callSid);
    await rig.advance(200);
    expect(stream.closed).toBe(true);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
  });

  it('when the carrier says that it is over, even with no word on the media socket', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    rig.status(callSid, 'in-progress');
    expect(rig.view(callSid).state).toBe('live');
    rig.status(callSid, 'completed');
    expect(model.closed).toBe(true);
    expect(endsWith(rig)).toBe('caller_hangup');
  });

  it('before any stream opened, when the carrier or an operator ends it', async () => {
    const rig = new CallRig({ modelReadyMs: 'never' });
    rig.status(rig.ring().callSid, 'canceled');
    expect(endsWith(rig)).toBe('caller_hangup');
    const { callSid } = rig.ring();
    rig.calls.hangUp(callSid);
    await rig.advance(20_000);
    expect(endsWith(rig)).toBe('operator_hangup');
    expect(rig.hungUp).toEqual([callSid]);
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('as an internal error with an apology when something inside throws, and no other call notices', async () => {
    const rig = new CallRig();
    const other = await rig.greeted();
    const { callSid, stream, model } = await rig.greeted();
    Object.defineProperty(model, 'sendAudio', {
      value: () => {
        throw new Error('broken');
      },
    });
    await rig.frames(stream, 20);
    await rig.advance(10_000);
    expect(rig.view(callSid).endReason).toBe('internal_error');
    expect(stream.ear.playedMs).toBeGreaterThan(3_000);
    expect(rig.view(other.callSid).state).toBe('live');
  });
});

describe('a draining server', () => {
  it('takes no call, lets running ones finish and is then done', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { stream } = await rig.greeted();
    let drained = false;
    void rig.calls.drain().then(() => (drained = true));
    expect(rig.ring().answer).toEqual({ kind: 'busy' });
    await rig.advance(60_000);
    expect(drained).toBe(false);
    stream.listener!.onStop();
    await rig.settle();
    expect(drained).toBe(true);
  });

  it('hands the rest over at its limit: the socket is closed, the line is not', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { callSid, model, stream } = await rig.greeted();
    const drained = rig.calls.drain();
    await rig.advance(5 * 60_000 - 1_000);
    model.say(ANSWER, 4_000, { turnComplete: false });
    await rig.advance(1_100);
    await drained;
    expect(stream.closed).toBe(true);
    expect(model.closed).toBe(true);
    expect(rig.hungUp).toEqual([]);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'server_draining' });
    // The word that was being said is kept as it was heard, and no clip is played.
    const last = rig.view(callSid).messages.at(-1)!;
    expect(last.interrupted).toBe(true);
    expect(ANSWER.startsWith(last.text)).toBe(true);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('asks callers whom it has handed over for patience, a few times, then says sorry', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { callSid } = await rig.greeted();
    void rig.calls.drain();
    await rig.advance(5 * 60_000);
    const answers = Array.from({ length: HOLDS_MAX + 2 }, () => rig.after(callSid));
    expect(answers).toEqual([
      ...Array.from({ length: HOLDS_MAX }, () => ({ kind: 'hold' })),
      { kind: 'apology' },
      { kind: 'apology' },
    ]);
  });

  it('is done with the callers whom it has handed over when the carrier has asked about each', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const callSids = [await rig.greeted(), await rig.greeted()].map(({ callSid }) => callSid);
    const drained = rig.calls.drain();
    await rig.advance(5 * 60_000 + 100);
    await drained;
    let isDone = false;
    void rig.calls.callersAsked().then(() => (isDone = true));
    for (const callSid of [callSids[0]!, callSids[0]!, callSids[1]!]) {
      await rig.settle();
      expect(isDone).toBe(false);
      rig.after(callSid);
    }
    await rig.settle();
    expect(isDone).toBe(true);
    await rig.calls.callersAsked();
  });

  it('asks for patience also where the carrier is quicker than the socket', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { callSid, stream } = await rig.greeted();
    stream.close = () => {};
    void rig.calls.drain();
    await rig.advance(5 * 60_000);
    expect(rig.view(callSid).state).toBe('ending');
    expect(rig.after(callSid)).toEqual({ kind: 'hold' });
    await rig.advance(CUT_MAX_MS);
    expect(rig.view(callSid).endReason).toBe('server_draining');
  });

  it('hands over a caller whose model is still connecting, at its limit', async () => {
    const rig = new CallRig({ modelReadyMs: 'never' });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    const drained = rig.calls.drain();
    await rig.advance(5 * 60_000 + 100);
    await drained;
    expect(stream.closed).toBe(true);
    expect(rig.hungUp).toEqual([]);
    expect(rig.view(callSid).endReason).toBe('server_draining');
    expect(rig.after(callSid)).toEqual({ kind: 'hold' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('asks a caller for patience whose line was lost at its limit', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { callSid, stream } = await rig.greeted();
    void rig.calls.drain();
    await rig.advance(5 * 60_000 - 1_000);
    stream.lose();
    await rig.advance(2_000);
    expect(rig.view(callSid).endReason).toBe('server_draining');
    expect(rig.after(callSid)).toEqual({ kind: 'hold' });
  });

  it('tells a web client at its limit, whom no carrier leads elsewhere', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const stream = new FakeStream(parseCallSid('web-1')!, rig.clock, 1);
    const line = rig.calls.openWeb({ userId: 'ada', sessionId: 's1' }, stream, []);
    if ('refused' in line) throw new Error(line.refused);
    stream.listener = entering(line.listener, line.scope.clock);
    await rig.settle();
    rig.models[0]!.say('Hello.', 200);
    await rig.advance(1_000);
    const drained = rig.calls.drain();
    await rig.advance(5 * 60_000 + 20_000);
    await drained;
    expect(stream.ear.playedMs).toBeGreaterThan(3_000);
    expect(rig.seen('onCallEnded').at(-1)?.slice(0, 2)).toEqual(['web', 'server_draining']);
  });

  it('asks nobody for patience whose line it has cut', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0, callMaxMs: 5 * 60_000 } });
    const { callSid, model } = await rig.greeted();
    void rig.calls.drain();
    await rig.advance(5 * 60_000 - 1_000);
    model.say('Goodbye.', 2_000, { turnComplete: false });
    model.listener.onToolCall(END_CALL);
    model.listener.onTurnComplete(undefined);
    await rig.advance(5_000);
    expect(rig.hungUp).toEqual([callSid]);
    expect(rig.after(callSid)).toEqual({ kind: 'apology' });
  });

  it('is not held by a call that was announced and never came', async () => {
    const rig = new CallRig();
    rig.ring();
    const drained = rig.calls.drain();
    await rig.advance(10_100);
    await drained;
    expect(endsWith(rig)).toBe('no_stream');
  });
});

describe('fifty calls, ended in every way', () => {
  const ways: ((rig: CallRig, stream: FakeStream, model: FakeModel) => void)[] = [
    (_rig, stream) => stream.listener!.onStop(),
    (_rig, stream) => stream.lose(),
    (_rig, _stream, model) => model.lose(1006),
    (_rig, _stream, model) => model.listener.onToolCall([{ id: 'x', name: 'end_call', args: {} }]),
    (rig, stream) => void rig.calls.hangUp(stream.callSid),
    (rig, stream) => rig.status(stream.callSid, 'completed'),
    (_rig, stream) => stream.terminate(),
    (_rig, _stream, model) => {
      model.say('going on and on', 8_000, { generationComplete: false, turnComplete: false });
      model.lose();
    },
    (_rig, stream, model) => {
      model.say('cut off', 4_000, { turnComplete: false });
      stream.listener!.onStop();
    },
    () => undefined, // idle, then the recorded goodbye
  ];

  it('leave no timer, stream, model or call behind', async () => {
    const rig = new CallRig();
    for (let count = 0; count < 50; count += 1) {
      const { stream, model } = count % 3 === 0 ? await rig.greeted() : await rig.call();
      await rig.frames(stream, 200);
      ways[count % ways.length]!(rig, stream, model);
    }
    await rig.advance(60_000);
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
    expect(rig.models.every((model) => model.closed)).toBe(true);
    expect(rig.streams.every((stream) => stream.closed)).toBe(true);
    const reasons = rig.seen('onCallEnded').map(([, reason]) => reason);
    expect(reasons).toHaveLength(50);
    expect(reasons.every((reason) => (END_REASONS as readonly unknown[]).includes(reason))).toBe(true);
    const active = rig.seen('onCallActive').reduce((sum, [change]) => sum + (change as number), 0);
    expect(active).toBe(0);
    const started = rig.seen('onStreamStarted').length;
    expect(rig.seen('onStreamEnded')).toHaveLength(started);
  });
});
