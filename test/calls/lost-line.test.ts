import { describe, expect, it } from 'vitest';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { ANSWER, CallRig, END_CALL, type FakeStream } from '../support/call-rig.js';
import { SOME_REQUEST } from '../support/scopes.js';

describe('a lost carrier socket', () => {
  it('comes back within ten seconds: the model is kept and there is no second greeting', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    stream.lose();
    await rig.advance(3_000);
    expect(model.closed).toBe(false);
    const answer = rig.after(callSid);
    const again = rig.open(callSid, answer);
    await rig.settle();
    expect(model.texts.filter((text) => text.includes('greeting'))).toHaveLength(1);
    expect(model.texts.at(-1)).toContain('line was interrupted');
    model.say('There you are.', 1_000);
    await rig.advance(1_500);
    expect(again.ear.playedMs).toBeGreaterThanOrEqual(1_000);
  });

  it('that stays away ends the call, and a late /twilio/after hears an apology', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    stream.lose();
    await rig.advance(10_100);
    expect(model.closed).toBe(true);
    expect(rig.view(callSid).endReason).toBe('carrier_lost');
    expect(rig.after(callSid)).toEqual({ kind: 'apology' });
  });

  it('keeps of the interrupted sentence only what was heard before', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('one two three four five six seven eight', 4_000, { turnComplete: false });
    await rig.advance(1_000);
    stream.lose();
    await rig.advance(100);
    const kept = rig.view(callSid).messages.at(-1)!;
    expect(kept.interrupted).toBe(true);
    expect(kept.text.split(' ').length).toBeLessThanOrEqual(4);
    expect(rig.seen('onStreamEnded').at(-1)).toEqual(['disconnected']);
  });

  it('cannot come back for ever', async () => {
    const rig = new CallRig();
    const { callSid } = await rig.greeted();
    let stream: FakeStream = rig.streams[0]!;
    for (let time = 0; time < 20; time += 1) {
      stream.lose();
      await rig.advance(100);
      const answer = rig.after(callSid);
      if (answer.kind !== 'stream') break;
      stream = rig.open(callSid, answer);
    }
    expect(rig.after(callSid).kind).not.toBe('stream');
    expect(rig.view(callSid).state).toBe('ended');
  });

  it('gives way to a second stream of the same call: there is one owner', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    const answer = rig.calls.onVoice({
      callSid,
      accountSid: undefined,
      from: undefined,
      to: undefined,
      direction: undefined,
      stirVerstat: undefined,
      agentName: undefined,
      request: SOME_REQUEST,
    });
    rig.open(callSid, answer);
    await rig.advance(100);
    expect(stream.closed).toBe(true);
    expect(model.closed).toBe(false);
    expect(rig.calls.counts()).toMatchObject({ calls: 1, streams: 1, models: 1 });
  });

  it('that was lost before the model was ready brings the greeting when it is back, once', async () => {
    const rig = new CallRig({ modelReadyMs: 2_000 });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    await rig.advance(500);
    stream.lose();
    await rig.advance(2_500);
    expect(rig.models[0]!.texts).toEqual([]);
    rig.reopen(callSid);
    await rig.advance(100);
    expect(rig.models[0]!.texts).toEqual([expect.stringContaining('word for word')]);
  });

  it('that was lost before the model was ready does not switch the watch over idleness off', async () => {
    const rig = new CallRig({ modelReadyMs: 2_000 });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    await rig.advance(500);
    stream.lose();
    await rig.advance(2_500);
    rig.reopen(callSid);
    await rig.advance(100);
    rig.models[0]!.say('Hello, how can I help?', 1_000);
    await rig.advance(120_000);
    expect(rig.view(callSid).endReason).toBe('caller_idle');
  });

  it('is no idle caller: nobody is asked whether they are still there while it is away', async () => {
    const rig = new CallRig();
    const { callSid, model, stream } = await rig.greeted();
    await rig.advance(12_000);
    stream.lose();
    await rig.advance(6_000);
    rig.reopen(callSid);
    await rig.advance(2_000);
    expect(model.texts.filter((text) => text.includes('said nothing'))).toEqual([]);
  });

  it('does not stop the clock of the longest call', async () => {
    const rig = new CallRig({ deps: { callMaxMs: 60_000, idleRepromptMs: 0 } });
    const { callSid, stream } = await rig.greeted();
    await rig.advance(55_000);
    stream.lose();
    await rig.advance(5_000);
    expect(rig.view(callSid).endReason).toBe('max_duration');
    expect(rig.hungUp).toEqual([callSid]);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is told to the model as a lost line, not as a caller who cut in', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('one two three four five six', 4_000);
    await rig.advance(1_000);
    stream.lose();
    await rig.advance(500);
    rig.reopen(callSid);
    expect(model.texts.at(-1)).toContain('The line was lost and the caller heard only this');
    expect(model.texts.at(-1)).not.toContain('cut in');
  });
});

describe('a carrier socket that is lost while the call ends', () => {
  it('in the agent’s goodbye leaves the call ended as it was meant, with what was heard of it', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { turnComplete: false });
    model.listener.onToolCall(END_CALL);
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_000);
    stream.lose();
    await rig.advance(100);
    const { endReason, messages } = rig.view(callSid);
    expect(endReason).toBe('agent_ended');
    expect(messages.at(-1)!.interrupted).toBe(true);
    expect(ANSWER.startsWith(messages.at(-1)!.text)).toBe(true);
    expect(messages.at(-1)!.text.split(' ').length).toBeLessThanOrEqual(4);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
    expect(model.closed).toBe(true);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('before a goodbye that was asked for has begun leaves nothing to wait for', async () => {
    const rig = new CallRig({ deps: { callMaxMs: 60_000, idleRepromptMs: 0 } });
    const { callSid, stream, model } = await rig.greeted();
    await rig.advance(59_000);
    expect(model.texts.at(-1)).toContain('Say goodbye');
    stream.lose();
    await rig.advance(100);
    expect(rig.view(callSid).endReason).toBe('max_duration');
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('in the clip that says goodbye to an idle caller owes nothing more', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 5_000 } });
    const { callSid, stream } = await rig.greeted();
    await rig.advance(9_500 + 4_000 + 500);
    const playedMs = stream.ear.playedMs;
    expect(playedMs).toBeGreaterThan(1_000);
    stream.lose();
    await rig.advance(100);
    expect(rig.view(callSid).endReason).toBe('caller_idle');
    expect(rig.said(callSid)).not.toContain(`model: ${PROMPT_TEXTS.goodbye}`);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('in the clip that says that no model could be reached leaves the explanation to /twilio/after', async () => {
    const rig = new CallRig({ modelReadyMs: 'fails', deps: { idleRepromptMs: 0 } });
    const { callSid, stream } = await rig.call();
    await rig.advance(2_000);
    expect(stream.ear.playedMs).toBeGreaterThan(200);
    stream.lose();
    await rig.advance(100);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'model_unreachable', messages: [] });
    expect(rig.after(callSid)).toEqual({ kind: 'apology' });
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
