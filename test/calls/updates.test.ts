/** What a tool says by itself, on the line: not into a goodbye, and not so often that nothing of it is heard. */
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { CallRig, END_CALL } from '../support/call-rig.js';

const parameters = { type: 'object', properties: {} };

/** An agent whose tool reports whenever the test says so; one that `interrupts` is told whoever speaks. */
async function watching({ interrupts }: { readonly interrupts: boolean }) {
  const reports: string[] = [];
  let wake = (): void => {};
  const watch = defineTool({
    name: 'watch',
    description: 'Watches.',
    parameters,
    interrupts,
    async *execute(_args: unknown, { signal }: ToolContext) {
      while (!signal.aborted) {
        while (reports.length > 0) yield reports.shift();
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal.addEventListener('abort', () => resolve());
        });
      }
    },
  });
  const quick = defineTool({ name: 'quick', description: 'Is quick.', parameters, execute: () => 'done' });
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello.',
    tools: [watch, quick],
  });
  const rig = new CallRig({ agent });
  const call = await rig.greeted();
  call.model.listener.onToolCall([{ id: 'w1', name: 'watch', args: {} }]);
  await rig.turns();
  const report = async (...texts: string[]): Promise<void> => {
    reports.push(...texts);
    wake();
    for (let turn = 0; turn < 3 * texts.length; turn += 1) await rig.turns();
  };
  const told = () => call.model.texts.filter((text) => text.includes('watch reports'));
  return { rig, ...call, report, told };
}

describe('a report', () => {
  it.each([true, false])('does not come into the goodbye (interrupts: %s)', async (interrupts) => {
    const { rig, callSid, model, report, told } = await watching({ interrupts });
    model.say('Goodbye then, and thank you.', 3_000);
    model.listener.onToolCall(END_CALL);
    await rig.turns();
    await report('fire');
    await rig.advance(10_000);
    expect(told()).toEqual([]);
    expect(rig.view(callSid).endReason).toBe('agent_ended');
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: 'Goodbye then, and thank you.',
      interrupted: false,
    });
  });

  it('does not come between a result and the model’s answer to it', async () => {
    const { rig, model, report, told } = await watching({ interrupts: false });
    model.listener.onToolCall([{ id: 'c2', name: 'quick', args: {} }]);
    await rig.turns();
    expect(model.responses.at(-1)).toMatchObject({ name: 'quick' });
    await report('fire');
    await rig.advance(2_000);
    expect(told()).toEqual([]);
    model.say('It is done.', 1_000);
    await rig.advance(2_500);
    expect(told()).toHaveLength(1);
    await rig.advance(200_000);
  });

  it('that waits is told when the caller comes back from the goodbye', async () => {
    const { rig, callSid, model, report, told } = await watching({ interrupts: true });
    model.say('Goodbye then, and thank you.', 3_000);
    model.listener.onToolCall(END_CALL);
    await rig.turns();
    await report('fire');
    await rig.advance(500);
    model.listener.onInterrupted();
    expect(rig.view(callSid).state).toBe('live');
    await rig.advance(1_000);
    expect(told()).toHaveLength(1);
    await rig.advance(200_000);
  });

  it('that interrupts leaves a second to the one before, also where the model speaks to it at once', async () => {
    const { rig, model, report, told } = await watching({ interrupts: true });
    await report('1');
    await rig.advance(100);
    model.say('One.', 3_000);
    await report('2');
    await rig.advance(100);
    expect(told()).toHaveLength(1);
    await rig.advance(1_500);
    expect(told()).toHaveLength(2);
    await rig.advance(200_000);
  });

  it('that interrupts leaves a second to the one before, and only the newest follows', async () => {
    const { rig, model, report, told } = await watching({ interrupts: true });
    model.say('Let me tell you something long about it.', 5_000);
    await report('1', '2', '3', '4', '5');
    expect(told()).toHaveLength(1);
    await rig.advance(2_000);
    expect(told()).toEqual([expect.stringContaining('reports: 1'), expect.stringContaining('reports: 5')]);
    await rig.advance(200_000);
  });
});
