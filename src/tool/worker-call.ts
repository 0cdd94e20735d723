/**
 * One run of a worker tool, from being asked for to its one outcome. Whatever comes first settles it: the thread's answer, the
 * thread's death, the caller's signal, the server's end.
 */
import { NothingDone } from '../agent/tool.js';
import type { JsonObject } from '../event/event.js';
import { asError } from '../foreign.js';
import { type CallOrder, orderOf, type WorkerSnapshot } from './worker-messages.js';

export interface WorkerRun {
  /** Path of the agent's module. */
  readonly module: string;
  readonly tool: string;
  /** As the model passed them and guards left them; the worker reads them by the tool's own schema. */
  readonly args: JsonObject;
  readonly snapshot: WorkerSnapshot;
  /** `ctx.getSecret` of the call: it is asked here, never in the worker. */
  readonly getSecret: (name: string) => Promise<string | null>;
  /** Aborting ends the run at once, whatever the handler does. */
  readonly signal: AbortSignal;
}

export interface WorkerOutcome {
  /** JSON, or undefined where the handler returned nothing. */
  readonly result: unknown;
  /** What the handler changed of `ctx.state`, by key; a key that it deleted is null. */
  readonly stateDelta: JsonObject;
  /** Whether it set `ctx.endInvocation`. */
  readonly endInvocation: boolean;
}

export class WorkerCall {
  readonly order: Omit<CallOrder, 'id'>;
  readonly askedAtMs: number;
  readonly outcome: Promise<WorkerOutcome>;
  readonly #run: WorkerRun;
  readonly #onAborted: (call: WorkerCall) => void;
  #resolve: (outcome: WorkerOutcome) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #isSettled = false;

  /** `onAborted` decides what the signal means for the call. Throws what `orderOf` throws. */
  constructor(run: WorkerRun, askedAtMs: number, onAborted: (call: WorkerCall) => void) {
    this.order = orderOf(run);
    this.askedAtMs = askedAtMs;
    this.#run = run;
    this.#onAborted = onAborted;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    run.signal.addEventListener('abort', this.#aborted, { once: true });
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  getSecret(name: string): Promise<string | null> {
    return this.#run.getSecret(name);
  }

  done(outcome: WorkerOutcome): void {
    this.#settle();
    this.#resolve(outcome);
  }

  fail(error: Error): void {
    this.#settle();
    this.#reject(error);
  }

  /** The signal's reason; as NothingDone where the handler was certainly not begun. */
  failAborted(isBegun: boolean): void {
    const error = asError(this.#run.signal.reason);
    this.fail(isBegun ? error : new NothingDone(error.message, { cause: error }));
  }

  readonly #aborted = (): void => this.#onAborted(this);

  #settle(): void {
    this.#isSettled = true;
    this.#run.signal.removeEventListener('abort', this.#aborted);
  }
}
