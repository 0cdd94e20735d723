/** Pending calls in memory, after `src/store/pending-calls.ts`. */
import { StoreError } from '../../src/errors.js';
import type {
  DecidedCall,
  DecideOutcome,
  Decision,
  PendingCall,
  PendingCalls,
} from '../../src/store/pending-calls.js';
import type { Page } from '../../src/store/store.js';

interface Row {
  readonly call: PendingCall;
  isWorking: boolean;
  decided: DecidedCall | undefined;
  isSettled: boolean;
  isTold: boolean;
}

export class MemoryPendingCalls implements PendingCalls {
  readonly rows = new Map<string, Row>();
  /** Of which somebody has said that they are worked at. */
  readonly kept: string[] = [];
  /** Each call rejects while it is set. */
  isAway = false;
  /** A call waits for it before it does anything. */
  gate: Promise<void> = Promise.resolve();

  /** The only one that is neither decided nor settled. */
  get onlyId(): string {
    const open = [...this.rows.values()].filter(
      ({ decided, isSettled }) => decided === undefined && !isSettled,
    );
    if (open.length !== 1) throw new Error(`${open.length} calls are pending`);
    return open[0]!.call.id;
  }

  async addPendingCall(call: PendingCall): Promise<void> {
    await this.#reach();
    this.rows.set(call.id, {
      call: structuredClone(call),
      isWorking: call.isWorking === true,
      decided: undefined,
      isSettled: false,
      isTold: false,
    });
  }

  async listPendingCalls(): Promise<Page<PendingCall, string>> {
    await this.#reach();
    throw new Error('no test lists them');
  }

  async findPendingCall(): Promise<never> {
    await this.#reach();
    throw new Error('no test looks one up');
  }

  async decidePendingCall(
    id: string,
    { decision, by }: { readonly decision: Decision; readonly by?: string },
  ): Promise<DecideOutcome> {
    await this.#reach();
    const row = this.rows.get(id);
    if (row === undefined) return { kind: 'unknown' };
    if (row.decided !== undefined || row.isSettled) return { kind: 'repeat' };
    row.decided = { ...row.call, isWorking: row.isWorking, decision, by, decidedAtMs: 1 };
    return { kind: 'decided', call: structuredClone(row.decided) };
  }

  async settlePendingCall(id: string): Promise<boolean> {
    await this.#reach();
    const row = this.rows.get(id);
    if (row === undefined || row.isSettled) return false;
    row.isSettled = true;
    return true;
  }

  /** An event with the call's id is stored, and settles it; false: there is one already. */
  tell(id: string): boolean {
    const row = this.rows.get(id);
    if (row === undefined || row.isTold) return false;
    row.isSettled = row.isTold = true;
    return true;
  }

  async listDecidedCalls(): Promise<readonly DecidedCall[]> {
    await this.#reach();
    return [...this.rows.values()].flatMap(({ decided, isSettled }) =>
      decided === undefined || isSettled ? [] : structuredClone(decided),
    );
  }

  async handOverPendingCall(id: string): Promise<void> {
    await this.#reach();
    const row = this.rows.get(id);
    if (row !== undefined) row.isWorking = false;
  }

  async keepPendingCalls(ids: readonly string[]): Promise<void> {
    await this.#reach();
    this.kept.push(...ids);
  }

  /** As if nobody had said for long that anything is worked at. */
  async listLostCalls(): Promise<readonly PendingCall[]> {
    await this.#reach();
    return [...this.rows.values()].flatMap(({ call, isWorking, isSettled, decided }) =>
      isWorking && !isSettled && decided === undefined ? call : [],
    );
  }

  async #reach(): Promise<void> {
    await this.gate;
    if (this.isAway) throw new StoreError('store_failed', 'the store is away');
  }
}
