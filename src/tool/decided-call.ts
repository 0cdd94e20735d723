/**
 * What becomes of a pending call once a person has decided: a denial is an error, an approval runs the handler, and slow
 * work that somebody else did is told as approved. The same with the run that asked and without it.
 */
import type { Tool } from '../agent/tool.js';
import type { JsonObject } from '../event/event.js';
import type { Log } from '../observe/log.js';
import type { DecidedCall } from '../store/pending-calls.js';
import type { Guards } from './guards.js';
import type { Handlers } from './handler.js';
import type { CallScope } from './invocation.js';
import { type LateRun, runTellingLate } from './late-result.js';
import { errorResponse } from './tool-result.js';
import type { CallOutcome } from './tool-work.js';

export interface DecidedRun {
  readonly tool: Tool | undefined;
  readonly call: DecidedCall;
  readonly guards: Guards;
  readonly handlers: Handlers;
  readonly scope: CallScope;
  readonly controller: AbortController;
  /** What it came to after all, once its handler was given up as too slow; told behind the outcome. */
  readonly tellLate: LateRun['tell'];
  readonly log: Log;
}

/** Never rejects. */
export async function outcomeOfDecision(run: DecidedRun): Promise<CallOutcome> {
  const { tool, call, scope } = run;
  const by = call.by === undefined ? '' : ` by ${call.by}`;
  const outcome = (response: JsonObject, ran: boolean, goesOn = false): CallOutcome => {
    const actions = scope.takeActions();
    if (!goesOn) scope.close();
    return { kind: 'done', response, actions, ran, endInvocation: scope.endsInvocation };
  };
  if (call.isWorking === true) return outcome(decidedAtWork(call, by), true, true);
  if (call.decision === 'deny')
    return outcome(errorResponse(`${call.tool} was denied${by}. It was not done.`), false);
  if (call.kind === 'longRunning')
    return outcome({ status: 'approved', message: `It was approved${by}.` }, false);
  if (tool === undefined)
    return outcome(errorResponse(`There is no tool named ${call.tool} any more.`), false);
  const { tellLate: tell, log } = run;
  const after = async (response: JsonObject): Promise<JsonObject> => {
    if (tool.trusted) return response;
    const guarded = { tool: tool.name, args: structuredClone(call.args), ctx: scope.ctx };
    // Not by the run's controller: that one is aborted when the handler's time is up.
    return run.guards.after(guarded, response, new AbortController().signal);
  };
  return runTellingLate(
    { tool, scope, after, tell, log },
    (onLate) =>
      run.handlers.run({
        tool,
        args: call.args,
        scope,
        callId: call.callId,
        session: call.session,
        guards: call.guards,
        approvedBy: call.by ?? 'unnamed',
        controller: run.controller,
        onLate,
      }),
    async ({ response, ran, goesOn }) => outcome(await after(response), ran, goesOn),
  );
}

/** Its handler has not ended: what it comes to all the same is told when it has. */
function decidedAtWork({ tool, decision }: DecidedCall, by: string): JsonObject {
  if (decision === 'deny')
    return errorResponse(
      `${tool} was denied${by} and told to stop. What it had done by then is not known yet.`,
    );
  const message = `It was approved${by}, and is still being carried out. What it comes to will be told.`;
  return { status: 'approved', message };
}
