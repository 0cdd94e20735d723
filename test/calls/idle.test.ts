import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import { ANSWER, CallRig } from '../support/call-rig.js';

describe('a silent caller', () => {
  it('is said goodbye to again after having come back from a goodbye and fallen silent once more', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    await rig.advance(16_000);
    model.say('Are you still there?', 1_000);
    await rig.advance(17_500);
    expect(rig.view(callSid).state).toBe('ending');
    model.say('Goodbye dear caller, see you.', 3_000);
    await rig.advance(1_000);
    model.listener.onInterrupted();
    expect(rig.view(callSid).state).toBe('live');
    await rig.advance(1_000);
    model.say('Yes?', 300);
    await rig.advance(120_000);
    expect(rig.view(callSid).endReason).toBe('caller_idle');
  });

  it('is still there after answering the reprompt: there is no goodbye', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    await rig.advance(15_500);
    model.say('Are you still there?', 1_000);
    await rig.advance(5_000);
    await rig.speak(stream, 600);
    await rig.advance(14_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(model.texts.filter((text) => text.includes('Say goodbye'))).toEqual([]);
  });

  it('is given time from the end of a long answer, also when its turnComplete is late', async () => {
    const rig = new CallRig();
    const { model } = await rig.greeted();
    await rig.advance(1_000);
    model.say(ANSWER, 26_500, { turnComplete: false });
    await rig.advance(31_000);
    expect(model.texts.filter((text) => text.includes('said nothing'))).toEqual([]);
    await rig.advance(12_000);
    expect(model.texts.filter((text) => text.includes('said nothing'))).toHaveLength(1);
  });

  it('is hung up on although the model says interrupted of the goodbye that was asked for', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    await rig.advance(16_000);
    model.say('Are you there?', 1_000, { turnComplete: false });
    await rig.advance(17_500);
    expect(rig.view(callSid).state).toBe('ending');
    model.listener.onInterrupted(); // Our text interrupts what the model takes to be still playing.
    model.listener.onTurnComplete(undefined);
    model.say('Goodbye.', 800);
    await rig.advance(7_000);
    model.say('Hello?', 300);
    await rig.advance(100_000);
    expect(rig.view(callSid).endReason).toBe('caller_idle');
  });
});

describe('a model that never says a word', () => {
  it('is not taken for an idle caller: the caller hears an apology', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.call();
    await rig.advance(60_000);
    expect(model.texts.filter((text) => text.includes('word for word'))).toHaveLength(2);
    expect(rig.models).toHaveLength(3);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'model_lost' });
    expect(stream.ear.playedMs).toBeGreaterThan(4_000);
  });
});

describe('a model that stops in the middle of its turn', () => {
  it('leaves the caller neither in dead air nor waiting for its end at a goodbye', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say('One moment', 1_203, { generationComplete: false, turnComplete: false });
    await rig.advance(7_000);
    expect(model.texts.at(-1)).toContain('broke off');
    model.listener.onToolCall([{ id: 'c', name: 'end_call', args: {} }]);
    await rig.advance(6_000);
    expect(rig.hungUp).toEqual([callSid]);
  });
});

describe('a caller who waits', () => {
  const parameters = { type: 'object', properties: {} };
  const description = 'Takes its time.';
  let finish: () => void;
  const watch = defineTool({
    name: 'watch',
    description,
    parameters,
    async *execute() {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      yield 'it is over';
    },
  });
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello.',
    tools: [watch],
  });
  const asked = (texts: readonly string[], what: string) => texts.filter((text) => text.includes(what));

  it('is told once that it goes on, and not hung up on', async () => {
    const rig = new CallRig({ agent, deps: { callMaxMs: 0 } });
    const { callSid, model, stream } = await rig.greeted();
    model.listener.onToolCall([{ id: 'c1', name: 'watch', args: {} }]);
    await rig.turns();
    model.say('I am on it.', 1_000);
    await rig.advance(16_500);
    expect(asked(model.texts, 'goes on')).toHaveLength(1);
    model.say('It still goes on.', 1_000);
    await rig.advance(600_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(model.texts).toHaveLength(2);
    await rig.speak(stream, 600);
    // The connection has been left for another one by its age.
    const later = rig.models.at(-1)!;
    later.say('Yes, still.', 500);
    await rig.advance(30_000);
    expect(asked(later.texts, 'goes on')).toHaveLength(1);
    stream.listener!.onStop();
    await rig.advance(5_000);
  });

  it('is not left with a model that never says a word', async () => {
    const rig = new CallRig({ agent, deps: { callMaxMs: 0 } });
    const { callSid, model } = await rig.call();
    model.listener.onToolCall([{ id: 'c1', name: 'watch', args: {} }]);
    await rig.turns();
    await rig.advance(120_000);
    expect(rig.view(callSid).endReason).toBe('model_lost');
  });

  it('is asked again, and then said goodbye to, once it is over', async () => {
    const rig = new CallRig({ agent, deps: { callMaxMs: 0 } });
    const { callSid, model } = await rig.greeted();
    model.listener.onToolCall([{ id: 'c1', name: 'watch', args: {} }]);
    await rig.turns();
    model.say('I am on it.', 1_000);
    await rig.advance(60_000);
    finish();
    await rig.turns();
    await rig.advance(2_000);
    expect(model.texts.at(-1)).toContain('it is over');
    model.say('It is over.', 1_000);
    await rig.advance(20_000);
    expect(asked(model.texts, 'still there')).toHaveLength(1);
    expect(rig.view(callSid).state).toBe('live');
    await rig.advance(60_000);
    expect(rig.view(callSid).endReason).toBe('caller_idle');
  });
});
