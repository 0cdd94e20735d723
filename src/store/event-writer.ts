/**
 * Between calls and the store: takes events at once and writes them behind, in order, many in one transaction. Handing one over never
 * blocks, throws or rejects, so that the database's troubles never reach the sound; the promise tells when the event is stored, and
 * only then may its effects be reported.
 *
 * While the database fails, events wait and are tried again, with growing pauses, one at a time and the sessions in turn, so that one
 * that cannot be stored holds up its own session only. Where no other try can help, the one event that was tried is lost, never
 * those that were tried with it: they are tried by themselves. The queue is bounded: when it is full the newest event is
 * refused, because those before it are what it continues. An event that could not be stored within STORE_PATIENCE_MS is
 * given up. Each loss is told once, and the call goes on.
 */
import { nextTurn, type Clock } from '../clock.js';
import { StoreError } from '../errors.js';
import type { Event, JsonObject } from '../event/event.js';
import {
  STORE_BATCH_MAX_BYTES,
  STORE_BATCH_MAX_EVENTS,
  STORE_CLOSE_MAX_MS,
  STORE_PATIENCE_MS,
  STORE_QUEUE_MAX_BYTES,
  STORE_QUEUE_MAX_EVENTS,
  STORE_RETRY_FIRST_MS,
  STORE_RETRY_MAX_MS,
} from '../limits.js';
import type { Log } from '../observe/log.js';
import { prepareWhatCanBe, stateChanges, type PreparedEvent } from './prepared-event.js';
import { sessionName } from './session-name.js';
import { checkSession } from './stored-name.js';
import type { AppendOutcome, SessionKey, Store } from './store.js';

export interface LostWrite {
  readonly session: SessionKey;
  /** Absent for a session that could not be made. */
  readonly eventId?: string;
  readonly error: StoreError;
}

export interface EventWriterOptions {
  readonly store: Pick<Store, 'appendPrepared' | 'createSession'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Something that waits to be written. */
interface Waiting {
  readonly session: SessionKey;
  readonly sessionName: string;
  readonly bytes: number;
  readonly dueMs: number;
  /** Absent: the session is to be made, with `state`. */
  readonly event?: PreparedEvent;
  readonly state?: JsonObject;
  readonly settle: (outcome: AppendOutcome) => void;
}

export class EventWriter {
  readonly #options: EventWriterOptions;
  /** In the order in which they were handed over. */
  readonly #queue: Waiting[] = [];
  #bytes = 0;
  #running: Promise<void> | undefined;
  #failures = 0;
  #closed = false;
  /** Ends a pause between tries, at the closing. */
  #endPause: (() => void) | undefined;
  #givenUp = false;
  /** Sessions whose event failed while others have not been tried. */
  readonly #suspects = new Set<string>();
  /** So many are tried alone, because they failed together: one of them may be why. */
  #alone = 0;
  #lastFailure = new StoreError('store_failed', 'the database took too long');
  /** Told since events were last stored. */
  #lost = 0;
  #onLost: (lost: LostWrite) => void = () => {};

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  /** What is not stored yet. */
  get waiting(): { readonly events: number; readonly bytes: number } {
    return { events: this.#queue.length, bytes: this.#bytes };
  }

  /** Whether the last try failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Tells once of each event that will not be stored, from now on; one listener at a time. */
  watchLosses(onLost: (lost: LostWrite) => void): void {
    this.#onLost = onLost;
  }

  /** Makes the session before the events that follow, if it is not there. Never rejects; `seq` is 0. */
  createSession(session: SessionKey, state: JsonObject = {}): Promise<AppendOutcome> {
    return this.#take(session, () => {
      checkSession(session);
      stateChanges(state);
      const { appName, userId, id } = session;
      return { session: { appName, userId, id }, bytes: 0, state };
    });
  }

