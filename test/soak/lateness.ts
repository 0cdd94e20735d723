/**
 * How late the soak's own event loop was, and when. Callers, carrier and model live in it, so that while it stands still nobody can hear, speak
 * or answer: a silence is as much shorter for the server as it was late in it.
 */
import { type Clock, type Timer } from '../../src/clock.js';

const STEP_MS = 20;
/** Less is Node's own rounding. */
const LATE_MIN_MS = 10;

interface Late {
  readonly atMs: number;
  readonly lateMs: number;
}

export class Lateness {
  readonly #clock: Clock;
  readonly #late: Late[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(): void {
    const dueMs = this.#clock.nowMs() + STEP_MS;
    this.#timer = this.#clock.setTimer(STEP_MS, () => {
      const nowMs = this.#clock.nowMs();
      if (nowMs - dueMs >= LATE_MIN_MS) this.#late.push({ atMs: nowMs, lateMs: nowMs - dueMs });
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  get most(): number {
    return this.#late.reduce((most, { lateMs }) => Math.max(most, lateMs), 0);
  }

  /** For how long it stood still between two times of the clock. */
  within(fromMs: number, toMs: number): number {
    let sumMs = 0;
    for (const { atMs, lateMs } of this.#late) {
      const shared = Math.min(atMs, toMs) - Math.max(atMs - lateMs, fromMs);
      if (shared > 0) sumMs += shared;
    }
    return sumMs;
  }
}
