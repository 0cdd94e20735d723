/**
 * The calls of one message of the model, which are answered together: once each, in the order of the calls, in one frame
 * as soon as the last one has its result.
 */
import type { FunctionResponse } from '../model/live-connection.js';
import type { CallRef } from './tool-work.js';

export interface ToolGroupOptions {
  readonly calls: readonly CallRef[];
  /** Each result in a frame of its own, as it comes. */
  readonly isEach: boolean;
  /** One frame. */
  readonly answer: (responses: readonly FunctionResponse[]) => void;
}

export class ToolGroup {
  readonly #options: ToolGroupOptions;
  readonly #open: Set<string>;
  /** Results that wait for the group's frame. */
  readonly #waiting = new Map<string, FunctionResponse>();
  readonly #all = new Map<string, FunctionResponse>();
  #done: (responses: readonly FunctionResponse[]) => void = () => {};
  /** Every result, in the order of the calls, when the last one is there; without those that were withdrawn. */
  readonly done = new Promise<readonly FunctionResponse[]>((resolve) => {
    this.#done = resolve;
  });

  constructor(options: ToolGroupOptions) {
    this.#options = options;
    this.#open = new Set(options.calls.map(({ id }) => id));
  }

  /** `atOnce`: not held back for the others. */
  settle(response: FunctionResponse, atOnce: boolean): void {
    if (!this.#open.delete(response.id)) return;
    this.#all.set(response.id, response);
    if (atOnce || this.#options.isEach) this.#options.answer([response]);
    else this.#waiting.set(response.id, response);
    this.#flush();
  }

  /** The call is not answered any more, not even if its result is there and waits for the others. */
  withdraw(id: string): void {
    if (this.#waiting.delete(id)) this.#all.delete(id);
    else if (this.#open.delete(id)) this.#flush();
  }

  #flush(): void {
    if (this.#open.size > 0) return;
    const inOrder = (of: ReadonlyMap<string, FunctionResponse>): FunctionResponse[] =>
      this.#options.calls.flatMap(({ id }) => of.get(id) ?? []);
    const frame = inOrder(this.#waiting);
    this.#waiting.clear();
    if (frame.length > 0) this.#options.answer(frame);
    this.#done(inOrder(this.#all));
  }
}
