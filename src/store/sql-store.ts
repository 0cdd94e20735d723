/**
 * The Store over a database that kysely speaks to. What differs between the databases is below it, in dialect and schema.
 */
import type { Clock } from '../clock.js';
import { StoreError } from '../errors.js';
import type { Event, JsonObject } from '../event/event.js';
import { ARTIFACT_MAX_BYTES, EVENT_PAGE_MAX } from '../limits.js';
import { MEMORY_FACTS_MAX } from '../tool-limits.js';
import { findArtifact, insertArtifact, pageOfArtifacts } from './artifact-rows.js';
import { claimCallRow, endCallRow, findCallRow, insertCall } from './call-record-rows.js';
import type { CallRecord, NewCall } from './call-records.js';
import { deleteOldRows, deleteOneSession, deleteUserRows } from './deletion.js';
import { mayHaveMore, newestEvents, newestRows, readEvents, rowsAfter } from './event-reading.js';
import { appendBatch, noSession } from './event-rows.js';
import { prepareEvent, stateChanges, type PreparedEvent } from './prepared-event.js';
import type {
  ClaimOutcome,
  CloseOutcome,
  LedgerClaim,
  LedgerClosing,
  LedgerClosingEntry,
  LedgerEntry,
  LedgerFilter,
} from './ledger.js';
import { checkClosing, closeOpenEntry, pageOfClosings } from './ledger-closings.js';
import {
  checkLedgerFilter,
  claimEntry,
  claimRow,
  pageOfLedger,
  releaseEntry,
  settleEntry,
} from './ledger-rows.js';
import type { MemoryFact, MemoryOwner } from './memory.js';
import { checkOwner, factWords, recallFacts, relationWords, rememberWords } from './memory-rows.js';
import {
  decideCall,
  decidedCalls,
  findCall,
  handOverCall,
  insertPendingCall,
  keepCalls,
  lostCalls,
  pageOfPendingCalls,
  pendingRow,
} from './pending-call-rows.js';
import type { DecidedCall, DecideOutcome, Decision, KnownCall, PendingCall } from './pending-calls.js';
import type { SessionTable } from './schema.js';
import { findSession, insertSession, pageOfSessions, summaryOf, touchSession } from './session-rows.js';
import { settleCalls } from './settled-calls.js';
import { readState, writeState } from './state-rows.js';
import { storedJson } from './stored-json.js';
import { checkFilter, checkMimeType, checkName, checkSession, isName } from './stored-name.js';
import type {
  AppendOutcome,
  Artifact,
  ArtifactSummary,
  DeletedCounts,
  EventBound,
  ExportFilter,
  ImportedCounts,
  Page,
  PageRequest,
  SequencedEvent,
  SessionKey,
  SessionSummary,
  Store,
  StoredSession,
} from './store.js';
import { exportLines } from './store-export.js';
import { importLines } from './store-import.js';
import type { Transactions } from './transactions.js';

/** The column holds 32 bits. */
const VERSION_END = 2 ** 31;

export interface SqlStoreOptions {
  readonly transactions: Transactions;
  readonly clock: Clock;
  /** Runs after a deletion: makes the database forget what it holds besides its tables. */
  readonly afterDeletion: () => Promise<void>;
}

export class SqlStore implements Store {
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  readonly #afterDeletion: () => Promise<void>;

  constructor({ transactions, clock, afterDeletion }: SqlStoreOptions) {
    this.#transactions = transactions;
    this.#clock = clock;
    this.#afterDeletion = afterDeletion;
  }

