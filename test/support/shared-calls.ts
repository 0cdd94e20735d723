/**
 * A store of calls in memory that several rigs share, as servers share a database; slow, failing or dead as a test wants.
 */
import type { Clock } from '../../src/clock.js';
import { StoreError } from '../../src/errors.js';
import type { Event } from '../../src/event/event.js';
import { KeptCalls } from '../../src/call/kept-calls.js';
import type { Log } from '../../src/observe/log.js';
import type { CallRecord, CallRecords, NewCall } from '../../src/store/call-records.js';
import type { SessionKey, StoredSession } from '../../src/store/store.js';
import { silentLog } from '../../src/observe/log.js';

export class SharedCalls {
  readonly records = new Map<string, CallRecord>();
  /** What was said, whoever asks. */
  events: readonly Event[] = [];
  /** What was asked for, in order. */
  readonly asked: string[] = [];
  /** So many of the next requests fail. */
  failures = 0;
  /** Every request waits for this before anything of it is done. */
  before: (what: string) => Promise<void> = () => Promise.resolve();

  /** As a server of its own sees it. */
  open(
    clock: Clock,
    log: Log = silentLog,
    flushed: () => Promise<void> = () => Promise.resolve(),
  ): KeptCalls {
    const store = { ...bound(this, clock), getSession: (key: SessionKey) => this.getSession(key) };
    return new KeptCalls({ store, writer: { flushed }, clock, log });
  }

  async beginCall(call: NewCall, nowMs: number): Promise<void> {
    await this.#enter('begin');
    const startedAtMs = this.records.get(call.callSid)?.startedAtMs ?? nowMs;
    this.records.set(call.callSid, { ...call, startedAtMs });
  }

  async findCallRecord(callSid: string): Promise<CallRecord | undefined> {
    await this.#enter('find');
    return this.records.get(callSid);
  }

  async endCall(
    callSid: string,
    { owner, reason, mayReturn }: { owner: string; reason: string; mayReturn: boolean },
  ): Promise<boolean> {
    await this.#enter('end');
    const record = this.records.get(callSid);
    if (record === undefined || record.owner !== owner || record.ended !== undefined) return false;
    this.records.set(callSid, { ...record, ended: { atMs: 1, reason, mayReturn } });
    return true;
  }

  async claimCall(callSid: string, { from, to }: { from: string; to: string }): Promise<boolean> {
    await this.#enter('claim');
    const { ended, ...record } = this.records.get(callSid) ?? {};
    if (!('owner' in record) || record.owner !== from || ended?.mayReturn === false) return false;
    this.records.set(callSid, { ...record, owner: to });
    return true;
  }

  async getSession(key: SessionKey): Promise<StoredSession> {
    await this.#enter('history');
    return { ...key, createdAtMs: 1, updatedAtMs: 1, state: {}, events: this.events, omittedEvents: 0 };
  }

  async #enter(what: string): Promise<void> {
    this.asked.push(what);
    await this.before(what);
    if (this.failures === 0) return;
    this.failures -= 1;
    throw new StoreError('store_failed', 'the database is away');
  }
}

function bound(calls: SharedCalls, clock: Clock): CallRecords {
  return {
    beginCall: (call) => calls.beginCall(call, clock.wallMs()),
    findCallRecord: (callSid) => calls.findCallRecord(callSid),
    endCall: (callSid, end) => calls.endCall(callSid, end),
    claimCall: (callSid, owners) => calls.claimCall(callSid, owners),
  };
}
