/**
 * The text modes: the same agent, sessions and store as on the phone. A message starts a run in a session of its own or in one that is
 * there; what is committed is stored before it is told, so that whoever was told of it finds it again.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import { instructionText } from '../agent/instruction.js';
import { type Clock, within } from '../clock.js';
import { AppError, errorText } from '../errors.js';
import type { Event } from '../event/event.js';
import { RunEvents } from '../event/run-events.js';
import type { RunItem } from '../event/run-stream.js';
import { newId } from '../ids.js';
import {
  DRAIN_MAX_MS,
  HISTORY_READ,
  RUN_CLOSE_TOLD_MAX_MS,
  TEXT_RUN_MAX_MS,
  TEXT_RUNS_MAX,
} from '../limits.js';
import type { GenerateText } from '../model/text-model.js';
import type { Log } from '../observe/log.js';
import type { RunObserver, TextMode } from '../observe/run-observer.js';
import type { EventWriter } from '../store/event-writer.js';
import { sessionName } from '../store/session-name.js';
import type { SessionKey, Store } from '../store/store.js';
import { Broadcast } from '../wire/broadcast.js';
import { historyMessages } from './run-happenings.js';
import { RunMetrics } from './run-metrics.js';
import { type Loss, StoredFirst } from './stored-first.js';
import { declarationOf } from '../tool/agent-tools.js';
import { tellPlugins } from '../tool/plugin-events.js';
import { RunSecrets } from '../tool/run-secrets.js';
import type { ToolRuns } from '../tool/tool-runs.js';
import { AGENT_MSG, COSTLY, OVERDUE, runText, type TextOutcome } from './text-run.js';
import { TextTools } from './text-tools.js';

export interface TextRunRequest {
  readonly userId: string;
  /** Without one a session is made. */
  readonly sessionId: string | undefined;
  readonly message: string;
  readonly mode: TextMode;
}

export interface StartedTextRun {
  readonly sessionId: string;
  /** From the first frame on; ended with the run. */
  readonly broadcast: Broadcast;
  /** Resolves when all is stored and told. */
  readonly outcome: Promise<TextOutcome>;
  /** What could not be stored, complete once `outcome` has resolved. */
  readonly losses: readonly Loss[];
}

export interface TextRunsOptions {
  readonly agent: Agent;
  readonly generate: GenerateText;
  readonly tools: ToolRuns;
  /** What is remembered of the user. Never rejects. */
  readonly recall: (session: SessionKey) => Promise<string | undefined>;
  readonly store: Pick<Store, 'getSession' | 'createSession'>;
  readonly writer: Pick<EventWriter, 'append'>;
  /** Whether a call is going on in that session. */
  readonly isBusy: (session: SessionKey) => boolean;
  readonly observerOf: (mode: TextMode) => RunObserver;
  readonly clock: Clock;
  readonly log: Log;
}

interface RunningText {
  readonly session: SessionKey;
  readonly invocationId: string;
  readonly events: RunEvents;
  readonly metrics: RunMetrics;
  readonly instruction: string;
  /** Committed before this run. */
  readonly history: readonly Event[];
  readonly request: TextRunRequest;
  readonly broadcast: Broadcast;
  readonly losses: Loss[];
}

export class TextRuns {
  readonly #options: TextRunsOptions;
  readonly #running = new Map<string, AbortController>();
  /** Told when no run is left, once the server is stopping. */
  #onIdle: (() => void)[] = [];
  #isDraining = false;

  constructor(options: TextRunsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#running.size;
  }

