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
  /** What it came to after all, once it was given up. */
  readonly onLate?: (response: Response) => void;
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

  /** Never rejects. `ran` tells whether the handler was begun. */
  async run(run: HandlerRun): Promise<{ readonly response: Response; readonly ran: boolean }> {
    const { tool, controller } = run;
    const read = tool.readArguments(structuredClone(run.args));
    if ('error' in read) return { response: badArguments(tool.name, read.error), ran: false };
    const isLong = tool.kind === 'longRunning';
    // Slow work must not keep the quick from running.
    const giveBack = isLong ? () => {} : await this.#permit(tool, controller.signal);
    if (giveBack === undefined) return { response: notBegun(tool, controller.signal), ran: false };
    let hasBegun = false;
    const work = this.#work(run, read.args, () => {
      hasBegun = true;
    });
    void work.then(giveBack, giveBack);
    try {
      const { clock } = this.#options;
      const response = await withinTime(work, {
        clock,
        delayMs: isLong ? undefined : tool.timeoutMs,
        signal: controller.signal,
      });
      return { response, ran: hasBegun };
    } catch (error) {
      const { onLate } = run;
      if (hasBegun && (controller.signal.aborted || isInstance(error, TimeUp))) {
        if (onLate !== undefined) void work.then(onLate, () => {});
        if (!isLong) this.#deaf.add(tool.name, work, giveBack);
      }
      return { response: this.#failure(run, error), ran: hasBegun };
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

  #work(run: HandlerRun, args: unknown, begun: () => void): Promise<Response> {
    const { tool, scope, callId, session, guards, approvedBy, controller } = run;
    const execute = async (): Promise<unknown> => {
      if (controller.signal.aborted) throw new NotBegun(errorText(controller.signal.reason));
      begun();
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
    );
  }

  #failure({ tool, controller }: HandlerRun, error: unknown): Response {
    const { log, secrets } = this.#options;
    if (isInstance(error, TimeUp)) {
      controller.abort(error);
      log.warn({ tool: tool.name, timeoutMs: tool.timeoutMs }, 'a tool took too long');
      return errorResponse(`${tool.name} took too long and was given up: ${error.message}.`);
    }
    if (!controller.signal.aborted)
      log.warn({ tool: tool.name, pii: { cause: secrets.errorText(error) } }, 'a tool failed');
    return errorResponse(secrets.errorText(error));
  }
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
