/** A caller is connected with a human: behind the farewell's last mark, or not at all. */
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import { CallRig, type RigOptions } from '../support/call-rig.js';

const FAILED = 'could not be connected with a human';

const connect = defineTool({
  name: 'connect_to_human',
  description: 'Connects the caller with a human.',
  execute(_args, { callControl }) {
    const answer = callControl.transfer();
    return answer.kind === 'unavailable' ? { error: answer.why } : { status: 'transferring' };
  },
});

function rigWith(transfer?: RigOptions['transfer']): CallRig {
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello, how can I help?',
    tools: [connect],
  });
  return new CallRig({ agent, ...(transfer && { transfer }) });
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
    model.lose();
    await rig.advance(20_000);
    expect(rig.view(callSid)).toMatchObject({ state: 'ended', endReason: 'model_lost' });
    expect(rig.view(callSid).messages.at(-1)?.text).toContain('technical');
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
