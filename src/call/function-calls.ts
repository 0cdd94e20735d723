/**
 * What the agent does while it talks: the model's calls on their way to its tools and the answers on their way back, and
 * what tools have to say by themselves, which waits for a pause. Which tools there are, and what they do, is decided
 * behind `ToolWork`; whether the call goes on is the call's business.
 */
import type { Agent } from '../agent/agent.js';
import type { ToolCallControl } from '../agent/tool-context.js';
import type { CallTap } from '../call-tap.js';
import type { CallTime } from '../clock.js';
import type { Event } from '../event/event.js';
import type { RunEvents } from '../event/run-events.js';
import type { FunctionCall, FunctionResponse, LiveClose, LiveConnection } from '../model/live-connection.js';
import type { Log } from '../observe/log.js';
import { END_CALL, endCall, stopStreaming } from '../tool/built-in-tools.js';
import { ModelUpdates } from '../tool/model-updates.js';
import type { RunSecrets } from '../tool/run-secrets.js';
import { ToolCalls } from '../tool/tool-calls.js';
import type { ToolWork, WorkListener } from '../tool/tool-work.js';
import {
  TOOL_FOLLOW_UP_MAX_MS,
  UPDATE_ANSWER_MAX_MS,
  UPDATE_INTERRUPTS_MIN_MS,
  UPDATE_PAUSE_MS,
} from '../tool-limits.js';
import type { CallIdentity } from './call-identity.js';
import type { OpenTools } from './call-deps.js';
import type { Conversation } from './conversation.js';
import { toldByTool } from './line-texts.js';

export interface FunctionCallsOptions {
  readonly agent: Agent;
  readonly identity: CallIdentity;
  /** Committed before this run. */
  readonly history: readonly Event[];
  readonly openTools: OpenTools;
  readonly secrets: RunSecrets;
  readonly conversation: Conversation;
  readonly run: RunEvents;
  readonly model: () => LiveConnection | undefined;
  readonly clock: CallTime;
  /** The call is neither beginning nor ending. */
  readonly isLive: () => boolean;
  readonly tap: CallTap | undefined;
  readonly log: Log;
  /** Runs it as one event of the call's mailbox; what it throws ends the call. */
  readonly post: (happens: () => void) => void;
  readonly events: FunctionCallsEvents;
}

export interface FunctionCallsEvents {
  /** The agent wants to hang up; `spoken`: it has said something that counts as its goodbye. */
  onAgentEnds(spoken: boolean): void;
  /** The agent wants the caller connected with a human; the farewell follows. */
  onAgentTransfers(): void;
  /** A tool has ended the conversation. */
  onInvocationEnds(): void;
  /** The model was told something that a tool says by itself. */
  onUpdateTold(): void;
  /** Why it cannot be, for the model; undefined where it can. */
  whyNoTransfer(): string | undefined;
}

const UPDATE_DROPPED = 'too much waits for the model to be told; something was dropped';

export class FunctionCalls {
  readonly #options: FunctionCallsOptions;
  readonly #calls: ToolCalls;
  readonly #updates = new ModelUpdates();
  /** What a tool wants of the line; carried out behind the answer. */
  #wish: 'hangUp' | 'transfer' | undefined;
  /** A message of the model is being handled: what is known at once happens in it. */
  #isDispatching = false;
  /** What the model was given last to speak about: until it has begun to, or its time is over. */
  #told: { readonly messagesBegun: number; readonly untilMs: number } | undefined;
  #interruptedAtMs = -Infinity;

