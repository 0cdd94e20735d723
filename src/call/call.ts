/**
 * One phone call, from its first webhook to `ended`: owns the state, the one mailbox, the timers, the model connection
 * and the carrier's stream, and carries out what `transition` decides. Sound does not pass through the mailbox; the
 * conversation joins it. What a listener throws ends this call with an apology and no other.
 */
import type { Agent } from '../agent/agent.js';
import { RunEvents } from '../event/run-events.js';
import type { CallOrder, CallTap, SocketTap, WebhookRequest } from '../call-tap.js';
import type { CallView } from '../console/call-view.js';
import { errorText } from '../errors.js';
import type { CallSid } from '../ids.js';
import type { Event } from '../event/event.js';
import { GREETING_START_MAX_MS, MAILBOX_MAX, TICK_MS } from '../limits.js';
import type { FunctionCall, LiveClose, LiveConnection } from '../model/live-connection.js';
import type {
  AcceptedStream,
  EarlyMessages,
  MediaStream,
  MediaStreamStart,
} from '../telephony/media-stream.js';
import type { VoiceAnswer } from '../telephony/voice-door.js';
import { answerTools } from './built-in-tools.js';
import { CallClock } from './call-clock.js';
import { delayOf } from './call-delays.js';
import type { CallDeps } from './call-deps.js';
import { carrierListener } from './carrier-events.js';
import {
  type CallEffect,
  type CallEvent,
  type CallState,
  type CallTimer,
  INITIAL_CALL_STATE,
  transition,
} from './call-state.js';
import { CallLine } from './call-line.js';
import { CallTimers } from './call-timers.js';
import { CallTrail } from './call-trail.js';
import { Conversation } from './conversation.js';
import type { CallIdentity } from './call-identity.js';
import { type EndReason, EXPLAINED_ENDS } from './end-reason.js';
import { IdleWatch } from './idle-watch.js';
import { CALL_MUST_END, callerSilent, keyPressed } from './line-texts.js';
import { liveSetup } from './live-setup.js';
import { Mailbox } from './mailbox.js';
import { type ConversationEvent, liveListener } from './live-events.js';
import { ModelLink } from './model-link.js';

export interface CallOptions {
  readonly identity: CallIdentity;
  /** The webhook that announced it; a call from the web has none. */
  readonly request?: WebhookRequest;
  /** What was said in the same session before. */
  readonly history?: readonly Event[];
  readonly agent: Agent;
  readonly deps: CallDeps;
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
  readonly #timers: CallTimers<CallTimer | 'tick' | 'greetingStart'>;
  readonly #idle: IdleWatch;
  #state: CallState = INITIAL_CALL_STATE;
  readonly #line = new CallLine();
  #wasConnecting = false;
  readonly #link: ModelLink;
  readonly #announcedWallMs: number;
  #endedAtMs: number | undefined;

