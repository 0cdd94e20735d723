/** A caller is connected with a human: behind the farewell's last mark, or not at all. */
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { FAREWELL_CAP_MS } from '../../src/tool-limits.js';
import { ANSWER, CallRig, NOTHING_LEFT, type RigOptions } from '../support/call-rig.js';

const FAILED = 'could not be connected with a human';

const stop = defineTool({
  name: 'stop_talking',
  description: 'Ends the conversation.',
  execute(_args, ctx) {
    ctx.endInvocation = true;
    return {};
  },
});

const connect = defineTool({
  name: 'connect_to_human',
  description: 'Connects the caller with a human.',
  execute(_args, { callControl }) {
    const answer = callControl.transfer();
    return answer.kind === 'unavailable' ? { error: answer.why } : { status: 'transferring' };
  },
});

function rigWith(transfer?: RigOptions['transfer'], deps: RigOptions['deps'] = {}): CallRig {
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello, how can I help?',
    tools: [connect, stop],
  });
  return new CallRig({ agent, deps, ...(transfer && { transfer }) });
}

async function asked(rig: CallRig) {
  const call = await rig.greeted();
  await rig.advance(2_000);
  call.model.listener.onToolCall([{ id: 'h1', name: 'connect_to_human', args: {} }]);
  await rig.advance(100);
  return call;
}

describe('a handed-over call', () => {
  it('is led on behind the last mark of the farewell, and its end is no hang-up', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await asked(rig);
    expect(model.responses).toEqual([
      { id: 'h1', name: 'connect_to_human', response: { status: 'transferring' } },
    ]);
    model.say('I connect you with a colleague now.', 2_000);
    await rig.advance(1_500);
    expect(rig.transferred).toEqual([]);
    await rig.advance(1_500);
    expect(rig.transferred).toEqual([callSid]);
    expect(model.closed).toBe(true);
    expect(rig.hungUp).toEqual([]);
    stream.listener!.onStop();
    await rig.advance(100);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'transferred' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is led on after three seconds where the agent says nothing more', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid } = await asked(rig);
    await rig.advance(2_800);
    expect(rig.transferred).toEqual([]);
    await rig.advance(300);
    expect(rig.transferred).toEqual([callSid]);
  });

  it('stays with the agent, which says so, where the carrier does not do it', async () => {
    const rig = rigWith({ kind: 'failed', cause: '500' });
    const { callSid, model } = await asked(rig);
    model.say('I connect you.', 500);
    await rig.advance(2_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(model.closed).toBe(false);
    expect(model.texts.at(-1)).toContain(FAILED);
    expect(rig.observed.filter(([name]) => name === 'onHandoff')).toEqual([['onHandoff', 'cold', 'refused']]);
  });

  it('hears an apology where the carrier does not do it and the model is gone', async () => {
    const rig = rigWith({ kind: 'failed', cause: '500' });
    const { callSid, model } = await asked(rig);
    model.say('I connect you.', 500);
    rig.loseModel(model);
    await rig.advance(25_000);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'model_lost' });
    expect(rig.view(callSid).messages.at(-1)?.text).toContain('technical');
  });

  it('is led on behind words that were said in front of the tool, however long they are', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say('One moment, I connect you.', 6_000, { generationComplete: false, turnComplete: false });
    model.listener.onToolCall([{ id: 'h1', name: 'connect_to_human', args: {} }]);
    await rig.advance(5_800);
    expect(rig.transferred).toEqual([]);
    await rig.advance(1_000);
    expect(rig.transferred).toEqual([callSid]);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(6_000);
  });

  it('is led on at once where the caller cuts the farewell', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await asked(rig);
    model.say('I connect you with a colleague, who will have a look at all of this.', 4_000);
    await rig.advance(1_000);
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('Yes, yes.');
    await rig.advance(100);
    expect(stream.sent).toContain('clear');
    expect(rig.transferred).toEqual([callSid]);
  });

  it('is led on though the model is lost in its farewell, of which the rest is heard', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await asked(rig);
    const before = stream.ear.playedMs;
    model.say('I connect you.', 2_000, { generationComplete: false, turnComplete: false });
    await rig.advance(200);
    model.lose();
    await rig.advance(1_000);
    expect(rig.transferred).toEqual([]);
    await rig.advance(1_500);
    expect(rig.transferred).toEqual([callSid]);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(1_900);
    stream.listener!.onStop();
    await rig.advance(100);
    expect(rig.view(callSid).endReason).toBe('transferred');
  });

  it('has ended as transferred when the stream is taken away before the carrier has answered', async () => {
    let answer: (outcome: { kind: 'done' }) => void = () => {};
    const rig = rigWith(undefined, {
      callControl: {
        whyNoTransfer: undefined,
        transfer: () =>
          new Promise((resolve) => {
            answer = resolve;
          }),
        hangUp: () => Promise.resolve({ kind: 'done' }),
      },
    });
    const { callSid, stream } = await asked(rig);
    await rig.advance(3_100);
    stream.listener!.onStop();
    await rig.advance(100);
    expect(rig.view(callSid).endReason).toBe('transferred');
    answer({ kind: 'done' });
    await rig.advance(1_000);
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is a hang-up while the carrier has not been asked', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await asked(rig);
    model.say('I connect you.', 2_000);
    await rig.advance(500);
    stream.listener!.onStop();
    await rig.advance(5_000);
    expect(rig.view(callSid).endReason).toBe('caller_hangup');
    expect(rig.transferred).toEqual([]);
  });

  it('goes on with the agent when the line was lost in the farewell, which may ask once more', async () => {
    const rig = rigWith({ kind: 'done' });
    const { callSid, stream, model } = await asked(rig);
    model.say('I connect you.', 2_000);
    await rig.advance(500);
    stream.lose();
    await rig.advance(1_000);
    const again = rig.reopen(callSid);
    await rig.advance(100);
    expect(rig.view(callSid).state).toBe('live');
    expect(model.texts.at(-1)).toContain('the caller is back');
    model.listener.onToolCall([{ id: 'h2', name: 'connect_to_human', args: {} }]);
    await rig.advance(3_200);
    expect(rig.transferred).toEqual([callSid]);
    again.listener!.onStop();
    await rig.advance(100);
    expect(rig.view(callSid).endReason).toBe('transferred');
  });

  it('has its time limit still behind it where the carrier does not connect it', async () => {
    const rig = rigWith({ kind: 'failed', cause: '500' }, { callMaxMs: 5_000 });
    const { callSid, model } = await asked(rig);
    model.say('I connect you with a colleague.', 3_000);
    await rig.advance(20_000);
    expect(rig.transferred).toEqual([callSid]);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'max_duration' });
    expect(rig.view(callSid).messages.at(-1)?.text).toBe(PROMPT_TEXTS.apology);
  });

  it('is counted as called off where the caller has gone meanwhile', async () => {
    const rig = rigWith({ kind: 'alreadyEnded' });
    await asked(rig);
    await rig.advance(3_200);
    expect(rig.seen('onHandoff')).toEqual([['cold', 'canceled']]);
  });

  it('can be asked for again after it was refused', async () => {
    const rig = rigWith({ kind: 'unavailable' });
    const { callSid, model } = await asked(rig);
    await rig.advance(3_200);
    expect(rig.transferred).toHaveLength(1);
    model.say('That did not work. Shall I try again?', 1_000);
    await rig.advance(2_000);
    model.listener.onToolCall([{ id: 'h2', name: 'connect_to_human', args: {} }]);
    await rig.advance(3_200);
    expect(rig.transferred).toHaveLength(2);
    expect(rig.view(callSid).state).toBe('live');
    expect(rig.seen('onHandoff')).toEqual([
      ['cold', 'refused'],
      ['cold', 'refused'],
    ]);
  });

  it('is an error that the agent can speak about where there is nobody', async () => {
    const rig = rigWith();
    const { callSid, model } = await asked(rig);
    expect(model.responses.at(-1)?.response).toEqual({ error: 'Nobody is there.' });
    await rig.advance(4_000);
    expect(rig.view(callSid).state).toBe('live');
    expect(rig.transferred).toEqual([]);
  });
});