  constructor(options: FunctionCallsOptions) {
    this.#options = options;
    const { agent, run, log, tap, events } = options;
    const { autoExecuteTools, autoRespondTools, toolResponses } = agent.runConfig ?? {};
    this.#calls = new ToolCalls({
      host: {
        events: run,
        answer: (responses) => this.#answer(responses),
        update: (update) => {
          const dropped = this.#updates.add(update);
          if (dropped !== undefined)
            log.warn({ callSid: options.identity.callSid, tool: dropped.replaces }, UPDATE_DROPPED);
          this.tellUpdate();
        },
        forgetUpdate: (replaces) => this.#updates.forget(replaces),
        endInvocation: () => events.onInvocationEnds(),
        enter: (happens) => this.#enter(happens),
      },
      work: (listener) => this.#open(listener),
      autoExecute: autoExecuteTools ?? true,
      autoRespond: autoRespondTools ?? true,
      responses: toolResponses ?? 'group',
      tap: tap?.tools,
      log,
    });
  }

  get work(): ToolWork {
    return this.#calls.work;
  }

  get waiting(): { readonly functionCalls: number; readonly updates: number } {
    return { functionCalls: this.#calls.open, updates: this.#updates.size };
  }

  /** Something that the caller waits for goes on behind its answer. */
  get isWorkUnderWay(): boolean {
    return this.#calls.isWorkUnderWay;
  }

  /** One group of calls, in the call's mailbox. */
  onToolCall(functionCalls: readonly FunctionCall[]): void {
    const { conversation } = this.#options;
    const spoken = this.#hasSpoken;
    conversation.onToolCall(functionCalls.some(({ name }) => this.#isSpokenTo(name)));
    this.#isDispatching = true;
    const { post } = this.#options;
    this.#calls.dispatch(functionCalls).catch((error: unknown) =>
      post(() => {
        throw error;
      }),
    );
    this.#isDispatching = false;
    this.#hold();
    this.#fulfil(spoken);
  }

  onToolCallCancellation(ids: readonly string[]): void {
    this.#calls.withdraw(ids);
    this.#hold();
  }

  /** A connection to the model is there. */
  onModelReady(): void {
    this.#hold();
  }

  /** The connection is gone: the next one knows nothing of these calls, and what they come to is told to it as text, at a pause. */
  onModelGone(): void {
    this.#calls.forgetIds();
    this.#hold();
  }

  /** The model waits for a result. */
  get awaitsAnswer(): boolean {
    return this.#calls.awaitsAnswer;
  }

  /** Function calls whose results it is still to be told in words. */
  get untold(): ReadonlySet<string> {
    return this.#updates.callIds;
  }

  /** Something is being carried out that the caller waits for. */
  get isCarryingOut(): boolean {
    return this.#calls.isCarryingOut;
  }

  /** Nobody speaks, nothing is being carried out, and nothing that was told is still to be spoken about. */
  get isPause(): boolean {
    return !this.#calls.isCarryingOut && !this.#options.conversation.waits.isDue && this.#isPause();
  }

  /** The model is gone, and not by our doing: what has been begun is finished first, then the author is told, once. */
  onModelLost({ code, reason }: LiveClose): void {
    const { agent, identity, secrets, log } = this.#options;
    const { onDisconnect } = agent;
    if (onDisconnect === undefined) return;
    this.#calls
      .idle()
      .then(() => onDisconnect(identity, { code, reason }))
      .catch((error: unknown) => {
        log.error(
          { callSid: identity.callSid, pii: { cause: secrets.errorText(error) } },
          'the agent’s onDisconnect failed',
        );
      });
  }

  /** The caller has said or done something new. */
  onCallerTurn(): void {
    this.#calls.onCallerTurn();
  }

  /** Twice a second, and whenever a pause may have begun: what waits is told if neither side is speaking, and nobody is
   * saying goodbye. */
  tellUpdate(): void {
    const { conversation, clock, model, isLive, events } = this.#options;
    if (!isLive()) return;
    if (this.#calls.awaitsAnswer) {
      conversation.noteActivity();
      // A model that waits for the answer takes nothing else until it has it.
      if (model()?.capabilities.toolBehavior !== 'NON_BLOCKING') return;
    }
    if (this.#updates.size === 0 || model() === undefined) return;
    const update = this.#updates.take(this.#isPause(), this.#mayInterrupt());
    if (update === undefined) return;
    this.#given(UPDATE_ANSWER_MAX_MS);
    if (update.interrupts) {
      this.#interruptedAtMs = clock.nowMs();
      conversation.giveWay();
    }
    // Who asked for something waits for what came of it; a report comes unasked.
    if (update.callId === undefined) conversation.tell(toldByTool(update.text));
    else conversation.ask(toldByTool(update.text));
    events.onUpdateTold();
  }

  /** The run is over. Resolves when nothing of its tools is left. */
  close(): Promise<void> {
    this.#updates.clear();
    return this.#calls.close();
  }

  #open(listener: WorkListener): ToolWork {
    const { agent, identity, history, openTools, secrets, run, events } = this.#options;
    const callControl: ToolCallControl = {
      hangUp: () => this.#want('hangUp', undefined),
      transfer: () => this.#want('transfer', events.whyNoTransfer()),
    };
    const streaming = stopStreaming(agent);
    return openTools({
      agent,
      identity,
      builtIn: [endCall(callControl), ...(streaming === undefined ? [] : [streaming])],
      history,
      callControl,
      isLive: true,
      secrets,
      listener,
      listen: (hear) => run.stream.listen(hear),
    });
  }

  /** The agent has said something in this turn, or is still heard. */
  get #hasSpoken(): boolean {
    const { conversation } = this.#options;
    return conversation.hasSpokenThisTurn || !conversation.isSilent;
  }

  #want(wish: 'hangUp' | 'transfer', why: string | undefined): ReturnType<ToolCallControl['hangUp']> {
    if (why !== undefined) return { kind: 'unavailable', why };
    this.#wish = wish;
    // What the model's message leads to at once needs no telling: a replay does the same with it.
    if (!this.#isDispatching) this.#options.tap?.tools?.wanted(wish);
    return { kind: 'accepted' };
  }

  #enter(happens: () => void): void {
    const { post, clock } = this.#options;
    clock.enter();
    post(() => {
      const spoken = this.#hasSpoken;
      happens();
      this.#hold();
      this.#fulfil(spoken);
    });
  }

  /** What the model should know goes with the first result. */
  #answer(responses: readonly FunctionResponse[]): void {
    const { conversation, model } = this.#options;
    const note = conversation.takeNote();
    const isScheduled = model()?.capabilities.responseScheduling === true;
    const told = responses.map((one, index) => ({
      ...one,
      ...(index === 0 && note !== undefined && { response: withNote(one.response, note) }),
      ...(isScheduled && this.#isSaid(one) && { scheduling: 'SILENT' as const }),
    }));
    conversation.onAnswered();
    model()?.sendToolResponse(told);
    // Nothing else is said to it before it has spoken to a result.
    if (told.some((one) => one.scheduling === undefined && this.#isSpokenTo(one.name))) {
      this.#given(TOOL_FOLLOW_UP_MAX_MS);
      conversation.waits.onDue();
    }
  }

  #given(waitMs: number): void {
    const { clock, conversation } = this.#options;
    this.#told = { messagesBegun: conversation.messagesBegun, untilMs: clock.nowMs() + waitMs };
  }

  /** The goodbye has been said, so that a word about the result would be a second one. */
  #isSaid({ name, response }: FunctionResponse): boolean {
    return name === END_CALL && this.#hasSpoken && !('error' in response);
  }

  /** Whether the model will have something to say when it gets the result: what it has only begun needs no words. */
  #isSpokenTo(name: string): boolean {
    const { autoExecuteTools = true, autoRespondTools = true } = this.#options.agent.runConfig ?? {};
    const tool = this.#options.agent.tools?.find((one) => one.name === name);
    const isBegun = tool !== undefined && tool.kind !== 'function';
    return autoExecuteTools && autoRespondTools && name !== END_CALL && !isBegun;
  }

  /** A model that is cut off by input during a call gets none until the call is answered. */
  #hold(): void {
    const { conversation, model } = this.#options;
    const takesAudio = model()?.capabilities.audioDuringBlockingTools ?? true;
    conversation.holdInput(!takesAudio && this.#calls.awaitsAnswer);
    if (!this.#calls.awaitsAnswer) conversation.onToolsAnswered();
  }

  #fulfil(spoken: boolean): void {
    const { events } = this.#options;
    const wish = this.#wish;
    this.#wish = undefined;
    if (wish === 'hangUp') events.onAgentEnds(spoken);
    else if (wish === 'transfer') events.onAgentTransfers();
  }

  #mayInterrupt(): boolean {
    return this.#options.clock.nowMs() - this.#interruptedAtMs >= UPDATE_INTERRUPTS_MIN_MS;
  }

  #isPause(): boolean {
    const { conversation, clock } = this.#options;
    const nowMs = clock.nowMs();
    if (this.#told !== undefined) {
      const isAnswered = conversation.messagesBegun > this.#told.messagesBegun;
      if (!isAnswered && nowMs < this.#told.untilMs) return false;
      this.#told = undefined;
    }
    return conversation.turn === 'listening' && nowMs - conversation.spokenAtMs() >= UPDATE_PAUSE_MS;
  }
}

/** Under a key that the tool's own result does not have. */
function withNote(response: FunctionResponse['response'], note: string): FunctionResponse['response'] {
  let key = 'note';
  while (key in response) key = `_${key}`;
  return { ...response, [key]: note };
}
