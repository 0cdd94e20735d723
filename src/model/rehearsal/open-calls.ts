/** Function calls that were sent and not answered yet. Bounded in number, and in time by the clock. */
import type { Clock } from '../../clock.js';
import { REHEARSAL_OPEN_CALLS_MAX, REHEARSAL_TOOL_WAIT_MAX_MS } from './rehearsal-limits.js';
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
  readonly #onForgotten: (call: OpenCall) => void;
  /** In order of age, the oldest first. */
  readonly #calls = new Map<string, OpenCall>();
  #made = 0;

  /** `onForgotten` is told of each call that is given up without an answer, by age or by number. */
  constructor(clock: Clock, onForgotten: (call: OpenCall) => void) {
    this.#clock = clock;
    this.#onForgotten = onForgotten;
  }

  /** Calls that may still be answered; those that waited too long are forgotten. */
  get count(): number {
    for (const call of this.#calls.values()) {
      if (this.#clock.nowMs() - call.openedMs > REHEARSAL_TOOL_WAIT_MAX_MS) this.#giveUp(call);
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
    for (const oldest of this.#calls.values()) {
      if (this.#calls.size <= REHEARSAL_OPEN_CALLS_MAX) break;
      this.#giveUp(oldest);
    }
    return call;
  }

  get(id: string | undefined): OpenCall | undefined {
    return id === undefined ? undefined : this.#calls.get(id);
  }

  forget(id: string): void {
    this.#calls.delete(id);
  }

  #giveUp(call: OpenCall): void {
    this.#calls.delete(call.id);
    this.#onForgotten(call);
  }

  /** Forgets all and tells their ids. */
  cancelAll(): string[] {
    const ids = [...this.#calls.keys()];
    this.#calls.clear();
    return ids;
  }
}
