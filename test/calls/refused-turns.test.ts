/** Turns that the model refuses: an error that ends nothing, and no silence behind it. Row J2. */
import { TurnCompleteReason } from '@google/genai';
import { describe, expect, it } from 'vitest';
import type { RunItem } from '../../src/event/run-stream.js';
import { CallRig, END_CALL, type FakeModel } from '../support/call-rig.js';

const REFUSED = 'Your last answer could not be given';
const NO_REFUSAL = new Set<string>([
  TurnCompleteReason.TURN_COMPLETE_REASON_UNSPECIFIED,
  TurnCompleteReason.NEED_MORE_INPUT,
]);
const REASONS = Object.values(TurnCompleteReason);

function followed() {
  const items: RunItem[] = [];
  const rig = new CallRig({
    deps: { openRun: (_call, run) => void run.listen((item) => items.push(item)), idleRepromptMs: 0 },
  });
  const errors = (): unknown[] =>
    items.flatMap((item) =>
      item.type === 'event' && item.event.errorCode !== undefined ? [[item.event.errorCode, item.fatal]] : [],
    );
  return { rig, errors };
}

const asked = (model: FakeModel): number => model.texts.filter((text) => text.includes(REFUSED)).length;

describe('a turn that the model refuses', () => {
  it.each(REASONS.filter((reason) => !NO_REFUSAL.has(reason)))(
    'is told as %s, and explained',
    async (reason) => {
      const { rig, errors } = followed();
      const { callSid, model } = await rig.greeted();
      model.listener.onTurnComplete(reason);
      expect(errors()).toEqual([[reason, undefined]]);
      expect(asked(model)).toBe(1);
      model.say('I cannot answer that.', 500);
      await rig.advance(1_000);
      expect(rig.view(callSid).state).toBe('live');
      expect(rig.said(callSid).at(-1)).toBe('model: I cannot answer that.');
    },
  );

  it.each([undefined, ...NO_REFUSAL])('is none by the reason %s', async (reason) => {
    const { rig, errors } = followed();
    const { model } = await rig.greeted();
    model.listener.onTurnComplete(reason);
    expect(errors()).toEqual([]);
    expect(asked(model)).toBe(0);
  });

  it('has a code that is a name, whatever the model sent', async () => {
    const { rig, errors } = followed();
    const { model } = await rig.greeted();
    model.listener.onTurnComplete('a sentence of the model’s');
    model.listener.onTurnComplete('X'.repeat(100));
    expect(errors()).toEqual([
      ['GENERATED_OTHER', undefined],
      ['GENERATED_OTHER', undefined],
    ]);
  });

  it('is explained once in a row, and again after a turn that was well', async () => {
    const { rig, errors } = followed();
    const { model } = await rig.greeted();
    for (let turn = 0; turn < 5; turn += 1) model.listener.onTurnComplete('RESPONSE_REJECTED');
    expect(errors()).toHaveLength(5);
    expect(asked(model)).toBe(1);
    model.say('Well.', 500);
    await rig.advance(1_000);
    model.listener.onTurnComplete('RESPONSE_REJECTED');
    expect(asked(model)).toBe(2);
  });

  it('is not explained where the caller has heard some of it, or cut it', async () => {
    const { rig, errors } = followed();
    const { model } = await rig.greeted();
    model.say('This is only half', 500, { turnComplete: false });
    model.listener.onTurnComplete('GENERATED_AUDIO_SAFETY');
    await rig.advance(1_000);
    model.say('A long answer that is cut', 2_000, { generationComplete: false, turnComplete: false });
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete('RESPONSE_REJECTED');
    expect(errors()).toHaveLength(2);
    expect(asked(model)).toBe(0);
  });

  it('is the greeting: it is asked for again', async () => {
    const { rig } = followed();
    const { model } = await rig.call();
    model.listener.onTurnComplete('RESPONSE_REJECTED');
    expect(asked(model)).toBe(0);
    expect(model.texts.filter((text) => text.includes('word for word'))).toHaveLength(2);
  });

  it('is a goodbye: the recorded one takes its place', async () => {
    const { rig } = followed();
    const { callSid, model } = await rig.greeted();
    model.listener.onToolCall(END_CALL);
    model.listener.onTurnComplete('RESPONSE_REJECTED');
    await rig.advance(10_000);
    expect(asked(model)).toBe(0);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
  });
});
