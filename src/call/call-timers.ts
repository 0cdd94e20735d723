/**
 * The named timers of one call: at most one of each name, all of them gone when the call has ended.
 */
import type { Clock, Timer } from '../clock.js';

export class CallTimers<Name extends string> {
  readonly #clock: Clock;
  readonly #fire: (name: Name) => void;
  readonly #timers = new Map<Name, Timer>();

  constructor(clock: Clock, fire: (name: Name) => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Starts the timer, anew if it runs. */
  arm(name: Name, delayMs: number): void {
    this.disarm(name);
    const timer = this.#clock.setTimer(delayMs, () => {
      this.#timers.delete(name);
      this.#fire(name);
    });
    this.#timers.set(name, timer);
  }

  disarm(name: Name): void {
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
  }

  disarmAll(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  has(name: Name): boolean {
    return this.#timers.has(name);
  }

  get size(): number {
    return this.#timers.size;
  }
}
