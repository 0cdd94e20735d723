/**
 * Function calls that wait for a person or for slow work, over restarts: asked for, decided once, settled once.
 */
import type { JsonObject } from '../event/event.js';
import type { Page, PageRequest, SessionKey } from './store.js';

export interface PendingCall {
  /** Made by the server; nothing can be read from it. */
  readonly id: string;
  readonly session: SessionKey;
  /** Empty where there is no call: text modes. */
  readonly callSid: string;
  readonly invocationId: string;
  /** The function call's id, as the model knows it. */
  readonly callId: string;
  readonly tool: string;
  /** As the handler will get them. */
  readonly args: JsonObject;
  /** `approval`: runs once it is approved. `longRunning`: it is running, or somebody else does the work. */
  readonly kind: 'approval' | 'longRunning';
  /** Guards that let it through, for the ledger's audit. */
  readonly guards: readonly string[];
  readonly requestedAtMs: number;
  /** Its handler is at work on some server: there is nothing to decide. */
  readonly isWorking?: boolean;
}

export type Decision = 'approve' | 'deny';

export interface DecidedCall extends PendingCall {
  readonly decision: Decision;
  /** Who decided, as far as the request says. */
  readonly by: string | undefined;
  readonly decidedAtMs: number;
}

export type DecideOutcome =
  | { readonly kind: 'unknown' }
  /** It was decided before, or settled by itself, and then has no decision: nothing changed. */
  | { readonly kind: 'repeat'; readonly decision?: Decision }
  /** This is the decision; whoever gets this carries it out. */
  | { readonly kind: 'decided'; readonly call: DecidedCall };

/** What became of a call, as long as its session is stored. */
export interface KnownCall {
  readonly id: string;
  readonly decision?: Decision;
  readonly isSettled: boolean;
}

export interface PendingCalls {
  /** Rejects with `store_refused` above PENDING_CALLS_MAX of one session that are not settled, and with `store_no_session`;
   * `store_conflict` for an id that is stored. */
  addPendingCall(call: PendingCall): Promise<void>;
  /** Neither decided nor settled, oldest first, by the cursor of the last one, which may be gone meanwhile. */
  listPendingCalls(page?: PageRequest<string>): Promise<Page<PendingCall, string>>;
  findPendingCall(id: string): Promise<KnownCall | undefined>;
  /** One transaction: of two that decide at once, one is `decided`. */
  decidePendingCall(
    id: string,
    decision: { readonly decision: Decision; readonly by?: string },
  ): Promise<DecideOutcome>;
  /** Nobody else tells the outcome or decides on it: true once only, for whoever came first. An event with function responses that has
   * the call's id settles it, too, in the transaction that stores it; as an event is stored once, so is the outcome. */
  settlePendingCall(id: string): Promise<boolean>;
  /** Decided and not settled: what a crash left behind, to be carried out when the server starts. */
  listDecidedCalls(): Promise<readonly DecidedCall[]>;
  /** The handler has ended and left the work to somebody else: its server's end is not its end any more. */
  handOverPendingCall(id: string): Promise<void>;
  /** The handlers of these calls are still at work, now. */
  keepPendingCalls(ids: readonly string[]): Promise<void>;
  /** Of which nobody has said for so long that their handlers are at work, the longest silent first, PENDING_PAGE_MAX at most: their
   * server is gone. */
  listLostCalls(silentMs: number): Promise<readonly PendingCall[]>;
}
