/** Where each conversation stood when its handle was given out, so that a client can come back with it. Bounded. */
import { REHEARSAL_HANDLES_MAX } from '../../limits.js';
import type { DialogueState } from './dialogue.js';

export class ResumptionHandles {
  /** In order of age, the oldest first. */
  readonly #states = new Map<string, DialogueState>();
  #next = 1;

  offer(state: DialogueState): string {
    const handle = `rehearsal-${this.#next++}`;
    this.#states.set(handle, state);
    for (const oldest of this.#states.keys()) {
      if (this.#states.size <= REHEARSAL_HANDLES_MAX) break;
      this.#states.delete(oldest);
    }
    return handle;
  }

  /** Undefined for a handle that was never given out or is forgotten. A handle may be used again. */
  take(handle: string): DialogueState | undefined {
    return this.#states.get(handle);
  }
}
