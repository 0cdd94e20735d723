/** Limits of an agent's own, in a call: turns, tokens, minutes. Row X22. */
import { describe, expect, it } from 'vitest';
import { type CostLimits, defineAgent } from '../../src/agent/agent.js';
import { CallRig, END_CALL } from '../support/call-rig.js';

const FAREWELL = 'The call must end now. Say goodbye in one short sentence.';

function rigWith(limits: CostLimits): CallRig {
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello, how can I help?',
    runConfig: { limits },
  });
  return new CallRig({ agent });
}

describe('X22: a call ends with a goodbye', () => {
  it('behind the last turn that the agent may take, which is heard to its end', async () => {
    const rig = rigWith({ maxTurns: 2 });
    const { callSid, stream, model } = await rig.greeted();
    await rig.advance(2_000);
    expect(model.texts).not.toContain(FAREWELL);
    model.say('Your order is on its way.', 3_000);
    const playedMs = stream.ear.playedMs;
    await rig.advance(2_500);
    expect(model.texts).not.toContain(FAREWELL);
    await rig.advance(2_500);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(3_000);
    expect(model.texts.filter((text) => text === FAREWELL)).toHaveLength(1);
    model.say('Goodbye.', 500);
    await rig.advance(1_500);
    expect(rig.hungUp).toEqual([callSid]);
    await rig.advance(200);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'cost_limit' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('a turn that was cut off counts, and so does one of which nothing was heard', async () => {
    const rig = rigWith({ maxTurns: 2 });
    const { model } = await rig.greeted();
    model.say('Your order', 3_000, { generationComplete: false, turnComplete: false });
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_000);
    expect(model.texts.at(-1)).toContain(FAREWELL);
  });

  it('when the tokens of input and output together are used up', async () => {
    const rig = rigWith({ maxTokens: 1_000 });
    const { model } = await rig.greeted();
    const use = (prompt: number, response: number): void =>
      model.listener.onUsageMetadata({
        promptTokens: { AUDIO: prompt },
        responseTokens: { AUDIO: response },
        totalTokenCount: prompt + response,
      });
    use(400, 100);
    await rig.advance(1_000);
    expect(model.texts).not.toContain(FAREWELL);
    model.say('One more thing.', 1_000);
    use(400, 100);
    await rig.advance(600);
    expect(model.texts).not.toContain(FAREWELL);
    await rig.advance(2_000);
    expect(model.texts).toContain(FAREWELL);
  });

  it('when the minutes are over, whoever speaks', async () => {
    const rig = rigWith({ maxMinutes: 0.1 });
    const { model } = await rig.greeted();
    model.say('A very long story.', 20_000);
    await rig.advance(3_500);
    expect(model.texts).not.toContain(FAREWELL);
    await rig.advance(2_000);
    expect(model.texts).toContain(FAREWELL);
  });

  it('whatever the caller says into it; and into a goodbye of the agent’s own as well', async () => {
    const rig = rigWith({ maxTurns: 2 });
    const { callSid, model } = await rig.greeted();
    model.say('Goodbye then, and thank you.', 2_000, { turnComplete: false });
    model.listener.onToolCall(END_CALL);
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_000);
    expect(model.texts.at(-1)).toContain(FAREWELL);
    model.say('Goodbye.', 2_000, { turnComplete: false });
    await rig.advance(300);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_000);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'cost_limit' });
  });

  it('over a line that was lost and is back: its time counts', async () => {
    const rig = rigWith({ maxMinutes: 0.1 });
    const { callSid, stream } = await rig.greeted();
    await rig.advance(3_000);
    stream.lose();
    await rig.advance(1_000);
    const again = rig.reopen(callSid);
    await rig.advance(6_000);
    expect(rig.models[0]!.texts).toContain(FAREWELL);
    again.listener!.onStop();
  });

  it('never, without limits', async () => {
    const rig = rigWith({});
    const { callSid, model } = await rig.greeted();
    for (let turn = 0; turn < 50; turn += 1) {
      model.say('Yes.', 200);
      model.listener.onUsageMetadata({
        promptTokens: { AUDIO: 1e6 },
        responseTokens: {},
        totalTokenCount: 1e6,
      });
      await rig.advance(1_500);
    }
    expect(model.texts).not.toContain(FAREWELL);
    expect(rig.view(callSid).state).toBe('live');
  });
});
