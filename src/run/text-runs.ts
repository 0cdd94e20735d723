/**
 * The text modes: the same agent, sessions and store as on the phone. A message starts a run in a session of its own or in one that is
 * there; what is committed is stored before it is told, so that whoever was told of it finds it again.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { Clock } from '../clock.js';
import { AppError, errorText } from '../errors.js';
import { RunEvents } from '../event/run-events.js';
import type { RunItem } from '../event/run-stream.js';
import { SpokenOrder } from '../event/spoken-order.js';
import { newId } from '../ids.js';
import { TEXT_RUN_MAX_MS, TEXT_RUNS_MAX } from '../limits.js';
import type { GenerateText } from '../model/text-model.js';
import type { Log } from '../observe/log.js';
import type { EventWriter } from '../store/event-writer.js';
import type { SessionKey, Store } from '../store/store.js';
import { Broadcast } from '../wire/broadcast.js';
import type { Happening } from '../wire/happening.js';
import { historyMessages, RunHappenings } from './run-happenings.js';
import { runText, type TextOutcome } from './text-run.js';

export interface TextRunRequest {
  readonly userId: string;
  /** Without one a session is made. */
  readonly sessionId: string | undefined;
  readonly message: string;
}

export interface StartedTextRun {
  readonly sessionId: string;
  /** From the first frame on; ended with the run. */
  readonly broadcast: Broadcast;
  /** Resolves when all is stored and told. */
  readonly outcome: Promise<TextOutcome>;
}

export interface TextRunsOptions {
  readonly agent: Agent;
  readonly generate: GenerateText;
  readonly store: Pick<Store, 'getSession' | 'createSession'>;
  readonly writer: Pick<EventWriter, 'append'>;
  /** Whether a call is going on in that session. */
  readonly isBusy: (session: SessionKey) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export class TextRuns {
  readonly #options: TextRunsOptions;
  readonly #running = new Map<string, AbortController>();

  constructor(options: TextRunsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#running.size;
  }

  /**
   * Starts a run; `signal` stops it. Rejects with an AppError: `run_conflict` while the session has another run, `run_refused`
   * when too many are going on, and what the store says.
   */
  async start(request: TextRunRequest, signal: AbortSignal): Promise<StartedTextRun> {
    const { agent, store, isBusy, clock } = this.#options;
    const session: SessionKey = {
      appName: agent.name,
      userId: request.userId,
      id: request.sessionId ?? newId(),
    };
    const name = nameOf(session);
    if (this.#running.has(name) || isBusy(session)) {
      throw new AppError('run_conflict', 'a run is going on in this session: wait until it is over');
    }
    if (this.#running.size >= TEXT_RUNS_MAX) throw new AppError('run_refused', 'too many runs are going on');
    const controller = new AbortController();
    this.#running.set(name, controller);
    const stop = (): void => controller.abort();
    const timer = clock.setTimer(TEXT_RUN_MAX_MS, stop);
    const release = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', stop);
      this.#running.delete(name);
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      await store.createSession(session);
      const stored = await store.getSession(session);
      const broadcast = new Broadcast({ clock, stored: historyMessages(stored?.events ?? []) });
      const outcome = this.#run(session, stored?.events ?? [], request.message, broadcast, controller.signal);
      void outcome.finally(release);
      return { sessionId: session.id, broadcast, outcome };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Whether a run of this agent is going on in that session. */
  isRunning(session: SessionKey): boolean {
    return this.#running.has(nameOf(session));
  }

  /** Stops all; what is half-said is not kept. */
  close(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  async #run(
    session: SessionKey,
    history: Parameters<typeof historyMessages>[0],
    message: string,
    broadcast: Broadcast,
    signal: AbortSignal,
  ): Promise<TextOutcome> {
    const { agent, generate, writer, clock, log } = this.#options;
    const invocationId = newId();
    const events = new RunEvents({
      invocationId,
      agentName: agent.name,
      clock,
      onFault: (error) => log.error({ cause: errorText(error) }, 'a listener of a text run failed'),
    });
    const teller = new StoredFirst({ broadcast, append: (event) => writer.append(session, event) });
    events.stream.listen((item) => teller.hear(item));
    const outcome = await runText(
      {
        instruction: instructionOf(agent, session, invocationId),
        history,
        message,
        functionDeclarations: [],
        answer: async (calls) =>
          calls.map(({ id = '', name }) => ({
            id,
            name,
            response: { error: `There is no tool named ${name}.` },
          })),
        generate,
        events,
      },
      signal,
    );
    await teller.end(outcome);
    return outcome;
  }
}

function nameOf({ userId, id }: SessionKey): string {
  return JSON.stringify([userId, id]);
}

function instructionOf(agent: Agent, session: SessionKey, invocationId: string): string {
  if (typeof agent.instruction === 'string') return agent.instruction;
  const ctx: AgentContext = {
    invocationId,
    callSid: '',
    appName: session.appName,
    userId: session.userId,
    sessionId: session.id,
    callerVerified: false,
  };
  return agent.instruction(ctx);
}

/** Tells nothing complete before it is stored: each item waits for what was committed by the items up to it. */
class StoredFirst {
  readonly #broadcast: Broadcast;
  readonly #happenings = new RunHappenings();
  readonly #order: SpokenOrder;
  /** Everything that was committed until now is stored, or told to be lost. */
  #stored: Promise<void> = Promise.resolve();
  #told: Promise<void> = Promise.resolve();

  constructor(options: {
    readonly broadcast: Broadcast;
    readonly append: (event: Parameters<EventWriter['append']>[1]) => ReturnType<EventWriter['append']>;
  }) {
    this.#broadcast = options.broadcast;
    this.#order = new SpokenOrder((event) => {
      const appended = options.append(event).then((outcome) => {
        if (!outcome.stored) this.#publish(storeFailure(event.id, outcome.error.code));
      });
      this.#stored = Promise.all([this.#stored, appended]).then(() => undefined);
    });
  }

  hear(item: RunItem): void {
    this.#order.hear(item);
    const happenings = this.#happenings.of(item);
    const stored = this.#stored;
    this.#told = this.#told.then(async () => {
      await stored;
      for (const happening of happenings) this.#publish(happening);
    });
  }

  async end(outcome: TextOutcome): Promise<void> {
    await this.#told;
    await this.#stored;
    if (outcome === 'stopped') {
      const message = 'The run was stopped before its end.';
      this.#publish({ kind: 'error', msg: 'stopped', code: 'run_stopped', message, fatal: true });
    }
    this.#broadcast.end();
  }

  #publish(happening: Happening): void {
    this.#broadcast.publish(happening);
  }
}

function storeFailure(eventId: string, code: string): Happening {
  const message = 'A message of this conversation could not be stored.';
  return { kind: 'error', msg: `s${eventId}`, code, message, fatal: false };
}
