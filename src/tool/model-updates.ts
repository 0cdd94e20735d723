/**
 * What the model should be told without having asked: values of streaming tools, outcomes of work that was only begun. It
 * waits until neither side is speaking; of each streaming tool only the newest value waits.
 */
import { UPDATES_WAITING_MAX } from '../tool-limits.js';

export interface ModelUpdate {
  /** Of what: a newer one of the same kind takes its place. Without it, it stands for itself. */
  readonly replaces?: string;
  readonly text: string;
  /** Id of the function call whose result it tells. */
  readonly callId?: string;
  /** Told at once, whoever speaks. */
  readonly interrupts: boolean;
}

export class ModelUpdates {
  #waiting: ModelUpdate[] = [];
  get size(): number {
    return this.#waiting.length;
  }

  /** Function calls whose results wait to be told. */
  get callIds(): ReadonlySet<string> {
    return new Set(this.#waiting.flatMap(({ callId }) => callId ?? []));
  }

  /** A value keeps the place of the one that it takes the place of. Returns what is told to nobody, because too much waits. */
  add(update: ModelUpdate): ModelUpdate | undefined {
    const at =
      update.replaces === undefined
        ? -1
        : this.#waiting.findIndex(({ replaces }) => replaces === update.replaces);
    if (at >= 0) this.#waiting[at] = update;
    else this.#waiting.push(update);
    if (this.#waiting.length <= UPDATES_WAITING_MAX) return undefined;
    const value = this.#waiting.findIndex(({ replaces }) => replaces !== undefined);
    return this.#waiting.splice(Math.max(0, value), 1)[0];
  }

  /** The next one to tell: those that interrupt first, where one may; others only in a pause. */
  take(isPause: boolean, mayInterrupt = true): ModelUpdate | undefined {
    const urgent = mayInterrupt ? this.#waiting.findIndex(({ interrupts }) => interrupts) : -1;
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
