/** A ledger in memory, after `src/store/ledger.ts`, whose calls can be made to fail before or after they took effect. */
import { StoreError } from '../../src/errors.js';
import type { JsonObject } from '../../src/event/event.js';
import type { ClaimOutcome, DeedLedger, LedgerClaim, LedgerEntry } from '../../src/store/ledger.js';

export type LedgerFault = 'none' | 'before' | 'after';
type Writable = { -readonly [Key in keyof LedgerEntry]: LedgerEntry[Key] };

export class MemoryLedger implements DeedLedger {
  readonly entries = new Map<string, Writable>();
  /** What becomes of the next calls, in order; none without it. */
  readonly faults: LedgerFault[] = [];
  /** A call waits for it before it does anything. */
  gate: Promise<void> = Promise.resolve();

  claim({ session, key, ...claim }: LedgerClaim): Promise<ClaimOutcome> {
    return this.#answer(() => {
      const { appName, userId, id: sessionId } = session;
      const name = nameOf(appName, key);
      const entry = this.entries.get(name);
      if (entry?.state === 'done')
        return {
          kind: 'done',
          response: entry.response ?? {},
          isSameCall: entry.callId === claim.callId && entry.sessionId === sessionId,
          ...(entry.amount !== undefined && { amount: entry.amount }),
        };
      if (entry !== undefined) return { kind: 'open', sinceMs: entry.claimedAtMs };
      const { amount } = claim;
      if (amount !== undefined && this.#sumOf(amount.account) + amount.amountMinor > amount.limitMinor)
        return { kind: 'refused', why: 'the limit of its account would be exceeded' };
      this.entries.set(name, { appName, userId, sessionId, key, state: 'open', claimedAtMs: 0, ...claim });
      return { kind: 'claimed' };
    });
  }

  settle(appName: string, key: string, response: JsonObject): Promise<boolean> {
    return this.#answer(() => {
      const entry = this.entries.get(nameOf(appName, key));
      if (entry?.state !== 'open') return false;
      Object.assign(entry, { state: 'done', response });
      return true;
    });
  }

  release(appName: string, key: string): Promise<boolean> {
    return this.#answer(() => {
      const name = nameOf(appName, key);
      return this.entries.get(name)?.state === 'open' && this.entries.delete(name);
    });
  }

  stateOf(key: string, appName = 'desk'): 'open' | 'done' | undefined {
    return this.entries.get(nameOf(appName, key))?.state;
  }

  #sumOf(account: string): number {
    return [...this.entries.values()].reduce(
      (sum, { amount }) => sum + (amount?.account === account ? amount.amountMinor : 0),
      0,
    );
  }

  async #answer<Value>(act: () => Value): Promise<Value> {
    await this.gate;
    const fault = this.faults.shift() ?? 'none';
    if (fault === 'before') throw new StoreError('store_failed', 'the ledger is away');
    const value = act();
    if (fault === 'after') throw new StoreError('store_failed', 'the answer was lost');
    return value;
  }
}

function nameOf(appName: string, key: string): string {
  return JSON.stringify([appName, key]);
}
