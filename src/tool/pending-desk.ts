/**
 * Calls that wait for a person or for slow work, for all runs of a server. A decision goes to the run that asked, while
 * it lives; afterwards, and after a restart, the work is done without it, and its result is stored in the session.
 */
import { errorText } from '../errors.js';
import { NO_ACTIONS } from '../event/event.js';
import { SHUT_CALLS_MAX, WORK_KEPT_AT_ONCE, WORK_LOST_MS } from '../tool-limits.js';
import type { Log } from '../observe/log.js';
import type {
  DecidedCall,
  DecideOutcome,
  Decision,
  PendingCall,
  PendingCalls,
} from '../store/pending-calls.js';
import { errorResponse } from './tool-result.js';
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
  /** Whose handlers are at work on this server. */
  readonly #working = new Set<string>();
  /** Whose handlers have left the work to somebody else, and the store could not be told. */
  readonly #handedOver = new Set<string>();

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
    if (call.isWorking === true) this.#working.add(call.id);
    try {
      await store.addPendingCall(call);
    } catch (error) {
      this.#live.delete(call.id);
      this.#working.delete(call.id);
      throw error;
    }
  }

  /** The handler has ended and leaves the work to somebody else, or to a person. Never rejects. */
  async handOver(id: string): Promise<void> {
    this.#working.delete(id);
    this.#handedOver.add(id);
    await this.#handOverAll().catch((error: unknown) => {
      this.#options.log.error({ cause: errorText(error) }, 'the store could not be told that a call waits');
    });
  }

  async #handOverAll(): Promise<void> {
    for (const id of this.#handedOver) {
      await this.#options.store?.handOverPendingCall(id);
      this.#handedOver.delete(id);
    }
  }

  /** Called again and again, from the start on: says what is being worked at here, and tells as lost what was worked at by a server
   * that is gone. Rejects with a StoreError. */
  async tend(): Promise<void> {
    const { store, tellLate, log } = this.#options;
    if (store === undefined) return;
    await this.#handOverAll();
    const working = [...this.#working];
    for (let from = 0; from < working.length; from += WORK_KEPT_AT_ONCE)
      await store.keepPendingCalls(working.slice(from, from + WORK_KEPT_AT_ONCE));
    for (const call of await store.listLostCalls(WORK_LOST_MS)) {
      if (this.#working.has(call.id)) continue;
      log.error({ tool: call.tool }, 'the server that worked at a call is gone: it is told as lost');
      await tellLate(call, lostOutcome(call));
    }
  }

  /** The run is over: what is decided from now on is done without it. */
  leave(id: string): void {
    this.#live.delete(id);
  }

  /** Its outcome is about to be told: true for whoever comes first. Rejects with a StoreError. */
  async settle(id: string): Promise<boolean> {
    this.#live.delete(id);
    this.#working.delete(id);
    if (this.#shut.has(id)) return false;
    return (await this.#options.store?.settlePendingCall(id)) ?? false;
  }

  /** Its outcome is told, and the store could not be told so: a decision would contradict it. */
  shut(id: string): void {
    this.#live.delete(id);
    this.#working.delete(id);
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
    if (outcome.kind === 'decided') {
      this.#working.delete(id);
      this.#carryOut(outcome.call);
    }
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

function lostOutcome({ tool }: PendingCall): CallOutcome {
  const why = `${tool} was lost: the server that was carrying it out has stopped. Whether it was done is not known.`;
  return {
    kind: 'done',
    response: errorResponse(why),
    actions: NO_ACTIONS,
    ran: true,
    endInvocation: false,
  };
}
