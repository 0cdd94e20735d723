/**
 * How far into the sound we sent the caller has heard. Positions are milliseconds of sound sent since the call began.
 * Stands between the marks that the carrier returns and everyone who asks; sends nothing and owns no timer.
 *
 * The policy: a position is heard when (1) a carrier that plays at real time and without delay could have played it,
 * and (2) once the carrier has ever returned a mark, it lies neither beyond the next unreturned mark nor further
 * behind the last returned one than the time since. A carrier that never returns marks is thus judged by time alone.
 * Sound whose carrier has had nothing new for LAST_MARK_GRACE_MS counts as heard, marks or not.
 *
 * Source for marks: Twilio returns a mark when all sound before it was played, at once if none waits, and on `clear`
 * all pending ones (https://www.twilio.com/docs/voice/media-streams/websocket-messages). Hence the generation in each
 * name: marks of an older one say nothing.
 */
import { LAST_MARK_GRACE_MS, MARKS_UNRETURNED_MAX } from '../limits.js';

const MARK_NAME = /^g(\d{1,15}):m(\d{1,15})$/;

export class HeardPosition {
  /** Position behind the last mark numbers, by number modulo size. */
  readonly #markPositions = new Float64Array(MARKS_UNRETURNED_MAX);
  #generation = 1;
  #lastMark = 0;
  #returnedMark = 0;
  #returnedPositionMs = 0;
  #returnedAtMs = 0;
  /** The carrier has returned at least one mark of sound that it played. */
  #returnsMarks = false;
  #sentMs = 0;
  #playedOutAtMs: number;
  #heardMs = 0;

  constructor(nowMs: number) {
    this.#playedOutAtMs = nowMs;
  }

  /** Raised at every clear. */
  get generation(): number {
    return this.#generation;
  }

  /** Number of the newest mark; 0 before the first. */
  get lastMark(): number {
    return this.#lastMark;
  }

  /** Number of the newest mark that came back, or that counts as returned. */
  get returnedMark(): number {
    return this.#returnedMark;
  }

  /** Sound sent, padding and cleared sound included. */
  get sentMs(): number {
    return this.#sentMs;
  }

  /** When a carrier without delay has played everything that was sent. */
  get playedOutAtMs(): number {
    return this.#playedOutAtMs;
  }

  /** `ms` of sound goes to the carrier now. */
  addSent(ms: number, nowMs: number): void {
    this.#playedOutAtMs = Math.max(this.#playedOutAtMs, nowMs) + ms;
    this.#sentMs += ms;
  }

  /** The name of a new mark behind everything that was sent; unique within the call. */
  newMark(): string {
    this.#lastMark += 1;
    this.#markPositions[this.#lastMark % MARKS_UNRETURNED_MAX] = this.#sentMs;
    return `g${this.#generation}:m${this.#lastMark}`;
  }

  /** A mark came back. Names that are unknown, old, or of an older generation change nothing; a mark that
   * overtook others stands for them too. */
  onMark(name: string, nowMs: number): void {
    const parts = MARK_NAME.exec(name);
    if (parts === null || Number(parts[1]) !== this.#generation) return;
    const mark = Number(parts[2]);
    if (mark > this.#lastMark || mark < this.#oldestMark()) return;
    this.#returnsMarks = true;
    if (mark <= this.#returnedMark) return;
    this.#anchor(mark, this.#positionOf(mark), nowMs);
  }

  /** Counts everything up to `mark`, which lies at `positionMs`, as heard although it never came back. */
  assumeHeard(mark: number, positionMs: number, nowMs: number): void {
    this.#heardMs = Math.max(this.#heardMs, positionMs);
    if (mark > this.#returnedMark) this.#anchor(mark, positionMs, nowMs);
  }

  /** The position heard by now: between 0 and `sentMs`, never falling. */
  heardMs(nowMs: number): number {
    let position = this.#sentMs - Math.max(0, this.#playedOutAtMs - nowMs);
    if (this.#returnsMarks && nowMs < this.#playedOutAtMs + LAST_MARK_GRACE_MS) {
      const sinceReturned = this.#returnedPositionMs + (nowMs - this.#returnedAtMs);
      position = Math.min(position, this.#nextMarkMs(), sinceReturned);
    }
    this.#heardMs = Math.max(this.#heardMs, position);
    return this.#heardMs;
  }

  /** The carrier is told to drop what it holds: a new generation begins, with nothing unheard. Returns the position
   * heard until now. */
  clear(nowMs: number): number {
    const heardMs = this.heardMs(nowMs);
    this.#generation += 1;
    this.#heardMs = this.#sentMs;
    this.#playedOutAtMs = nowMs;
    this.#anchor(this.#lastMark, this.#sentMs, nowMs);
    return heardMs;
  }

  #anchor(mark: number, positionMs: number, nowMs: number): void {
    this.#returnedMark = mark;
    this.#returnedPositionMs = positionMs;
    this.#returnedAtMs = nowMs;
  }

  /** The oldest number whose position is still kept. */
  #oldestMark(): number {
    return Math.max(1, this.#lastMark - MARKS_UNRETURNED_MAX + 1);
  }

  #positionOf(mark: number): number {
    return this.#markPositions[mark % MARKS_UNRETURNED_MAX] ?? 0;
  }

  #nextMarkMs(): number {
    if (this.#returnedMark >= this.#lastMark) return this.#sentMs;
    return this.#positionOf(Math.max(this.#returnedMark + 1, this.#oldestMark()));
  }
}
