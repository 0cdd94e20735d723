/**
 * Tools that run beside the loop that sends sound: a few worker threads of the whole server, made when they are needed and
 * kept, and a bounded queue in front of them, first come first served. A tool that computes for seconds holds up its own
 * call and whoever waits for its thread, never the sound of any.
 */
import { NothingDone } from '../agent/tool.js';
import type { Clock } from '../clock.js';
import { errorText } from '../errors.js';
import type { Log } from '../observe/log.js';
import {
  TOOL_WORKER_CALLS_WAITING_MAX,
  TOOL_WORKERS_CLOSE_MAX_MS,
  TOOL_WORKERS_MAX,
} from '../tool-limits.js';
import { ToolThread } from './tool-thread.js';
import { WorkerCall, type WorkerOutcome, type WorkerRun } from './worker-call.js';

export interface WorkerToolsOptions {
  readonly clock: Clock;
  readonly log: Log;
}

export class WorkerTools {
  readonly #clock: Clock;
  readonly #log: Log;
  /** A thread that is being ended counts until it is gone. */
  readonly #threads = new Set<ToolThread>();
  #waiting: WorkerCall[] = [];
  #closing: Promise<void> | undefined;
  #onEmpty: (() => void) | undefined;

  constructor({ clock, log }: WorkerToolsOptions) {
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Runs the handler. Rejects with the text of what it threw, with the signal's reason, or with what became of its thread; with
   * NothingDone where the handler said so, and where it was certainly not begun.
   */
  async run(run: WorkerRun): Promise<WorkerOutcome> {
    if (this.#closing !== undefined) throw new NothingDone('the server is closing');
    const call = new WorkerCall(run, this.#clock.nowMs(), (aborted) => this.#abort(aborted));
    if (run.signal.aborted) call.failAborted(false);
    else this.#add(call);
    return call.outcome;
  }

  counts(): { readonly workers: number; readonly running: number; readonly waiting: number } {
    const running = [...this.#threads].filter(({ isBusy }) => isBusy).length;
    return { workers: this.#threads.size, running, waiting: this.#waiting.length };
  }

  /** Ends every thread and fails what runs and what waits. Idempotent. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    for (const call of this.#waiting.splice(0)) call.fail(new NothingDone('the server is closing'));
    for (const thread of this.#threads) thread.close('the server is closing');
    if (this.#threads.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimer(TOOL_WORKERS_CLOSE_MAX_MS, () => {
        this.#log.warn({ threads: this.#threads.size }, 'worker threads of tools do not end');
        resolve();
      });
      this.#onEmpty = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #add(call: WorkerCall): void {
    this.#waiting.push(call);
    this.#next();
    if (this.#waiting.length <= TOOL_WORKER_CALLS_WAITING_MAX) return;
    this.#waiting.pop();
    call.fail(new NothingDone(`too many tools wait for a worker (${TOOL_WORKER_CALLS_WAITING_MAX})`));
  }

  #next(): void {
    for (let [call] = this.#waiting; call !== undefined; [call] = this.#waiting) {
      try {
        const thread = this.#freeThread(call.order.module);
        if (thread === undefined) return;
        this.#waiting.shift();
        thread.give(call);
      } catch (error) {
        // The system has no thread left to give.
        this.#waiting.shift();
        call.fail(new NothingDone(`there is no worker thread: ${errorText(error)}`));
      }
    }
  }

  /** One that knows the module before one that does not, and that before a new one. */
  #freeThread(module: string): ToolThread | undefined {
    const idle = [...this.#threads].filter(({ isIdle }) => isIdle);
    const known = idle.find(({ modules }) => modules.has(module)) ?? idle[0];
    if (known !== undefined || this.#threads.size >= TOOL_WORKERS_MAX) return known;
    const thread = new ToolThread({
      clock: this.#clock,
      log: this.#log,
      onFree: () => this.#next(),
      onGone: (gone, unbegun) => this.#gone(gone, unbegun),
    });
    this.#threads.add(thread);
    return thread;
  }

  #gone(thread: ToolThread, unbegun: WorkerCall | undefined): void {
    this.#threads.delete(thread);
    // It has waited its turn already.
    if (unbegun !== undefined && !unbegun.isSettled) this.#waiting.unshift(unbegun);
    if (this.#closing === undefined) this.#next();
    else if (this.#threads.size === 0) this.#onEmpty?.();
  }

  #abort(call: WorkerCall): void {
    const at = this.#waiting.indexOf(call);
    if (at >= 0) this.#waiting.splice(at, 1);
    const thread = [...this.#threads].find((each) => each.has(call));
    call.failAborted(thread !== undefined);
    thread?.end();
  }
}
