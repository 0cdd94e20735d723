/** Words on both sides of a function are one message (A18, X27), for as long as they belong together. */
import { describe, expect, it } from 'vitest';
import { defineAgent, defineTool } from '../../src/index.js';
import { CallRig, type FakeModel, type RigOptions } from '../support/call-rig.js';

const LOOK = [{ id: 'c1', name: 'look', args: {} }];

/** A call in which the model has said something, called, and ended its turn; the tool ends when it is told to. */
async function looking(options: RigOptions = {}) {
  let letGo: (value: unknown) => void = () => {};
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    execute: () =>
      new Promise((resolve) => {
        letGo = resolve;
      }),
  });
  const agent = defineAgent({ name: 'support', instruction: 'Be brief.', tools: [look] });
  const rig = new CallRig({ agent, ...options });
  const call = await rig.greeted();
  call.model.say('Let me look. ', 500, { generationComplete: false, turnComplete: false });
  call.model.listener.onToolCall(LOOK);
  await rig.turns();
  call.model.listener.onTurnComplete(undefined);
  await rig.advance(2_000);
  const found = async (): Promise<void> => {
    letGo({ message: 'Found.' });
    await rig.turns();
  };
  const agentSaid = (): string[] => rig.said(call.callSid).filter((line) => line.startsWith('model: '));
  return { rig, ...call, found, agentSaid, outcomes: () => rig.seen('onStreamEnded').map(([how]) => how) };
}

function answers(model: FakeModel): number {
  return model.responses.filter(({ id }) => id === 'c1').length;
}

describe('A18: a message in whose turn a function was called', () => {
  it('goes on with the result, and is done once', async () => {
    const { rig, model, found, agentSaid, outcomes } = await looking();
    expect(outcomes()).toEqual(['done']);
    await found();
    expect(answers(model)).toBe(1);
    await rig.advance(1_000);
    model.say('Here it is.', 500);
    await rig.advance(1_500);
    expect(agentSaid().at(-1)).toBe('model: Let me look. Here it is.');
    expect(outcomes()).toEqual(['done', 'done']);
  });

  it('is over when the model says nothing to the result', async () => {
    const { rig, found, model, agentSaid, outcomes } = await looking();
    await found();
    await rig.advance(3_500);
    expect(outcomes()).toEqual(['done']);
    await rig.advance(3_000);
    expect(outcomes()).toEqual(['done', 'done']);
    model.say('Something else.', 500);
    await rig.advance(1_500);
    expect(agentSaid().slice(-2)).toEqual(['model: Let me look.', 'model: Something else.']);
  });

  it('is over when the result brings an empty turn; one that is refused is explained', async () => {
    const { rig, found, model, outcomes } = await looking();
    await found();
    model.listener.onTurnComplete('RESPONSE_REJECTED');
    await rig.advance(1_200);
    expect(outcomes()).toEqual(['done', 'done']);
    expect(model.texts.at(-1)).toContain('Your last answer could not be given');
  });

  it('is over when the caller says something new meanwhile, and the result is another one', async () => {
    const { rig, stream, found, model, agentSaid } = await looking();
    await rig.speak(stream, 500);
    model.listener.onInputTranscription('Are you there?');
    model.say('I am.', 300);
    await rig.advance(1_000);
    await found();
    model.say('Here it is.', 500);
    await rig.advance(1_500);
    expect(agentSaid().slice(-3)).toEqual(['model: Let me look.', 'model: I am.', 'model: Here it is.']);
  });

  it('takes late words of the question, which stand in front of it', async () => {
    const { rig, callSid, found, model } = await looking();
    model.listener.onInputTranscription('Where is it?');
    await found();
    model.say('Here it is.', 500);
    await rig.advance(1_500);
    expect(rig.said(callSid).slice(-2)).toEqual(['user: Where is it?', 'model: Let me look. Here it is.']);
  });

  it('is over when a key is pressed, or something is asked of the model', async () => {
    const { rig, stream, model, agentSaid, outcomes } = await looking();
    stream.listener!.onDtmf('5');
    await rig.advance(1_200);
    expect(outcomes()).toEqual(['done', 'done']);
    model.say('Five.', 300);
    await rig.advance(2_500);
    expect(agentSaid().slice(-2)).toEqual(['model: Let me look.', 'model: Five.']);
  });

  it('is cut as a whole when the caller cuts into the result', async () => {
    const { rig, stream, found, model, agentSaid, outcomes } = await looking();
    await found();
    model.say('one two three four', 2_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(200);
    expect(agentSaid().at(-1)).toMatch(/^model: Let me look\. one/);
    expect(agentSaid().at(-1)).not.toContain('four');
    expect(outcomes()).toEqual(['done', 'interrupted']);
    stream.listener!.onStop();
    await rig.advance(20);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is told whole when the line or the model is lost meanwhile', async () => {
    const one = await looking();
    one.stream.listener!.onStop();
    expect(one.agentSaid().at(-1)).toBe('model: Let me look.');
    expect(one.outcomes()).toEqual(['done', 'done']);
    const other = await looking();
    other.model.lose();
    await other.rig.advance(1_200);
    expect(other.outcomes().slice(0, 2)).toEqual(['done', 'done']);
  });
});

describe('I2: a result that comes behind a barge-in', () => {
  it.each(['before', 'behind'] as const)(
    'is spoken from its first sound on; given %s the end of the cut turn',
    async (when) => {
      const { rig, stream, found, model } = await looking();
      model.say('one two three four five six', 3_000, { generationComplete: false, turnComplete: false });
      await rig.advance(1_000);
      model.listener.onInterrupted();
      if (when === 'before') await found();
      model.listener.onTurnComplete(undefined);
      if (when === 'behind') await found();
      const playedMs = stream.ear.playedMs;
      model.say('Here it is.', 1_000);
      await rig.advance(2_000);
      expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(1_000);
    },
  );
});
