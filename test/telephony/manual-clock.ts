/** A clock that stands until a test moves it. Timers due at one moment fire in the order they were set. */
import type { Clock, Timer } from '../../src/clock.js';

interface Pending {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 1_000;
  readonly #pending = new Set<Pending>();

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return 1_800_000_000_000 + this.#nowMs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), fire };
    this.#pending.add(timer);
    return { cancel: () => void this.#pending.delete(timer) };
  }

  get pendingTimers(): number {
    return this.#pending.size;
  }

  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let next: Pending | undefined;
      for (const timer of this.#pending) {
        if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
      }
      if (next === undefined) break;
      this.#pending.delete(next);
      this.#nowMs = next.dueMs;
      next.fire();
    }
    this.#nowMs = endMs;
  }
}