  /**
   * Starts a run; `signal` stops it. Rejects with an AppError: `server_draining` while the server stops, `run_conflict` while the
   * session has another run, `run_refused` when too many are going on, and what the store says; or with what the agent's `instruction(ctx)` throws.
   */
  async start(request: TextRunRequest, signal: AbortSignal): Promise<StartedTextRun> {
    const { agent, store, isBusy, clock, log } = this.#options;
    const receivedAtMs = clock.nowMs();
    const session: SessionKey = {
      appName: agent.name,
      userId: request.userId,
      id: request.sessionId ?? newId(),
    };
    const name = sessionName(session);
    if (this.#isDraining) throw new AppError('server_draining', 'the server is stopping');
    if (this.#running.has(name) || isBusy(session)) {
      throw new AppError('run_conflict', 'a run is going on in this session: wait until it is over');
    }
    if (this.#running.size >= TEXT_RUNS_MAX) throw new AppError('run_refused', 'too many runs are going on');
    const controller = new AbortController();
    this.#running.set(name, controller);
    const stop = (): void => controller.abort();
    const grantedMs = (agent.runConfig?.limits?.maxMinutes ?? Infinity) * 60_000;
    const why = grantedMs < TEXT_RUN_MAX_MS ? COSTLY : OVERDUE;
    const timer = clock.setTimer(Math.min(grantedMs, TEXT_RUN_MAX_MS), () => controller.abort(why));
    const release = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', stop);
      this.#running.delete(name);
      this.#settleDrain();
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const invocationId = newId();
    const { events, metrics } = this.#open(invocationId, request.mode);
    events.asked(receivedAtMs);
    try {
      const ownWords = instructionText(agent, identityOf(session, invocationId));
      await store.createSession(session);
      const remembered = await this.#options.recall(session);
      const instruction = remembered === undefined ? ownWords : `${ownWords}\n\n${remembered}`;
      const stored = await store.getSession(session, HISTORY_READ);
      const broadcast = new Broadcast({ clock, stored: historyMessages(stored?.events ?? []) });
      const history = stored?.events ?? [];
      const losses: Loss[] = [];
      const about = { session, invocationId, instruction, history, request };
      const running = { ...about, events, metrics, broadcast, losses };
      // An error in here would be a fault of ours: it ends this run, and nothing else of the server.
      const outcome = this.#run(running, controller.signal)
        .catch((error: unknown): TextOutcome => {
          log.error({ cause: errorText(error) }, 'a text run failed');
          broadcast.end();
          events.over('error');
          return 'error';
        })
        .finally(release);
      return { sessionId: session.id, broadcast, outcome, losses };
    } catch (error) {
      release();
      events.over('error');
      throw error;
    }
  }

  /** Whether a run of this agent is going on in that session. */
  isRunning(session: SessionKey): boolean {
    return this.#running.has(sessionName(session));
  }

  /** Takes no more runs and resolves when the running ones are over; after DRAIN_MAX_MS they are stopped. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    if (!(await within(this.#options.clock, DRAIN_MAX_MS, this.#idle()))) await this.close();
  }

  /** Stops all and takes no more; what is half-said is not kept. Resolves when that is stored and told. */
  close(): Promise<void> {
    this.#isDraining = true;
    for (const controller of this.#running.values()) controller.abort(STOPPING);
    return this.#idle();
  }

  #idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#settleDrain();
    });
  }

  #settleDrain(): void {
    if (this.#running.size > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** The run's stream, which its metrics hear from the first item on. */
  #open(invocationId: string, mode: TextMode): Pick<RunningText, 'events' | 'metrics'> {
    const { agent, observerOf, clock } = this.#options;
    const events = new RunEvents({ invocationId, agentName: agent.name, clock, onFault: this.#onFault });
    const metrics = new RunMetrics({ run: events.stream, observer: observerOf(mode) });
    events.stream.listen((item) => metrics.hear(item));
    return { events, metrics };
  }

  readonly #onFault = (error: unknown): void =>
    this.#options.log.error({ cause: errorText(error) }, 'a listener of a text run failed');

  async #run(running: RunningText, signal: AbortSignal): Promise<TextOutcome> {
    const { agent, generate, writer, clock, log } = this.#options;
    const { session, invocationId, events, metrics, instruction, history, request, broadcast, losses } =
      running;
    const { message } = request;
    const append = (event: Event) => writer.append(session, event);
    const onTold = (item: RunItem): void => metrics.told(item);
    const teller = new StoredFirst({
      broadcast,
      append,
      clock,
      firstMsg: AGENT_MSG,
      onTold,
      onFault: this.#onFault,
    });
    events.stream.listen((item) => teller.hear(item));
    const secrets = new RunSecrets();
    tellPlugins(agent, events.stream, { secrets, log });
    const tools = new TextTools({
      agent,
      identity: identityOf(session, invocationId),
      history,
      events,
      tools: this.#options.tools,
      secrets,
      log,
    });
    // Whoever leaves does not wait for what a tool still does.
    const stopTools = (): void => void tools.close();
    signal.addEventListener('abort', stopTools, { once: true });
    const outcome = await runText(
      {
        instruction,
        history,
        message,
        functionDeclarations: (agent.tools ?? []).map(declarationOf),
        answer: (calls, parts) => tools.answer(calls, parts),
        close: () => tools.close(),
        limits: agent.runConfig?.limits,
        generate,
        events,
      },
      signal,
    );
    signal.removeEventListener('abort', stopTools);
    const isTold = await toldOrStopped(teller.told, signal, clock);
    losses.push(...teller.losses);
    if (outcome === 'stopped' || !isTold) {
      const msg = teller.openMsg ?? 'stopped';
      broadcast.publish({ kind: 'error', msg, ...whyStopped(signal), fatal: true });
    }
    broadcast.end();
    return outcome;
  }
}

/** True: all is stored and told. False: the server stops, and the store does not answer. */
async function toldOrStopped(told: Promise<void>, signal: AbortSignal, clock: Clock): Promise<boolean> {
  const stopping = new Promise<boolean>((resolve) => {
    const stop = (): void => {
      if (signal.reason === STOPPING) void within(clock, RUN_CLOSE_TOLD_MAX_MS, told).then(resolve);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([told.then(() => true), stopping]);
}

/** Why a run was stopped. */
const STOPPING = 'stopping';

function whyStopped(signal: AbortSignal): { readonly code: string; readonly message: string } {
  return signal.reason === STOPPING
    ? { code: 'server_draining', message: 'The server is stopping, and the run was stopped with it.' }
    : { code: 'run_stopped', message: 'The run was stopped before its end.' };
}

function identityOf({ appName, userId, id }: SessionKey, invocationId: string): AgentContext {
  return { invocationId, callSid: '', appName, userId, sessionId: id, callerVerified: false };
}