  /** Takes an event as it is now. Never rejects: `stored` tells. */
  append(session: SessionKey, event: Event): Promise<AppendOutcome> {
    return this.#take(
      session,
      () => {
        const { prepared, refused } = prepareWhatCanBe(session, event);
        if (refused !== undefined)
          this.#options.log.error(
            { errorCode: refused.code, why: refused.message, ...sessionFields(session) },
            'an event is stored without what it changes',
          );
        return { session: prepared.session, bytes: prepared.bytes, event: prepared };
      },
      () => event.id,
    );
  }

  /** Resolves when all that was handed over until now, or of one session, is stored or given up. */
  async flushed(session?: SessionKey): Promise<void> {
    const name = session && sessionName(session);
    const waiting = this.#queue.filter((one) => name === undefined || one.sessionName === name);
    // Not the last one only: sessions are stored in another order while the database fails.
    for (const one of waiting) await this.#settled.get(one);
  }

  /** Writes what waits, for at most STORE_CLOSE_MAX_MS, and gives up the rest; returns how many were given up. Idempotent. */
  async close(): Promise<number> {
    this.#closed = true;
    this.#endPause?.();
    const running = this.#running;
    if (running !== undefined) {
      await new Promise<void>((resolve) => {
        const timer = this.#options.clock.setTimer(STORE_CLOSE_MAX_MS, resolve);
        void running.then(() => {
          timer.cancel();
          resolve();
        });
      });
    }
    this.#givenUp = true;
    this.#endPause?.();
    const rest = [...this.#queue];
    for (const one of rest)
      this.#lose(one, new StoreError('store_failed', 'the server stopped before it was stored'));
    return rest.length;
  }

  readonly #settled = new WeakMap<Waiting, Promise<AppendOutcome>>();

  #take(
    session: SessionKey,
    make: () => Pick<Waiting, 'session' | 'bytes' | 'event' | 'state'>,
    eventIdOf: () => string | undefined = () => undefined,
  ): Promise<AppendOutcome> {
    try {
      const what = make();
      if (this.#closed) throw new StoreError('store_failed', 'the store is closed');
      if (this.#queue.length >= STORE_QUEUE_MAX_EVENTS || this.#bytes + what.bytes > STORE_QUEUE_MAX_BYTES)
        throw new StoreError('store_failed', 'too much is waiting for the database');
      let settle: (outcome: AppendOutcome) => void = () => {};
      const settled = new Promise<AppendOutcome>((resolve) => {
        settle = resolve;
      });
      const dueMs = this.#options.clock.nowMs() + STORE_PATIENCE_MS;
      const one: Waiting = { ...what, sessionName: sessionName(what.session), dueMs, settle };
      this.#settled.set(one, settled);
      this.#queue.push(one);
      this.#bytes += what.bytes;
      this.#running ??= this.#run();
      return settled;
    } catch (error) {
      const refused =
        error instanceof StoreError ? error : new StoreError('store_refused', 'not one that can be stored');
      const eventId = attempt(eventIdOf);
      this.#tell({ session, error: refused, ...(eventId !== undefined && { eventId }) });
      return Promise.resolve({ stored: false, error: refused });
    }
  }

  async #run(): Promise<void> {
    // What is handed over in one turn of the event loop goes together.
    await nextTurn();
    while (this.#queue.length > 0 && !this.#givenUp) {
      const batch = this.#nextBatch();
      this.#alone = Math.max(0, this.#alone - 1);
      const failure = await this.#write(batch);
      if (failure !== undefined) await this.#failed(batch, failure);
      this.#expire();
    }
    this.#suspects.clear();
    this.#running = undefined;
  }

  #nextBatch(): Waiting[] {
    let waiting = this.#queue.filter((one) => !this.#suspects.has(one.sessionName));
    if (waiting.length === 0) {
      this.#suspects.clear();
      waiting = this.#queue;
    }
    const batch: Waiting[] = [];
    let bytes = 0;
    for (const one of waiting) {
      bytes += one.bytes;
      const isFull = batch.length >= STORE_BATCH_MAX_EVENTS || bytes > STORE_BATCH_MAX_BYTES;
      const isAlone = one.event === undefined || this.#failures > 0 || this.#alone > 0;
      if (batch.length > 0 && (isAlone || isFull)) break;
      batch.push(one);
      if (isAlone) break;
    }
    return batch;
  }

  /** Settles the batch, or returns why nothing of it is stored. */
  async #write(batch: readonly Waiting[]): Promise<StoreError | undefined> {
    try {
      const outcomes = await this.#store(batch);
      for (const [at, one] of batch.entries()) {
        const outcome = outcomes[at];
        if (outcome?.stored === true) this.#settle(one, outcome);
        else this.#lose(one, outcome?.error ?? new StoreError('store_failed', 'the database told nothing'));
      }
      this.#recovered();
      return undefined;
    } catch (error) {
      return error instanceof StoreError
        ? error
        : new StoreError('store_failed', 'the store failed', { cause: error });
    }
  }

  async #store(batch: readonly Waiting[]): Promise<readonly AppendOutcome[]> {
    const [first] = batch;
    if (first !== undefined && first.event === undefined) {
      await this.#options.store.createSession(first.session, first.state);
      return [{ stored: true, seq: 0 }];
    }
    return this.#options.store.appendPrepared(batch.flatMap(({ event }) => event ?? []));
  }

  /** Nothing of the batch is stored. What was tried alone, and would be refused again, is lost; everything else waits. */
  async #failed(batch: readonly Waiting[], failure: StoreError): Promise<void> {
    this.#lastFailure = failure;
    const [first, ...others] = batch;
    if (first !== undefined && others.length === 0 && !failure.retryable) this.#lose(first, failure);
    else for (const one of batch) this.#suspects.add(one.sessionName);
    if (others.length > 0) this.#alone = batch.length;
    if (this.#failures === 0)
      this.#options.log.error(
        { errorCode: failure.code, why: failure.message, waiting: this.#queue.length },
        'events are not being stored; they wait, and the calls go on',
      );
    const pauseMs = Math.min(STORE_RETRY_FIRST_MS * 2 ** this.#failures, STORE_RETRY_MAX_MS);
    this.#failures += 1;
    if (this.#queue.length > 0) await this.#pause(pauseMs);
  }

  async #pause(pauseMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.setTimer(pauseMs, resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#endPause = undefined;
  }

  #recovered(): void {
    if (this.#failures > 0)
      this.#options.log.info({ failures: this.#failures, lost: this.#lost }, 'events are stored again');
    this.#failures = 0;
    this.#lost = 0;
  }

  /** Gives up what has waited for too long; the queue is in order of time. */
  #expire(): void {
    const nowMs = this.#options.clock.nowMs();
    for (let first = this.#queue[0]; first !== undefined && first.dueMs <= nowMs; [first] = this.#queue)
      this.#lose(first, this.#lastFailure);
  }

  #settle(one: Waiting, outcome: AppendOutcome): void {
    const at = this.#queue.indexOf(one);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    this.#bytes -= one.bytes;
    one.settle(outcome);
  }

  #lose(one: Waiting, error: StoreError): void {
    if (!this.#queue.includes(one)) return;
    this.#settle(one, { stored: false, error });
    const { session, event } = one;
    this.#tell({ session, error, ...(event !== undefined && { eventId: event.id }) });
  }

  #tell(lost: LostWrite): void {
    const { code: errorCode, message: why } = lost.error;
    // One line tells of a failing database; a full queue would write thousands.
    if (this.#lost === 0) {
      const whose = attempt(() => sessionFields(lost.session));
      this.#options.log.error({ errorCode, why, ...whose }, 'an event is not stored');
    }
    this.#lost += 1;
    attempt(() => this.#onLost(lost));
  }
}

/** A call's session has its CallSid as its id; a client chooses another, which may say who it is. */
function sessionFields({ id }: SessionKey): object {
  return /^CA[0-9a-f]{32}$/.test(id) ? { callSid: id } : { pii: { sessionId: id } };
}

/** What it returns, or undefined if it throws: nothing that a caller hands over may stop the writing. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
