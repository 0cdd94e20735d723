/**
 * A call's line to its caller: at most one media stream at a time, opened, dropped and cut here. A lost one may come back, each
 * with a one-time token of its own where the carrier opens it, and only so often. What the stream carries is the
 * conversation's business.
 */
import type { RestScope } from '../call-tap.js';
import { STREAMS_PER_CALL_MAX, TICK_MS } from '../limits.js';
import type { CallObserver } from '../observe/call-observer.js';
import type { Log } from '../observe/log.js';
import type { CallControl } from '../telephony/call-control.js';
import type { MediaStream, MediaStreamListener } from '../telephony/media-stream.js';
import type { CallSid } from '../ids.js';
import { type CarrierEventsParts, carrierListener } from './carrier-events.js';
import type { CallTimers } from './call-timers.js';
import type { Conversation } from './conversation.js';
import { StreamTicket } from './stream-ticket.js';

export interface CallLineOptions {
  readonly callSid: CallSid;
  readonly call: CarrierEventsParts['call'];
  readonly conversation: Conversation;
  readonly timers: Pick<CallTimers<'tick'>, 'arm' | 'disarm' | 'has'>;
  readonly callControl: CallControl;
  readonly nowMs: () => number;
  readonly observer: Pick<CallObserver, 'onCallActive' | 'onHandoff'>;
  readonly log: Log;
}

export class CallLine {
  readonly #options: CallLineOptions;
  readonly #ticket = new StreamTicket();
  #stream: MediaStream | undefined;
  #opened = 0;
  #afters = 0;
  #firstOpenedAtMs: number | undefined;
  #wasCut = false;

  constructor(options: CallLineOptions) {
    this.#options = options;
  }

  /** The one-time token of the next media stream; another one after it was used. */
  get token(): string {
    return this.#ticket.token;
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  get firstOpenedAtMs(): number | undefined {
    return this.#firstOpenedAtMs;
  }

  /** The carrier was asked to end the line. */
  get wasCut(): boolean {
    return this.#wasCut;
  }

  /** Whether another stream may follow those that there were. */
  get mayOpen(): boolean {
    return this.#opened < STREAMS_PER_CALL_MAX;
  }

  /** Whether `token` is that of the next stream; then it is used up. */
  redeem(token: string | undefined): boolean {
    return this.#ticket.redeem(token);
  }

  /** Whether a carrier that asks what follows the stream is given another one. */
  mayReturn(): boolean {
    this.#afters += 1;
    return this.#afters <= STREAMS_PER_CALL_MAX;
  }

  /** Takes the place of the stream that is open, if there is one. Returns who hears the new one. */
  open(stream: MediaStream): MediaStreamListener {
    const { callSid, call, conversation, timers, nowMs, observer, log } = this.#options;
    const previous = this.#stream;
    this.drop();
    previous?.close();
    this.#stream = stream;
    this.#opened += 1;
    this.#afters = Math.max(this.#afters, this.#opened - 1);
    this.#firstOpenedAtMs ??= nowMs();
    observer.onCallActive(1);
    conversation.attachStream(stream);
    if (!timers.has('tick')) timers.arm('tick', TICK_MS);
    const fields = { callSid, streamSid: stream.streamSid };
    log.info(fields, 'media stream open');
    return carrierListener({
      call,
      conversation,
      isCurrent: () => this.#stream === stream,
      onClosed: (code) => log.info({ ...fields, code }, 'media stream closed'),
    });
  }

  /** The stream is the line no more, and what was not heard of it never will be; it is not closed by this. */
  drop(): void {
    if (this.#take() === undefined) return;
    this.#options.timers.disarm('tick');
    this.#options.conversation.detachStream();
  }

  /** Closes the stream, whose listener hears of it; false where there is none. */
  close(): boolean {
    this.#stream?.close();
    return this.isOpen;
  }

  /** The call is over: there is no line any more. Returns the stream, for whoever closes it behind the conversation. */
  end(): MediaStream | undefined {
    return this.#take();
  }

  /** Ends the line at the carrier; `lineCut` follows, whatever came of it. */
  cut(scope: RestScope): void {
    const { callSid, call, callControl, log } = this.#options;
    this.#wasCut = true;
    void callControl.hangUp(callSid, scope).then((outcome) => {
      log.debug({ callSid, outcome: outcome.kind }, 'the line was to be cut');
      call.guard(() => call.post({ type: 'lineCut' }));
    });
  }

  /** Has the carrier connect the caller with a human; `lineTransferred` follows. */
  transfer(scope: RestScope): void {
    const { callSid, call, callControl, observer, log } = this.#options;
    void callControl.transfer(callSid, scope).then((outcome) => {
      log.info({ callSid, outcome: outcome.kind }, 'the caller was to be connected with a human');
      // Who has hung up meanwhile is as one who does while it rings; the rest of what came of it is told by the carrier.
      if (outcome.kind === 'alreadyEnded') observer.onHandoff('cold', 'canceled');
      else if (outcome.kind !== 'done') observer.onHandoff('cold', 'refused');
      call.guard(() => call.post({ type: 'lineTransferred', isDone: outcome.kind === 'done' }));
    });
  }

  #take(): MediaStream | undefined {
    const stream = this.#stream;
    if (stream !== undefined) this.#options.observer.onCallActive(-1);
    this.#stream = undefined;
    return stream;
  }
}
