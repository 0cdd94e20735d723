/**
 * The phone calls of this server in the store: noted when a stream of theirs first opens and when they end, so that another server of the same
 * store can go on with one whose server is lost or hands it over. Here are both sides of that. No call waits for what is written, and none
 * is harmed when it fails: it is logged, and the call cannot go on elsewhere then.
 */
import { type Clock, sleep } from '../clock.js';
import { AppError, errorText } from '../errors.js';
import type { Event } from '../event/event.js';
import {
  CALL_RECORD_RETRY_MS,
  CALL_RECORD_TRIES_MAX,
  CALL_SETTLE_LOOK_MS,
  CALL_SETTLE_MAX_MS,
  CALL_TAKE_UP_MAX_MS,
} from '../handover-limits.js';
import { type CallSid, newId } from '../ids.js';
import { HISTORY_READ } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { CallRecord, CallRecords, NewCall } from '../store/call-records.js';
import type { EventWriter } from '../store/event-writer.js';
import type { Store } from '../store/store.js';

export interface KeptCallsOptions {
  readonly store: CallRecords & Pick<Store, 'getSession'>;
  readonly writer: Pick<EventWriter, 'flushed'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface CallEnd {
  readonly reason: string;
  /** The caller was left on the line. */
  readonly mayReturn: boolean;
}

type KeptCall = Omit<NewCall, 'owner' | 'callDirection'> & { readonly callDirection: string };

/** What became of asking for a call that this server does not have. */
export type TakeUp =
  /** It is this server's from now on. */
  | { readonly kind: 'taken'; readonly record: CallRecord; readonly history: readonly Event[] }
  /** No server of this store ever had it. */
  | { readonly kind: 'unknown' }
  /** It has ended for good. */
  | { readonly kind: 'over' }
  /** Its agent is not known here. */
  | { readonly kind: 'noAgent'; readonly appName: string }
  /** Another server was quicker. */
  | { readonly kind: 'others' }
  /** The store failed or took too long. */
  | { readonly kind: 'failed' };

interface Taking {
  readonly outcome: Promise<TakeUp>;
  /** Who has not given up on it. */
  waiting: number;
}

export class KeptCalls {
  readonly #options: KeptCallsOptions;
  readonly #owner = newId();
  /** Calls whose record is this server's to end, each with what is being written about it. */
  readonly #writes = new Map<string, Promise<void>>();
  /** Calls that are being taken up; who asks again while the store takes long waits for the same. */
  readonly #taking = new Map<string, Taking>();
  #isClosed = false;

  constructor(options: KeptCallsOptions) {
    this.#options = options;
  }

