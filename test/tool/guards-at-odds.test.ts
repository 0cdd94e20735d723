/** Guards that do something nobody thought of: what cannot be told, what cannot be judged, what is not theirs. */
import { describe, expect, it } from 'vitest';
import { definePlugin } from '../../src/agent/plugin.js';
import { type StageOptions, tool, ToolStage } from './tool-stage.js';

function stageWith(options: StageOptions) {
  const ran: unknown[] = [];
  const refund = tool('refund', {
    execute(args) {
      ran.push(args);
      return { status: 'paid' };
    },
  });
  return { ran, stage: new ToolStage({ ...options, tools: [refund] }) };
}

const circle: Record<string, unknown> = {};
circle['self'] = circle;
const UNTELLABLE: readonly (readonly [string, unknown])[] = [
  ['a BigInt', 1n],
  ['a circle', circle],
  ['too much', 'x'.repeat(70_000)],
];

describe.each(UNTELLABLE)('a guard that returns %s', (_what, value) => {
  it('in front of the tool refuses, and does not say that it ran', async () => {
    const plugins = [definePlugin({ name: 'rules', beforeTool: () => value })];
    for (const options of [{ plugins }, { beforeTool: () => value }]) {
      const { ran, stage } = stageWith(options);
      const id = await stage.ask('refund', { amount: 500 });
      expect(stage.host.answerTo(id)).toEqual({
        error: expect.stringMatching(/^The call of refund was refused/),
      });
      expect(JSON.stringify(stage.host.answerTo(id))).not.toContain('ran');
      expect(ran).toEqual([]);
    }
  });

  it('behind it, as a plugin, leaves the result; as the agent’s callback it is an error', async () => {
    const plugins = [definePlugin({ name: 'rules', afterTool: () => value })];
    const plugin = stageWith({ plugins });
    expect(plugin.stage.host.answerTo(await plugin.stage.ask('refund'))).toEqual({ status: 'paid' });
    const callback = stageWith({ afterTool: () => value });
    expect(callback.stage.host.answerTo(await callback.stage.ask('refund'))).toEqual({
      error: expect.any(String),
    });
  });
});

describe('what a guard assigns instead of changing it', () => {
  it.each(['args', 'tool'])(
    'to %s refuses the call: the next one would judge what the handler does not get',
    async (key) => {
      const sneaky = definePlugin({
        name: 'sneaky',
        beforeTool(call) {
          (call as unknown as Record<string, unknown>)[key] = key === 'args' ? { amount: 5 } : 'lookup';
        },
      });
      const { ran, stage } = stageWith({ plugins: [sneaky] });
      const id = await stage.ask('refund', { amount: 500 });
      expect(stage.host.answerTo(id)).toEqual({ error: expect.stringContaining('refused by sneaky') });
      expect(ran).toEqual([]);
    },
  );
});
