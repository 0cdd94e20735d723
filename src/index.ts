/**
 * The package's face: what an agent module imports from `earshot`.
 */
export { defineAgent } from './agent/agent.js';
export type { Agent, AgentContext, AgentDefinition, RunConfig, SpeechConfig } from './agent/agent.js';
