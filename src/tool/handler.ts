/**
 * One run of a tool's handler: as many at once as the agent allows, each within its time, a side effect only once, and
 * in a worker where its author wants one. Whatever goes wrong becomes a result.
 */
import type { ToolContext } from '../agent/tool-context.js';
import type { Tool } from '../agent/tool.js';
import type { Clock } from '../clock.js';
import { errorText } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { isInstance } from '../foreign.js';
import type { Log } from '../observe/log.js';
import type { SessionKey } from '../store/store.js';
import { timed } from './blocking.js';
import { DeafHandlers } from './deaf-handlers.js';
import type { CallScope } from './invocation.js';
import type { Permits } from './permits.js';
import type { RunSecrets } from './run-secrets.js';
import { NotBegun, type SideEffects } from './side-effects.js';
import { errorResponse, type Response, responseOf } from './tool-result.js';
import { TimeUp, withinTime } from './within-time.js';
import type { WorkerOutcome } from './worker-call.js';

/** Runs a handler in a worker; its changes come back. */
export type RunInWorker = (tool: Tool, args: JsonObject, ctx: ToolContext) => Promise<WorkerOutcome>;

export interface HandlerRun {
  readonly tool: Tool;
  /** As the guards left them. */
  readonly args: JsonObject;
  readonly scope: CallScope;
  readonly callId: string;
  readonly session: SessionKey;
  readonly guards: readonly string[];
  readonly approvedBy?: string | undefined;
  /** Aborts the run; `controller` is the run's own, by which it ends when its time is up. */
  readonly controller: AbortController;
  /** What it came to after all, once it was given up; called exactly once where the outcome says that it goes on. */
  readonly onLate: (response: Response) => void;
}

export interface HandlerOutcome {
  readonly response: Response;
  /** The handler was begun. */
  readonly ran: boolean;
  /** It was given up and has not ended. */
  readonly goesOn: boolean;
}

export interface HandlersOptions {
  readonly sideEffects: SideEffects;
  readonly runInWorker: RunInWorker;
  readonly permits: Permits;
  readonly secrets: RunSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

export class Handlers {
  readonly #options: HandlersOptions;
  readonly #deaf: DeafHandlers;

  constructor(options: HandlersOptions) {
    this.#options = options;
    this.#deaf = new DeafHandlers(options);
  }

  /** Never rejects. */
  async run(run: HandlerRun): Promise<HandlerOutcome> {
    const { tool, controller } = run;
    const read = tool.readArguments(structuredClone(run.args));
    if ('error' in read) return notRun(badArguments(tool.name, read.error));
    const isLong = tool.kind === 'longRunning';
    // Slow work must not keep the quick from running.
    const giveBack = isLong ? () => {} : await this.#permit(tool, controller.signal);
    if (giveBack === undefined) return notRun(notBegun(tool, controller.signal));
    const progress: Progress = { hasBegun: false, isDoneByAnother: false };
    const work = this.#work(run, read.args, progress);
    void work.then(giveBack, giveBack);
    try {
      const { clock } = this.#options;
      const response = await withinTime(work, {
        clock,
        delayMs: isLong ? undefined : tool.timeoutMs,
        signal: controller.signal,
      });
      return { response, ran: progress.hasBegun, goesOn: false };
    } catch (error) {
      const { secrets } = this.#options;
      const isGivenUp = controller.signal.aborted || isInstance(error, TimeUp);
      const goesOn = isGivenUp && (progress.hasBegun || progress.isDoneByAnother);
      if (goesOn) {
        void work.then(run.onLate, (late: unknown) => run.onLate(errorResponse(secrets.errorText(late))));
        if (!isLong) this.#deaf.add(tool.name, work, giveBack);
      }
      return { response: this.#failure(run, error, goesOn), ran: progress.hasBegun, goesOn };
    }
  }

  /** Others may never end: a call waits for its turn no longer than it may then take. */
  async #permit({ timeoutMs }: Tool, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { clock, permits } = this.#options;
    const patience = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => patience.abort());
    const watch = this.#deaf.watch();
    const giveBack = await permits.take(AbortSignal.any([signal, patience.signal]));
    timer.cancel();
    watch.cancel();
    return giveBack;
  }

