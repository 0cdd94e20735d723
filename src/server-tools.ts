/**
 * The tools of a server, put together from its agents, its store and its worker threads; and how the result of a call whose
 * run is over finds its way into the session.
 */
import type { Agent } from './agent/agent.js';
import type { AgentCatalog } from './agent/agent-catalog.js';
import type { Clock } from './clock.js';
import { errorText } from './errors.js';
import type { Event } from './event/event.js';
import { RunEvents } from './event/run-events.js';
import type { Log } from './observe/log.js';
import type { EventWriter } from './store/event-writer.js';
import type { PendingCall } from './store/pending-calls.js';
import type { Store } from './store/store.js';
import { END_CALL, STOP_STREAMING } from './tool/built-in-tools.js';
import { runInWorker } from './tool/run-in-worker.js';
import { ToolRuns, type ToolRunsOptions } from './tool/tool-runs.js';
import { WorkerTools } from './tool/worker-tools.js';

export interface ServerToolsOptions {
  readonly agents: AgentCatalog;
  readonly keeping?: { readonly store: Store; readonly writer: Pick<EventWriter, 'append'> } | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ServerTools {
  readonly runs: ToolRuns;
  counts(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

export function createServerTools({ agents, keeping, clock, log }: ServerToolsOptions): ServerTools {
  const workers = new WorkerTools({ clock, log });
  const agentNamed = (name: string): Agent | undefined => agents.named(name);
  const runs = new ToolRuns({
    store: keeping?.store,
    agentNamed,
    runInWorker: runInWorker(workers, (agent) => agents.modules.get(agent.name)),
    tellLate: lateTeller(keeping?.writer, { clock, log }),
    clock,
    log,
  });
  return {
    runs,
    counts() {
      const { workers: threads, running, waiting } = workers.counts();
      return { ...runs.counts(), workers: threads, workerRuns: running, waitingForWorkers: waiting };
    },
    async close() {
      await runs.desk.idle();
      await workers.close();
    },
  };
}

/** The names that calls can go by, for the metric: of every agent, and those of the server. */
export function toolNames(agents: AgentCatalog): string[] {
  const own = agents.all.flatMap(({ tools = [] }) => tools.map(({ name }) => name));
  return [...new Set([END_CALL, STOP_STREAMING, ...own])];
}

/** As an event of the run that asked, stored when it resolves. */
function lateTeller(
  writer: Pick<EventWriter, 'append'> | undefined,
  { clock, log }: Pick<ServerToolsOptions, 'clock' | 'log'>,
): ToolRunsOptions['tellLate'] {
  return async (call: PendingCall, response, actions) => {
    const stored: Promise<unknown>[] = [];
    const events = new RunEvents({
      invocationId: call.invocationId,
      agentName: call.session.appName,
      clock,
      onFault: (error) => log.error({ cause: errorText(error) }, 'a late result could not be told'),
    });
    events.stream.listen((item) => {
      if (item.type === 'event') stored.push(store(item.event));
    });
    const store = async (event: Event): Promise<void> => {
      const outcome = await writer?.append(call.session, event);
      if (outcome?.stored === false) throw outcome.error;
    };
    events.responded([response], { actions });
    await Promise.all(stored);
  };
}
