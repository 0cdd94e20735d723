/**
 * What becomes of a call whose handler was given up: withdrawn, cut off by the end of its run, or too slow. It goes on in its
 * author's hands, may have done everything by then, and whoever was told that it had not is told what it has come to.
 */
import type { Tool } from '../agent/tool.js';
import { nextTurn } from '../clock.js';
import type { Log } from '../observe/log.js';
import type { HandlerOutcome } from './handler.js';
import type { CallScope } from './invocation.js';
import { isError, type Response } from './tool-result.js';
import type { CallOutcome } from './tool-work.js';

export interface LateRun {
  readonly tool: Tool;
  readonly scope: CallScope;
  /** Those who look over what the tool has answered. Never rejects. */
  readonly after: (response: Response) => Promise<Response>;
  /** Told behind the outcome of the call. `isNews`: there is a result, not only what was changed. */
  readonly tell: (outcome: CallOutcome, isNews: boolean) => void;
  readonly log: Log;
}

/**
 * Runs the handler, and tells what it came to after all where it was given up. `outcomeOf` makes the call's outcome, which is
 * told in front of that.
 */
export async function runTellingLate(
  run: LateRun,
  handle: (onLate: (response: Response) => void) => Promise<HandlerOutcome>,
  outcomeOf: (handled: HandlerOutcome) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  let told = (): void => {};
  const isTold = new Promise<void>((resolve) => {
    told = resolve;
  });
  const handled = await handle((late) => {
    // Whoever gets the outcome tells it in the turn in which it is there.
    void isTold.then(nextTurn).then(() => tellLate(run, late));
  });
  const outcome = await outcomeOf(handled);
  told();
  return outcome;
}

/** An error is news only of what is done once: whether it was is what somebody waits to hear. */
async function tellLate({ tool, scope, after, tell, log }: LateRun, late: Response): Promise<void> {
  const isNews = !isError(late) || tool.sideEffect !== undefined;
  if (isNews) log.warn({ tool: tool.name }, 'a tool that was given up has ended after all');
  const response = isNews ? await after(late) : late;
  scope.close();
  // Too late to end a conversation that has gone on without it.
  tell({ kind: 'done', response, actions: scope.takeActions(), ran: true, endInvocation: false }, isNews);
}
