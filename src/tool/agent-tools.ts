/**
 * The work of an agent's tools in one run: looked up, checked, guarded, approved, carried out. What a call comes to is
 * returned; what comes of it later is told to the run.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { Tool } from '../agent/tool.js';
import { type Clock, nextTurn } from '../clock.js';
import { errorText } from '../errors.js';
import { type EventActions, NO_ACTIONS } from '../event/event.js';
import { newId } from '../ids.js';
import type { FunctionDeclaration } from '../model/live-connection.js';
import type { Log } from '../observe/log.js';
import type { DecidedCall, PendingCall } from '../store/pending-calls.js';
import type { SessionKey } from '../store/store.js';
import { approvalOf, type Attempt, linked, plainOutcome } from './attempt.js';
import { timed } from './blocking.js';
import type { BuiltInTool } from './built-in-tools.js';
import { hasChanges } from './changes.js';
import { type DecidedRun, outcomeOfDecision } from './decided-call.js';
import { Guards } from './guards.js';
import { badArguments, Handlers } from './handler.js';
import type { CallScope, Invocation } from './invocation.js';
import { runTellingLate } from './late-result.js';
import type { PendingDesk } from './pending-desk.js';
import type { RunSecrets } from './run-secrets.js';
import { type StreamingStart, StreamingTools } from './streaming-tools.js';
import { errorResponse, isError, type Response } from './tool-result.js';
import type { CallOutcome, CallRef, ToolWork, WorkCall, WorkListener } from './tool-work.js';
import { withinTime } from './within-time.js';

export interface AgentToolsOptions {
  readonly agent: Agent;
  readonly builtIn: readonly BuiltInTool[];
  readonly identity: AgentContext;
  /** As soon as what the session holds is known. Rejects where it cannot be read. */
  readonly invocation: Promise<Invocation>;
  readonly session: SessionKey;
  readonly secrets: RunSecrets;
  readonly handlers: Handlers;
  readonly desk: PendingDesk;
  /** Streaming tools need somebody who listens. */
  readonly isLive: boolean;
  /** Told nothing of the run's secrets. */
  readonly listener: WorkListener;
  readonly clock: Clock;
  readonly log: Log;
  /** Stores what changed behind the end of the run. Never rejects. */
  readonly tellLate: (actions: EventActions) => Promise<void>;
  /** Stores what a call has come to behind the end of the run. Never rejects. */
  readonly tellLateResult: (call: CallRef, outcome: CallOutcome) => Promise<void>;
  /** The run is over; resolves when nothing of it is left. */
  readonly onClosing: (closed: Promise<void>) => void;
}

/** A call that waits for a decision or for slow work. */
interface Waiting {
  readonly pending: PendingCall;
  readonly withdrawn: AbortController;
  /** Slow work goes on with it. */
  readonly scope: CallScope;
}

export class AgentTools implements ToolWork {
  readonly #options: AgentToolsOptions;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #builtIn: ReadonlyMap<string, BuiltInTool>;
  readonly #guards: Guards;
  readonly #streaming: StreamingTools;
  readonly #pending = new Map<string, Waiting>();
  /** Of calls without a result. */
  readonly #scopes = new Map<WorkCall, CallScope>();
  /** Of handlers that were given up and go on. */
  readonly #givenUp = new Set<CallScope>();
  /** Once a tool has needed it. */
  #invocation: Invocation | undefined;
  readonly #over = new AbortController();

  constructor(options: AgentToolsOptions) {
    const listener = options.secrets.listener(options.listener);
    this.#options = { ...options, listener };
    this.#tools = new Map((options.agent.tools ?? []).map((tool) => [tool.name, tool]));
    this.#builtIn = new Map(options.builtIn.map((tool) => [tool.declaration.name, tool]));
    this.#guards = new Guards(options.agent, options);
    this.#streaming = new StreamingTools(this.#options);
  }

  isLongRunning(name: string): boolean {
    return this.#tools.get(name)?.kind === 'longRunning';
  }

  get wantsSound(): boolean {
    return this.#streaming.wantsSound;
  }

