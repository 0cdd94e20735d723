/**
 * The work of an agent's tools in one run: looked up, checked, guarded, approved, carried out. What a call comes to is
 * returned; what comes of it later is told to the run.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { Tool } from '../agent/tool.js';
import type { Clock } from '../clock.js';
import { errorText } from '../errors.js';
import { newId } from '../ids.js';
import type { FunctionDeclaration } from '../model/live-connection.js';
import type { Log } from '../observe/log.js';
import type { DecidedCall, PendingCall } from '../store/pending-calls.js';
import type { SessionKey } from '../store/store.js';
import type { BuiltInTool } from './built-in-tools.js';
import { outcomeOfDecision } from './decided-call.js';
import { Guards } from './guards.js';
import { badArguments, Handlers } from './handler.js';
import type { CallScope, Invocation } from './invocation.js';
import type { PendingDesk } from './pending-desk.js';
import { StreamingTools } from './streaming-tools.js';
import { errorResponse, type Response } from './tool-result.js';
import type { CallOutcome, ToolWork, WorkCall, WorkListener } from './tool-work.js';
import { withinTime } from './within-time.js';

export interface AgentToolsOptions {
  readonly agent: Agent;
  readonly builtIn: readonly BuiltInTool[];
  readonly identity: AgentContext;
  /** As soon as what the session holds is known. Rejects where it cannot be read. */
  readonly invocation: Promise<Invocation>;
  readonly session: SessionKey;
  readonly handlers: Handlers;
  readonly desk: PendingDesk;
  /** Streaming tools need somebody who listens. */
  readonly isLive: boolean;
  readonly listener: WorkListener;
  readonly clock: Clock;
  readonly log: Log;
  /** Nothing of it is left. */
  readonly onClosed: () => void;
}

/** One call on its way. */
interface Attempt {
  readonly call: WorkCall;
  readonly tool: Tool;
  readonly args: Record<string, unknown>;
  readonly invocation: Invocation;
  readonly scope: CallScope;
  readonly controller: AbortController;
  readonly passed: readonly string[];
}

export class AgentTools implements ToolWork {
  readonly #options: AgentToolsOptions;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #builtIn: ReadonlyMap<string, BuiltInTool>;
  readonly #guards: Guards;
  readonly #streaming: StreamingTools;
  /** Pending calls of this run, and what stops their work. */
  readonly #pending = new Map<string, AbortController>();
  #isClosed = false;

  constructor(options: AgentToolsOptions) {
    this.#options = options;
    this.#tools = new Map((options.agent.tools ?? []).map((tool) => [tool.name, tool]));
    this.#builtIn = new Map(options.builtIn.map((tool) => [tool.declaration.name, tool]));
    this.#guards = new Guards(options.agent, options);
    this.#streaming = new StreamingTools(options);
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
    return this.#attempt({ call, tool, args, controller: linked(signal), passed: [] });
  }

  /** The run is over. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [id, controller] of this.#pending) {
      this.#options.desk.leave(id);
      controller.abort(new Error('the conversation is over'));
    }
    this.#pending.clear();
    await this.#streaming.close();
    this.#options.onClosed();
  }

  async #attempt(attempt: Omit<Attempt, 'scope' | 'invocation'>): Promise<CallOutcome> {
    const { signal } = attempt.controller;
    try {
      const invocation = await withinTime(this.#options.invocation, {
        ...this.#options,
        delayMs: undefined,
        signal,
      });
      return await this.#guarded({ ...attempt, invocation, scope: invocation.scope(signal) });
    } catch (error) {
      // The call was withdrawn, or the run is over, while it waited for something; or the session cannot be read.
      return plainOutcome(errorResponse(errorText(error)), false);
    }
  }

  async #guarded(attempt: Attempt): Promise<CallOutcome> {
    const { tool, args, scope, controller } = attempt;
    const { log, identity } = this.#options;
    if (tool.trusted) {
      log.info({ tool: tool.name, callSid: identity.callSid }, 'a trusted tool runs past the guards');
      return this.#run(attempt);
    }
    const verdict = await this.#guards.before({ tool: tool.name, args, ctx: scope.ctx }, controller.signal);
    if (verdict.kind === 'run') return this.#run({ ...attempt, passed: verdict.passed });
    if (verdict.kind === 'refused') return this.#outcome(attempt, verdict.response, false);
    return this.#outcome(attempt, await this.#after(attempt, verdict.response), false);
  }

  async #run(attempt: Attempt): Promise<CallOutcome> {
    const { tool, args, scope } = attempt;
    const read = tool.readArguments(structuredClone(args));
    if ('error' in read) return plainOutcome(badArguments(tool.name, read.error), false);
    let needsApproval: boolean;
    try {
      needsApproval = tool.approval(read.args, scope.ctx);
    } catch (error) {
      return plainOutcome(
        errorResponse(`${tool.name} was refused: its approval rule failed: ${errorText(error)}`),
        false,
      );
    }
    if (tool.kind === 'streaming') return this.#stream(attempt, read.args, needsApproval);
    if (needsApproval) return this.#waitForApproval(attempt);
    if (tool.kind === 'longRunning') return this.#runLong(attempt);
    const { response, ran } = await this.#handle(attempt);
    return this.#outcome(attempt, await this.#after(attempt, response), ran);
  }

  async #stream(attempt: Attempt, args: unknown, needsApproval: boolean): Promise<CallOutcome> {
    const { tool, invocation } = attempt;
    const { isLive } = this.#options;
    const why = needsApproval
      ? 'a streaming tool cannot wait for an approval'
      : isLive
        ? undefined
        : 'it streams, which needs a live conversation';
    if (why !== undefined) return plainOutcome(errorResponse(`${tool.name} was refused: ${why}.`), false);
    const response = await this.#streaming.start({
      tool,
      args,
      scope: (signal, input) => invocation.scope(signal, input),
    });
    return { ...this.#outcome(attempt, response, true), kind: 'streaming' };
  }

  #handle({ tool, args, scope, call, passed, controller }: Attempt) {
    const { handlers, session } = this.#options;
    return handlers.run({ tool, args, scope, callId: call.id, session, guards: passed, controller });
  }

  async #after({ tool, args, scope, controller }: Attempt, response: Response): Promise<Response> {
    if (tool.trusted) return response;
    return this.#guards.after({ tool: tool.name, args, ctx: scope.ctx }, response, controller.signal);
  }

  #outcome({ scope }: Attempt, response: Response, ran: boolean): CallOutcome {
    const { endInvocation } = scope.ctx;
    const actions = scope.takeActions();
    scope.close();
    return { kind: 'done', response, actions, ran, endInvocation };
  }

  async #waitForApproval(attempt: Attempt): Promise<CallOutcome> {
    const pending = await this.#add(attempt, 'approval', (decided) => this.#decided(attempt, decided));
    if ('error' in pending) return plainOutcome(pending, false);
    const message = 'A person has to approve it first. Say so; you will be told the outcome.';
    return this.#pendingOutcome(attempt, { status: 'pending', message });
  }

  async #runLong(attempt: Attempt): Promise<CallOutcome> {
    const pending = await this.#add(attempt, 'longRunning', (decided) => this.#decided(attempt, decided));
    if ('error' in pending) return plainOutcome(pending, false);
    void this.#finishLong(attempt, pending.id);
    return this.#pendingOutcome(attempt, {
      status: 'pending',
      message: 'It has been started and takes a while. Go on; you will be told the outcome.',
    });
  }

  /** A result settles the call; none, or one that says `pending`, leaves it to whoever decides. */
  async #finishLong(attempt: Attempt, id: string): Promise<void> {
    const { desk, listener, log } = this.#options;
    const { response, ran } = await this.#handle(attempt);
    const isOpen = response['status'] === 'pending' || ('result' in response && response['result'] === null);
    if (isOpen || this.#isClosed) return;
    const outcome = this.#outcome(attempt, await this.#after(attempt, response), ran);
    this.#pending.delete(id);
    try {
      if (await desk.settle(id)) listener.settled(attempt.call, outcome);
    } catch (error) {
      log.error({ tool: attempt.tool.name, cause: errorText(error) }, 'a pending call could not be settled');
      listener.settled(attempt.call, outcome);
    }
  }

