import type { Agent, AgentContext } from './agent.js';

/** What a model is told to be. Throws what the author's `instruction(ctx)` throws, and a TypeError for anything but words. */
export function instructionText(agent: Agent, ctx: AgentContext): string {
  const instruction: unknown =
    typeof agent.instruction === 'string' ? agent.instruction : agent.instruction(ctx);
  if (typeof instruction === 'string' && instruction.trim() !== '') return instruction;
  throw new TypeError('instruction(ctx) must return a string that is not empty');
}
