/**
 * All calls of this server: announces them at the webhook, hands each its media stream, answers what follows the
 * stream, and lets them drain. One Call owns each CallSid; ended calls are remembered, bounded.
 */
import assert from 'node:assert/strict';
import type { Agent } from '../agent/agent.js';
import type { AgentCatalog } from '../agent/agent-catalog.js';
import type { CallOrder, WebhookRequest } from '../call-tap.js';
import type { Clock, Timer } from '../clock.js';
import type { CallBook, CallView } from '../console/call-view.js';
import type { Event } from '../event/event.js';
import { type CallSid, newId, parseCallSid } from '../ids.js';
import { DRAIN_MAX_MS, PREWARMS_MAX } from '../limits.js';
import type { CallObserver } from '../observe/call-observer.js';
import type { Log } from '../observe/log.js';
import type {
  AcceptedStream,
  EarlyMessages,
  MediaStream,
  MediaStreamStart,
} from '../telephony/media-stream.js';
import type {
  CallStatus,
  DialResult,
  VoiceAnswer,
  VoiceDoor,
  VoiceWebhook,
} from '../telephony/voice-door.js';
import { Call } from './call.js';
import type { CallDeps } from './call-deps.js';
import type { CallSetUp } from './call-parts.js';
import { callDirectionOf, identify } from './call-identity.js';
import { EndedCalls, type ForgottenWords } from './ended-calls.js';
import type { KeptCalls } from './kept-calls.js';
import { LeftCallers, type TakenCall } from './left-callers.js';
import { OncePerCall } from './once-per-call.js';
import { type WebCaller, WebCalls, type WebLine, type WebRefusal } from './web-calls.js';

export interface CallRegistryOptions {
  readonly agents: Pick<AgentCatalog, 'default' | 'find' | 'named' | 'names'>;
  readonly deps: CallDeps;
  /** The calls in the store, where there is one. */
  readonly kept?: KeptCalls | undefined;
  /** Above 0: the most calls at once. 0: `overloaded` decides. */
  readonly callsMax: number;
  /** Whether the event loop lags too much for another call. */
  readonly overloaded: () => boolean;
}

const FINAL_STATUSES: ReadonlySet<CallStatus> = new Set([
  'completed',
  'busy',
  'failed',
  'no-answer',
  'canceled',
]);

export class CallRegistry implements VoiceDoor, CallBook {
  readonly #options: CallRegistryOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #observer: CallObserver;
  readonly #calls = new Map<CallSid, Call>();
  readonly #web: WebCalls;
  readonly #ended: EndedCalls;
  readonly #left: LeftCallers;
  readonly #refused = new OncePerCall();
  readonly #dialled = new OncePerCall();
  #draining: Drain | undefined;

