/** Limits of an agent's own, in a call: turns, tokens, minutes. Row X22. */
import { describe, expect, it } from 'vitest';
import { type CostLimits, defineAgent } from '../../src/agent/agent.js';
import { defineTool, type Tool } from '../../src/agent/tool.js';
import { COST_ANSWER_MAX_MS, FUNCTION_ROUNDS_MAX } from '../../src/limits.js';
import type { ToolRuns } from '../../src/tool/tool-runs.js';
import { bareTools } from '../support/bare-tools.js';
import { CallRig, END_CALL, type FakeModel, type RigOptions } from '../support/call-rig.js';

const FAREWELL = 'The call must end now. Say goodbye in one short sentence.';

function rigWith(limits: CostLimits, deps: RigOptions['deps'] = {}): CallRig {
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello, how can I help?',
    runConfig: { limits },
  });
  return new CallRig({ agent, deps });
}

const asked = (model: FakeModel): number => model.texts.filter((text) => text.includes(FAREWELL)).length;

function spend(model: FakeModel, tokens: number): void {
  model.listener.onUsageMetadata({
    promptTokens: { AUDIO: tokens },
    responseTokens: {},
    totalTokenCount: tokens,
  });
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

  it('when the last answer never ends, after a while', async () => {
    const answers: Readonly<Record<string, (model: FakeModel, second: number) => void>> = {
      // Its end is never told.
      silent: (model, second) => {
        if (second === 0) model.say('One answer.', 1_000, { generationComplete: false, turnComplete: false });
      },
      endless: (model) =>
        model.say('and then and then', 1_000, { generationComplete: false, turnComplete: false }),
      alternating: (model, second) => {
        if (second % 4 !== 0) return;
        model.listener.onInputTranscription('And what else?');
        model.say(`Answer ${second}.`, 1_000, { turnComplete: false });
      },
    };
    for (const [name, answer] of Object.entries(answers)) {
      const rig = rigWith({ maxTokens: 1_000 }, { idleRepromptMs: 0 });
      const { callSid, model } = await rig.greeted();
      const speak = async (fromSecond: number, toSecond: number): Promise<void> => {
        for (let second = fromSecond; second < toSecond; second += 1) {
          answer(model, second);
          if (second === 0) spend(model, 1_000);
          await rig.advance(1_000);
        }
      };
      await speak(0, COST_ANSWER_MAX_MS / 1_000 - 1);
      if (name === 'endless') expect([name, asked(model)]).toEqual([name, 0]);
      await speak(COST_ANSWER_MAX_MS / 1_000 - 1, COST_ANSWER_MAX_MS / 1_000 + 2);
      expect([name, asked(rig.models.at(-1)!)]).toEqual([name, 1]);
      for (let second = 0; second < 20; second += 1) await rig.advance(1_000);
      expect([name, rig.view(callSid).endReason]).toEqual([name, 'cost_limit']);
    }
  });

  it('a function and what is said around it are one turn', async () => {
    const rig = rigWith({ maxTurns: 3 });
    const { model } = await rig.greeted();
    for (const answer of [1, 2]) {
      model.listener.onInputTranscription('And?');
      model.say('Let me look.', 500, { generationComplete: false, turnComplete: false });
      for (const round of [1, 2, 3]) {
        model.listener.onToolCall([{ id: `c${answer}.${round}`, name: 'look', args: {} }]);
        await rig.advance(600);
      }
      expect(asked(model)).toBe(0);
      model.say('Here it is.', 500);
      await rig.advance(6_000);
    }
    expect(asked(model)).toBe(1);
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

/** A call whose agent has one tool. */
function rigOf(tool: Tool): CallRig {
  let tools: ToolRuns | undefined;
  const agent = defineAgent({ name: 'support', instruction: 'x', greeting: 'Hello.', tools: [tool] });
  const rig = new CallRig({ agent, deps: { openTools: (run) => tools!.open(run), idleRepromptMs: 0 } });
  tools = bareTools(rig.clock);
  return rig;
}

describe('a model that does nothing but call functions', () => {
  const round = async (rig: CallRig, model: FakeModel, id: string): Promise<void> => {
    model.listener.onToolCall([{ id, name: 'look', args: {} }]);
    await rig.advance(600);
    model.listener.onTurnComplete(undefined);
  };

  it('ends the call with a goodbye, whatever the limits', async () => {
    for (const limits of [{}, { maxTurns: 2 }]) {
      const rig = rigWith(limits);
      const { callSid, model } = await rig.greeted();
      for (let index = 0; index < FUNCTION_ROUNDS_MAX; index += 1) await round(rig, model, `c${index}`);
      expect(asked(model)).toBe(0);
      await round(rig, model, 'one more');
      expect(asked(model)).toBe(1);
      for (let index = 0; index < 60; index += 1) await round(rig, model, `d${index}`);
      expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'cost_limit' });
    }
  });

  it('is not one that is asked again, by the caller or by a tool, or that says something', async () => {
    const between: Readonly<Record<string, (rig: CallRig, model: FakeModel) => void>> = {
      words: (_rig, model) => model.listener.onInputTranscription('And now?'),
      key: (rig) => rig.streams[0]!.listener!.onDtmf('5'),
      answer: (_rig, model) => model.say('Here it is.', 200),
    };
    for (const [name, happens] of Object.entries(between)) {
      const rig = rigWith({});
      const { model, stream } = await rig.greeted();
      for (let index = 0; index < 3 * FUNCTION_ROUNDS_MAX; index += 1) {
        if (index % FUNCTION_ROUNDS_MAX === 0) happens(rig, model);
        await round(rig, model, `c${index}`);
      }
      expect([name, asked(model)]).toEqual([name, 0]);
      stream.listener!.onStop();
    }
  });

  it('is not one that reacts to what a tool reports by itself', async () => {
    let report: (value: string) => void = () => {};
    const watch = defineTool({
      name: 'watch',
      description: 'Watches.',
      async *execute() {
        for (;;) yield await new Promise<string>((resolve) => (report = resolve));
      },
    });
    const rig = rigOf(watch);
    const { model, stream } = await rig.greeted();
    model.listener.onToolCall([{ id: 'w', name: 'watch', args: {} }]);
    await rig.advance(600);
    for (let index = 0; index < 2 * FUNCTION_ROUNDS_MAX; index += 1) {
      report(`reading ${index}`);
      await rig.turns();
      for (let wait = 0; wait < 8; wait += 1) await rig.advance(500);
      await round(rig, model, `c${index}`);
      for (let wait = 0; wait < 8; wait += 1) await rig.advance(500);
      await round(rig, model, `d${index}`);
    }
    expect(model.texts.filter((text) => text.includes('reading')).length).toBeGreaterThan(
      FUNCTION_ROUNDS_MAX,
    );
    expect(asked(model)).toBe(0);
    stream.listener!.onStop();
    await rig.turns();
  });

  it('is not one that calls many at once', async () => {
    const look = defineTool({ name: 'look', description: 'Looks.', execute: () => new Promise(() => {}) });
    const rig = rigOf(look);
    const { model, stream } = await rig.greeted();
    for (let index = 0; index < 3 * FUNCTION_ROUNDS_MAX; index += 1)
      model.listener.onToolCall([{ id: `c${index}`, name: 'look', args: {} }]);
    await rig.advance(2_000);
    expect(asked(model)).toBe(0);
    stream.listener!.onStop();
  });
});
