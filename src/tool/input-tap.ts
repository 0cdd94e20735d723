/**
 * A tool's private copy of what comes from the caller: begins empty, is bounded, and lets the oldest go. Copies are made by
 * whoever feeds it, and only while somebody listens.
 */
import type { InputFrame, InputStream } from '../agent/tool-context.js';

export class InputTap implements InputStream {
  /** A ring would save nothing: at most 250 pointers move twice a second. */
  #frames: InputFrame[] = [];
  #isClosed = false;
  /** Of everybody who waits for a frame; the first one gets it, the others wait on. */
  readonly #waiting = new Set<() => void>();
  readonly #framesMax: number;
  /** Frames that nobody took in time. */
  dropped = 0;

  constructor(framesMax: number) {
    this.#framesMax = framesMax;
  }

  get size(): number {
    return this.#frames.length;
  }

  push(frame: InputFrame): void {
    if (this.#isClosed) return;
    if (this.#frames.length >= this.#framesMax) {
      this.#frames.shift();
      this.dropped += 1;
    }
    this.#frames.push(frame);
    this.#wake();
  }

  drainLatest(): InputFrame | undefined {
    const latest = this.#frames.at(-1);
    this.#frames = [];
    return latest;
  }

  /** Forgets what is in it; whoever waits for more is done. */
  close(): void {
    this.#isClosed = true;
    this.#frames = [];
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  [Symbol.asyncIterator](): AsyncIterator<InputFrame> {
    return {
      next: async () => {
        while (this.#frames.length === 0 && !this.#isClosed) {
          await new Promise<void>((resolve) => {
            this.#waiting.add(resolve);
          });
        }
        const value = this.#frames.shift();
        return value === undefined ? { done: true, value: undefined } : { done: false, value };
      },
      return: () => Promise.resolve({ done: true, value: undefined }),
    };
  }
}
