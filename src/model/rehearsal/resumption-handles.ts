/**
 * Where each conversation stood when its handle was given out, so that a client can come back with it. Bounded in
 * number, and in time: a handle is good until a while after its conversation's connection ended.
 */
import type { Clock } from '../../clock.js';
import { REHEARSAL_HANDLE_LIFE_MS, REHEARSAL_HANDLES_MAX } from './rehearsal-limits.js';
import type { DialogueState } from './dialogue-step.js';

/** The connection that handles are given out to. */
export interface HandleHolder {
  /** Undefined while it is open. */
  readonly endedMs: number | undefined;
  readonly lineage: Lineage;
}

/** What the connections of one conversation share. */
export interface Lineage {
  /** How often the conversation was to be resumed, refusals by the dialogue among them. */
  resumptions: number;
}

interface Kept {
  readonly state: DialogueState;
  readonly holder: HandleHolder;
}

export type TakenHandle =
  { readonly state: DialogueState; readonly lineage: Lineage } | { readonly refused: 'unknown' | 'in_use' };

export class ResumptionHandles {
  readonly #clock: Clock;
  /** In order of age, the oldest first. */
  readonly #kept = new Map<string, Kept>();
  #next = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  offer(state: DialogueState, holder: HandleHolder): string {
    const handle = `rehearsal-${this.#next++}`;
    this.#kept.set(handle, { state, holder });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= REHEARSAL_HANDLES_MAX) break;
      this.#kept.delete(oldest);
    }
    return handle;
  }

  /** A handle that was never given out, is forgotten or too old is unknown. One that is good may be used again. */
  take(handle: string): TakenHandle {
    const kept = this.#kept.get(handle);
    if (kept === undefined) return { refused: 'unknown' };
    const { endedMs } = kept.holder;
    if (endedMs === undefined) return { refused: 'in_use' };
    if (this.#clock.nowMs() - endedMs > REHEARSAL_HANDLE_LIFE_MS) {
      this.#kept.delete(handle);
      return { refused: 'unknown' };
    }
    return { state: kept.state, lineage: kept.holder.lineage };
  }
}