  #work(run: HandlerRun, args: unknown, progress: Progress): Promise<Response> {
    const { tool, scope, callId, session, guards, approvedBy, controller } = run;
    const execute = async (): Promise<unknown> => {
      if (controller.signal.aborted) throw new NotBegun(errorText(controller.signal.reason));
      progress.hasBegun = true;
      if (!tool.worker)
        return told(await timed(this.#options, { tool: tool.name }, () => tool.execute(args, scope.ctx)));
      const outcome = await this.#options.runInWorker(tool, run.args, scope.ctx);
      scope.applyState(outcome.stateDelta);
      if (outcome.endInvocation) scope.ctx.endInvocation = true;
      return outcome.result;
    };
    const { sideEffect } = tool;
    const { secrets } = this.#options;
    if (sideEffect === undefined)
      return execute().then((value) => responseOf(value, (error) => secrets.errorText(error)));
    return this.#options.sideEffects.once(
      { session, tool: tool.name, sideEffect, args, ctx: scope.ctx, callId, guards, approvedBy, secrets },
      execute,
      () => {
        progress.isDoneByAnother = true;
      },
    );
  }

  #failure({ tool, controller }: HandlerRun, error: unknown, goesOn: boolean): Response {
    const { log, secrets } = this.#options;
    const isOpen = goesOn && tool.sideEffect !== undefined;
    if (isInstance(error, TimeUp)) {
      controller.abort(error);
      log.warn({ tool: tool.name, timeoutMs: tool.timeoutMs }, 'a tool took too long');
      if (isOpen) return errorResponse(`${tool.name} takes too long: ${error.message}. ${NOT_KNOWN_YET}`);
      return errorResponse(`${tool.name} took too long and was given up: ${error.message}.`);
    }
    if (isOpen) return errorResponse(`${secrets.errorText(error)}. ${NOT_KNOWN_YET}`);
    if (!controller.signal.aborted)
      log.warn({ tool: tool.name, pii: { cause: secrets.errorText(error) } }, 'a tool failed');
    return errorResponse(secrets.errorText(error));
  }
}

/** How far it has come; whoever waits for it may stop waiting at any time. */
interface Progress {
  hasBegun: boolean;
  /** The same deed was asked for before and is under way: its result is waited for. */
  isDoneByAnother: boolean;
}

const NOT_KNOWN_YET =
  'It may have been done: whether it was done is not known yet. Say so; you will learn the outcome in this conversation as soon as there is one. Do not ask for it again meanwhile.';

function notRun(response: Response): HandlerOutcome {
  return { response, ran: false, goesOn: false };
}

/** A generator has done nothing yet, and nobody would run it: it must not pass for a result, nor for a deed that is done. */
function told(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (Symbol.asyncIterator in value && isIterator(value))
    throw new TypeError('it returned an async generator: a streaming tool’s execute is an async function*');
  if (Symbol.iterator in value && isIterator(value))
    throw new TypeError(
      'it returned a generator or an iterator: return the values that it gives, such as [...values]',
    );
  return value;
}

function isIterator(value: object): boolean {
  return 'next' in value && typeof value.next === 'function';
}

function notBegun({ name }: Tool, { aborted, reason }: AbortSignal): Response {
  const why = aborted ? errorText(reason) : 'too many others are being carried out';
  return errorResponse(`${name} was not begun: ${why}.`);
}

export function badArguments(tool: string, why: string): Response {
  return errorResponse(
    `The arguments of ${tool} are not right: ${why}. Ask for what is missing, or call it again.`,
  );
}
