/**
 * What is done only once: side effects of tools, money first of all. A key is claimed before the deed and settled behind it,
 * and never claimed again; what was claimed and not settled (a crash, a lost answer) stays open, and is refused until a
 * person has looked. The rows are the audit, too: who asked, what let it through, who approved.
 */
import type { JsonObject } from '../event/event.js';
import type { Page, PageRequest, SessionKey } from './store.js';

export interface LedgerAmount {
  /** A name. As the key, it stays. */
  readonly account: string;
  /** A safe integer above 0, in the currency's minor unit. */
  readonly amountMinor: number;
  readonly currency: string;
  /** The sum of the account's open and done entries never exceeds it. */
  readonly limitMinor: number;
}

export interface LedgerClaim {
  /** The app is the session's; an entry belongs to the app and outlives session and user. Of a session that is not stored (any more)
   * the entry does not hold the names. */
  readonly session: SessionKey;
  /** A name, as `SessionKey` has them. It stays when the user's data is deleted, so it should hold nothing personal. */
  readonly key: string;
  readonly tool: string;
  /** The call's id: audit only, never part of the key. */
  readonly callId: string;
  readonly amount?: LedgerAmount;
  /** Guards that saw the call and let it through, in order. */
  readonly guards: readonly string[];
  readonly approvedBy?: string;
}

export type ClaimOutcome =
  /** Go on: it is now open, in this name. */
  | { readonly kind: 'claimed' }
  /** It was done before, with this amount: `response` is what was answered then. `isSameCall`: by the very call that asks now. */
  | {
      readonly kind: 'done';
      readonly response: JsonObject;
      readonly amount?: LedgerAmount;
      readonly isSameCall: boolean;
    }
  /** Somebody claimed it and has not settled it: it may have been done. */
  | { readonly kind: 'open'; readonly sinceMs: number }
  /** The account's sum would exceed its limit, or has another currency or limit than before. */
  | { readonly kind: 'refused'; readonly why: string };

export interface LedgerEntry {
  readonly appName: string;
  readonly key: string;
  readonly state: 'open' | 'done';
  readonly tool: string;
  readonly callId: string;
  /** Both empty once the user's data was deleted. */
  readonly sessionId: string;
  readonly userId: string;
  readonly amount?: LedgerAmount;
  readonly guards: readonly string[];
  readonly approvedBy?: string;
  readonly claimedAtMs: number;
  readonly settledAtMs?: number;
  readonly response?: JsonObject;
}

export interface LedgerFilter {
  readonly appName?: string;
  readonly account?: string;
  readonly state?: 'open' | 'done';
}

/** What a person found out about an open entry, and says. */
export interface LedgerClosing {
  readonly appName: string;
  readonly key: string;
  /** Of a deed that was done: a repeat is answered with it. Without one it was certainly not done, and may be asked for again. */
  readonly response?: JsonObject;
  /** 1 to LEDGER_REASON_MAX_CHARS characters. */
  readonly reason: string;
  /** A name, as far as whoever closes it says. */
  readonly by?: string;
}

/** `notOpen`: it is done already. */
export type CloseOutcome = 'closed' | 'unknown' | 'notOpen';

/** The audit of one that was closed; the entry itself may be gone. */
export interface LedgerClosingEntry {
  readonly id: string;
  readonly appName: string;
  readonly key: string;
  readonly action: 'settle' | 'release';
  readonly tool: string;
  readonly callId: string;
  readonly amount?: LedgerAmount;
  readonly claimedAtMs: number;
  readonly by?: string;
  readonly reason: string;
  readonly closedAtMs: number;
}

/** Each method rejects with a StoreError; where one rejects, nothing is known and the deed must not be done. */
export interface Ledger {
  /** One transaction: two that claim the same key, or the same account, wait for each other, on one server or on two. */
  claim(claim: LedgerClaim): Promise<ClaimOutcome>;
  /** Done: a repeat is answered with `response`, which is bounded by EVENT_MAX_BYTES. False: it was not open. */
  settle(appName: string, key: string, response: JsonObject): Promise<boolean>;
  /** Certainly not done: it may be claimed again. False: it was not open. */
  release(appName: string, key: string): Promise<boolean>;
  /** Settles or releases an open entry in a person's name, in one transaction with the audit: of two who close it one does. */
  closeEntry(closing: LedgerClosing): Promise<CloseOutcome>;
  /** By the cursor of the last one, oldest first. */
  listClosings(page?: PageRequest<string>): Promise<Page<LedgerClosingEntry, string>>;
  /** By the cursor of the last entry, oldest first; of one account, or all. */
  listLedger(filter: LedgerFilter, page?: PageRequest<string>): Promise<Page<LedgerEntry, string>>;
}

/** What tools need of it. */
export type DeedLedger = Pick<Ledger, 'claim' | 'settle' | 'release'>;