  constructor(options: CallRegistryOptions) {
    this.#options = options;
    this.#clock = options.deps.clock;
    this.#log = options.deps.log;
    this.#observer = options.deps.observer;
    this.#ended = new EndedCalls(this.#clock);
    this.#left = new LeftCallers({
      kept: options.kept,
      agents: options.agents,
      whyNot: () => (this.draining ? 'draining' : this.hasRoom ? undefined : 'full'),
      goOn: (taken, agent) => this.#goOn(taken, agent),
      log: this.#log,
    });
    this.#web = new WebCalls({
      agent: options.agents.default,
      deps: options.deps,
      onEnded: () => this.#settleDrain(),
    });
  }

  onVoice(webhook: VoiceWebhook): VoiceAnswer {
    const { callSid } = webhook;
    const known = this.#calls.get(callSid);
    if (known !== undefined) return this.#repeated(known, webhook.request);
    if (this.#ended.has(callSid)) return { kind: 'hangup' };
    const agent = this.#agentOf(webhook);
    if (agent === undefined) {
      this.#log.warn(
        { callSid, agents: this.#options.agents.names },
        'a webhook names an agent that does not exist',
      );
      return { kind: 'unknownAgent' };
    }
    if (this.#draining !== undefined || !this.hasRoom) {
      this.#log.warn({ callSid, cause: this.#whyFull, calls: this.#count }, 'call refused: busy');
      if (this.#refused.first(callSid)) this.#observer.onCallEnded(callDirectionOf(webhook), 'busy', 0);
      return { kind: 'busy' };
    }
    return this.#announce({
      identity: identify(webhook, agent.name, newId()),
      request: webhook.request,
      agent,
      deps: this.#options.deps,
    });
  }

  onAfter(callSid: CallSid, request: WebhookRequest): VoiceAnswer | Promise<VoiceAnswer> {
    const call = this.#calls.get(callSid);
    if (call !== undefined) {
      call.enter(request);
      return call.leavesCaller ? this.#left.hold(callSid) : call.answerAfterStream();
    }
    const ended = this.#ended.get(callSid);
    ended?.trail?.enter(request);
    if (ended?.leavesCaller === false) return ended.owesApology ? { kind: 'apology' } : { kind: 'hangup' };
    // Whoever this server has handed over it will not have again.
    const isHandedOver = ended?.view.endReason === 'server_draining';
    return isHandedOver ? this.#left.hold(callSid) : this.#left.answer(callSid);
  }

  /** The call is over here, whoever has spoken with the caller since. */
  onHandoff(callSid: CallSid, result: DialResult, request: WebhookRequest): VoiceAnswer {
    (this.#calls.get(callSid) ?? this.#ended.get(callSid)?.trail)?.enter(request);
    if (this.#dialled.first(callSid)) this.#observer.onHandoff('cold', result);
    return result === 'completed' ? { kind: 'hangup' } : { kind: 'nobodyAnswered' };
  }

  onStatus(callSid: CallSid, status: CallStatus, request: WebhookRequest): void {
    const call = this.#calls.get(callSid);
    (call ?? this.#ended.get(callSid)?.trail)?.enter(request);
    if (FINAL_STATUSES.has(status)) call?.post({ type: 'callerHungUp' });
  }

  onAnswered(callSid: CallSid, status: number, xml: string): void {
    (this.#calls.get(callSid) ?? this.#ended.get(callSid)?.trail)?.answered(status, xml);
  }

  /** Decides about a media stream: the call must have been announced, and the token be its own and unused. */
  acceptStream(
    start: MediaStreamStart,
    stream: MediaStream,
    early: EarlyMessages,
  ): AcceptedStream | { readonly refused: string } {
    const call = this.#calls.get(start.callSid);
    if (call === undefined) return { refused: 'no webhook announced this call' };
    const accepted = call.acceptStream(start, stream, early);
    if (!('refused' in accepted)) this.#options.kept?.begin(call.identity);
    return accepted;
  }

  /** A web client's conversation, with the default agent: a new one, counted as a call wherever calls are. */
  openWeb(caller: WebCaller, stream: MediaStream, history: readonly Event[]): WebLine | WebRefusal {
    if (this.#draining === undefined && this.hasRoom) return this.#web.open(caller, stream, history);
    this.#log.warn({ cause: this.#whyFull, calls: this.#count }, 'a web client was refused: busy');
    this.#observer.onCallEnded('web', 'busy', 0);
    return this.draining
      ? { code: 'server_draining', refused: 'the server is stopping' }
      : { code: 'run_refused', refused: 'the server is full: try again later' };
  }

  /** A web client that comes back to its conversation, also when draining; undefined where there is none. */
  rejoinWeb(caller: WebCaller, stream: MediaStream): WebLine | WebRefusal | undefined {
    return this.#web.rejoin(caller, stream);
  }

  get draining(): boolean {
    return this.#draining !== undefined;
  }

  get hasRoom(): boolean {
    const { callsMax, overloaded } = this.#options;
    // Lag with no call at all is not the calls': a server that has just started is not full.
    return callsMax > 0 ? this.#count < callsMax : this.#count === 0 || !overloaded();
  }

  /** Calls and web clients' conversations. */
  get #count(): number {
    return this.#calls.size + this.#web.count;
  }

  get #whyFull(): string {
    if (this.draining) return 'draining';
    return this.#options.callsMax > 0 ? 'MAX_CALLS' : 'event-loop lag';
  }

  /** Of both kinds. */
  get #all(): Call[] {
    return [...this.#calls.values(), ...this.#web.all];
  }

  list(): readonly CallView[] {
    const live = [...this.#calls.values()].map((call) => call.view()).toReversed();
    return [...live, ...this.#ended.views()];
  }

  find(callSid: string): CallView | undefined {
    const sid = parseCallSid(callSid);
    if (sid === undefined) return undefined;
    return this.#calls.get(sid)?.view() ?? this.#ended.get(sid)?.view;
  }

  hangUp(callSid: string): boolean {
    return this.order(callSid, 'hangup');
  }

  /** False when there is no such call in progress. */
  order(callSid: string, order: CallOrder): boolean {
    const sid = parseCallSid(callSid);
    const call = sid === undefined ? undefined : this.#calls.get(sid);
    call?.order(order);
    return call !== undefined;
  }

  counts(): Readonly<Record<string, number>> {
    const calls = this.#all;
    return {
      calls: calls.length,
      streams: calls.filter((call) => call.hasStream).length,
      models: calls.filter((call) => call.model !== undefined).length,
      connecting: calls.filter((call) => call.isConnecting).length,
      timers: calls.reduce((sum, call) => sum + call.timerCount, 0),
      functionCalls: calls.reduce((sum, call) => sum + call.waiting.functionCalls, 0),
      updates: calls.reduce((sum, call) => sum + call.waiting.updates, 0),
    };
  }

  /** Whose words are kept though the call is over. */
  get keptWords(): EndedCalls['kept'] {
    return this.#ended.kept;
  }

  /** What was said in these calls is deleted: it is not shown any more. Those that go on go on. */
  forget(deleted: ForgottenWords): void {
    this.#ended.forget(deleted, this.#calls.values());
  }

  /** Takes no more calls, lets the running ones finish up to DRAIN_MAX_MS, then says goodbye to the rest. */
  drain(): Promise<void> {
    if (this.#draining === undefined) {
      this.#draining = new Drain();
      this.#log.info({ calls: this.#count }, 'draining: no new calls are taken');
      this.#draining.deadline = this.#clock.setTimer(DRAIN_MAX_MS, () => {
        this.#log.warn({ calls: this.#count }, 'the drain’s limit is reached: running calls are ended');
        for (const call of this.#all) call.order('drainDeadline');
      });
      this.#settleDrain();
    }
    return this.#draining.done;
  }

  /** Once drained: resolves when the carrier has asked about each caller whom this server has handed over; never without one. */
  callersAsked(): Promise<void> {
    return this.#left.asked();
  }

  /** Ends every call at once, without a word. */
  close(): void {
    for (const call of this.#all) call.order('abandon');
  }

  #announce(setUp: CallSetUp): VoiceAnswer {
    const call = new Call({ ...setUp, onEnded: (ended) => this.#onEnded(ended) });
    this.#calls.set(call.callSid, call);
    call.announce({ prewarm: this.#prewarms() < PREWARMS_MAX });
    return { kind: 'stream', token: call.token };
  }

  /** A conversation that another server began is this one's now. It is not recorded: a recording has no past. */
  #goOn({ record, history }: TakenCall, agent: Agent): VoiceAnswer {
    const { appName, userId, callDirection, callerVerified, startedAtMs } = record;
    const callSid =
      parseCallSid(record.callSid) ?? assert.fail('a record has the CallSid that was asked for');
    const { openTap: _unrecorded, ...deps } = this.#options.deps;
    const spentMs = this.#clock.wallMs() - startedAtMs;
    this.#log.info({ callSid, events: history.length }, 'a call that another server had goes on here');
    this.#observer.onCallTakenOver();
    this.#ended.remove(callSid);
    return this.#announce({
      identity: {
        invocationId: newId(),
        callSid,
        appName,
        userId,
        sessionId: callSid,
        callerVerified,
        callDirection,
      },
      agent,
      history,
      deps: { ...deps, callMaxMs: deps.callMaxMs === 0 ? 0 : Math.max(1, deps.callMaxMs - spentMs) },
    });
  }

  /** A known call's voice webhook has come once more. */
  #repeated(known: Call, request: WebhookRequest): VoiceAnswer {
    known.enter(request);
    return known.isEnding ? { kind: 'hangup' } : { kind: 'stream', token: known.token };
  }

  #agentOf(webhook: VoiceWebhook): Agent | undefined {
    const { agents } = this.#options;
    return webhook.agentName === undefined ? agents.default : agents.find(webhook.agentName);
  }

  #prewarms(): number {
    let count = 0;
    for (const call of this.#calls.values()) if (call.isPrewarm) count += 1;
    return count;
  }

  #onEnded(call: Call): void {
    this.#calls.delete(call.callSid);
    this.#ended.add(call);
    if (this.draining && call.leavesCaller) this.#left.leave(call.callSid);
    this.#options.kept?.end(call.identity, {
      reason: call.endReason ?? 'internal_error',
      mayReturn: call.leavesCaller,
    });
    this.#settleDrain();
  }

  #settleDrain(): void {
    if (this.#draining !== undefined && this.#count === 0) {
      this.#draining.deadline?.cancel();
      this.#draining.resolve();
    }
  }
}

class Drain {
  resolve: () => void = () => {};
  readonly done = new Promise<void>((resolve) => {
    this.resolve = resolve;
  });
  deadline: Timer | undefined;
}
