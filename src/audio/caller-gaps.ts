/**
 * Keeps the caller's sound as long as the time it stands for. The carrier sends nothing for sound that it never got, only
 * its timestamps jump; and when the link stalls nothing comes at all. The model finds the end of a turn by the silence
 * it hears, so silence has to be put in. This says how much; feeding it is left to the call. Pure: time comes in as
 * numbers.
 *
 * The fed sound (frames and silence together) never gets ahead of the carrier's timestamps, but for frames sent twice
 * and for what `idleFillMs` gave: at most the time that passed, and CALLER_GAP_FILL_MAX_MS a stall.
 */
import {
  CALLER_GAP_FILL_MAX_MS,
  CALLER_IDLE_FILL_AFTER_MS,
  FRAME_MS,
  MULAW_BYTES_PER_MS,
} from '../limits.js';

/** A jump that is believed only when the next timestamp goes on from it: no caller is silent for ten minutes. */
const JUMP_MAX_MS = 10 * 60_000;

/** What was met and done so far, for metrics and the log. */
export interface CallerGapCounts {
  /** Silence put in for jumps of the timestamps, and for stalls. */
  gapFilledMs: number;
  idleFilledMs: number;
  /** Gaps beyond what is filled. */
  unfilledMs: number;
  /** Timestamps that were no number or negative. */
  invalid: number;
  /** Timestamps that were not later than the one before. */
  notAdvancing: number;
  /** Jumps too long to be believed at once. */
  wild: number;
}

export class CallerGaps {
  readonly counts: CallerGapCounts = {
    gapFilledMs: 0,
    idleFilledMs: 0,
    unfilledMs: 0,
    invalid: 0,
    notAdvancing: 0,
    wild: 0,
  };
  /** Carrier time up to which sound was fed, stalls apart; undefined before the first valid timestamp. */
  #fedUntilMs: number | undefined;
  #lastTimestampMs = -1;
  /** Where the timestamps go on if the last wild jump was true. */
  #wildNextMs = Number.NaN;
  /** When the last frame came, by the clock. */
  #arrivedMs: number | undefined;
  /** Silence fed since then. */
  #idleFilledMs = 0;
  /** Silence fed in past stalls that may yet turn up as a gap, and the carrier time after which it cannot. */
  #creditMs = 0;
  #creditUntilMs = 0;

  /**
   * A frame of `byteLength` bytes of mu-law came at `nowMs` (monotonic clock). Returns the milliseconds of silence, whole,
   * 0 to CALLER_GAP_FILL_MAX_MS, to feed before it. `timestampMs` is the carrier's: milliseconds from the start of its
   * stream to the start of the frame. Any value is taken; one that makes no sense fills nothing and is counted.
   */
  onFrame(timestampMs: number, byteLength: number, nowMs: number): number {
    this.#endStall(nowMs);
    const durationMs = byteLength / MULAW_BYTES_PER_MS;
    const fillMs = this.#fillBefore(timestampMs, durationMs);
    if (this.#fedUntilMs !== undefined) this.#fedUntilMs += durationMs;
    this.counts.gapFilledMs += fillMs;
    return fillMs;
  }

  /**
   * To be asked every now and then. When no frame has come for CALLER_IDLE_FILL_AFTER_MS, returns the milliseconds of
   * silence, whole frames, to feed now so that fed sound keeps up with the clock, until it has given
   * CALLER_GAP_FILL_MAX_MS for this stall; else 0. A gap that the next frames bring is filled only as far as it was
   * not filled here.
   */
  idleFillMs(nowMs: number): number {
    if (this.#arrivedMs === undefined) return 0;
    const idleMs = nowMs - this.#arrivedMs;
    if (!(idleMs >= CALLER_IDLE_FILL_AFTER_MS)) return 0;
    const wantedMs = Math.min(CALLER_GAP_FILL_MAX_MS, idleMs - (idleMs % FRAME_MS));
    const fillMs = Math.max(0, wantedMs - this.#idleFilledMs);
    this.#idleFilledMs += fillMs;
    this.counts.idleFilledMs += fillMs;
    return fillMs;
  }

  /** A new carrier stream begins, whose timestamps have nothing to do with those before. The counts go on. */
  reset(): void {
    this.#fedUntilMs = undefined;
    this.#lastTimestampMs = -1;
    this.#wildNextMs = Number.NaN;
    this.#arrivedMs = undefined;
    this.#idleFilledMs = 0;
    this.#creditMs = 0;
  }

  #endStall(nowMs: number): void {
    if (this.#idleFilledMs > 0 && this.#arrivedMs !== undefined) {
      this.#creditMs += this.#idleFilledMs;
      this.#creditUntilMs = (this.#fedUntilMs ?? 0) + (nowMs - this.#arrivedMs);
      this.#idleFilledMs = 0;
    }
    this.#arrivedMs = nowMs;
  }

  #fillBefore(timestampMs: number, durationMs: number): number {
    if (!(timestampMs >= 0 && timestampMs < Infinity)) {
      this.counts.invalid++;
      return 0;
    }
    if (timestampMs <= this.#lastTimestampMs) this.counts.notAdvancing++;
    this.#lastTimestampMs = timestampMs;
    this.#fedUntilMs ??= timestampMs;
    const gapMs = timestampMs - this.#fedUntilMs;
    if (gapMs < FRAME_MS) return 0;
    if (gapMs > JUMP_MAX_MS) {
      this.#onWildJump(timestampMs, durationMs);
      return 0;
    }
    const filledMs = this.#takeCredit(gapMs);
    const fillMs = Math.min(CALLER_GAP_FILL_MAX_MS, Math.floor(gapMs - filledMs));
    this.counts.unfilledMs += gapMs - filledMs - fillMs;
    this.#fedUntilMs = timestampMs;
    return fillMs;
  }

  /** The first wild jump is passed over; when the next timestamp goes on from it, so does the position. */
  #onWildJump(timestampMs: number, durationMs: number): void {
    this.counts.wild++;
    if (Math.abs(timestampMs - this.#wildNextMs) < FRAME_MS) this.#fedUntilMs = timestampMs;
    this.#wildNextMs = timestampMs + durationMs;
  }

  /** How much of a gap was fed already while the link stalled. */
  #takeCredit(gapMs: number): number {
    if (this.#fedUntilMs === undefined || this.#fedUntilMs >= this.#creditUntilMs) this.#creditMs = 0;
    const takenMs = Math.min(this.#creditMs, gapMs);
    this.#creditMs -= takenMs;
    return takenMs;
  }
}
