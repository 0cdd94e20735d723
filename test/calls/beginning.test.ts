import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { PREWARMS_MAX } from '../../src/limits.js';
import { ANSWER_NUDGE_MS } from '../../src/link-limits.js';
import { CallRig, NOTHING_LEFT } from '../support/call-rig.js';

describe('admission', () => {
  it('by lag refuses a caller with a busy message, is not ready meanwhile, and never refuses the only one', async () => {
    const rig = new CallRig({ callsMax: 0 });
    rig.isOverloaded = true;
    expect(rig.calls.hasRoom).toBe(true);
    const { stream } = await rig.call();
    expect(rig.calls.hasRoom).toBe(false);
    expect(rig.ring().answer).toEqual({ kind: 'busy' });
    expect(rig.seen('onCallEnded')).toEqual([['inbound', 'busy', 0]]);
    rig.isOverloaded = false;
    expect(rig.calls.hasRoom).toBe(true);
    rig.isOverloaded = true;
    stream.listener!.onStop();
    await rig.settle();
    expect(rig.calls.hasRoom).toBe(true);
  });

  it('by MAX_CALLS does not look at the lag', async () => {
    const rig = new CallRig({ callsMax: 2 });
    rig.isOverloaded = true;
    await rig.call();
    expect(rig.ring().answer.kind).toBe('stream');
    expect(rig.ring().answer).toEqual({ kind: 'busy' });
  });
});

