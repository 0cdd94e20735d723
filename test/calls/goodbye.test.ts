import { describe, expect, it } from 'vitest';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { modelCapabilities } from '../../src/model/model-capabilities.js';
import { LAST_MARK_GRACE_MS } from '../../src/limits.js';
import { ANSWER, CallRig, END_CALL, type FakeModel } from '../support/call-rig.js';

/** A goodbye and `end_call` in one turn; the turn's end is the caller's to play. */
let goodbyes = 0;

function sayGoodbye(model: FakeModel, words = 'Goodbye then, and thank you.', ms = 2_000): void {
  model.say(words, ms, { turnComplete: false });
  // As models do: each call has an id of its own.
  model.listener.onToolCall(END_CALL.map((call) => ({ ...call, id: `goodbye-${(goodbyes += 1)}` })));
}

describe('the agent’s goodbye', () => {
  it('is heard whole at the end of a last message that is longer than a goodbye may be', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say(`${ANSWER} goodbye`, 30_000, { generationComplete: false, turnComplete: false });
    model.listener.onToolCall(END_CALL);
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    await rig.advance(60_000);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(30_000);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: `${ANSWER} goodbye`,
      interrupted: false,
    });
  });

  it('is heard when it goes on in the same turn after end_call', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say('Okay.', 500, { generationComplete: false, turnComplete: false });
    await rig.advance(1_500);
    model.listener.onToolCall(END_CALL);
    await rig.advance(300);
    model.say('Goodbye and have a nice day.', 2_000);
    await rig.advance(6_000);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(2_500);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
  });

  it('is not said a second time by a recording when its turn was over before end_call', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say('Thank you, goodbye.', 2_000);
    await rig.advance(300);
    model.listener.onToolCall(END_CALL);
    model.listener.onTurnComplete(undefined);
    await rig.advance(12_000);
    expect(rig.said(callSid)).not.toContain(`model: ${PROMPT_TEXTS.goodbye}`);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
  });

  it('is not followed by a recorded one when it waits behind speech that is unheard', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say(ANSWER, 7_000);
    await rig.advance(300);
    model.listener.onToolCall(END_CALL);
    await rig.advance(300);
    model.say('Goodbye.', 1_000);
    await rig.advance(20_000);
    expect(rig.said(callSid).slice(-2)).toEqual([`model: ${ANSWER}`, 'model: Goodbye.']);
  });

  // A model that speaks of a result by itself would say goodbye twice.
  it.each([
    ['gemini-3.8-live', 'Thank you, goodbye.', 'SILENT'],
    ['gemini-3.8-live', '', undefined],
    ['gemini-3.1-flash-live-preview', 'Thank you, goodbye.', undefined],
  ])('has its result told to %s behind %j with scheduling %s', async (modelName, words, scheduling) => {
    const rig = new CallRig();
    const { model } = await rig.greeted();
    Object.assign(model, { capabilities: modelCapabilities(modelName) });
    if (words !== '') model.say(words, 2_000, { turnComplete: false });
    model.listener.onToolCall(END_CALL);
    await rig.turns();
    expect(model.responses.map((one) => one.scheduling)).toEqual([scheduling]);
  });

  it('may be interrupted and said again, and then ends the call', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    sayGoodbye(model);
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(2_000);
    const before = stream.ear.playedMs;
    sayGoodbye(model, 'Well, goodbye now.', 1_500);
    model.listener.onTurnComplete(undefined);
    await rig.advance(3_000);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(1_500);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
  });

  it('keeps a caller on the line who presses a key into it', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    sayGoodbye(model);
    await rig.advance(500);
    stream.listener!.onDtmf('1');
    model.listener.onTurnComplete(undefined);
    await rig.advance(4_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(rig.hungUp).toEqual([]);
    expect(model.texts.at(-1)).toContain('key "1"');
  });

  it('ends the call although the carrier returns no mark', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    stream.returnsMarks = false;
    sayGoodbye(model);
    model.listener.onTurnComplete(undefined);
    await rig.advance(2_000);
    expect(rig.hungUp).toEqual([]);
    await rig.advance(LAST_MARK_GRACE_MS + 500);
    expect(rig.hungUp).toEqual([callSid]);
    await rig.advance(200);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'agent_ended' });
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: 'Goodbye then, and thank you.',
      interrupted: false,
    });
    expect(rig.clock.pendingTimers).toBe(0);
  });
});

describe('a limit of ours', () => {
  it('on the length of a call holds although it passed in a goodbye that was interrupted', async () => {
    const rig = new CallRig({ deps: { callMaxMs: 60_000, idleRepromptMs: 0 } });
    const { callSid, model } = await rig.greeted();
    await rig.advance(57_500);
    sayGoodbye(model, ANSWER, 4_000);
    await rig.advance(1_500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(60_000);
    expect(rig.view(callSid).endReason).toBe('max_duration');
  });

  it('on draining holds although it passed in a goodbye that was interrupted', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0, callMaxMs: 0 } });
    const { callSid, model } = await rig.greeted();
    const drained = rig.calls.drain();
    await rig.advance(5 * 60_000 - 500);
    sayGoodbye(model, ANSWER, 4_000);
    await rig.advance(1_500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(60_000);
    expect(rig.view(callSid).endReason).toBe('server_draining');
    await drained;
  });

  it('leaves a caller who talks into its goodbye no seconds of dead air', async () => {
    const rig = new CallRig({ deps: { callMaxMs: 60_000, idleRepromptMs: 0 } });
    const { callSid, model } = await rig.greeted();
    await rig.advance(59_000);
    model.say('Our time is up, goodbye and thanks.', 3_000);
    await rig.advance(500);
    model.listener.onInterrupted();
    await rig.advance(5_000);
    expect(rig.view(callSid).endReason).toBe('max_duration');
  });
});

describe('the apology for a lost model', () => {
  it('is heard whole behind speech that is just short enough to be waited for', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say(ANSWER, 9_800);
    rig.loseModel(model);
    await rig.advance(30_000);
    expect(stream.ear.playedMs - before).toBeGreaterThan(9_800 + 6_300);
    expect(rig.said(callSid).slice(-2)).toEqual([`model: ${ANSWER}`, `model: ${PROMPT_TEXTS.apology}`]);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
  });
});
