/** Time that stands still until a test moves it. */
import type { Clock, Timer } from '../../../src/clock.js';

interface Waiting {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #waiting = new Set<Waiting>();

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  get timers(): number {
    return this.#waiting.size;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const waiting: Waiting = { dueMs: this.#nowMs + Math.max(0, delayMs), fire };
    this.#waiting.add(waiting);
    return { cancel: () => void this.#waiting.delete(waiting) };
  }

  /** Fires what falls due, in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#waiting]
        .filter(({ dueMs }) => dueMs <= endMs)
        .sort((a, b) => a.dueMs - b.dueMs)[0];
      if (due === undefined) break;
      this.#waiting.delete(due);
      this.#nowMs = due.dueMs;
      due.fire();
    }
    this.#nowMs = endMs;
  }
}
