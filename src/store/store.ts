/**
 * What the server keeps across runs: sessions with their events, state by scope, artifacts by version; what tools did once, left
 * waiting and remembered; and which server has which phone call. One interface,
 * the same behaviour on SQLite and PostgreSQL. Every method that fails rejects with a StoreError; what is merely not there
 * is `undefined`, `false` or a count of 0.
 */
import type { StoreError } from '../errors.js';
import type { Event, JsonObject } from '../event/event.js';
import type { CallRecords } from './call-records.js';
import type { Ledger } from './ledger.js';
import type { Memory } from './memory.js';
import type { PendingCalls } from './pending-calls.js';
import type { PreparedEvent } from './prepared-event.js';

/** Whose conversation it is. Names have 1 to STORE_NAME_MAX_BYTES bytes of UTF-8 and no NUL; compared byte by byte. */
export interface SessionKey {
  readonly appName: string;
  readonly userId: string;
  readonly id: string;
}

/** Times are milliseconds since the Unix epoch. */
export interface SessionSummary extends SessionKey {
  readonly createdAtMs: number;
  /** Of the last event or artifact. */
  readonly updatedAtMs: number;
}

export interface StoredSession extends SessionSummary {
  /** The session's own keys, and the user's and the app's under their prefixes. */
  readonly state: JsonObject;
  /** In the order in which they were appended: all of them, or the newest that fit into the bound. */
  readonly events: readonly Event[];
  /** Older events that were left out. */
  readonly omittedEvents: number;
}

/** How many events are wanted, and how many bytes of them; no more than SESSION_EVENTS_MAX and SESSION_EVENTS_MAX_BYTES, which stand for
 * what is left out. */
export interface EventBound {
  readonly events?: number;
  readonly bytes?: number;
}

export interface SequencedEvent {
  /** Rises by 1 with each event of a session, from 1. */
  readonly seq: number;
  readonly event: Event;
}

/** `next` is the `after` of the page that follows; absent on the last. */
export interface Page<Item, Cursor> {
  readonly items: readonly Item[];
  readonly next?: Cursor;
}

export interface PageRequest<Cursor> {
  /** Items come after this one; without it, from the beginning. */
  readonly after?: Cursor;
  /** At least 1; more than the bound counts as the bound. */
  readonly limit?: number;
}

/** What became of one event of a batch. */
export type AppendOutcome =
  { readonly stored: true; readonly seq: number } | { readonly stored: false; readonly error: StoreError };

export interface Artifact {
  readonly version: number;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
  readonly createdAtMs: number;
}

export interface ArtifactSummary {
  readonly name: string;
  readonly latest: { readonly version: number; readonly mimeType: string; readonly bytes: number };
  /** How many there are: 0 to this, less 1. */
  readonly versions: number;
}

export interface DeletedCounts {
  readonly sessions: number;
  readonly events: number;
  readonly stateKeys: number;
  readonly artifactVersions: number;
  readonly memoryFacts: number;
}

export interface ExportFilter {
  readonly appName?: string;
  readonly userId?: string;
}

export interface ImportedCounts extends DeletedCounts {
  /** Sessions that were there already and were left as they are. */
  readonly skippedSessions: number;
}

export interface Store extends Ledger, PendingCalls, Memory, CallRecords {
  /** Makes a session with an initial state, its keys by their prefixes. `false`: it is there already, and nothing changed. */
  createSession(session: SessionKey, state?: JsonObject): Promise<boolean>;
  /** With its newest events, whole ones, as many as `newest` has room for. The event loop is held for one small slice at a time. */
  getSession(session: SessionKey, newest?: EventBound): Promise<StoredSession | undefined>;
  /** State alone, whether the session is there or not: the user's and the app's keys are theirs. */
  readState(session: SessionKey): Promise<JsonObject>;
  /** Newest first. Without `userId` those of all users of the app, without `appName` those of all apps. */
  listSessions(
    filter: { readonly appName?: string; readonly userId?: string },
    page?: PageRequest<string>,
  ): Promise<Page<SessionSummary, string>>;
  /** The session with its events, own state, own artifacts, pending calls and call record. What is the user's or the app's stays. */
  deleteSession(session: SessionKey): Promise<boolean>;

  /**
   * Commits an event and its state change together, and tells its place. When it resolves, neither the end of this process nor a
   * power failure loses it. An event that is stored already, word for word, is not stored again.
   * @throws StoreError `store_refused` for a partial event and for what is above its bound; `store_no_session`;
   * `store_conflict` for another event with the same id; `store_failed`.
   */
  appendEvent(session: SessionKey, event: Event): Promise<number>;
  /** Commits a batch in its order, each session's events together with their state changes. Rejects only when none is stored. */
  appendPrepared(batch: readonly PreparedEvent[]): Promise<readonly AppendOutcome[]>;
  /** By the cursor `seq`; undefined for an unknown session. Bounded by EVENT_PAGE_MAX_BYTES, too. */
  listEvents(
    session: SessionKey,
    page?: PageRequest<number>,
  ): Promise<Page<SequencedEvent, number> | undefined>;

  /** Returns the version, from 0. A name that begins with `user:` belongs to the user and is seen from all of its sessions. */
  saveArtifact(session: SessionKey, name: string, bytes: Uint8Array, mimeType: string): Promise<number>;
  /** The newest version without `version`. */
  loadArtifact(session: SessionKey, name: string, version?: number): Promise<Artifact | undefined>;
  /** The session's and its user's, by name, byte by byte. */
  listArtifacts(session: SessionKey, page?: PageRequest<string>): Promise<Page<ArtifactSummary, string>>;

  /**
   * Sessions without activity since `timeMs`, with all that is theirs; and user state, user artifacts and memory that are older, of users
   * with no session left. What is the app's stays, and so does the ledger.
   */
  deleteOlderThan(timeMs: number): Promise<DeletedCounts>;
  /** Everything of one user: sessions, events, state, artifacts, pending calls, memory, call records; in one app, or in `all`. The ledger's
   * entries stay, without the user's id and the session's. */
  deleteUser(app: { readonly appName: string } | 'all', userId: string): Promise<DeletedCounts>;

  /** JSON lines without their line ends. What is written meanwhile may be in it or not. */
  exportSessions(filter?: ExportFilter): AsyncIterableIterator<string>;
  /** Takes the lines of an export. A session that is there already is left as it is, and so is state. */
  importSessions(lines: AsyncIterable<string> | Iterable<string>): Promise<ImportedCounts>;

  /** Finishes what has begun; what is asked afterwards is refused. Idempotent. */
  close(): Promise<void>;
}
