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
import type { Store } from './store/store.js';
import { END_CALL, STOP_STREAMING } from './tool/built-in-tools.js';
import { runInWorker } from './tool/run-in-worker.js';
import { type RunRef, ToolRuns, type ToolRunsOptions } from './tool/tool-runs.js';
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
    ...lateTellers(keeping?.writer, { clock, log }),
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
      await runs.idle();
      await workers.close();
    },
  };
}

/** The names that calls can go by, for the metric: of every agent, and those of the server. */
export function toolNames(agents: AgentCatalog): string[] {
  const own = agents.all.flatMap(({ tools = [] }) => tools.map(({ name }) => name));
  return [...new Set([END_CALL, STOP_STREAMING, ...own])];
}

/** What comes behind the end of a run, as an event of that run, stored when it resolves. */
function lateTellers(
  writer: Pick<EventWriter, 'append'> | undefined,
  { clock, log }: Pick<ServerToolsOptions, 'clock' | 'log'>,
): Pick<ToolRunsOptions, 'tellLate' | 'tellChanged'> {
  const tell = async (run: RunRef, say: (events: RunEvents) => void): Promise<void> => {
    const stored: Promise<void>[] = [];
    const events = new RunEvents({
      invocationId: run.invocationId,
      agentName: run.session.appName,
      clock,
      onFault: (error) => log.error({ cause: errorText(error) }, 'something late could not be told'),
    });
    const store = async (event: Event): Promise<void> => {
      const outcome = await writer?.append(run.session, event);
      // Another event with this id has told it already.
      if (outcome?.stored === false && outcome.error.code !== 'store_conflict') throw outcome.error;
    };
    events.stream.listen((item) => {
      if (item.type === 'event') stored.push(store(item.event));
    });
    say(events);
    await Promise.all(stored);
  };
  return {
    tellLate: (run, { response, actions, eventId }) =>
      tell(run, (events) => events.responded([response], { actions, eventId })),
    tellChanged: (run, actions) => tell(run, (events) => events.changed(actions)),
  };
}
