/**
 * Handlers that were given up and go on all the same. Each keeps its permit for a while, since it still costs what it costs and
 * may be about to end; then whoever waits begins without it. No timer runs while nobody waits.
 */
import type { Clock, Timer } from '../clock.js';
import type { Log } from '../observe/log.js';
import { PERMIT_KEPT_MAX_MS } from '../tool-limits.js';

interface Deaf {
  readonly tool: string;
  readonly sinceMs: number;
}

export class DeafHandlers {
  readonly #clock: Clock;
  readonly #log: Log;
  /** By what gives back its permit; the oldest first. */
  readonly #deaf = new Map<() => void, Deaf>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  add(tool: string, work: Promise<unknown>, giveBack: () => void): void {
    this.#deaf.set(giveBack, { tool, sinceMs: this.#clock.nowMs() });
    const ended = (): void => void this.#deaf.delete(giveBack);
    void work.then(ended, ended);
  }

  /** Takes the permits of those that have had their time, now and whenever another one has, until it is cancelled. */
  watch(): Timer {
    let timer: Timer | undefined;
    const look = (): void => {
      timer = this.#clock.setTimer(this.#free(), look);
    };
    look();
    return { cancel: () => timer?.cancel() };
  }

  /** Returns in how many milliseconds the next one may have had its time. */
  #free(): number {
    const nowMs = this.#clock.nowMs();
    for (const [giveBack, { tool, sinceMs }] of this.#deaf) {
      const leftMs = sinceMs + PERMIT_KEPT_MAX_MS - nowMs;
      if (leftMs > 0) return leftMs;
      this.#deaf.delete(giveBack);
      this.#log.warn({ tool }, 'a tool that was given up goes on; others begin without waiting for it');
      giveBack();
    }
    return PERMIT_KEPT_MAX_MS;
  }
}
