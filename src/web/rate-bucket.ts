/**
 * How much may come: so much at once, and so much a second from then on. Time is read only where something comes.
 */
import type { Clock } from '../clock.js';

export class RateBucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #atMs: number;

  constructor(options: { readonly clock: Clock; readonly burst: number; readonly perSecond: number }) {
    this.#clock = options.clock;
    this.#burst = options.burst;
    this.#perSecond = options.perSecond;
    this.#left = options.burst;
    this.#atMs = options.clock.nowMs();
  }

  /** What may come now; below zero it is debt. */
  get left(): number {
    return this.#left;
  }

  /** Takes `amount` if there is as much; false if not, and then nothing is taken. */
  take(amount: number): boolean {
    this.#refill();
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }

  /** Takes `amount` in any case; false if that makes debt. */
  spend(amount: number): boolean {
    this.#refill();
    this.#left -= amount;
    return this.#left >= 0;
  }

  #refill(): void {
    const nowMs = this.#clock.nowMs();
    const earned = ((nowMs - this.#atMs) * this.#perSecond) / 1000;
    this.#left = Math.min(this.#burst, this.#left + earned);
    this.#atMs = nowMs;
  }
}
