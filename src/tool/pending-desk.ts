/**
 * Calls that wait for a person or for slow work, for all runs of a server. A decision goes to the run that asked, while
 * it lives; afterwards, and after a restart, the work is done without it, and its result is stored in the session.
 */
import { errorText } from '../errors.js';
import { SHUT_CALLS_MAX } from '../tool-limits.js';
import type { Log } from '../observe/log.js';
import type {
  DecidedCall,
  DecideOutcome,
  Decision,
  PendingCall,
  PendingCalls,
} from '../store/pending-calls.js';
import type { CallOutcome } from './tool-work.js';

/** Does what was decided, and tells it. Never rejects. */
export type CarryOut = (call: DecidedCall) => Promise<void>;

export interface PendingDeskOptions {
  /** Without one nothing can wait: such calls are refused. */
  readonly store: PendingCalls | undefined;
  /** For calls whose run is over. */
  readonly alone: CarryOut;
  /** Tells what a call has come to whose run has ended meanwhile. */
  readonly tellLate: (call: PendingCall, outcome: CallOutcome) => Promise<void>;
  readonly log: Log;
}

export class PendingDesk {
  readonly #options: PendingDeskOptions;
  /** Of runs that live, by the pending call's id. */
  readonly #live = new Map<string, CarryOut>();
  readonly #underWay = new Set<Promise<void>>();
  /** On which nobody may decide any more, though the store could not be told; in order of age. */
  readonly #shut = new Set<string>();

  constructor(options: PendingDeskOptions) {
    this.#options = options;
  }

  counts(): Readonly<Record<string, number>> {
    return { pendingCalls: this.#live.size, decisions: this.#underWay.size };
  }

  /** Resolves when it is stored. Rejects with a StoreError. */
  async add(call: PendingCall, carryOut: CarryOut): Promise<void> {
    const { store } = this.#options;
    if (store === undefined) throw new Error('there is no store to keep it in');
    // Before it can be decided.
    this.#live.set(call.id, carryOut);
    try {
      await store.addPendingCall(call);
    } catch (error) {
      this.#live.delete(call.id);
      throw error;
    }
  }

  /** The run is over: what is decided from now on is done without it. */
  leave(id: string): void {
    this.#live.delete(id);
  }

  /** Its outcome is about to be told: true for whoever comes first. Rejects with a StoreError. */
  async settle(id: string): Promise<boolean> {
    this.#live.delete(id);
    if (this.#shut.has(id)) return false;
    return (await this.#options.store?.settlePendingCall(id)) ?? false;
  }

  /** Its outcome is told, and the store could not be told so: a decision would contradict it. */
  shut(id: string): void {
    this.#live.delete(id);
    this.#shut.add(id);
    for (const oldest of this.#shut) {
      if (this.#shut.size <= SHUT_CALLS_MAX) break;
      this.#shut.delete(oldest);
    }
  }

  /** The run that asked has ended, and the call was settled in its name. */
  async tellLate(call: PendingCall, outcome: CallOutcome): Promise<void> {
    await this.#options.tellLate(call, outcome);
  }

  /** Resolves when the decision is stored; the work goes on behind it. */
  async decide(
    id: string,
    decision: { readonly decision: Decision; readonly by?: string },
  ): Promise<DecideOutcome> {
    const { store } = this.#options;
    if (store === undefined) return { kind: 'unknown' };
    // The store is told now, and takes no decision then.
    if (this.#shut.has(id)) await store.settlePendingCall(id);
    const outcome = await store.decidePendingCall(id, decision);
    if (outcome.kind === 'decided') this.#carryOut(outcome.call);
    return outcome;
  }

  /** What was decided and not done when the server last stopped. */
  async resume(): Promise<void> {
    for (const call of (await this.#options.store?.listDecidedCalls()) ?? []) this.#carryOut(call);
  }

  /** Resolves when what was decided is done. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #carryOut(call: DecidedCall): void {
    const carryOut = this.#live.get(call.id) ?? this.#options.alone;
    this.#live.delete(call.id);
    const work = carryOut(call)
      .catch((error: unknown) =>
        this.#options.log.error(
          { tool: call.tool, cause: errorText(error) },
          'a decision could not be carried out',
        ),
      )
      .finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }
}