  onSound(pcm16k: Uint8Array): void {
    this.#streaming.onSound(pcm16k);
  }

  onImage(mimeType: string, image: Uint8Array): void {
    this.#streaming.onImage(mimeType, image);
  }

  counts(): Readonly<Record<string, number>> {
    return { pending: this.#pending.size, ...this.#streaming.counts() };
  }

  carryOut(call: WorkCall, signal: AbortSignal): CallOutcome | Promise<CallOutcome> {
    const builtIn = this.#builtIn.get(call.name);
    if (builtIn !== undefined) {
      const { log, identity } = this.#options;
      log.debug({ tool: call.name, callSid: identity.callSid }, 'a built-in tool runs past the guards');
      const response = builtIn.run(call.args, this.#streaming);
      return response instanceof Promise
        ? response.then((value) => plainOutcome(value, true))
        : plainOutcome(response, true);
    }
    const tool = this.#tools.get(call.name);
    if (tool === undefined) return plainOutcome(unknownTool(call.name), false);
    const args = structuredClone(call.args) as Record<string, unknown>;
    const read = tool.readArguments(structuredClone(args));
    if ('error' in read) return plainOutcome(badArguments(tool.name, read.error), false);
    const withdrawn = linked(signal);
    return this.#attempt({
      call,
      tool,
      args,
      withdrawn,
      controller: linked(withdrawn.signal),
      passed: [],
    });
  }

  takeActions(call: WorkCall): EventActions {
    return this.#scopes.get(call)?.takeActions() ?? NO_ACTIONS;
  }

  leave(): readonly EventActions[] {
    this.#invocation?.over();
    const slow = [...this.#pending.values()].map(({ scope }) => scope);
    const scopes = [...this.#streaming.scopes, ...slow, ...this.#givenUp];
    return scopes.map((scope) => scope.takeActions()).filter(hasChanges);
  }

  tellLate(actions: EventActions): Promise<void> {
    return this.#options.tellLate(actions);
  }

  tellLateResult(call: CallRef, outcome: CallOutcome): Promise<void> {
    return this.#options.tellLateResult(call, outcome);
  }

  /** The run is over. */
  close(): Promise<void> {
    const closed = this.#close();
    this.#options.onClosing(closed);
    return closed;
  }

  async #close(): Promise<void> {
    const reason = new Error('the conversation is over');
    this.#over.abort(reason);
    for (const [id, { withdrawn }] of this.#pending) {
      this.#options.desk.leave(id);
      withdrawn.abort(reason);
    }
    this.#pending.clear();
    await this.#streaming.close();
  }

  get #isClosed(): boolean {
    return this.#over.signal.aborted;
  }

