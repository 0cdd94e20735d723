/**
 * The agent's voice on its way out: takes mu-law of any length as fast as the model makes it and gives it to the
 * carrier at the caller's pace, in whole frames, at most PLAYOUT_LEAD_MS ahead of the ear, with marks behind it.
 * Knows what the caller has heard of each message, and stops at once or at a set time when the caller cuts in.
 * Leaves to others: what an interruption is, whose sound is late, the wire, and what was said (call/heard-text.ts).
 *
 * Seen from a call: `startUtterance` with the first sound of a model turn, `push` for each piece, `endUtterance` on
 * generationComplete (turnComplete at the latest), `clear` on interrupted, `onMark` for each returned mark. An
 * utterance may be started while older ones are still playing; they are played in order, one after the other.
 */
import type { Clock, Timer } from '../clock.js';
import {
  CARRIER_BUFFERED_MAX_BYTES,
  FRAME_MS,
  LAST_MARK_GRACE_MS,
  MARK_INTERVAL_MS,
  MULAW_BYTES_PER_MS,
  MULAW_FRAME_BYTES,
  MULAW_SILENCE,
  PLAYOUT_BATCH_MS,
  PLAYOUT_EARLY_MS,
  PLAYOUT_LEAD_MS,
  PLAYOUT_MESSAGE_MS,
  PLAYOUT_QUEUE_MAX_MS,
  UTTERANCES_MAX,
} from '../limits.js';
import { HeardPosition } from './heard-position.js';
import type { PlayoutSink } from './playout-sink.js';
import { SoundQueue } from './sound-queue.js';
import { StartBuffer } from './start-buffer.js';
import { UtteranceRecord, type Utterance } from './utterance.js';

const MESSAGE_BYTES = PLAYOUT_MESSAGE_MS * MULAW_BYTES_PER_MS;
const QUEUE_MAX_BYTES = PLAYOUT_QUEUE_MAX_MS * MULAW_BYTES_PER_MS;
/** A batch is due when only this much is left at the carrier, */
const DUE_LEFT_MS = PLAYOUT_LEAD_MS - PLAYOUT_BATCH_MS - PLAYOUT_EARLY_MS;
/** and messages follow one another until the lead is full and never more. */
const FULL_LEFT_MS = PLAYOUT_LEAD_MS - PLAYOUT_MESSAGE_MS;
/** Less than a message waits for more sound until only this much is left at the carrier. */
const PART_DUE_LEFT_MS = PLAYOUT_LEAD_MS / 2;
/** Node's timers fire up to a millisecond early by the fractional clock; shorter waits are not worth a timer. */
const TIMER_SLACK_MS = 1;
/** How often a full carrier socket is looked at again. */
const STALL_CHECK_MS = PLAYOUT_MESSAGE_MS;

/** `model`: sound came too late. `late`: sound was there, but this process was too late to send it. */
export type UnderrunCause = 'model' | 'late';
/** `queue_full`: more than PLAYOUT_QUEUE_MAX_MS or UTTERANCES_MAX waiting. `over`: the utterance takes no more. */
export type DropReason = 'queue_full' | 'over';

/** Called synchronously; may call the playout. */
export interface PlayoutObserver {
  /** The first sound of `utterance` was given to the sink. */
  onFirstSent(utterance: Utterance): void;
  /** Sound goes on after the carrier ran dry for `gapMs` in the middle of an utterance. */
  onUnderrun(gapMs: number, cause: UnderrunCause): void;
  /** `utterance` was ended and heard to its end: its last mark came back, or was overdue by LAST_MARK_GRACE_MS. In the
   * order of utterances, exactly once for each that was ended and not cleared, also if it has no sound. */
  onUtteranceHeard(utterance: Utterance): void;
  /** The last of all started utterances was heard to its end. */
  onDrained(): void;
  onDropped(ms: number, reason: DropReason): void;
  /** A hold is over. `cleared`: its time came and unheard sound was dropped; what `heardMs` says of those utterances is
   * final. Otherwise the sound finished by itself; its onUtteranceHeard may come before or after this. Not called
   * when `clear` or `close` came first. */
  onHoldOver(cleared: boolean): void;
}

interface Hold {
  atMs: number;
  /** The newest utterance that the hold will cut. */
  readonly last: UtteranceRecord;
}

export interface PlayoutDeps {
  readonly clock: Clock;
  readonly sink: PlayoutSink;
  readonly observer: PlayoutObserver;
}

