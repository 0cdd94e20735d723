/**
 * What a call asks of its model: the agent's own words and voice, with what every line adds to them. Pure, and the one
 * place where this is put together, so that the doctor asks for exactly what a call will.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { LiveSetup } from '../model/live-connection.js';
import { BUILT_IN_TOOLS } from './built-in-tools.js';
import { LINE_RULES } from './line-texts.js';

/** Throws what an instruction function of the agent throws. */
export function liveSetup(agent: Agent, identity: AgentContext): LiveSetup {
  const { instruction, runConfig } = agent;
  const words = typeof instruction === 'string' ? instruction : instruction(identity);
  return {
    instruction: `${words}\n\n${LINE_RULES}`,
    voice: runConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig.voiceName,
    languageCode: runConfig?.speechConfig?.languageCode,
    functionDeclarations: BUILT_IN_TOOLS,
  };
}
