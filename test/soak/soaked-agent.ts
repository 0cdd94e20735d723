/**
 * An agent that ships, as the soak calls it: everything is its own, but its instruction also names the call, so that the soak's model knows
 * every connection of it, and it has one tool more, which takes as long as it is told.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type Agent, defineAgent, defineTool } from 'earshot';
import { z } from 'zod';

const soakWait = defineTool({
  name: 'soak_wait',
  description: 'Takes so long, and answers that it did.',
  parameters: z.object({ ms: z.number().int().min(0).max(15_000) }),
  async execute({ ms }, { signal }) {
    await wait(ms, undefined, { signal });
    return { status: 'waited', message: `That took ${ms} milliseconds.` };
  },
});

export function soaked({ instruction, tools, ...agent }: Agent): Agent {
  return defineAgent({
    ...agent,
    instruction: (ctx) => {
      const own = typeof instruction === 'string' ? instruction : instruction(ctx);
      return `${own}\nThis is the call ${ctx.callSid}.`;
    },
    tools: [...(tools ?? []), soakWait],
  });
}
