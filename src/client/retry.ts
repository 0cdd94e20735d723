/**
 * When a lost connection is tried again: twice as long each time, up to a bound, with a random half of it, so that the
 * clients of a server that restarts do not all come back at once; and after so many attempts in vain not at all.
 */
import { ATTEMPTS_MAX, RETRY_FIRST_MS, RETRY_MAX_MS } from './bounds.js';
import { platformChance, platformClock, type Chance, type ClientClock } from './platform.js';

export interface RetryOptions {
  /** 500 by default; a server's `retry:` field takes its place. */
  readonly retryFirstMs?: number;
  /** 15,000 by default. */
  readonly retryMaxMs?: number;
  /** Attempts in a row that brought nothing new; 10 by default, 0 for never again. */
  readonly attemptsMax?: number;
  readonly clock?: ClientClock;
  readonly chance?: Chance;
}

export class Retry {
  readonly #clock: ClientClock;
  readonly #chance: Chance;
  readonly #maxMs: number;
  readonly #attemptsMax: number;
  #firstMs: number;
  #failed = 0;

  constructor(options: RetryOptions) {
    this.#clock = options.clock ?? platformClock;
    this.#chance = options.chance ?? platformChance;
    this.#maxMs = options.retryMaxMs ?? RETRY_MAX_MS;
    this.#attemptsMax = options.attemptsMax ?? ATTEMPTS_MAX;
    this.#firstMs = Math.min(options.retryFirstMs ?? RETRY_FIRST_MS, this.#maxMs);
  }

  /** The server's wish for the first wait. */
  set firstMs(delayMs: number) {
    this.#firstMs = Math.min(delayMs, this.#maxMs);
  }

  /** A connection brought something new. */
  succeeded(): void {
    this.#failed = 0;
  }

  /** Resolves when the next attempt is due, with false if there is none or `signal` aborts first. */
  wait(signal: AbortSignal): Promise<boolean> {
    this.#failed += 1;
    if (signal.aborted || this.#failed >= this.#attemptsMax) return Promise.resolve(false);
    const longestMs = Math.min(this.#maxMs, this.#firstMs * 2 ** (this.#failed - 1));
    return new Promise((resolve) => {
      const onAbort = (): void => {
        timer.cancel();
        resolve(false);
      };
      const timer = this.#clock.setTimer((longestMs * (1 + this.#chance())) / 2, () => {
        signal.removeEventListener('abort', onAbort);
        resolve(true);
      });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