  constructor(options: CallOptions) {
    const { deps, identity, agent, history = [] } = options;
    this.#options = options;
    this.#deps = deps;
    this.identity = identity;
    this.#announcedWallMs = deps.clock.wallMs();
    this.#clock = new CallClock(deps.clock);
    this.#tap = deps.openTap?.(this.identity, this.#clock);
    if (this.#tap !== undefined) this.#clock.onStall = (dueMs, nowMs) => this.#tap?.stalled(dueMs, nowMs);
    if (options.request !== undefined) this.#tap?.webhook(options.request);
    this.#run = new RunEvents({
      invocationId: this.identity.invocationId,
      agentName: agent.name,
      clock: { nowMs: () => this.#clock.realMs(), wallMs: () => this.#clock.wallMs() },
      onFault: (error) =>
        deps.log.error({ callSid: this.callSid, cause: errorText(error) }, 'a listener of the run failed'),
    });
    deps.openRun?.(this.identity, this.#run.stream, history);
    this.#mailbox = new Mailbox({
      handle: (event) => this.#handle(event),
      eventsMax: MAILBOX_MAX,
      onOverflow: () => this.#finish('internal_error'),
    });
    this.#timers = new CallTimers(this.#clock, (name) => this.#onTimer(name));
    this.#conversation = new Conversation({
      clock: this.#clock,
      observer: deps.observer,
      prompts: deps.prompts,
      greetingProtectionMs: deps.greetingProtectionMs,
      run: this.#run,
      isContinued: history.length > 0,
      events: {
        onAgentSpeaks: () => this.post({ type: 'agentSpeaks' }),
        onPlayoutDrained: () => this.post({ type: 'playoutDrained' }),
      },
    });
    this.#link = new ModelLink({
      callSid: identity.callSid,
      connectLive: deps.connectLive,
      log: deps.log,
      onReady: (model) => this.#onModelReady(model),
      onFailed: () => this.guard(() => this.post({ type: 'modelFailed' })),
      onGone: (lost) => {
        this.#conversation.detachModel(lost);
        if (!lost) return;
        this.#run.failed('model_lost', 'The connection to the model was lost.', { fatal: true });
        this.post({ type: 'modelClosed' });
      },
    });
    this.#idle = new IdleWatch({
      clock: this.#clock,
      repromptMs: deps.idleRepromptMs,
      callerActiveAtMs: () => this.#conversation.callerActiveAtMs(),
      activeAtMs: () => this.#conversation.activeAtMs(),
      onReprompt: () => {
        if (this.#state.name === 'live') this.#conversation.ask(callerSilent(deps.idleRepromptMs / 1000));
      },
      // Where the model has never said a word, it is not the caller who is silent.
      onIdle: () => this.post({ type: this.#conversation.messagesBegun === 0 ? 'modelMute' : 'callerIdle' }),
    });
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

  /** A model is connected or connecting for it and no stream has opened yet. */
  get isPrewarm(): boolean {
    return this.#state.name === 'announced' && this.#link.isAlive;
  }

  get hasStream(): boolean {
    return this.#line.stream !== undefined;
  }

  get model(): LiveConnection | undefined {
    return this.#link.model;
  }

  /** Whether a typed text can be taken: too much must not wait for the model. */
  get mayType(): boolean {
    return this.#state.name !== 'ended' && this.#conversation.mayType;
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  get #isWeb(): boolean {
    return this.identity.callDirection === 'web';
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

  /** The webhook was answered: the model is connected now, so that it is ready when the stream opens. */
  announce(options: { prewarm: boolean }): void {
    const { appName: agent, userId } = this.identity;
    this.#deps.log.info({ callSid: this.callSid, agent, pii: { userId } }, 'call announced');
    this.#arm('noStream');
    if (options.prewarm) this.#connect();
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
    else if (order === 'drainDeadline') this.post({ type: 'drainDeadline' });
    else this.#finish('server_draining');
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
    const previous = this.#line.stream;
    this.#dropStream();
    previous?.close();
    this.#line.open(stream, this.#clock.nowMs());
    this.#deps.observer.onCallActive(1);
    // Beyond the cap on prewarms the model is connected only now that the caller is there.
    if (this.#state.name === 'announced' && !this.#wasConnecting) this.#connect();
    this.#conversation.attachStream(stream);
    if (!this.#timers.has('tick')) this.#timers.arm('tick', TICK_MS);
    const fields = { callSid: this.callSid, streamSid: stream.streamSid };
    this.#deps.log.info(fields, 'media stream open');
    if (this.#state.name === 'announced' && this.#state.model === 'connecting' && !this.#link.isAlive)
      this.#connect();
    this.post({ type: 'streamStarted' });
    const listener = carrierListener({
      call: this,
      conversation: this.#conversation,
      isCurrent: () => this.#line.stream === stream,
      onClosed: (code) => this.#deps.log.info({ ...fields, code }, 'media stream closed'),
    });
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
        this.#conversation.onKey(keyPressed(event.digit));
        return this.#apply({ type: 'interrupted' }); // Who presses a key into a goodbye is still there.
      case 'typed':
        this.#conversation.onTyped(event.text);
        return this.#apply({ type: 'interrupted' });
      case 'inputTranscription':
        if (this.#conversation.onInputTranscription(event.text)) this.#apply({ type: 'interrupted' });
        return;
      case 'outputTranscription':
        return this.#conversation.onOutputTranscription(event.text);
      case 'generationComplete':
        return this.#onTurnOver(() => this.#conversation.onGenerationComplete());
      case 'turnComplete':
        return this.#onTurnOver(() => this.#conversation.onTurnComplete());
      case 'toolCall':
        return this.#onToolCall(event.functionCalls);
      case 'usageMetadata':
        return this.#run.used(event.usage);
      default:
        return this.#apply(event);
    }
  }

  #onTurnOver(run: () => void): void {
    const spoken = this.#conversation.hasSpokenThisTurn;
    run();
    this.#apply({ type: 'agentTurnOver', spoken, heard: this.#conversation.isSilent });
  }

  #apply(event: CallEvent): void {
    const before = this.#state;
    const { state, effects } = transition(before, event);
    this.#state = state;
    if (state.name !== before.name) {
      this.#deps.log.debug({ callSid: this.callSid, from: before.name, to: state.name }, 'call state');
    }
    if (event.type === 'streamClosed' && state.name !== 'ended') this.#dropStream();
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: CallEffect): void {
    switch (effect.do) {
      case 'greet':
        this.#idle.start();
        this.#timers.arm('greetingStart', GREETING_START_MAX_MS);
        if (this.#isWeb) this.#run.ready();
        return this.#conversation.greet(this.#options.agent.greeting);
      case 'dropStream':
        return this.#dropStream();
      case 'welcomeBack':
        this.#idle.start();
        return this.#conversation.welcomeBack();
      case 'arm':
        return this.#arm(effect.timer);
      case 'disarm':
        return this.#timers.disarm(effect.timer);
      case 'endTurn':
        return this.#conversation.onGenerationComplete();
      case 'askFarewell':
        return this.#conversation.ask(CALL_MUST_END);
      case 'play':
        return this.#conversation.play(effect.prompt);
      case 'closeModel':
        return this.#link.close();
      case 'cutLine':
        return this.#cutLine();
      case 'closeStream':
        this.#line.stream?.close();
        if (this.#line.stream === undefined) this.post({ type: 'streamClosed' });
        return;
      case 'finish':
        return this.#finish(effect.reason);
    }
  }

  #arm(timer: CallTimer): void {
    const delayMs = delayOf(timer, this.#deps.callMaxMs, this.#conversation.unplayedMs);
    if (delayMs !== undefined) this.#timers.arm(timer, delayMs);
  }

  #onTimer(name: CallTimer | 'tick' | 'greetingStart'): void {
    this.guard(() => {
      if (name === 'greetingStart') return this.#greetAgain();
      if (name !== 'tick') return this.post({ type: 'timer', timer: name });
      this.#timers.arm('tick', TICK_MS);
      this.#conversation.onTick();
    });
  }

  /** Some models ignore a text now and then: the greeting is asked for once more, not left to the idle reprompt. */
  #greetAgain(): void {
    if (this.#state.name === 'live' && this.#conversation.awaitsGreeting)
      this.#conversation.greet(this.#options.agent.greeting);
  }

  #onToolCall(functionCalls: readonly FunctionCall[]): void {
    const spoken = this.#conversation.hasSpokenThisTurn || !this.#conversation.isSilent;
    this.#conversation.onToolCall();
    const { responses, ends } = answerTools(functionCalls, this.#conversation.takeNote());
    this.#run.called(functionCalls);
    this.#run.responded(responses);
    this.#link.model?.sendToolResponse(responses);
    if (ends) this.#apply({ type: 'agentEnds', spoken, heard: this.#conversation.isSilent });
  }

  // --- The two sockets ----------------------------------------------------------------------------------------------

  #connect(): void {
    this.#wasConnecting = true;
    const { agent, history = [] } = this.#options;
    this.#link.connect({
      makeSetup: () => liveSetup(agent, this.identity, this.#isWeb ? { history } : undefined),
      listener: liveListener(this, this.#conversation),
      openScope: () => ({ clock: this.#clock, tap: this.#tap?.modelConnecting() }),
    });
  }

  #onModelReady(model: LiveConnection): void {
    this.guard(() => {
      this.#conversation.attachModel(model);
      this.post({ type: 'modelReady' });
    });
  }

  onGoAway(timeLeftMs: number): void {
    this.#link.onGoAway(timeLeftMs);
  }

  onModelClosed(close: LiveClose): void {
    this.#link.onClose(close);
  }

  #dropStream(): void {
    if (this.#line.drop() === undefined) return;
    this.#timers.disarm('tick');
    this.#deps.observer.onCallActive(-1);
    this.#conversation.detachStream();
  }

  #cutLine(): void {
    const scope = { clock: this.#clock, tap: this.#tap?.rest };
    void this.#deps.callControl.hangUp(this.callSid, scope).then((outcome) => {
      this.#deps.log.debug({ callSid: this.callSid, outcome: outcome.kind }, 'the line was to be cut');
      this.guard(() => this.post({ type: 'lineCut' }));
    });
  }

  /** Nothing of the call stays alive behind this: timers, model, stream, sound. */
  #finish(reason: EndReason): void {
    if (this.#endedAtMs !== undefined) return;
    this.#endedAtMs = this.#clock.nowMs();
    this.#state = { name: 'ended', reason };
    this.#idle.stop();
    this.#link.close();
    const stream = this.#line.drop();
    this.#conversation.close();
    this.#run.over();
    stream?.close();
    if (stream !== undefined) this.#deps.observer.onCallActive(-1);
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
