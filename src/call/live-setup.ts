/**
 * What a call asks of the model before the first word: the agent's instruction and voice, and what the line adds. The
 * doctor asks for the same, so that what a call would be refused is found before it.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { LiveSetup } from '../model/live-connection.js';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { LINE_RULES } from './line-texts.js';

/** Throws what the author's `instruction(ctx)` throws, and a TypeError for anything but words. */
export function liveSetup(agent: Agent, ctx: AgentContext): LiveSetup {
  const instruction: unknown =
    typeof agent.instruction === 'string' ? agent.instruction : agent.instruction(ctx);
  if (typeof instruction !== 'string' || instruction.trim() === '') {
    throw new TypeError('instruction(ctx) must return a string that is not empty');
  }
  return {
    agentName: agent.name,
    instruction: `${instruction}\n\n${LINE_RULES}`,
    voice: agent.runConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig.voiceName,
    languageCode: agent.runConfig?.speechConfig?.languageCode,
    functionDeclarations: BUILT_IN_TOOLS,
  };
}
