import type { CallOutcome, CallRef } from './tool-work.js';

/** What tools go on with behind their answer: streaming tools that run, and calls that somebody has yet to settle. */
export class WorkUnderWay {
  readonly #pending = new Set<string>();
  readonly #streaming = new Set<string>();
  /** Over before the call was answered, because a guard took its time with the answer. */
  readonly #overEarly = new Set<string>();

  get isAny(): boolean {
    return this.#pending.size > 0 || this.#streaming.size > 0;
  }

  begun({ id, name }: CallRef, kind: CallOutcome['kind']): void {
    if (kind === 'pending') this.#pending.add(id);
    if (kind === 'streaming' && !this.#overEarly.delete(name)) this.#streaming.add(name);
  }

  settled(id: string): void {
    this.#pending.delete(id);
  }

  streamOver(name: string): void {
    if (!this.#streaming.delete(name)) this.#overEarly.add(name);
  }
}