  async createSession(session: SessionKey, state: JsonObject = {}): Promise<boolean> {
    checkSession(session);
    const changes = stateChanges(state).map((change) => ({ ...change, session }));
    const { appName: app_name, userId: user_id, id } = session;
    return this.#transactions.change(async (trx) => {
      const nowMs = this.#nowMs();
      const row = { app_name, user_id, id, created_at_ms: nowMs, updated_at_ms: nowMs, last_seq: 0 };
      const made = await insertSession(trx, row);
      if (made) await writeState(trx, changes, nowMs);
      return made;
    });
  }

  async getSession(session: SessionKey, newest: EventBound = {}): Promise<StoredSession | undefined> {
    checkSession(session);
    checkBound(newest);
    const found = await this.#transactions.snapshot(async (connection) => {
      const row = await findSession(connection, session);
      if (row === undefined) return undefined;
      const state = await readState(connection, session);
      return { row, state, last: await newestRows(connection, session, { lastSeq: row.last_seq, newest }) };
    });
    if (found === undefined) return undefined;
    const { row, state, last } = found;
    const events = await newestEvents((work) => this.#transactions.direct(work), session, last);
    // Pieces are read one after the other; a session that was deleted in between is not shown in part.
    if (mayHaveMore(last) && !(await this.#isStill(row, session))) return undefined;
    return { ...summaryOf(row), state, events, omittedEvents: row.last_seq - events.length };
  }

  async readState(session: SessionKey): Promise<JsonObject> {
    checkSession(session);
    return this.#transactions.direct((db) => readState(db, session));
  }

  async listSessions(
    filter: { readonly appName?: string; readonly userId?: string },
    page: PageRequest<string> = {},
  ): Promise<Page<SessionSummary, string>> {
    checkFilter(filter);
    checkLimit(page.limit);
    return this.#transactions.direct((db) => pageOfSessions(db, filter, page));
  }

  async deleteSession(session: SessionKey): Promise<boolean> {
    checkSession(session);
    const { sessions } = await this.#deleting(() =>
      this.#transactions.change((trx) => deleteOneSession(trx, session)),
    );
    return sessions > 0;
  }

  async appendEvent(session: SessionKey, event: Event): Promise<number> {
    const [outcome] = await this.appendPrepared([prepareEvent(session, event)]);
    if (outcome === undefined) throw new StoreError('store_failed', 'the database told nothing');
    if (outcome.stored) return outcome.seq;
    throw outcome.error;
  }

  appendPrepared(batch: readonly PreparedEvent[]): Promise<readonly AppendOutcome[]> {
    return this.#transactions.change((trx, tried) =>
      appendBatch(trx, batch, { nowMs: this.#nowMs(), isRepeated: tried > 0 }),
    );
  }

  async listEvents(
    session: SessionKey,
    { after = 0, limit = EVENT_PAGE_MAX }: PageRequest<number> = {},
  ): Promise<Page<SequencedEvent, number> | undefined> {
    checkSession(session);
    checkLimit(limit);
    if (!Number.isSafeInteger(after) || after < 0)
      throw new StoreError('store_refused', 'the cursor is not one that a page of events gave');
    const read = await this.#transactions.snapshot(async (connection) => {
      const found = await findSession(connection, session);
      if (found === undefined) return undefined;
      const rows = after >= found.last_seq ? [] : await rowsAfter(connection, session, { after, limit });
      return { rows, lastSeq: found.last_seq };
    });
    if (read === undefined) return undefined;
    const { rows, lastSeq } = read;
    const events = await readEvents(rows);
    const items = events.map((event, at) => ({ seq: rows[at]?.seq ?? 0, event }));
    const last = rows.at(-1)?.seq;
    return { items, ...(last !== undefined && last < lastSeq && { next: last }) };
  }

  async saveArtifact(
    session: SessionKey,
    name: string,
    bytes: Uint8Array,
    mimeType: string,
  ): Promise<number> {
    checkSession(session);
    checkName('the artifact name', name);
    checkMimeType(mimeType);
    if (bytes.byteLength > ARTIFACT_MAX_BYTES)
      throw new StoreError(
        'store_refused',
        `an artifact of ${bytes.byteLength} bytes is above the bound of ${ARTIFACT_MAX_BYTES}`,
      );
    // As it is now: the caller may reuse the buffer while it waits.
    const artifact = { name, bytes: Buffer.from(bytes), mimeType };
    return this.#transactions.change(async (trx) => {
      const nowMs = this.#nowMs();
      if (!(await touchSession(trx, session, nowMs))) throw noSession();
      return insertArtifact(trx, session, { ...artifact, nowMs });
    });
  }

  async loadArtifact(session: SessionKey, name: string, version?: number): Promise<Artifact | undefined> {
    checkSession(session);
    checkName('the artifact name', name);
    if (version !== undefined && !(Number.isInteger(version) && version >= 0 && version < VERSION_END))
      return undefined;
    return this.#transactions.direct((db) => findArtifact(db, session, { name, version }));
  }

  async listArtifacts(
    session: SessionKey,
    page: PageRequest<string> = {},
  ): Promise<Page<ArtifactSummary, string>> {
    checkSession(session);
    checkLimit(page.limit);
    if (page.after !== undefined) checkName('the cursor', page.after);
    return this.#transactions.direct((db) => pageOfArtifacts(db, session, page));
  }

  async deleteOlderThan(timeMs: number): Promise<DeletedCounts> {
    if (!Number.isFinite(timeMs))
      throw new StoreError('store_refused', 'the time is not a number of milliseconds');
    return this.#deleting(() => deleteOldRows((work) => this.#transactions.change(work), timeMs));
  }

  async deleteUser(app: { readonly appName: string } | 'all', userId: string): Promise<DeletedCounts> {
    checkName('the user id', userId);
    if (app !== 'all') checkName('the app name', app.appName);
    const appName = app === 'all' ? undefined : app.appName;
    const counts = await deleteUserRows((work) => this.#transactions.change(work), { appName, userId });
    // Also when nothing was deleted: names may have been taken out of the ledger.
    await this.#afterDeletion();
    return counts;
  }

  async claim(claim: LedgerClaim): Promise<ClaimOutcome> {
    const row = claimRow(claim, this.#nowMs());
    return this.#transactions.change((trx) => claimEntry(trx, row));
  }

  async settle(appName: string, key: string, response: JsonObject): Promise<boolean> {
    checkName('the app name', appName);
    checkName('the key', key);
    const json = storedJson('the response', response);
    return this.#transactions.change((trx) =>
      settleEntry(trx, { appName, key, response: json, nowMs: this.#nowMs() }),
    );
  }

  async release(appName: string, key: string): Promise<boolean> {
    checkName('the app name', appName);
    checkName('the key', key);
    return this.#transactions.change((trx) => releaseEntry(trx, appName, key));
  }

  async closeEntry(closing: LedgerClosing): Promise<CloseOutcome> {
    checkClosing(closing);
    return this.#transactions.change((trx) => closeOpenEntry(trx, closing, this.#nowMs()));
  }

  async listClosings(page: PageRequest<string> = {}): Promise<Page<LedgerClosingEntry, string>> {
    checkLimit(page.limit);
    return this.#transactions.direct((db) => pageOfClosings(db, page));
  }

  async listLedger(filter: LedgerFilter, page: PageRequest<string> = {}): Promise<Page<LedgerEntry, string>> {
    checkLedgerFilter(filter);
    checkLimit(page.limit);
    return this.#transactions.direct((db) => pageOfLedger(db, filter, page));
  }

  async addPendingCall(call: PendingCall): Promise<void> {
    const row = pendingRow(call);
    return this.#transactions.change((trx) => insertPendingCall(trx, row, this.#nowMs()));
  }

  async listPendingCalls(page: PageRequest<string> = {}): Promise<Page<PendingCall, string>> {
    checkLimit(page.limit);
    return this.#transactions.direct((db) => pageOfPendingCalls(db, page));
  }

  async findPendingCall(id: string): Promise<KnownCall | undefined> {
    return isName(id) ? this.#transactions.direct((db) => findCall(db, id)) : undefined;
  }

  async decidePendingCall(
    id: string,
    { decision, by }: { readonly decision: Decision; readonly by?: string },
  ): Promise<DecideOutcome> {
    if (!isName(id)) return { kind: 'unknown' };
    if (by !== undefined) checkName('by', by);
    return this.#transactions.change((trx) => decideCall(trx, id, { decision, by, nowMs: this.#nowMs() }));
  }

  async settlePendingCall(id: string): Promise<boolean> {
    if (!isName(id)) return false;
    return (await this.#transactions.change((trx) => settleCalls(trx, [id], this.#nowMs()))) > 0;
  }

  listDecidedCalls(): Promise<readonly DecidedCall[]> {
    return this.#transactions.direct(decidedCalls);
  }

  handOverPendingCall(id: string): Promise<void> {
    return this.#transactions.change((trx) => handOverCall(trx, id));
  }

  keepPendingCalls(ids: readonly string[]): Promise<void> {
    return this.#transactions.change((trx) => keepCalls(trx, ids, this.#nowMs()));
  }

  listLostCalls(silentMs: number): Promise<readonly PendingCall[]> {
    return this.#transactions.direct((db) => lostCalls(db, this.#nowMs() - silentMs));
  }

  async remember(owner: MemoryOwner, entity: string, facts: readonly string[]): Promise<number> {
    checkOwner(owner);
    if (facts.length > MEMORY_FACTS_MAX)
      throw new StoreError('store_refused', `at most ${MEMORY_FACTS_MAX} facts are remembered at once`);
    const words = facts.map((fact) => factWords(entity, fact));
    return this.#transactions.change((trx) => rememberWords(trx, owner, { words, nowMs: this.#nowMs() }));
  }

  async relate(
    owner: MemoryOwner,
    relation: { readonly source: string; readonly relation: string; readonly target: string },
  ): Promise<boolean> {
    checkOwner(owner);
    const words = [relationWords(relation)];
    const added = await this.#transactions.change((trx) =>
      rememberWords(trx, owner, { words, nowMs: this.#nowMs() }),
    );
    return added > 0;
  }

  async recall(owner: MemoryOwner, limit: number): Promise<readonly MemoryFact[]> {
    checkOwner(owner);
    checkLimit(limit);
    return this.#transactions.direct((db) => recallFacts(db, owner, limit));
  }

  async beginCall(call: NewCall): Promise<void> {
    checkSession({ appName: call.appName, userId: call.userId, id: call.callSid });
    await this.#transactions.change((trx) => insertCall(trx, call, this.#nowMs()));
  }

  async findCallRecord(callSid: string): Promise<CallRecord | undefined> {
    return isName(callSid) ? this.#transactions.direct((db) => findCallRow(db, callSid)) : undefined;
  }

  endCall(
    callSid: string,
    end: { readonly owner: string; readonly reason: string; readonly mayReturn: boolean },
  ): Promise<boolean> {
    return this.#transactions.change((trx) => endCallRow(trx, callSid, { ...end, nowMs: this.#nowMs() }));
  }

  claimCall(callSid: string, owners: { readonly from: string; readonly to: string }): Promise<boolean> {
    return this.#transactions.change((trx) => claimCallRow(trx, callSid, owners));
  }

  async *exportSessions(filter: ExportFilter = {}): AsyncGenerator<string> {
    checkFilter(filter);
    const lines = exportLines((work) => this.#transactions.direct(work), filter);
    for await (const line of lines) yield JSON.stringify(line);
  }

  importSessions(lines: AsyncIterable<string> | Iterable<string>): Promise<ImportedCounts> {
    return importLines((work) => this.#transactions.change(work), lines);
  }

  close(): Promise<void> {
    return this.#transactions.close();
  }

  /** Whether it is there, and not another one that was made in its place. */
  async #isStill(row: SessionTable, session: SessionKey): Promise<boolean> {
    const now = await this.#transactions.direct((db) => findSession(db, session));
    return now !== undefined && now.created_at_ms === row.created_at_ms && now.last_seq >= row.last_seq;
  }

  async #deleting<Counts extends DeletedCounts>(work: () => Promise<Counts>): Promise<Counts> {
    const counts = await work();
    if (Object.values(counts).some((count) => count > 0)) await this.#afterDeletion();
    return counts;
  }

  /** Whole, as the columns hold it. */
  #nowMs(): number {
    return Math.floor(this.#clock.wallMs());
  }
}

function checkLimit(limit: number | undefined): void {
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1))
    throw new StoreError('store_refused', 'the limit of a page is a whole number of at least 1');
}

function checkBound({ events = 0, bytes = 0 }: EventBound): void {
  if (![events, bytes].every((count) => Number.isSafeInteger(count) && count >= 0))
    throw new StoreError(
      'store_refused',
      'the bound of the newest events is two whole numbers of at least 0',
    );
}