export class Playout {
  readonly #clock: Clock;
  readonly #sink: PlayoutSink;
  readonly #observer: PlayoutObserver;
  readonly #queue = new SoundQueue();
  readonly #position: HeardPosition;
  readonly #startBuffer = new StartBuffer();
  /** Utterances in order of play, from the first not heard to its end; only the last may be open. */
  #utterances: UtteranceRecord[] = [];
  #lastId = 0;
  #hold: Hold | undefined;
  readonly #message = new Uint8Array(MESSAGE_BYTES);
  /** One view of the message for each whole number of frames, so that sending makes none. */
  readonly #views = Array.from({ length: MESSAGE_BYTES / MULAW_FRAME_BYTES }, (_, index) =>
    this.#message.subarray(0, (index + 1) * MULAW_FRAME_BYTES),
  );
  #sinceMarkMs = 0;
  /** The carrier's socket was full when sound was due. */
  #stalled = false;
  #pumping = false;
  /** A message of this batch was sent: the next ones need not wait until they are due. */
  #filling = false;
  #earlyMs = 0;
  #closed = false;
  #timer: Timer | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #wakeAtMs = Number.POSITIVE_INFINITY;

  constructor({ clock, sink, observer }: PlayoutDeps) {
    this.#clock = clock;
    this.#sink = sink;
    this.#observer = observer;
    this.#position = new HeardPosition(clock.nowMs());
  }

  /** Raised by every clear; part of each mark's name. */
  get generation(): number {
    return this.#position.generation;
  }

  /** Sound waiting here, not yet given to the carrier. */
  get queuedMs(): number {
    return this.#queue.length / MULAW_BYTES_PER_MS;
  }

  /** Sound that the next start, or the refill after an underrun, waits for. */
  get startBufferMs(): number {
    return this.#startBuffer.targetMs;
  }

  /** Nothing is waiting and nothing that was sent is unheard; less than a frame, which waits for its end, is nothing. */
  get isSilent(): boolean {
    return this.unplayedMs() < FRAME_MS;
  }

  /** Sound waiting here or at the carrier, as far as we know (see HeardPosition). */
  unplayedMs(): number {
    return this.queuedMs + this.#position.sentMs - this.#position.heardMs(this.#clock.nowMs());
  }

  /** Opens the agent's next message; one that was still open is ended. With UTTERANCES_MAX on the books, and after
   * close, the new one is over from the start: it takes nothing and nothing is reported of it. */
  startUtterance(): Utterance {
    this.#lastId += 1;
    const utterance = new UtteranceRecord(this.#lastId);
    const open = this.#utterances.at(-1);
    if (open !== undefined) open.ended = true;
    if (this.#utterances.length < UTTERANCES_MAX && !this.#closed) {
      this.#utterances.push(utterance);
    } else {
      utterance.refused = true;
      this.#finish(utterance, 0);
    }
    this.#pump();
    return utterance;
  }

  /** Adds a copy of `mulaw` (any length) to an open utterance and returns the milliseconds accepted. When the queue is
   * full the rest is refused, and so is whatever else the utterance would bring: a message may lack its end, never
   * its middle. */
  push(handle: Utterance, mulaw: Uint8Array): number {
    const utterance = handle as UtteranceRecord;
    if (mulaw.length === 0) return 0;
    if (utterance.ended) {
      const reason = utterance.refused ? 'queue_full' : 'over';
      if (!this.#closed) this.#observer.onDropped(mulaw.length / MULAW_BYTES_PER_MS, reason);
      return 0;
    }
    const room = utterance.refused ? 0 : QUEUE_MAX_BYTES - this.#queue.length;
    const accepted = Math.min(room, mulaw.length);
    if (accepted > 0) {
      if (utterance.waitingBytes < MULAW_FRAME_BYTES) utterance.soundSinceMs = this.#clock.nowMs();
      this.#queue.write(accepted === mulaw.length ? mulaw : mulaw.subarray(0, accepted));
      utterance.acceptedBytes += accepted;
    }
    if (accepted < mulaw.length) {
      utterance.refused = true;
      this.#observer.onDropped((mulaw.length - accepted) / MULAW_BYTES_PER_MS, 'queue_full');
    }
    if (accepted > 0) this.#pump();
    return accepted / MULAW_BYTES_PER_MS;
  }

  /** No more sound follows: what waits is played to its end, padded to a whole frame. Idempotent. */
  endUtterance(handle: Utterance): void {
    const utterance = handle as UtteranceRecord;
    if (utterance.ended) return;
    utterance.ended = true;
    this.#pump();
  }

  /** A recorded clip as an utterance of its own, behind everything that waits. */
  playClip(mulaw: Uint8Array): Utterance {
    const utterance = this.startUtterance();
    this.push(utterance, mulaw);
    this.endUtterance(utterance);
    return utterance;
  }

  /** The caller cut in: drops what waits, tells the carrier to do the same, and only then keeps the books. Every
   * utterance is over; `heardMs` of each is final. */
  clear(): void {
    if (this.#closed) return;
    this.#queue.clear();
    this.#hold = undefined;
    this.#cut(this.#utterances.length);
    this.#pump();
  }

  /** Holds an interruption until `atMs` on the clock. The open utterance is ended and what waits plays on until then;
   * what is left of it is cleared. Utterances started after this call are played behind that, never cut by it.
   * Returns false if the clear was carried out at once, because its time is past or nothing is unheard. A second
   * hold drops what was started after the first and keeps the earlier time. */
  clearAt(atMs: number): boolean {
    const last = this.#utterances.at(-1);
    if (this.#closed) return false;
    if (last === undefined || atMs <= this.#clock.nowMs() || this.isSilent) {
      this.clear();
      return false;
    }
    if (this.#hold === undefined) {
      this.#hold = { atMs, last };
      this.endUtterance(last);
    } else {
      this.#hold.atMs = Math.min(this.#hold.atMs, atMs);
      this.#dropBehind(this.#hold.last);
      this.#pump();
    }
    return true;
  }

  /** The process is awake for this call anyway: a batch that is due within PLAYOUT_EARLY_MS goes now. Cheap when none is. */
  nudge(): void {
    if (this.#timerAtMs - this.#clock.nowMs() > PLAYOUT_EARLY_MS) return;
    this.#earlyMs = PLAYOUT_EARLY_MS;
    this.#pump();
    this.#earlyMs = 0;
  }

  /** A mark came back from the carrier; any string will do. */
  onMark(name: string): void {
    if (this.#closed) return;
    this.#position.onMark(name, this.#clock.nowMs());
    this.#pump();
  }

  /** Sound of this utterance that the caller has heard: never above what was sent of it, never falling. */
  heardMs(handle: Utterance): number {
    const utterance = handle as UtteranceRecord;
    return utterance.heardAt(this.#position.heardMs(this.#clock.nowMs()));
  }

  /** Stops for good: nothing more is sent or called back, no timer is left; `heardMs` keeps answering. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    const heardMs = this.#position.heardMs(this.#clock.nowMs());
    for (const utterance of this.#utterances) this.#finish(utterance, heardMs);
    this.#utterances = [];
    this.#hold = undefined;
    this.#queue.clear();
  }

  /** The one timer callback, made once. */
  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    this.#pump();
  };

  /** Does all that is due, then sets the timer to what is due next. Calls from within (a sink or an observer that calls
   * back) leave it to the outer one. */
  #pump(): void {
    if (this.#pumping || this.#closed) return;
    this.#pumping = true;
    this.#filling = false;
    this.#sink.cork();
    try {
      do this.#wakeAtMs = Number.POSITIVE_INFINITY;
      while (this.#step(this.#clock.nowMs()));
    } finally {
      this.#sink.uncork();
      this.#pumping = false;
      this.#arm();
    }
  }

  /** Does one thing that is due and returns true, or notes in #wakeAtMs when something will be. */
  #step(nowMs: number): boolean {
    if (this.#closed) return false;
    return this.#settleFirst(nowMs) || this.#carryOutHold(nowMs) || this.#sendNext(nowMs);
  }

  #arm(): void {
    const wakeAtMs = this.#closed ? Number.POSITIVE_INFINITY : this.#wakeAtMs;
    if (this.#timer !== undefined && this.#timerAtMs === wakeAtMs) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = wakeAtMs;
    if (wakeAtMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.max(TIMER_SLACK_MS, wakeAtMs - this.#clock.nowMs());
    this.#timer = this.#clock.setTimer(delayMs, this.#wake);
  }

  #wakeBy(atMs: number): void {
    this.#wakeAtMs = Math.min(this.#wakeAtMs, atMs);
  }

  /** Takes the first utterance off the books once it is heard to its end. */
  #settleFirst(nowMs: number): boolean {
    const first = this.#utterances[0];
    if (first === undefined || !first.sealed) return false;
    if (first.sentBytes > 0) {
      // A mark that comes back before its sound can have been played is not believed any earlier.
      const returned = this.#position.returnedMark >= first.lastMark;
      const heardAtMs = first.playedOutAtMs + (returned ? 0 : LAST_MARK_GRACE_MS);
      if (nowMs < heardAtMs) {
        this.#wakeBy(heardAtMs);
        return false;
      }
      this.#position.assumeHeard(first.lastMark, first.endMs, nowMs);
    }
    this.#utterances.shift();
    this.#finish(first, first.endMs);
    this.#observer.onUtteranceHeard(first);
    if (this.#utterances.length === 0 && !this.#closed) this.#observer.onDrained();
    return true;
  }

  #carryOutHold(nowMs: number): boolean {
    const hold = this.#hold;
    if (hold === undefined) return false;
    const { last } = hold;
    const isOver = last.finalHeardMs !== undefined || this.#isHeard(last, nowMs);
    if (!isOver && nowMs < hold.atMs) {
      this.#wakeBy(hold.atMs);
      if (last.sealed && nowMs < last.playedOutAtMs) this.#wakeBy(last.playedOutAtMs);
      return false;
    }
    this.#hold = undefined;
    if (!isOver) this.#clearHeld(last);
    this.#observer.onHoldOver(!isOver);
    return true;
  }

  #isHeard(utterance: UtteranceRecord, nowMs: number): boolean {
    return utterance.sealed && this.#position.heardMs(nowMs) >= utterance.endMs;
  }

  #clearHeld(last: UtteranceRecord): void {
    const count = this.#utterances.indexOf(last) + 1;
    this.#queue.skip(this.#waitingBytesOf(count));
    this.#cut(count);
  }

  /** Sound not yet sent of the first `count` utterances. */
  #waitingBytesOf(count: number): number {
    let bytes = 0;
    for (let index = 0; index < count; index += 1) bytes += this.#utterances[index]?.waitingBytes ?? 0;
    return bytes;
  }

  /** Clears the carrier and ends the first `count` utterances where the caller stopped hearing them. The generation
   * is raised in the same breath, so that no mark which the clear returns can pass for a played one; the
   * books come after the write. */
  #cut(count: number): void {
    const nowMs = this.#clock.nowMs();
    const heardMs = this.#position.clear(nowMs);
    this.#sink.sendClear();
    for (const utterance of this.#utterances.splice(0, count)) this.#finish(utterance, heardMs);
    this.#startBuffer.endWait();
    this.#sinceMarkMs = 0;
  }

  /** Drops the utterances behind `last`, of which nothing was sent. */
  #dropBehind(last: UtteranceRecord): void {
    const count = this.#utterances.indexOf(last) + 1;
    this.#queue.keepFirst(this.#waitingBytesOf(count));
    for (const utterance of this.#utterances.splice(count)) this.#finish(utterance, 0);
  }

  #finish(utterance: UtteranceRecord, heardPositionMs: number): void {
    utterance.finalHeardMs = utterance.heardAt(heardPositionMs);
    utterance.ended = true;
  }

  /** Sends one message, or the last mark of an utterance, if it is due. */
  #sendNext(nowMs: number): boolean {
    const utterance = this.#sending();
    if (utterance === undefined) return false;
    if (this.#hold !== undefined && utterance.id > this.#hold.last.id) return false;
    const waiting = utterance.waitingBytes;
    if (utterance.ended && waiting === 0) {
      this.#seal(utterance);
      return true;
    }
    if (!utterance.ended && waiting < MULAW_FRAME_BYTES) return false;
    if (this.#sink.bufferedAmount > CARRIER_BUFFERED_MAX_BYTES) {
      this.#stalled = true;
      this.#wakeBy(nowMs + STALL_CHECK_MS);
      return false;
    }
    const leftMs = this.#position.playedOutAtMs - nowMs;
    if (!this.#mayStart(utterance, leftMs, nowMs)) {
      this.#wakeBy(this.#startBuffer.deadlineMs);
      return false;
    }
    const isWhole = utterance.ended || waiting >= MESSAGE_BYTES;
    const dueLeftMs = isWhole ? DUE_LEFT_MS : PART_DUE_LEFT_MS;
    const mayLeaveMs = isWhole && this.#filling ? FULL_LEFT_MS : dueLeftMs + this.#earlyMs;
    if (leftMs > mayLeaveMs + TIMER_SLACK_MS) {
      this.#wakeBy(this.#position.playedOutAtMs - dueLeftMs);
      return false;
    }
    this.#send(utterance, nowMs);
    this.#filling = true;
    return true;
  }

  /** The first utterance that is not sent to its end. */
  #sending(): UtteranceRecord | undefined {
    for (const utterance of this.#utterances) if (!utterance.sealed) return utterance;
    return undefined;
  }

  /** Speech that begins, or goes on at a dry carrier, waits for the start buffer; an ended utterance does not, nor does
   * sound that comes as the carrier runs dry: waiting would make the gap that #gapMs does not see yet. */
  #mayStart(utterance: UtteranceRecord, leftMs: number, nowMs: number): boolean {
    const begins = utterance.sentBytes === 0;
    if (!begins && leftMs >= -TIMER_SLACK_MS) return true;
    if (!utterance.refilling && this.#gapMs(utterance, nowMs) > 0 && this.#wasStarved(utterance)) {
      utterance.refilling = true;
      utterance.clean = false;
      this.#startBuffer.grow();
    }
    return utterance.ended || this.#startBuffer.isFull(utterance.waitingBytes / MULAW_BYTES_PER_MS, nowMs);
  }

  /** How long the carrier has been dry in the middle of an utterance. A last bit below a frame can only be sent once
   * the utterance ends, and sound behind a full socket is on its way: neither is a gap. */
  #gapMs(utterance: UtteranceRecord, nowMs: number): number {
    const isTail = utterance.ended && utterance.waitingBytes < MULAW_FRAME_BYTES;
    if (utterance.sentBytes === 0 || isTail || this.#stalled) return 0;
    const gapMs = nowMs - this.#position.playedOutAtMs;
    return gapMs > TIMER_SLACK_MS ? gapMs : 0;
  }

  /** The carrier ran dry before there was sound to send. */
  #wasStarved(utterance: UtteranceRecord): boolean {
    return utterance.soundSinceMs > this.#position.playedOutAtMs;
  }

  #send(utterance: UtteranceRecord, nowMs: number): void {
    const begins = utterance.sentBytes === 0;
    const gapMs = this.#gapMs(utterance, nowMs);
    const cause = this.#wasStarved(utterance) ? 'model' : 'late';
    const wholeBytes = utterance.waitingBytes - (utterance.waitingBytes % MULAW_FRAME_BYTES);
    const limit = utterance.ended || wholeBytes >= MESSAGE_BYTES ? MESSAGE_BYTES : wholeBytes;
    const size = this.#queue.read(this.#message, Math.min(limit, utterance.waitingBytes));
    const frames = Math.ceil(size / MULAW_FRAME_BYTES);
    this.#message.fill(MULAW_SILENCE, size, frames * MULAW_FRAME_BYTES);
    const view = this.#views[frames - 1] ?? this.#message;
    const ms = view.length / MULAW_BYTES_PER_MS;
    if (begins) utterance.startMs = this.#position.sentMs;
    utterance.sentBytes += size;
    utterance.refilling = false;
    this.#position.addSent(ms, nowMs);
    utterance.endMs = this.#position.sentMs;
    utterance.playedOutAtMs = this.#position.playedOutAtMs;
    this.#stalled = false;
    this.#startBuffer.endWait();
    this.#sinceMarkMs += ms;
    const isLast = utterance.ended && utterance.waitingBytes === 0;
    const isMarked = isLast || this.#sinceMarkMs + PLAYOUT_MESSAGE_MS > MARK_INTERVAL_MS;
    this.#sink.send(view, isMarked ? this.#newMark(utterance) : undefined);
    if (this.#closed) return;
    if (begins) this.#observer.onFirstSent(utterance);
    if (gapMs > 0) this.#observer.onUnderrun(gapMs, cause);
  }

  #seal(utterance: UtteranceRecord): void {
    utterance.sealed = true;
    if (utterance.sentBytes === 0) return;
    if (utterance.clean) this.#startBuffer.decay();
    if (this.#sinceMarkMs > 0) this.#sink.sendMark(this.#newMark(utterance));
  }

  #newMark(utterance: UtteranceRecord): string {
    const name = this.#position.newMark();
    utterance.lastMark = this.#position.lastMark;
    this.#sinceMarkMs = 0;
    return name;
  }
}
