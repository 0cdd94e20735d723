/** Tools that asked for the caller's sound get it from their call on, until they are over; nobody else costs a frame anything. */
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import { modelCapabilities } from '../../src/model/model-capabilities.js';
import { CallRig } from '../support/call-rig.js';

/** An agent whose tool counts the caller's frames, up to `framesMax`. */
function listening(framesMax: number) {
  const heard: number[] = [];
  const listen = defineTool({
    name: 'listen',
    description: 'Listens.',
    parameters: { type: 'object', properties: {} },
    inputStream: true,
    async *execute(_args, { inputStream }) {
      for await (const { data } of inputStream ?? []) {
        heard.push(data.length);
        if (heard.length === framesMax) return;
      }
      yield 'over';
    },
  });
  const slow = defineTool({
    name: 'slow',
    description: 'Never ends.',
    parameters: { type: 'object', properties: {} },
    execute: () => new Promise(() => {}),
  });
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello.',
    tools: [listen, slow],
  });
  return { heard, rig: new CallRig({ agent }) };
}

const call = (id: string, name: string, args: Record<string, unknown> = {}) => [{ id, name, args }];

describe('the caller, heard by a tool', () => {
  it('from its call on, frame by frame, until it is stopped; a later call hears again', async () => {
    const { heard, rig } = listening(Infinity);
    const { stream, model } = await rig.greeted();
    await rig.frames(stream, 200);
    model.listener.onToolCall(call('c1', 'listen'));
    await rig.turns();
    await rig.frames(stream, 400);
    expect(heard).toEqual(Array.from({ length: 20 }, () => 640));
    model.listener.onToolCall(call('c2', 'stop_streaming', { function_name: 'listen' }));
    await rig.advance(1_100);
    await rig.frames(stream, 200);
    expect(heard).toHaveLength(20);
    model.listener.onToolCall(call('c3', 'listen'));
    await rig.turns();
    await rig.frames(stream, 200);
    expect(heard).toHaveLength(30);
    stream.listener!.onStop();
    await rig.advance(1_100);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('no more once it has ended by itself', async () => {
    const { heard, rig } = listening(5);
    const { stream, model } = await rig.greeted();
    model.listener.onToolCall(call('c1', 'listen'));
    await rig.turns();
    await rig.frames(stream, 1_000);
    expect(heard).toHaveLength(5);
    expect(model.audioMessages).toBeGreaterThanOrEqual(50);
  });
});

it('the caller is heard as they speak, also while the model may get nothing or is gone', async () => {
  const { heard, rig } = listening(Infinity);
  const { stream, model } = await rig.greeted();
  Object.assign(model, { capabilities: modelCapabilities('gemini-2.5-flash-native-audio') });
  model.listener.onToolCall(call('c1', 'listen'));
  await rig.turns();
  model.listener.onToolCall(call('c2', 'slow'));
  await rig.turns();
  const before = model.audioMessages;
  await rig.frames(stream, 2_000);
  expect(model.audioMessages).toBe(before);
  expect(heard).toHaveLength(100);
  stream.listener!.onStop();
  await rig.advance(1_100);
  expect(rig.clock.pendingTimers).toBe(0);
});

describe('the caller’s next words', () => {
  it('reach a tool that waits for them, while the agent waits for the tool', async () => {
    const confirm = defineTool({
      name: 'confirm',
      description: 'Waits for a yes.',
      parameters: { type: 'object', properties: {} },
      async execute(_args, ctx) {
        const wordsNow = (): string => ctx.events.at(-1)?.content?.parts?.[0]?.text ?? '';
        while (!wordsNow().includes('yes') && !ctx.signal.aborted)
          await new Promise((resolve) => setImmediate(resolve));
        return { said: wordsNow() };
      },
    });
    const rig = new CallRig({
      agent: defineAgent({
        name: 'support',
        instruction: 'Be brief.',
        greeting: 'Hello.',
        tools: [confirm],
      }),
    });
    const { stream, model } = await rig.greeted();
    model.listener.onToolCall(call('c1', 'confirm'));
    await rig.turns();
    model.listener.onInputTranscription('Well, ');
    await rig.turns();
    expect(model.responses).toEqual([]);
    model.listener.onInputTranscription('yes.');
    await rig.turns();
    expect(model.responses).toMatchObject([{ id: 'c1', response: { said: 'Well, yes.' } }]);
    stream.listener!.onStop();
    await rig.advance(1_100);
  });
});