describe('a conversation that a tool ends', () => {
  const ends = [{ id: 'e1', name: 'stop_talking', args: {} }];

  it('closes the model at once; what it was saying is heard, then the line is cut', async () => {
    const rig = rigWith();
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say('That is all I can do.', 1_500, { generationComplete: false, turnComplete: false });
    model.listener.onToolCall(ends);
    await rig.advance(100);
    expect(model.closed).toBe(true);
    expect(rig.hungUp).toEqual([]);
    await rig.advance(1_800);
    expect(stream.ear.playedMs - before).toBeGreaterThanOrEqual(1_500);
    expect(rig.hungUp).toEqual([callSid]);
    await rig.advance(1_000);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'agent_ended' });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('hears no more than three seconds of it', async () => {
    const rig = rigWith();
    const { callSid, stream, model } = await rig.greeted();
    const before = stream.ear.playedMs;
    model.say(ANSWER, 10_000);
    model.listener.onToolCall(ends);
    await rig.advance(FAREWELL_CAP_MS - 100);
    expect(rig.hungUp).toEqual([]);
    await rig.advance(300);
    expect(rig.hungUp).toEqual([callSid]);
    await rig.advance(1_000);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
    expect(stream.ear.playedMs - before).toBeLessThan(FAREWELL_CAP_MS + 500);
  });

  it('is over at once where all was heard', async () => {
    const rig = rigWith();
    const { callSid, model } = await rig.greeted();
    await rig.advance(1_000);
    model.listener.onToolCall(ends);
    await rig.advance(100);
    expect(model.closed).toBe(true);
    expect(rig.hungUp).toEqual([callSid]);
  });
});
