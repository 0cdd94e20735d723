/**
 * The package's face: what an agent module imports from `earshot`.
 */
export { defineAgent } from './agent/agent.js';
export { definePlugin } from './agent/plugin.js';
export { defineTool, NothingDone } from './agent/tool.js';
export type {
  Agent,
  AgentContext,
  AgentDefinition,
  CostLimits,
  Disconnect,
  RunConfig,
  SpeechConfig,
} from './agent/agent.js';
export type { AfterTool, BeforeTool, Plugin, PluginDefinition } from './agent/plugin.js';
export type { SideEffect, SideEffectAmount, Tool, ToolDefinition } from './agent/tool.js';
export type {
  InputFrame,
  InputStream,
  LineAnswer,
  LoadedArtifact,
  MemoryAccess,
  RunSettings,
  SharedState,
  ToolCallControl,
  ToolContext,
} from './agent/tool-context.js';
export type { Event } from './event/event.js';
