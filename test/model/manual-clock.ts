/**
 * A clock that stands still until a test moves it, and can tell how many timers are set.
 */
import type { Clock, Timer } from '../../src/clock.js';

export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ dueMs: number; fire: () => void }>();

  get pendingTimers(): number {
    return this.#timers.size;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const timer = { dueMs: this.#nowMs + delayMs, fire };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  advance(byMs: number): void {
    this.#nowMs += byMs;
    for (const timer of this.#timers) {
      if (timer.dueMs > this.#nowMs) continue;
      this.#timers.delete(timer);
      timer.fire();
    }
  }
}