describe('a call begins', () => {
  it('with the model connected at the webhook and the greeting asked for when the stream opens', async () => {
    const rig = new CallRig();
    const { callSid, answer } = rig.ring();
    await rig.settle();
    expect(rig.models).toHaveLength(1);
    expect(rig.models[0]!.texts).toEqual([]);
    rig.open(callSid, answer);
    await rig.settle();
    expect(rig.models[0]!.texts).toEqual([
      expect.stringContaining('word for word: "Hello, how can I help?"'),
    ]);
  });

  it('also beyond the cap on prewarms: that model is connected when the stream opens', async () => {
    const rig = new CallRig();
    const calls = Array.from({ length: PREWARMS_MAX + 2 }, () => rig.ring());
    await rig.settle();
    expect(rig.models).toHaveLength(PREWARMS_MAX);
    const last = calls.at(-1)!;
    const stream = rig.open(last.callSid, last.answer);
    await rig.settle();
    const model = rig.models.at(-1)!;
    expect(rig.models).toHaveLength(PREWARMS_MAX + 1);
    expect(model.texts).toEqual([expect.stringContaining('word for word')]);
    model.say('Hello, how can I help?', 1_000);
    await rig.advance(1_500);
    expect(stream.ear.playedMs).toBeGreaterThanOrEqual(1_000);
  });

  it('and is over, its model closed, when no stream comes', async () => {
    const rig = new CallRig();
    for (let count = 0; count < 3; count += 1) rig.ring();
    await rig.settle();
    await rig.advance(10_100);
    expect(rig.models.map((model) => model.closed)).toEqual([true, true, true]);
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('once, however often the webhook is repeated', async () => {
    const rig = new CallRig();
    const first = rig.ring('CA7');
    const again = rig.ring('CA7');
    await rig.settle();
    expect(again.answer).toEqual(first.answer);
    expect(rig.models).toHaveLength(1);
  });

  it('with what the caller said while the model was still connecting, newest first kept', async () => {
    const rig = new CallRig({ modelReadyMs: 8_000 });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    await rig.frames(stream, 7_900);
    await rig.advance(200);
    const model = rig.models[0]!;
    expect(model.audioBytes / 32).toBeGreaterThan(4_800);
    expect(model.audioBytes / 32).toBeLessThanOrEqual(5_100);
    const dropped = rig
      .seen('onAudioDropped')
      .filter(([, reason]) => reason === 'backlog_full' || reason === 'backlog_age');
    expect(dropped.reduce((sum, [, , ms]) => sum + (ms as number), 0)).toBeGreaterThan(2_500);
  });

  it('with the keys that were pressed while the model was still connecting, told with the greeting’s request', async () => {
    const rig = new CallRig({ modelReadyMs: 2_000 });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    await rig.advance(500);
    stream.listener!.onDtmf('5');
    stream.listener!.onDtmf('#');
    await rig.advance(2_000);
    expect(rig.models[0]!.texts).toHaveLength(1);
    expect(rig.models[0]!.texts[0]).toMatch(/key "5"[\s\S]*key "#"[\s\S]*word for word/);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['returns nothing', () => undefined],
    ['returns a promise', async () => 'too late'],
  ])('with an apology when the agent’s instruction %s, never with silence', async (_how, instruction) => {
    const agent = defineAgent({ name: 'broken', instruction: instruction as unknown as () => string });
    const rig = new CallRig({ agent });
    const { callSid, answer } = rig.ring();
    await rig.settle();
    const stream = rig.open(callSid, answer);
    await rig.advance(10_000);
    expect(stream.ear.playedMs).toBeGreaterThan(3_000);
    expect(rig.view(callSid).endReason).toBe('model_unreachable');
  });

  it('with the greeting asked for once more, and no third time, when the model ignores the request', async () => {
    const rig = new CallRig();
    const { model } = await rig.call();
    await rig.advance(ANSWER_NUDGE_MS - 100);
    expect(model.texts).toHaveLength(1);
    await rig.advance(200);
    expect(model.texts).toEqual([model.texts[0], model.texts[0]]);
    await rig.advance(ANSWER_NUDGE_MS + 4_000);
    expect(model.texts).toHaveLength(2);
  });

  it('with the greeting asked for only once when the model has spoken, however late', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.call();
    await rig.advance(ANSWER_NUDGE_MS - 100);
    model.say('Hello, how can I help?', 1_000);
    await rig.advance(ANSWER_NUDGE_MS);
    expect(model.texts).toHaveLength(1);
    expect(rig.said(callSid)).toEqual(['model: Hello, how can I help?']);
  });

  it('for strangers who share no identity when their number is withheld', async () => {
    const rig = new CallRig({
      agent: defineAgent({
        name: 'support',
        instruction: (ctx) => `caller ${ctx.userId} ${String(ctx.callerVerified)}`,
      }),
    });
    for (const from of [
      '+266696687',
      '+7378742833',
      '266696687',
      'anonymous',
      '',
      'client:alice',
      'sip:a@b',
    ]) {
      const { callSid } = rig.ring(undefined, from);
      await rig.settle();
      expect(rig.models.at(-1)!.setup.instruction).toContain(`caller anonymous:${callSid} false`);
    }
    rig.ring(undefined, '+15550100009');
    await rig.settle();
    expect(rig.models.at(-1)!.setup.instruction).toContain('caller +15550100009 false');
  });
});

describe('what the metrics call it', () => {
  it('is an error when the model was lost in the middle, before or after its first sound', async () => {
    const rig = new CallRig();
    const first = await rig.greeted();
    first.model.listener.onOutputTranscription('words only');
    first.model.lose();
    const second = await rig.greeted();
    second.model.say('half a', 1_000, { generationComplete: false, turnComplete: false });
    second.model.lose();
    await rig.advance(15_000);
    expect(rig.seen('onStreamEnded').filter(([outcome]) => outcome === 'error')).toHaveLength(2);
  });

  it('is disconnected when the caller or the operator ended the line in the middle of a message', async () => {
    const rig = new CallRig();
    const first = await rig.greeted();
    first.model.say('half a', 2_000, { generationComplete: false, turnComplete: false });
    first.stream.listener!.onStop();
    const second = await rig.greeted();
    second.model.say('half a', 2_000, { generationComplete: false, turnComplete: false });
    rig.calls.hangUp(second.callSid);
    await rig.advance(500);
    expect(rig.seen('onStreamEnded').map(([outcome]) => outcome)).toEqual([
      'done',
      'disconnected',
      'done',
      'disconnected',
    ]);
  });

  it('counts a recorded clip neither as an answer nor as a turn’s latency', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    await rig.speak(stream, 600);
    model.listener.onOutputTranscription('words only');
    await rig.advance(1_000);
    model.lose();
    await rig.advance(12_000);
    expect(rig.seen('onTurnLatency')).toEqual([]);
  });

  it('measures a reply from the caller’s last voiced frame or key, and nothing that we asked for ourselves', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    await rig.advance(15_500);
    model.say('Are you still there?', 500);
    await rig.advance(1_000);
    expect(rig.seen('onFirstEvent').map(([turn]) => turn)).toEqual(['greeting']);
    stream.listener!.onDtmf('1');
    await rig.advance(400);
    model.say('One.', 500);
    await rig.advance(1_000);
    expect(rig.seen('onFirstEvent').at(-1)).toEqual(['reply', 400]);
    await rig.speak(stream, 600);
    await rig.frames(stream, 700);
    model.say('Yes.', 500);
    await rig.advance(1_000);
    const [turn, waitMs] = rig.seen('onFirstEvent').at(-1)!;
    expect(turn).toBe('reply');
    expect(waitMs).toBeGreaterThanOrEqual(600);
    expect(waitMs).toBeLessThanOrEqual(1_000);
    expect(rig.seen('onTurnLatency')).toHaveLength(1);
  });
});
