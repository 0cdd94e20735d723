/** What all tools of one run share: values by key, and waiting for one that another tool will set. */
import type { SharedState } from '../agent/tool-context.js';
import type { Clock } from '../clock.js';
import { handedOut, isInstance } from '../foreign.js';
import { SHARED_KEY_MAX_BYTES, SHARED_KEYS_MAX, SHARED_WAIT_MAX_MS, SHARED_WAIT_MS } from '../tool-limits.js';
import { TimeUp, withinTime } from './within-time.js';

export class SharedValues {
  readonly #values = new Map<string, unknown>();
  readonly #waiting = new Map<string, Set<(value: unknown) => void>>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As one tool sees it: what it waits for ends with `signal`. */
  for(signal: AbortSignal): SharedState {
    return {
      get: (key) => this.#values.get(checked(key)),
      set: (key, value) => this.#set(checked(key), value),
      waitFor: (key, options) =>
        handedOut(() => this.#waitFor(checked(key), options?.timeoutMs ?? SHARED_WAIT_MS, signal)),
    };
  }

  #set(key: string, value: unknown): void {
    if (!this.#values.has(key) && this.#values.size >= SHARED_KEYS_MAX)
      throw new RangeError(`shared: there are ${SHARED_KEYS_MAX} keys already`);
    this.#values.set(key, value);
    for (const tell of this.#waiting.get(key) ?? []) tell(value);
    this.#waiting.delete(key);
  }

  async #waitFor(key: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    if (!(timeoutMs >= 1 && timeoutMs <= SHARED_WAIT_MAX_MS))
      throw new RangeError(`shared: timeoutMs must be 1 to ${SHARED_WAIT_MAX_MS}`);
    if (this.#values.has(key)) return this.#values.get(key);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    let tell: (value: unknown) => void = () => {};
    const told = new Promise((resolve) => {
      tell = resolve;
      waiting.add(tell);
    });
    try {
      return await withinTime(told, { clock: this.#clock, delayMs: timeoutMs, signal });
    } catch (error) {
      // Told apart from the tool's own time, which is not over.
      if (!isInstance(error, TimeUp)) throw error;
      throw new Error(`shared: nobody set ${key} within ${timeoutMs / 1000} s`, { cause: error });
    } finally {
      waiting.delete(tell);
      if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    }
  }
}

function checked(key: unknown): string {
  if (typeof key === 'string' && key !== '' && Buffer.byteLength(key) <= SHARED_KEY_MAX_BYTES) return key;
  throw new RangeError(`shared: a key is text of 1 to ${SHARED_KEY_MAX_BYTES} bytes`);
}
