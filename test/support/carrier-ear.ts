/**
 * The carrier's end of a media stream and the caller's ear: plays 8 bytes of mu-law a millisecond on a virtual clock,
 * returns a mark when everything before it was played (at once if nothing waits), and on `clear` drops what
 * waits and returns all pending marks, as Twilio does. Keeps what was heard, to the byte and to the millisecond.
 */
import type { Clock, Timer } from '../../src/clock.js';
import { MULAW_BYTES_PER_MS, MULAW_SILENCE } from '../../src/limits.js';

/** A stretch of sound that was played without a gap. */
export interface HeardStretch {
  readonly startMs: number;
  readonly sound: Uint8Array;
}

export interface CarrierEarOptions {
  readonly clock: Clock;
  /** Called once per returned mark, always from a timer. */
  readonly onMark: (name: string) => void;
  /** How a mark comes back: one return for each delay in milliseconds. Default `[0]`: once, at once. `[]` loses it. */
  readonly returnDelays?: (name: string) => readonly number[];
}

interface Piece {
  readonly startMs: number;
  readonly sound: Uint8Array;
}

interface PendingMark {
  readonly name: string;
  readonly timer: Timer;
}

export class CarrierEar {
  readonly #clock: Clock;
  readonly #onMark: (name: string) => void;
  readonly #returnDelays: (name: string) => readonly number[];
  #pieces: Piece[] = [];
  #pendingMarks: PendingMark[] = [];
  readonly #returns = new Set<Timer>();
  #playedOutAtMs = 0;
  /** All sound taken, less what was cleared. */
  #takenMs = 0;
  #queuedMaxMs = 0;
  #clears = 0;

  constructor({ clock, onMark, returnDelays = () => [0] }: CarrierEarOptions) {
    this.#clock = clock;
    this.#onMark = onMark;
    this.#returnDelays = returnDelays;
    this.#playedOutAtMs = clock.nowMs();
  }

  /** Sound waiting to be played. */
  get queuedMs(): number {
    return Math.max(0, this.#playedOutAtMs - this.#clock.nowMs());
  }

  /** Sound played until now, gaps not counted. */
  get playedMs(): number {
    return this.#takenMs - this.queuedMs;
  }

  /** The most that ever waited. */
  get queuedMaxMs(): number {
    return this.#queuedMaxMs;
  }

  get clears(): number {
    return this.#clears;
  }

  /** Names of marks whose sound has not been played. */
  get pendingMarks(): readonly string[] {
    return this.#pendingMarks.map((mark) => mark.name);
  }

  /** A `media` message; the bytes are copied. */
  media(mulaw: Uint8Array): void {
    const startMs = Math.max(this.#playedOutAtMs, this.#clock.nowMs());
    this.#pieces.push({ startMs, sound: mulaw.slice() });
    this.#playedOutAtMs = startMs + mulaw.length / MULAW_BYTES_PER_MS;
    this.#takenMs += mulaw.length / MULAW_BYTES_PER_MS;
    this.#queuedMaxMs = Math.max(this.#queuedMaxMs, this.queuedMs);
  }

  /** A `mark` message. */
  mark(name: string): void {
    const timer = this.#clock.setTimer(this.queuedMs, () => {
      this.#pendingMarks = this.#pendingMarks.filter((mark) => mark !== pending);
      this.#return(name);
    });
    const pending = { name, timer };
    this.#pendingMarks.push(pending);
  }

  /** A `clear` message. */
  clear(): void {
    this.#clears += 1;
    const nowMs = this.#clock.nowMs();
    this.#pieces = this.#pieces
      .filter((piece) => piece.startMs < nowMs)
      .map((piece) => ({
        startMs: piece.startMs,
        sound: piece.sound.subarray(0, Math.floor((nowMs - piece.startMs) * MULAW_BYTES_PER_MS)),
      }));
    this.#takenMs -= this.queuedMs;
    this.#playedOutAtMs = Math.min(this.#playedOutAtMs, nowMs);
    const marks = this.#pendingMarks;
    this.#pendingMarks = [];
    for (const { name, timer } of marks) {
      timer.cancel();
      this.#return(name);
    }
  }

  /** The line is cut: no mark comes back any more and no timer is left. */
  hangUp(): void {
    for (const { timer } of this.#pendingMarks) timer.cancel();
    for (const timer of this.#returns) timer.cancel();
    this.#pendingMarks = [];
    this.#returns.clear();
  }

  /** What was played until now, a new stretch after each gap. */
  stretches(): readonly HeardStretch[] {
    const nowMs = this.#clock.nowMs();
    const stretches: { startMs: number; endMs: number; parts: Uint8Array[] }[] = [];
    for (const { startMs, sound } of this.#pieces) {
      const playedBytes = Math.min(sound.length, Math.floor((nowMs - startMs) * MULAW_BYTES_PER_MS));
      if (playedBytes <= 0) continue;
      const part = sound.subarray(0, playedBytes);
      const last = stretches.at(-1);
      // Less than a byte's time is rounding of the clock, not a gap.
      if (last !== undefined && startMs - last.endMs < 1 / MULAW_BYTES_PER_MS) last.parts.push(part);
      else stretches.push({ startMs, endMs: 0, parts: [part] });
      const current = stretches.at(-1);
      if (current !== undefined) current.endMs = startMs + playedBytes / MULAW_BYTES_PER_MS;
    }
    return stretches.map(({ startMs, parts }) => ({ startMs, sound: Buffer.concat(parts) }));
  }

  /** All sound played until now, without the gaps. */
  heard(): Uint8Array {
    return Buffer.concat(this.stretches().map(({ sound }) => sound));
  }

  /** What a recorder on the line has got since `fromMs`: gaps are silence. */
  recording(fromMs: number): Uint8Array {
    const bytes = Math.max(0, Math.floor((this.#clock.nowMs() - fromMs) * MULAW_BYTES_PER_MS));
    const recorded = new Uint8Array(bytes).fill(MULAW_SILENCE);
    for (const { startMs, sound } of this.stretches()) {
      const at = Math.floor((startMs - fromMs) * MULAW_BYTES_PER_MS);
      for (let index = Math.max(0, -at); index < sound.length && at + index < bytes; index += 1) {
        recorded[at + index] = sound[index] ?? MULAW_SILENCE;
      }
    }
    return recorded;
  }

  #return(name: string): void {
    for (const delayMs of this.#returnDelays(name)) {
      const timer = this.#clock.setTimer(delayMs, () => {
        this.#returns.delete(timer);
        this.#onMark(name);
      });
      this.#returns.add(timer);
    }
  }
}
