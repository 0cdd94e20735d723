/** Function calls that were sent and not answered yet. Bounded in number, and in time by the clock. */
import type { Clock } from '../../clock.js';
import { REHEARSAL_OPEN_CALLS_MAX, REHEARSAL_TOOL_WAIT_MAX_MS } from '../../limits.js';
import type { DialogueCall } from './dialogue.js';

export interface OpenCall {
  readonly id: string;
  readonly wish: DialogueCall;
  readonly blocking: boolean;
  readonly openedMs: number;
  /** How many calls led to this one by their results. */
  readonly depth: number;
}

export class OpenCalls {
  readonly #clock: Clock;
  /** In order of age, the oldest first. */
  readonly #calls = new Map<string, OpenCall>();
  #made = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls that may still be answered; those that waited too long are forgotten. */
  get count(): number {
    for (const { id, openedMs } of this.#calls.values()) {
      if (this.#clock.nowMs() - openedMs > REHEARSAL_TOOL_WAIT_MAX_MS) this.#calls.delete(id);
    }
    return this.#calls.size;
  }

  get anyBlocks(): boolean {
    return [...this.#calls.values()].some(({ blocking }) => blocking);
  }

  open(wish: DialogueCall, blocking: boolean, depth: number): OpenCall {
    const id = `function-call-${++this.#made}`;
    const call = { id, wish, blocking, depth, openedMs: this.#clock.nowMs() };
    this.#calls.set(id, call);
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= REHEARSAL_OPEN_CALLS_MAX) break;
      this.#calls.delete(oldest);
    }
    return call;
  }

  get(id: string | undefined): OpenCall | undefined {
    return id === undefined ? undefined : this.#calls.get(id);
  }

  forget(id: string): void {
    this.#calls.delete(id);
  }

  /** Forgets all and tells their ids. */
  cancelAll(): string[] {
    const ids = [...this.#calls.keys()];
    this.#calls.clear();
    return ids;
  }
}
