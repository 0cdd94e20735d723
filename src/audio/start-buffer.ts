/**
 * How much sound must wait before speech starts, or goes on after the carrier ran dry. Normally START_BUFFER_MIN_MS,
 * which the model's usual first chunk fills at once, while a short one waits for the second. A model that stuttered
 * is given more room, step by step, and clean utterances take it back.
 * It decides only; the playout sends and owns the timer.
 */
import {
  START_BUFFER_DECAY_MS,
  START_BUFFER_MAX_MS,
  START_BUFFER_MIN_MS,
  START_BUFFER_STEP_MS,
  START_BUFFER_WAIT_FACTOR,
  START_BUFFER_WAIT_MAX_MS,
} from '../limits.js';

export class StartBuffer {
  #targetMs: number = START_BUFFER_MIN_MS;
  #deadlineMs = Number.POSITIVE_INFINITY;

  /** Sound that has to wait before the next start. */
  get targetMs(): number {
    return this.#targetMs;
  }

  /** When the present wait ends even if the buffer is not full, so that a trickle is played too. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Whether sound may start with `waitingMs` queued; the first refusal begins the bounded wait. */
  isFull(waitingMs: number, nowMs: number): boolean {
    if (waitingMs >= this.#targetMs) return true;
    if (this.#deadlineMs === Number.POSITIVE_INFINITY) {
      this.#deadlineMs =
        nowMs + Math.min(START_BUFFER_WAIT_MAX_MS, START_BUFFER_WAIT_FACTOR * this.#targetMs);
    }
    return nowMs >= this.#deadlineMs;
  }

  /** Sound was sent, or what waited was dropped: the wait is over. */
  endWait(): void {
    this.#deadlineMs = Number.POSITIVE_INFINITY;
  }

  /** The model let the carrier run dry within speech. */
  grow(): void {
    this.#targetMs = Math.min(START_BUFFER_MAX_MS, this.#targetMs + START_BUFFER_STEP_MS);
  }

  /** An utterance was sent whole without running dry. */
  decay(): void {
    this.#targetMs = Math.max(START_BUFFER_MIN_MS, this.#targetMs - START_BUFFER_DECAY_MS);
  }
}
