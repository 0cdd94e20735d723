/**
 * The tools of a server, put together from its agents, its store and its worker threads; and how the result of a call whose
 * run is over finds its way into the session.
 */
import type { Agent } from './agent/agent.js';
import type { AgentCatalog } from './agent/agent-catalog.js';
import type { Clock, Timer } from './clock.js';
import { errorText } from './errors.js';
import type { Event } from './event/event.js';
import { RunEvents } from './event/run-events.js';
import type { Log } from './observe/log.js';
import type { EventWriter } from './store/event-writer.js';
import type { Store } from './store/store.js';
import { END_CALL, STOP_STREAMING } from './tool/built-in-tools.js';
import type { PendingDesk } from './tool/pending-desk.js';
import { runInWorker } from './tool/run-in-worker.js';
import { type RunRef, ToolRuns, type ToolRunsOptions } from './tool/tool-runs.js';
import { WORK_KEPT_EVERY_MS } from './tool-limits.js';
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
  /** Carries out what was decided and not done when the server last stopped, says what it left open, and from then on tells as lost
   * what a server that is gone was working at. Resolves when that has begun. Never rejects. */
  resume(): Promise<void>;
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
  const tending = new Tending(runs.desk, { clock, log });
  return {
    runs,
    counts() {
      const { workers: threads, running, waiting } = workers.counts();
      return { ...runs.counts(), workers: threads, workerRuns: running, waitingForWorkers: waiting };
    },
    async resume() {
      await runs.desk.resume().catch((error: unknown) => {
        log.error({ cause: errorText(error) }, 'decisions that wait could not be read');
      });
      if (keeping === undefined) return;
      await tellOpenEntries(keeping.store, log);
      tending.begin();
    },
    async close() {
      tending.end();
      await runs.idle();
      await workers.close();
    },
  };
}

/** The desk is tended as long as the server lives. */
class Tending {
  readonly #desk: Pick<PendingDesk, 'tend'>;
  readonly #options: Pick<ServerToolsOptions, 'clock' | 'log'>;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(desk: Pick<PendingDesk, 'tend'>, options: Pick<ServerToolsOptions, 'clock' | 'log'>) {
    this.#desk = desk;
    this.#options = options;
  }

  begin(): void {
    const { clock, log } = this.#options;
    void this.#desk
      .tend()
      .catch((error: unknown) => {
        log.error({ cause: errorText(error) }, 'the store could not be told what is being worked at');
      })
      .then(() => {
        if (!this.#isOver) this.#timer = clock.setTimer(WORK_KEPT_EVERY_MS, () => this.begin());
      });
  }

  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }
}

/** What a crash has left open somebody has to look into; what another server is doing right now is among it. */
async function tellOpenEntries(store: Pick<Store, 'listLedger'>, log: Log): Promise<void> {
  try {
    const { items, next } = await store.listLedger({ state: 'open' });
    if (items.length === 0) return;
    const open = next === undefined ? items.length : `more than ${items.length}`;
    log.warn(
      { open },
      'entries of the ledger are open: whether it was done is not known, and a person has to look',
    );
  } catch (error) {
    log.error({ cause: errorText(error) }, 'the ledger could not be asked for open entries');
  }
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
