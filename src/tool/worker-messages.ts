/**
 * What goes between the server and a worker thread. Values travel as JSON text: it holds what a model could pass or be told,
 * and nothing else; its length is known before it is sent, and reading it is the only work that it makes for the loop that
 * sends sound.
 */
import { z } from 'zod';
import type { AgentContext } from '../agent/agent.js';
import type { RunSettings } from '../agent/tool-context.js';
import type { Event, JsonObject } from '../event/event.js';
import { TOOL_WORKER_EVENTS_MAX_CHARS } from '../tool-limits.js';

/** What of a context can travel. */
export interface WorkerSnapshot extends AgentContext {
  /** By key, with prefixes. */
  readonly state: JsonObject;
  /** Oldest first; the newest of them travel, as many as are allowed. */
  readonly events: readonly Event[];
  /** Its functions stay behind. */
  readonly runConfig: RunSettings;
  /** What `ctx.userScopes()` returned, or what it threw: that concerns only a tool that asks. */
  readonly scopes: readonly string[] | { readonly error: string };
}

/** The server asks for one run of a tool. */
export interface CallOrder {
  readonly kind: 'call';
  readonly id: number;
  readonly module: string;
  readonly tool: string;
  readonly argsJson: string;
  /** A `WorkerSnapshot` without its events. */
  readonly snapshotJson: string;
  readonly eventsJson: string;
}

/** The server answers `ctx.getSecret()`. */
export type SecretAnswer = { readonly kind: 'secret'; readonly ask: number } & (
  { readonly value: string | null } | { readonly error: string }
);

/** From the thread. Read with care: a tool, too, can write to its thread's port. */
export const workerAnswer = z.discriminatedUnion('kind', [
  /** Comes before anything of the call is begun. */
  z.object({ kind: z.literal('taken'), id: z.number() }),
  z.object({ kind: z.literal('askSecret'), id: z.number(), ask: z.number(), name: z.string() }),
  z.object({
    kind: z.literal('done'),
    id: z.number(),
    /** Undefined when nothing was returned. */
    resultJson: z.string().optional(),
    stateDeltaJson: z.string(),
    endInvocation: z.boolean(),
  }),
  z.object({ kind: z.literal('failed'), id: z.number(), message: z.string(), nothingDone: z.boolean() }),
]);

export type WorkerAnswer = z.output<typeof workerAnswer>;

/** Throws a TypeError for what JSON cannot hold. */
export function orderOf(run: {
  readonly module: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly snapshot: WorkerSnapshot;
}): Omit<CallOrder, 'id'> {
  const { events, ...snapshot } = run.snapshot;
  return {
    kind: 'call',
    module: run.module,
    tool: run.tool,
    argsJson: JSON.stringify(run.args),
    snapshotJson: JSON.stringify(snapshot),
    eventsJson: newestEvents(events),
  };
}

function newestEvents(events: readonly Event[]): string {
  const texts: string[] = [];
  let chars = 0;
  for (let at = events.length - 1; at >= 0; at -= 1) {
    const text = JSON.stringify(events[at]);
    chars += text.length;
    if (chars > TOOL_WORKER_EVENTS_MAX_CHARS) break;
    texts.push(text);
  }
  return `[${texts.toReversed().join(',')}]`;
}