  /** A stream of the call has opened: the first one counts. */
  begin({ callSid, appName, userId, callDirection, callerVerified }: KeptCall): void {
    if (callDirection === 'web' || this.#writes.has(callSid)) return;
    const direction = callDirection === 'outbound' ? 'outbound' : 'inbound';
    const call = {
      callSid,
      appName,
      userId,
      callDirection: direction,
      callerVerified,
      owner: this.#owner,
    } as const;
    void this.#write(callSid, () => this.#options.store.beginCall(call));
  }

  /** The call is over here. Told once what was said in it is stored, so that whoever goes on with it knows all of it. */
  end({ callSid, appName, userId }: Pick<KeptCall, 'callSid' | 'appName' | 'userId'>, end: CallEnd): void {
    if (!this.#writes.has(callSid)) return;
    const { store, writer } = this.#options;
    const written = this.#write(callSid, async () => {
      await writer.flushed({ appName, userId, id: callSid });
      await store.endCall(callSid, { owner: this.#owner, ...end });
    });
    void written.then(() => {
      if (this.#writes.get(callSid) === written) this.#writes.delete(callSid);
    });
  }

  /**
   * Takes over a call that another server had, or this one before, with what was said in it. Within CALL_TAKE_UP_MAX_MS; never
   * rejects. `knows`: whether there is such an agent here.
   */
  takeUp(callSid: CallSid, knows: (appName: string) => boolean): Promise<TakeUp> {
    const { clock, log } = this.#options;
    return new Promise((resolve) => {
      let isGivenUp = false;
      const taking = this.#taking.get(callSid) ?? this.#begin(callSid, knows);
      taking.waiting += 1;
      const fail = (cause: string): void => {
        log.error({ callSid, cause }, 'a call that came back could not be looked up in the store');
        resolve({ kind: 'failed' });
      };
      const timer = clock.setTimer(CALL_TAKE_UP_MAX_MS, () => {
        isGivenUp = true;
        taking.waiting -= 1;
        fail('the database took too long');
      });
      taking.outcome.then(
        (outcome) => {
          timer.cancel();
          if (!isGivenUp) resolve(outcome);
        },
        (error: unknown) => {
          timer.cancel();
          if (!isGivenUp) fail(errorText(error));
        },
      );
    });
  }

  /** What was taken up and is not gone on with is anybody's again. */
  giveBack(record: CallRecord): void {
    this.end(record, { reason: 'carrier_lost', mayReturn: true });
  }

  /** Resolves when all that was begun by now is written or given up. */
  async written(): Promise<void> {
    await Promise.all(this.#writes.values());
  }

  /** What fails from now on is not tried again. */
  close(): void {
    this.#isClosed = true;
  }

  /** What was taken up when nobody waits for it any more is given back. */
  #begin(callSid: CallSid, knows: (appName: string) => boolean): Taking {
    const outcome = this.#take(callSid, knows).finally(() => this.#taking.delete(callSid));
    const taking: Taking = { outcome, waiting: 0 };
    this.#taking.set(callSid, taking);
    outcome.then(
      (taken) => {
        if (taking.waiting === 0 && taken.kind === 'taken') this.giveBack(taken.record);
      },
      () => {}, // Told by whoever waits.
    );
    return taking;
  }

  async #take(callSid: CallSid, knows: (appName: string) => boolean): Promise<TakeUp> {
    const { store } = this.#options;
    // Its end on this very server, where it was here before.
    await this.#writes.get(callSid);
    const record = await this.#settled(callSid);
    if (record === undefined) return { kind: 'unknown' };
    if (record.ended?.mayReturn === false) return { kind: 'over' };
    const { appName, userId } = record;
    if (!knows(appName)) return { kind: 'noAgent', appName };
    if (!(await store.claimCall(callSid, { from: record.owner, to: this.#owner }))) return { kind: 'others' };
    this.#writes.set(callSid, Promise.resolve());
    try {
      const session = await store.getSession({ appName, userId, id: callSid }, HISTORY_READ);
      return { kind: 'taken', record, history: session?.events ?? [] };
    } catch (error) {
      this.giveBack(record);
      throw error;
    }
  }

  /** A server that hands a call over, or whose caller's line broke, may still be storing what was said: its word that it has ended is
   * waited for, for a while. One that has died says nothing. */
  async #settled(callSid: CallSid): Promise<CallRecord | undefined> {
    const { store, clock } = this.#options;
    const untilMs = clock.nowMs() + CALL_SETTLE_MAX_MS;
    for (;;) {
      const record = await store.findCallRecord(callSid);
      if (record === undefined || record.ended !== undefined || clock.nowMs() >= untilMs) return record;
      await sleep(clock, CALL_SETTLE_LOOK_MS);
    }
  }

  /** Behind what is already being written about the call. */
  #write(callSid: string, work: () => Promise<unknown>): Promise<void> {
    const written = (this.#writes.get(callSid) ?? Promise.resolve()).then(() => this.#try(callSid, work));
    this.#writes.set(callSid, written);
    return written;
  }

  async #try(callSid: string, work: () => Promise<unknown>): Promise<void> {
    const { clock, log } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        await work();
        return;
      } catch (error) {
        const mayHelp = error instanceof AppError && error.retryable && !this.#isClosed;
        if (!mayHelp || tries === CALL_RECORD_TRIES_MAX) {
          log.error({ callSid, cause: errorText(error) }, 'the record of a call could not be written');
          return;
        }
        await sleep(clock, CALL_RECORD_RETRY_MS);
      }
    }
  }
}
