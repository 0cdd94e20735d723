/**
 * What the model should be told without having asked: values of streaming tools, outcomes of work that was only begun. It
 * waits until neither side is speaking; of each streaming tool only the newest value waits. Bounded: the oldest goes.
 */
import { UPDATES_WAITING_MAX } from '../tool-limits.js';

export interface ModelUpdate {
  /** Of what: a newer one of the same kind takes its place. Without it, it stands for itself. */
  readonly replaces?: string;
  readonly text: string;
  /** Told at once, whoever speaks. */
  readonly interrupts: boolean;
}

export class ModelUpdates {
  #waiting: ModelUpdate[] = [];
  /** Told to nobody. */
  dropped = 0;

  get size(): number {
    return this.#waiting.length;
  }

  /** A value keeps the place of the one that it takes the place of. */
  add(update: ModelUpdate): void {
    const at =
      update.replaces === undefined
        ? -1
        : this.#waiting.findIndex(({ replaces }) => replaces === update.replaces);
    if (at >= 0) this.#waiting[at] = update;
    else this.#waiting.push(update);
    while (this.#waiting.length > UPDATES_WAITING_MAX) {
      this.#waiting.shift();
      this.dropped += 1;
    }
  }

  /** The next one to tell: those that interrupt first; others only in a pause. */
  take(isPause: boolean): ModelUpdate | undefined {
    const urgent = this.#waiting.findIndex(({ interrupts }) => interrupts);
    const at = urgent >= 0 ? urgent : isPause ? 0 : -1;
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }

  /** Of a tool that was stopped: what it said last is not told any more. */
  forget(replaces: string): void {
    this.#waiting = this.#waiting.filter((update) => update.replaces !== replaces);
  }

  clear(): void {
    this.#waiting = [];
  }
}
