import { ConfigError } from '../errors.js';
import { ignoreRejection } from '../foreign.js';
import type { Agent, AgentContext } from './agent.js';

/**
 * What a model is told to be. Throws a ConfigError that says what is wrong with the author's `instruction(ctx)`, with what it threw
 * as its cause. No model is asked then: without its instruction an agent would be one without its rules.
 */
export function instructionText(agent: Agent, ctx: AgentContext): string {
  const { name, instruction } = agent;
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError('agent_invalid', `agent ${name}: ${why}`, { cause });
  };
  let words: unknown;
  try {
    words = typeof instruction === 'string' ? instruction : instruction(ctx);
  } catch (error) {
    return refuse('its instruction function threw', error);
  }
  if (typeof words === 'string' && words.trim() !== '') return words;
  ignoreRejection(words);
  return refuse('instruction(ctx) must return a string that is not empty, at once: it cannot be async');
}
