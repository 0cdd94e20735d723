/**
 * The package's face: what an agent module imports from `earshot`.
 */
export { defineAgent, definePlugin, defineTool } from './agent/agent.js';
export type { Agent, AgentContext, AgentDefinition, RunConfig, SpeechConfig } from './agent/agent.js';