  /** `POST /approvals/:id`, while this run lives. */
  async #decided({ call, tool, scope, controller }: Attempt, decided: DecidedCall): Promise<void> {
    const { desk, handlers, listener } = this.#options;
    this.#pending.delete(decided.id);
    if (decided.kind === 'longRunning') controller.abort(new Error('it was decided elsewhere'));
    // What the ledger guards may be tried again after a crash; anything else is rather lost than done twice.
    const isGuarded = tool.sideEffect !== undefined;
    if (!isGuarded && !(await desk.settle(decided.id))) return;
    const run = { tool, call: decided, guards: this.#guards, handlers, scope };
    const isApproval = decided.kind === 'approval';
    const outcome = await outcomeOfDecision({
      ...run,
      controller: isApproval ? controller : new AbortController(),
    });
    listener.settled(call, outcome);
    if (isGuarded) await desk.settle(decided.id);
  }

  async #add(
    { call, tool, args, passed, controller }: Attempt,
    kind: PendingCall['kind'],
    carryOut: (decided: DecidedCall) => Promise<void>,
  ): Promise<{ readonly id: string } | { readonly error: string }> {
    const { desk, session, identity, clock, log } = this.#options;
    const { callSid, invocationId } = identity;
    const id = newId();
    const pending: PendingCall = {
      id,
      session,
      callSid,
      invocationId,
      callId: call.id,
      tool: tool.name,
      args,
      kind,
      guards: passed,
      requestedAtMs: clock.wallMs(),
    };
    try {
      await desk.add(pending, carryOut);
    } catch (error) {
      log.error({ tool: tool.name, cause: errorText(error) }, 'a pending call could not be kept');
      return { error: `${tool.name} was refused: it cannot be kept until it is decided.` };
    }
    this.#pending.set(id, controller);
    if (this.#isClosed) desk.leave(id);
    return { id };
  }

  /** Answered now; the scope lives on until it is settled. */
  #pendingOutcome({ scope }: Attempt, response: Response): CallOutcome {
    return { kind: 'pending', response, actions: scope.takeActions(), ran: false, endInvocation: false };
  }
}

/** What the model is told of a tool. */
export function declarationOf({ name, description, parametersJsonSchema }: Tool): FunctionDeclaration {
  return { name, description, parametersJsonSchema };
}

function unknownTool(name: string): Response {
  const error = `There is no tool named ${name}.`;
  return { ...errorResponse(error), message: 'Tell the caller that you cannot do that.' };
}

function plainOutcome(response: Response, ran: boolean): CallOutcome {
  return {
    kind: 'done',
    response,
    actions: { stateDelta: {}, artifactDelta: {} },
    ran,
    endInvocation: false,
  };
}

/** Aborts with `signal`, or by itself when the time is up. */
function linked(signal: AbortSignal): AbortController {
  const controller = new AbortController();
  if (signal.aborted) controller.abort(signal.reason);
  else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  return controller;
}
