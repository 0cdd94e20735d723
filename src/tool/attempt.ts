/**
 * One call on its way through guards and approval to its handler: what is known of it, and what its parts have in common.
 */
import type { Tool } from '../agent/tool.js';
import type { ToolContext } from '../agent/tool-context.js';
import { ignoreRejection } from '../foreign.js';
import type { CallScope, Invocation } from './invocation.js';
import type { Response } from './tool-result.js';
import type { CallOutcome, WorkCall } from './tool-work.js';

export interface Attempt {
  readonly call: WorkCall;
  readonly tool: Tool;
  readonly args: Record<string, unknown>;
  readonly invocation: Invocation;
  readonly scope: CallScope;
  /** Aborted when the call is withdrawn or decided elsewhere, and when the run is over. */
  readonly withdrawn: AbortController;
  /** The handler's own: aborted when its time is up, too. */
  readonly controller: AbortController;
  readonly passed: readonly string[];
}

/** Throws what is wrong with the author's rule. */
export function approvalOf(tool: Tool, args: unknown, ctx: ToolContext): boolean {
  const needed: unknown = tool.approval(args, ctx);
  if (typeof needed === 'boolean') return needed;
  ignoreRejection(needed);
  throw new TypeError('it must answer true or false at once');
}

/** Of a call that no context was made for. */
export function plainOutcome(response: Response, ran: boolean): CallOutcome {
  return {
    kind: 'done',
    response,
    actions: { stateDelta: {}, artifactDelta: {} },
    ran,
    endInvocation: false,
  };
}

/** Aborts with `signal`, or by itself when the time is up. */
export function linked(signal: AbortSignal): AbortController {
  const controller = new AbortController();
  if (signal.aborted) controller.abort(signal.reason);
  else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  return controller;
}
