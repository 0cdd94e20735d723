/**
 * One worker thread, seen from the server: carries out one call at a time. A thread that dies takes its call with it and
 * nothing else; a call that it had not begun is given back.
 */
import { Worker } from 'node:worker_threads';
import { NothingDone } from '../agent/tool.js';
import { type Clock, nextTurn, type Timer } from '../clock.js';
import { errorText } from '../errors.js';
import type { Log } from '../observe/log.js';
import {
  TOOL_WORKER_HEAP_MAX_MB,
  TOOL_WORKER_NICENESS,
  TOOL_WORKER_PRINTED_MAX_CHARS,
  TOOL_WORKER_TAKE_MAX_MS,
} from '../tool-limits.js';
import type { WorkerCall } from './worker-call.js';
import { type CallOrder, type SecretAnswer, type WorkerAnswer, workerAnswer } from './worker-messages.js';

export interface ToolThreadDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** It has no call any more and can take the next. */
  readonly onFree: () => void;
  /** The thread is gone. `unbegun`: the call that it was given and certainly did not begin. */
  readonly onGone: (thread: ToolThread, unbegun: WorkerCall | undefined) => void;
}

export class ToolThread {
  readonly #deps: ToolThreadDeps;
  readonly #worker: Worker;
  /** Modules of agents that it has been given calls of, and so has loaded. */
  readonly modules = new Set<string>();
  #call: WorkerCall | undefined;
  #callId = 0;
  #isTaken = false;
  /** It has carried a call out: the next one is taken at once. */
  #isWarm = false;
  #isEnding = false;
  #failure: string | undefined;
  #watch: Timer | undefined;
  #printedChars = 0;

  constructor(deps: ToolThreadDeps) {
    this.#deps = deps;
    this.#worker = new Worker(new URL('./tool-worker-start.mjs', import.meta.url), {
      name: 'earshot-tool',
      execArgv: [],
      workerData: { isSource: import.meta.url.endsWith('.ts'), niceness: TOOL_WORKER_NICENESS },
      resourceLimits: { maxOldGenerationSizeMb: TOOL_WORKER_HEAP_MAX_MB },
    });
    this.#worker.on('message', (message: unknown) => this.#answered(message));
    this.#worker.on('messageerror', () => this.#fail('it sent what cannot be read'));
    this.#worker.on('error', (error) => this.#fail(errorText(error)));
    this.#worker.on('exit', (code) => this.#exited(code));
    // Not by the options `stdout` and `stderr`: a stream that is read by them keeps the process alive for as long as the thread.
    for (const stream of [this.#worker.stdout, this.#worker.stderr]) {
      stream.unpipe();
      stream.setEncoding('utf8').on('data', (text: string) => this.#printed(text));
      stream.resume();
    }
    this.#worker.unref();
  }

  get isIdle(): boolean {
    return this.#call === undefined && !this.#isEnding;
  }

  /** Somebody waits for what it does. */
  get isBusy(): boolean {
    return this.#call?.isSettled === false;
  }

  has(call: WorkerCall): boolean {
    return this.#call === call;
  }

  /** Only to an idle thread. */
  give(call: WorkerCall): void {
    this.#call = call;
    this.#callId += 1;
    this.#isTaken = false;
    this.#printedChars = 0;
    this.modules.add(call.order.module);
    // A server that only waits for a tool does not exit; one that waits for nothing does.
    this.#worker.ref();
    this.#post({ ...call.order, id: this.#callId });
    // The first call waits for the thread itself to begin, which a busy machine may delay.
    if (this.#isWarm) this.#watchTaking(this.#callId);
  }

  /** Ends it, whatever it does; JavaScript ends at once, a system call when it returns. */
  end(): void {
    this.#isEnding = true;
    void this.#worker.terminate();
  }

  /** Ends it, and what it does. */
  close(why: string): void {
    if (this.isBusy) this.#call?.fail(new Error(why));
    this.end();
  }

  #post(message: CallOrder | SecretAnswer): void {
    this.#worker.postMessage(message, []);
  }

  #answered(message: unknown): void {
    const { success, data: answer } = workerAnswer.safeParse(message);
    const call = this.#call;
    if (!success || call === undefined || answer.id !== this.#callId) return;
    switch (answer.kind) {
      case 'taken':
        this.#isTaken = true;
        this.#watch?.cancel();
        return;
      case 'askSecret':
        void this.#tellSecret(call, answer);
        return;
      case 'done':
        this.#free();
        call.done({
          result: answer.resultJson === undefined ? undefined : JSON.parse(answer.resultJson),
          stateDelta: JSON.parse(answer.stateDeltaJson) as Record<string, unknown>,
          endInvocation: answer.endInvocation,
        });
        break;
      case 'failed':
        this.#free();
        call.fail(answer.nothingDone ? new NothingDone(answer.message) : new Error(answer.message));
        break;
    }
    this.#deps.onFree();
  }

  #free(): void {
    this.#call = undefined;
    this.#isWarm = true;
    this.#watch?.cancel();
    this.#worker.unref();
  }

  async #tellSecret(call: WorkerCall, { ask, name }: WorkerAnswer & { kind: 'askSecret' }): Promise<void> {
    try {
      this.#post({ kind: 'secret', ask, value: await call.getSecret(name) });
    } catch (error) {
      this.#post({ kind: 'secret', ask, error: errorText(error) });
    }
  }

  #watchTaking(id: number): void {
    const { clock, log } = this.#deps;
    this.#watch = clock.setTimer(TOOL_WORKER_TAKE_MAX_MS, () => {
      // The answer may lie behind this timer, when the server itself was held up.
      void nextTurn().then(() => {
        if (this.#isTaken || this.#callId !== id || this.#isEnding) return;
        log.warn({ tool: this.#call?.order.tool }, 'a worker is held by what an earlier tool left behind');
        this.end();
      });
    });
  }

  #fail(why: string): void {
    this.#failure ??= why;
    this.end();
  }

  /** What it had sent before its end has been read by now. */
  #exited(code: number): void {
    const { log, onGone } = this.#deps;
    const wasAsked = this.#isEnding && this.#failure === undefined;
    this.#isEnding = true;
    this.#watch?.cancel();
    const call = this.#call;
    this.#call = undefined;
    const why = this.#failure ?? `it ended its own thread with code ${code}`;
    if (!wasAsked) log.warn({ tool: call?.order.tool, pii: { why } }, 'a worker thread ended');
    const isUnbegun = call !== undefined && !this.#isTaken;
    // A thread that never worked is no reason to try another one.
    if (isUnbegun && !this.#isWarm) call.fail(new NothingDone(`the worker thread did not start: ${why}`));
    else if (!isUnbegun) call?.fail(new Error(`the tool broke its worker thread: ${why}`));
    onGone(this, isUnbegun && this.#isWarm ? call : undefined);
  }

  /** Printing is for the author's eyes: beside the log it would be lines that nobody can read. */
  #printed(text: string): void {
    const room = TOOL_WORKER_PRINTED_MAX_CHARS - this.#printedChars;
    this.#printedChars += text.length;
    if (room <= 0) return;
    this.#deps.log.info(
      { tool: this.#call?.order.tool, pii: { text: text.slice(0, room) } },
      'a worker tool printed',
    );
  }
}