  async #attempt(attempt: Omit<Attempt, 'scope' | 'invocation'>): Promise<CallOutcome> {
    const { call, tool, controller } = attempt;
    const { signal } = controller;
    let invocation: Invocation;
    try {
      invocation = await withinTime(this.#options.invocation, {
        ...this.#options,
        delayMs: undefined,
        signal,
      });
    } catch (error) {
      // The call was withdrawn, or the run is over, while it waited for something; or the session cannot be read.
      return plainOutcome(
        this.#refused(tool.name, 'what is known of the caller cannot be read', error),
        false,
      );
    }
    this.#invocation = invocation;
    if (this.#isClosed) invocation.over();
    // What a handler leaves running behind it lives as long as the run; slow work, and what is done once, as long as it takes: its
    // result must not be lost because it could not write down what it has done.
    const isKept = tool.kind === 'longRunning' || tool.sideEffect !== undefined;
    const scope = invocation.scope(
      AbortSignal.any([signal, this.#over.signal]),
      isKept ? { lateMaxMs: Infinity } : {},
    );
    const begun: Attempt = { ...attempt, invocation, scope };
    this.#scopes.set(call, scope);
    try {
      return this.#options.secrets.outcome(await this.#guarded(begun));
    } catch (error) {
      // A guard has put something into the arguments that nobody can read.
      return this.#outcome(begun, this.#refused(tool.name, 'its arguments cannot be read', error), false);
    } finally {
      this.#scopes.delete(call);
    }
  }

  /** The model is told what concerns it; the rest is for the log. */
  #refused(tool: string, why: string, error: unknown): Response {
    const { log, secrets } = this.#options;
    log.warn({ tool, pii: { cause: secrets.errorText(error) } }, 'a call was refused');
    return errorResponse(`${tool} was refused: ${why}.`);
  }

  async #guarded(attempt: Attempt): Promise<CallOutcome> {
    const { tool, args, scope, withdrawn } = attempt;
    const { log, identity } = this.#options;
    if (tool.trusted) {
      log.info({ tool: tool.name, callSid: identity.callSid }, 'a trusted tool runs past the guards');
      return this.#run(attempt);
    }
    const verdict = await this.#guards.before({ tool: tool.name, args, ctx: scope.ctx }, withdrawn.signal);
    // A guard that kept the arguments cannot change them any more.
    if (verdict.kind === 'run')
      return this.#run({ ...attempt, args: structuredClone(args), passed: verdict.passed });
    if (verdict.kind === 'refused') return this.#outcome(attempt, verdict.response, false);
    return this.#outcome(attempt, await this.#after(attempt, verdict.response), false);
  }

  async #run(attempt: Attempt): Promise<CallOutcome> {
    const { tool, args, scope } = attempt;
    const read = tool.readArguments(structuredClone(args));
    if ('error' in read) return this.#outcome(attempt, badArguments(tool.name, read.error), false);
    let needsApproval: boolean;
    try {
      needsApproval = timed(this.#options, { tool: tool.name }, () => approvalOf(tool, read.args, scope.ctx));
    } catch (error) {
      const why = `its approval rule failed: ${this.#options.secrets.errorText(error)}`;
      return this.#outcome(attempt, errorResponse(`${tool.name} was refused: ${why}`), false);
    }
    if (tool.kind === 'streaming') return this.#stream(attempt, read.args, needsApproval);
    if (needsApproval) return this.#waitForApproval(attempt);
    if (tool.kind === 'longRunning') return this.#runLong(attempt);
    const { log } = this.#options;
    return runTellingLate(
      {
        tool,
        scope,
        after: (response) => this.#after(attempt, response, NEVER),
        tell: (outcome, isNews) => this.#tellLate(attempt, outcome, isNews),
        log,
      },
      (onLate) => this.#handle(attempt, onLate),
      async ({ response, ran, goesOn }) => {
        if (goesOn) this.#givenUp.add(scope);
        return this.#outcome(attempt, await this.#after(attempt, response), ran, goesOn);
      },
    );
  }

  async #stream(attempt: Attempt, args: unknown, needsApproval: boolean): Promise<CallOutcome> {
    const { tool, invocation } = attempt;
    const { isLive } = this.#options;
    const why = needsApproval
      ? 'a streaming tool cannot wait for an approval'
      : isLive
        ? undefined
        : 'it streams, which needs a live conversation';
    if (why !== undefined)
      return this.#outcome(attempt, errorResponse(`${tool.name} was refused: ${why}.`), false);
    const response = this.#streaming.start({
      tool,
      args,
      scope: (signal, inputStream) => invocation.scope(signal, { inputStream }),
      after: this.#afterEach(attempt),
    });
    const ran = !isError(response);
    return { ...this.#outcome(attempt, response, ran), kind: ran ? 'streaming' : 'done' };
  }

  /** Those who look results over see each value. */
  #afterEach({ tool, args }: Attempt): StreamingStart['after'] {
    if (tool.trusted || !this.#guards.hasAfter) return undefined;
    return (value, ctx, signal) => this.#guards.after({ tool: tool.name, args, ctx }, value, signal);
  }

  #handle(attempt: Attempt, onLate: (response: Response) => void) {
    const { tool, args, scope, call, passed, controller } = attempt;
    const { handlers, session } = this.#options;
    return handlers.run({ tool, args, scope, callId: call.id, session, guards: passed, controller, onLate });
  }

  /** Not ended by a withdrawal: what has been done is told, and nobody may see it past those who look it over. */
  async #after({ tool, args, scope }: Attempt, response: Response, signal = this.#over.signal) {
    if (tool.trusted) return response;
    return this.#guards.after({ tool: tool.name, args, ctx: scope.ctx }, response, signal);
  }

  /** A call that was told as given up, and has ended: to the run or, behind its end, to the session. */
  #tellLate({ call, scope }: Pick<Attempt, 'call' | 'scope'>, outcome: CallOutcome, isNews: boolean): void {
    const { listener, secrets } = this.#options;
    this.#givenUp.delete(scope);
    if (!isNews) return this.#tellRest(outcome.actions);
    const { id, name } = call;
    const told = secrets.outcome(outcome);
    if (!listener.late({ id, name }, told)) void this.tellLateResult({ id, name }, told);
  }

  #outcome({ scope }: Attempt, response: Response, ran: boolean, goesOn = false): CallOutcome {
    const endInvocation = scope.endsInvocation;
    const actions = scope.takeActions();
    // A handler that goes on, given up or behind the end of the run, may still finish what it keeps.
    if (!this.#isClosed && !goesOn) scope.close();
    return { kind: 'done', response, actions, ran, endInvocation };
  }

  /** Of a call whose result somebody else tells. */
  #tellRest(actions: EventActions): void {
    if (hasChanges(actions)) void this.#options.listener.changed(actions);
  }

  async #waitForApproval(attempt: Attempt): Promise<CallOutcome> {
    const pending = await this.#add(attempt, 'approval');
    if ('error' in pending) return this.#outcome(attempt, pending, false);
    const message = `A person has to approve it first. ${this.#hearsOfIt('Say so')}`;
    // What is approved runs with a context of its own.
    return { ...this.#outcome(attempt, { status: 'pending', message }, false), kind: 'pending' };
  }

  async #runLong(attempt: Attempt): Promise<CallOutcome> {
    const pending = await this.#add(attempt, 'longRunning');
    if ('error' in pending) return this.#outcome(attempt, pending, false);
    const actions = attempt.scope.takeActions();
    void this.#finishLong(attempt, pending);
    const message = `It has been started and takes a while. ${this.#hearsOfIt('Go on')}`;
    const response = { status: 'pending', message };
    return { kind: 'pending', response, actions, ran: false, endInvocation: false };
  }

  /** A run in text is over with its answer; its session has the outcome, and so has the next run in it. */
  #hearsOfIt(whatToDo: string): string {
    if (this.#options.isLive) return `${whatToDo}; you will be told the outcome.`;
    return 'Say so: this answer does not wait for it. The outcome is kept in this conversation, for when the user writes again.';
  }

  /** A result settles the call, however late it comes; none, or one that says `pending`, leaves it to whoever decides. */
  async #finishLong(attempt: Attempt, pending: PendingCall): Promise<void> {
    const { scope } = attempt;
    const finish = async (result: Response, ran: boolean): Promise<void> => {
      if (isOpen(result)) {
        this.#tellRest(scope.takeActions());
        return this.#options.desk.handOver(pending.id);
      }
      const response = await this.#after(attempt, result, NEVER);
      const outcome = this.#outcome(attempt, response, ran);
      scope.close();
      await this.#settle(attempt, pending, outcome);
    };
    // Behind the answer that it is pending, however quick it is.
    await nextTurn();
    const { response, ran, goesOn } = await this.#handle(attempt, (late) => void finish(late, true));
    if (!goesOn) await finish(response, ran);
  }

  async #settle(attempt: Attempt, pending: PendingCall, outcome: CallOutcome): Promise<void> {
    const { desk, log } = this.#options;
    const { id, callId, tool } = pending;
    this.#pending.delete(id);
    try {
      // Somebody else has told it, as lost: what it came to is told all the same.
      if (!(await desk.settle(id))) return this.#tellLate(attempt, outcome, !isError(outcome.response));
    } catch (error) {
      // It has a result all the same. The event that tells it settles the call when the store takes it.
      log.error({ tool, cause: errorText(error) }, 'a pending call is settled by its result alone');
      desk.shut(id);
    }
    await this.#tellSettled(pending, { id: callId, name: tool }, outcome);
  }

  async #tellSettled(pending: PendingCall, call: CallRef, told: CallOutcome): Promise<void> {
    const { desk, listener, secrets, log } = this.#options;
    const outcome = secrets.outcome(told);
    if (listener.settled(call, outcome, pending.id)) return;
    try {
      await desk.tellLate(pending, outcome);
    } catch (error) {
      log.error({ tool: call.name, cause: errorText(error) }, 'the result of a pending call is lost');
    }
  }

  /** `POST /approvals/:id`, while this run lives. */
  async #decided(attempt: Attempt, decided: DecidedCall): Promise<void> {
    const { call, tool, invocation, withdrawn } = attempt;
    const { desk, handlers, log } = this.#options;
    const isApproval = decided.kind === 'approval';
    this.#pending.delete(decided.id);
    // Slow work that is approved goes on, and its own result follows.
    if (isApproval || decided.decision === 'deny') withdrawn.abort(new Error('it was decided elsewhere'));
    // What the ledger guards may be tried again after a crash, until the event of its result settles it; anything else is rather
    // lost than done twice.
    let isOurs = isApproval && tool.sideEffect !== undefined;
    try {
      isOurs ||= await desk.settle(decided.id);
    } finally {
      if (!isOurs) this.#tellRest(attempt.scope.takeActions());
    }
    if (!isOurs) return;
    // Approved work does not end with the call: a minute later it would be done without it.
    const controller = new AbortController();
    const scope = isApproval ? invocation.scope(controller.signal, { lateMaxMs: Infinity }) : attempt.scope;
    const run: DecidedRun = {
      tool,
      call: decided,
      guards: this.#guards,
      handlers,
      scope,
      controller,
      tellLate: (outcome, isNews) => this.#tellLate({ call, scope }, outcome, isNews),
      log,
    };
    await this.#tellSettled(decided, call, await outcomeOfDecision(run));
  }

  /** Kept until it is decided; the error is why it is not. */
  async #add(attempt: Attempt, kind: PendingCall['kind']): Promise<PendingCall | { readonly error: string }> {
    const { call, tool, args, passed, withdrawn } = attempt;
    const { desk, session, identity, secrets, clock, log } = this.#options;
    const { callSid, invocationId } = identity;
    if (secrets.holdsAny(args))
      return { error: `${tool.name} was refused: its arguments hold a secret, which is not kept.` };
    const pending: PendingCall = {
      id: newId(),
      session,
      callSid,
      invocationId,
      callId: call.id,
      tool: tool.name,
      args,
      kind,
      guards: passed,
      requestedAtMs: clock.wallMs(),
      ...(kind === 'longRunning' && { isWorking: true }),
    };
    this.#pending.set(pending.id, { pending, withdrawn, scope: attempt.scope });
    try {
      await desk.add(pending, (decided) => this.#decided(attempt, decided));
      if (!withdrawn.signal.aborted) return pending;
      // It was told as not done while it was being stored: nobody may decide on it any more.
      this.#pending.delete(pending.id);
      await desk.settle(pending.id);
      return { error: errorText(withdrawn.signal.reason) };
    } catch (error) {
      // Told as not done, whatever has become of it in the store.
      this.#pending.delete(pending.id);
      desk.shut(pending.id);
      log.error({ tool: tool.name, cause: errorText(error) }, 'a pending call could not be kept');
      return { error: `${tool.name} was refused: it cannot be kept until it is decided.` };
    }
  }
}

/** Of what is told even if the run ends meanwhile. */
const NEVER = new AbortController().signal;

function isOpen(response: Response): boolean {
  return response['status'] === 'pending' || ('result' in response && response['result'] === null);
}

/** What the model is told of a tool. */
export function declarationOf({ name, description, parametersJsonSchema }: Tool): FunctionDeclaration {
  return { name, description, parametersJsonSchema };
}

function unknownTool(name: string): Response {
  const error = `There is no tool named ${name}.`;
  return { ...errorResponse(error), message: 'Tell the caller that you cannot do that.' };
}
