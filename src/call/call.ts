/**
 * One phone call, from its first webhook to `ended`: owns the state, the one mailbox, the timers, the model connection
 * and the line, and has carried out what `transition` decides. Sound does not pass through the mailbox; the
 * conversation joins it. What a listener throws ends this call with an apology and no other.
 */
import type { CallOrder, CallTap, SocketTap, WebhookRequest } from '../call-tap.js';
import type { CallView } from '../console/call-view.js';
import { errorText } from '../errors.js';
import type { Event } from '../event/event.js';
import type { RunEvents } from '../event/run-events.js';
import type { CallSid } from '../ids.js';
import { MAILBOX_MAX, TICK_MS } from '../limits.js';
import { WAIT_LOOK_MS } from '../link-limits.js';
import type { LiveConnection } from '../model/live-connection.js';
import type {
  AcceptedStream,
  EarlyMessages,
  MediaStream,
  MediaStreamStart,
} from '../telephony/media-stream.js';
import type { VoiceAnswer } from '../telephony/voice-door.js';
import type { CallClock } from './call-clock.js';
import type { CallDeps } from './call-deps.js';
import type { CallEffects } from './call-effects.js';
import { decidedReason } from './call-ending.js';
import type { CallIdentity } from './call-identity.js';
import type { CallLine } from './call-line.js';
import { type CallSetUp, type CallTimerName, makeCallParts } from './call-parts.js';
import { type CallEvent, type CallState, INITIAL_CALL_STATE, transition } from './call-state.js';
import type { CallTimers } from './call-timers.js';
import { CallTrail } from './call-trail.js';
import type { Conversation } from './conversation.js';
import type { CostWatch } from './cost-watch.js';
import { type EndReason, EXPLAINED_ENDS, FAILED_ENDS } from './end-reason.js';
import type { FunctionCalls } from './function-calls.js';
import type { HeardHistory } from './heard-history.js';
import type { IdleWatch } from './idle-watch.js';
import { keyPressed } from './line-texts.js';
import { liveSetup } from './live-setup.js';
import { Mailbox } from './mailbox.js';
import { type ConversationEvent, liveListener } from './live-events.js';
import type { ModelLink } from './model-link.js';
import type { RefusedTurns } from './refused-turns.js';

export interface CallOptions extends CallSetUp {
  /** Called once, when nothing of the call is alive any more. */
  readonly onEnded: (call: Call) => void;
}

export class Call {
  readonly identity: CallIdentity;
  readonly #clock: CallClock;
  readonly #tap: CallTap | undefined;
  readonly #run: RunEvents;
  readonly #options: CallOptions;
  readonly #deps: CallDeps;
  readonly #conversation: Conversation;
  readonly #mailbox: Mailbox<CallEvent | ConversationEvent>;
  readonly #timers: CallTimers<CallTimerName>;
  readonly #idle: IdleWatch;
  #state: CallState = INITIAL_CALL_STATE;
  readonly #line: CallLine;
  /** The model was asked for. */
  #wasAsked = false;
  #isRemembering = false;
  readonly #link: ModelLink;
  readonly #functionCalls: FunctionCalls;
  readonly #refusedTurns: RefusedTurns;
  readonly #costs: CostWatch;
  readonly #effects: CallEffects;
  readonly #heard: HeardHistory;
  readonly #announcedWallMs: number;
  #endedAtMs: number | undefined;

