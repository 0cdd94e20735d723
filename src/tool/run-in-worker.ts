/**
 * From a tool's context to a run of its handler in a worker: what of the context can travel does.
 */
import type { Agent } from '../agent/agent.js';
import type { ToolContext } from '../agent/tool-context.js';
import { errorText } from '../errors.js';
import { ignoreRejection } from '../foreign.js';
import type { RunInWorker } from './handler.js';
import type { WorkerSnapshot } from './worker-messages.js';
import type { WorkerTools } from './worker-tools.js';

/** `moduleOf`: where an agent's module lies; a worker loads it by its path. */
export function runInWorker(
  workers: Pick<WorkerTools, 'run'>,
  moduleOf: (agent: Agent) => string | undefined,
): (agent: Agent) => RunInWorker {
  return (agent) => async (tool, args, ctx) => {
    const module = moduleOf(agent);
    if (module === undefined) throw new Error('the agent has no module that a worker could load');
    const { signal } = ctx;
    const getSecret = (name: string): Promise<string | null> => ctx.getSecret(name);
    return workers.run({ module, tool: tool.name, args, snapshot: snapshotOf(ctx), getSecret, signal });
  };
}

function snapshotOf(ctx: ToolContext): WorkerSnapshot {
  const { invocationId, callSid, appName, userId, sessionId, callerVerified, events, runConfig } = ctx;
  const identity = { invocationId, callSid, appName, userId, sessionId, callerVerified };
  return { ...identity, state: { ...ctx.state }, events, runConfig, scopes: scopesOf(ctx) };
}

/** As on the server's own thread: not wired is an error, a look-up that fails is another, and neither keeps a tool from running
 * that does not ask. */
function scopesOf(ctx: ToolContext): WorkerSnapshot['scopes'] {
  try {
    const scopes: unknown = ctx.userScopes();
    ignoreRejection(scopes);
    if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string')) return scopes;
    return { error: 'userScopes: it must return a list of texts at once' };
  } catch (error) {
    return { error: errorText(error) };
  }
}