  constructor(options: CallOptions) {
    const { deps, identity } = options;
    this.#options = options;
    this.#deps = deps;
    this.identity = identity;
    this.#announcedWallMs = deps.clock.wallMs();
    this.#mailbox = new Mailbox({
      handle: (event) => this.#handle(event),
      eventsMax: MAILBOX_MAX,
      onOverflow: () => this.#finish('internal_error'),
    });
    const parts = makeCallParts(options, {
      isLive: () => this.isLive,
      isEnding: () => this.isEnding,
      post: (event) => this.post(event),
      apply: (event) => this.#apply(event),
      guard: (run) => this.guard(run),
      fault: (error) => this.fault(error),
      onTimer: (name) => this.#onTimer(name),
      onModelReady: (model) => this.#onModelReady(model),
      finish: (reason) => this.#finish(reason),
    });
    this.#clock = parts.clock;
    this.#tap = parts.tap;
    this.#run = parts.run;
    this.#timers = parts.timers;
    this.#conversation = parts.conversation;
    this.#link = parts.link;
    this.#idle = parts.idle;
    this.#line = parts.line;
    this.#functionCalls = parts.functionCalls;
    this.#refusedTurns = parts.refusedTurns;
    this.#costs = parts.costs;
    this.#effects = parts.effects;
    this.#heard = parts.heard;
  }

  get callSid(): CallSid {
    return this.identity.callSid;
  }

  /** The one-time token of the next media stream; another one after it was used. */
  get token(): string {
    return this.#line.token;
  }

  get isEnding(): boolean {
    return this.#state.name === 'ending' || this.#state.name === 'ended';
  }

  /** It has begun, and is not about to end. */
  get isLive(): boolean {
    return this.#state.name === 'live';
  }

  /** A model is connected or connecting for it and no stream has opened yet. */
  get isPrewarm(): boolean {
    return this.#state.name === 'announced' && (this.#link.isAlive || this.#isRemembering);
  }

  get hasStream(): boolean {
    return this.#line.isOpen;
  }

  get model(): LiveConnection | undefined {
    return this.#link.model;
  }

  /** A connection to the model is on its way, or a try is waited for. */
  get isConnecting(): boolean {
    return this.#link.model === undefined && this.#link.isAlive;
  }

  /** Whether a typed text can be taken: too much must not wait for the model. */
  get mayType(): boolean {
    return this.#state.name !== 'ended' && this.#conversation.mayType;
  }

  /** Tools that are shown what the caller shows get a copy. */
  onImage(mimeType: string, image: Uint8Array): boolean {
    this.#functionCalls.work.onImage(mimeType, image);
    return this.model?.sendImage(mimeType, image) ?? false;
  }

  /** Function calls without a result, and what waits for a pause to be told. */
  get waiting(): { readonly functionCalls: number; readonly updates: number } {
    return this.#functionCalls.waiting;
  }

  get timerCount(): number {
    return this.#clock.pendingTimers;
  }

  /** What of a recorded call outlives it. */
  get trail(): CallTrail | undefined {
    return this.#tap && new CallTrail(this.#clock, this.#tap);
  }

  /** Ended for a reason that the caller has not been told. */
  get owesApology(): boolean {
    return (
      this.#state.name === 'ended' &&
      EXPLAINED_ENDS.has(this.#state.reason) &&
      !this.#conversation.wasExplained
    );
  }

  get endReason(): EndReason | undefined {
    return this.#state.name === 'ended' ? this.#state.reason : undefined;
  }

  /** It is over here, or as good as, and the caller is still on the line and was told nothing: another server may go on. */
  get leavesCaller(): boolean {
    // One that was taken over was under way before its first stream here.
    const isUnderWay = this.#line.firstOpenedAtMs !== undefined || (this.#options.history ?? []).length > 0;
    if (!isUnderWay || this.identity.callDirection === 'web') return false;
    const reason = decidedReason(this.#state);
    if (reason === 'carrier_lost' || reason === 'no_stream') return true;
    return reason === 'server_draining' && !this.#line.wasCut && !this.#conversation.wasExplained;
  }

  /** The webhook was answered: the model is connected now, so that it is ready when the stream opens. */
  announce(options: { prewarm: boolean }): void {
    const { appName: agent, userId } = this.identity;
    this.#deps.log.info({ callSid: this.callSid, agent, pii: { userId } }, 'call announced');
    this.#effects.arm('noStream');
    if (options.prewarm) this.#remember();
  }

  /** Hands in one control event; it is handled now, or after the one that is being handled. */
  post(event: CallEvent | ConversationEvent): void {
    this.#mailbox.post(event);
  }

  /** A webhook about the call, or an order, has come in: what it leads to happens now. */
  enter(request?: WebhookRequest): void {
    this.#clock.enter();
    if (request !== undefined) this.#tap?.webhook(request);
  }

  /** The answer to the webhook of last `enter`. */
  answered(status: number, xml: string): void {
    this.#tap?.webhookAnswered(status, xml);
  }

  /** What an operator, or the server itself, wants of the call. */
  order(order: CallOrder): void {
    this.#clock.enter();
    this.#tap?.ordered(order);
    if (order === 'hangup') this.post({ type: 'operatorHangsUp' });
    else if (order === 'drainDeadline')
      this.post({ type: 'drainDeadline', handsOver: this.identity.callDirection !== 'web' });
    // The first reason that was decided stands.
    else this.#finish(decidedReason(this.#state) ?? 'server_draining');
  }

  /** What follows the stream, asked by the carrier at `/twilio/after`. */
  answerAfterStream(): VoiceAnswer {
    if (this.isEnding) {
      const owed = this.#state.name === 'ending' && EXPLAINED_ENDS.has(this.#state.reason);
      return owed && !this.#conversation.wasExplained ? { kind: 'apology' } : { kind: 'hangup' };
    }
    if (this.#line.mayReturn()) return { kind: 'stream', token: this.token };
    this.#finish('carrier_lost');
    return { kind: 'apology' };
  }

  /** A media stream with a well-formed `start`; refused unless it brings this call's unused token. */
  acceptStream(
    start: MediaStreamStart,
    stream: MediaStream,
    early: EarlyMessages,
  ): AcceptedStream | { readonly refused: string } {
    if (this.isEnding) return { refused: 'the call is ending' };
    if (!this.#line.redeem(start.customParameters['token'])) {
      return { refused: 'the token is wrong or used' };
    }
    this.#clock.enter();
    return this.#openLine(stream, this.#tap?.carrierOpened(early));
  }

  /** A stream that whoever hands it in vouches for: a web client's. Takes the place of one that is open. */
  attachStream(stream: MediaStream): AcceptedStream | { readonly refused: string } {
    if (this.isEnding) return { refused: 'the conversation is ending' };
    if (!this.#line.mayOpen) return { refused: 'the connection was lost too often' };
    this.#clock.enter();
    return this.#openLine(stream, undefined);
  }

  #openLine(stream: MediaStream, tap: SocketTap | undefined): AcceptedStream {
    // Beyond the cap on prewarms the model is connected only now that the caller is there.
    if (this.#state.name === 'announced' && !this.#wasAsked) this.#remember();
    const listener = this.#line.open(stream);
    this.post({ type: 'streamStarted' });
    return { listener, scope: { clock: this.#clock, tap } };
  }

  view(): CallView {
    const untilMs = this.#endedAtMs ?? this.#clock.realMs();
    return {
      callSid: this.callSid,
      agent: this.identity.appName,
      callDirection: this.identity.callDirection,
      state: this.#state.name,
      turn: this.#conversation.turn,
      endReason: this.#state.name === 'ended' ? this.#state.reason : null,
      startedAt: new Date(this.#announcedWallMs).toISOString(),
      durationMs: Math.round(untilMs - (this.#line.firstOpenedAtMs ?? untilMs)),
      messages: this.#conversation.messages(),
    };
  }

  /** Runs something that must not take the server with it: a throw ends this call. */
  guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fault(error);
    }
  }

  /** Something inside threw: the caller hears an apology, other calls nothing. */
  fault(error: unknown): void {
    this.#deps.log.error({ callSid: this.callSid, cause: errorText(error) }, 'a fault inside the call');
    try {
      this.post({ type: 'fault' });
    } catch {
      this.#finish('internal_error');
    }
  }

  // --- The mailbox ------------------------------------------------------------------------------------------------

  #handle(event: CallEvent | ConversationEvent): void {
    if (this.#state.name === 'ended') return;
    switch (event.type) {
      case 'mark':
        return this.#conversation.onMark(event.name);
      case 'dtmf':
        this.#onCallerTurn();
        this.#heard.pressed(event.digit);
        this.#conversation.onKey(keyPressed(event.digit));
        return this.#apply({ type: 'interrupted' }); // Who presses a key into a goodbye is still there.
      case 'typed':
        this.#onCallerTurn();
        this.#conversation.onTyped(event.text);
        return this.#apply({ type: 'interrupted' });
      case 'inputTranscription':
        this.#onCallerTurn();
        if (this.#conversation.onInputTranscription(event.text)) this.#apply({ type: 'interrupted' });
        return;
      case 'outputTranscription':
        return this.#conversation.onOutputTranscription(event.text);
      case 'generationComplete':
        return this.#onTurnOver(() => this.#conversation.onGenerationComplete());
      case 'turnComplete':
        return this.#onTurnComplete(event.reason);
      case 'toolCall':
        return this.#functionCalls.onToolCall(event.functionCalls);
      case 'toolCallCancellation':
        return this.#functionCalls.onToolCallCancellation(event.ids);
      case 'toolHappened':
        return event.run();
      case 'usageMetadata':
        return this.#run.used(event.usage);
      default:
        return this.#apply(event);
    }
  }

  #onCallerTurn(): void {
    this.#functionCalls.onCallerTurn();
    this.#costs.onAsked();
  }

  #onTurnOver(run: () => void): void {
    const spoken = this.#conversation.hasSpokenThisTurn;
    run();
    if (spoken) this.#conversation.waits.onWholeAnswer();
    this.#apply({ type: 'agentTurnOver', spoken, heard: this.#conversation.isSilent });
    this.#functionCalls.tellUpdate();
  }

  #onTurnComplete(reason: string | undefined): void {
    const wasHeard = this.#conversation.hasSpokenThisTurn || this.#conversation.isTurnCut;
    this.#onTurnOver(() => this.#conversation.onTurnComplete());
    if (!wasHeard) this.#conversation.waits.onEmptyTurn();
    const mayExplain = this.#state.name === 'live' && this.#line.isOpen && !wasHeard;
    this.#refusedTurns.onTurnComplete(reason, mayExplain);
  }

  #apply(event: CallEvent): void {
    const before = this.#state;
    const { state, effects } = transition(before, event);
    this.#state = state;
    if (state.name !== before.name) {
      this.#deps.log.debug({ callSid: this.callSid, from: before.name, to: state.name }, 'call state');
    }
    if (event.type === 'streamClosed' && state.name !== 'ended') this.#line.drop();
    for (const effect of effects) this.#effects.carryOut(effect);
  }

  #onTimer(name: CallTimerName): void {
    this.guard(() => {
      if (name === 'wait') return this.#lookAfterCaller();
      if (name !== 'tick') return this.post({ type: 'timer', timer: name });
      this.#timers.arm('tick', TICK_MS);
      this.#conversation.onTick();
      if (this.#state.name !== 'live') return;
      this.#functionCalls.tellUpdate();
      this.#lookAfterCaller();
      this.#link.onTick();
      if (this.#costs.isDue) this.post({ type: 'costLimit' });
    });
  }

  /** Whoever waits is not left in silence. */
  #lookAfterCaller(): void {
    if (!this.isLive) return;
    const { waits } = this.#conversation;
    const { awaitsAnswer, isCarryingOut } = this.#functionCalls;
    const step = waits.step({ isToolOut: awaitsAnswer, isWorkOut: isCarryingOut });
    if (step !== undefined) this.#effects.onWait(step);
    if (waits.isPressing(isCarryingOut)) this.#timers.arm('wait', WAIT_LOOK_MS);
  }

  // --- Line and model ----------------------------------------------------------------------------------------------

  #connect(remembered: string | undefined): void {
    this.#isRemembering = false;
    const { agent, history = [] } = this.#options;
    const isWeb = this.identity.callDirection === 'web';
    this.#link.connect({
      makeSetup: (again) =>
        liveSetup(agent, this.identity, {
          remembered,
          isWeb,
          history: again === undefined ? history : this.#past(again.since),
          again,
        }),
      makeListener: (onClose) => liveListener(this, this.#conversation, onClose),
      openScope: () => ({ clock: this.#clock, tap: this.#tap?.modelConnecting() }),
    });
  }

  /** What was said and done behind a position, as far as the model is not told of it otherwise. */
  #past(since: number): Event[] {
    return this.#heard.events(since, {
      textOf: (msg) => this.#conversation.textOf(msg),
      untold: this.#functionCalls.untold,
    });
  }

  /** What is remembered of the caller stands in the model's instruction: it is looked up first, where anything is kept. */
  #remember(): void {
    this.#wasAsked = true;
    this.#isRemembering = true;
    const remembered = this.#deps.recall?.(this.identity);
    if (!(remembered instanceof Promise)) return this.#connect(remembered);
    void remembered.then((text) => {
      this.#clock.enter();
      this.#tap?.tools?.recalled(text);
      this.guard(() => {
        if (this.#state.name !== 'ended') this.#connect(text);
      });
    });
  }

  #onModelReady(model: LiveConnection): void {
    this.guard(() => {
      this.#conversation.attachModel(model);
      this.#functionCalls.onModelReady();
      this.post({ type: 'modelReady' });
    });
  }

  onGoAway(timeLeftMs: number): void {
    this.#link.onGoAway(timeLeftMs);
  }

  onSessionResumptionUpdate(newHandle: string | undefined, resumable: boolean): void {
    this.#link.onSessionResumptionUpdate(newHandle, resumable);
  }

  /** Nothing of the call stays alive behind this: timers, model, stream, sound. */
  #finish(reason: EndReason): void {
    if (this.#endedAtMs !== undefined) return;
    this.#endedAtMs = this.#clock.nowMs();
    this.#state = { name: 'ended', reason };
    this.#idle.stop();
    this.#link.close();
    const stream = this.#line.end();
    void this.#functionCalls.close();
    this.#conversation.close();
    const failure = FAILED_ENDS[reason];
    if (failure !== undefined) this.#run.failed(reason, failure, { fatal: true });
    this.#run.over();
    stream?.close();
    this.#timers.disarmAll();
    const durationMs = this.#endedAtMs - (this.#line.firstOpenedAtMs ?? this.#endedAtMs);
    this.#deps.observer.onCallEnded(this.identity.callDirection, reason, durationMs);
    this.#deps.log.info(
      { callSid: this.callSid, endReason: reason, durationMs: Math.round(durationMs) },
      'call ended',
    );
    this.#tap?.finished(reason, this.#conversation.messages());
    this.#options.onEnded(this);
  }
}
