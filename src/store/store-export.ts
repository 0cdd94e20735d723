/**
 * Everything that is stored, or one app's or user's part of it, as JSON lines: read by pages, so that neither the size of the store nor
 * a slow reader matters, and nothing is locked meanwhile.
 */
import { ARTIFACT_LIST_MAX, EVENT_PAGE_MAX, SESSION_PAGE_MAX } from '../limits.js';
import { artifactOf } from './artifact-rows.js';
import { endedCallOf } from './call-record-rows.js';
import { readEvent, rowsAfter } from './event-reading.js';
import type { ExportLine } from './export-line.js';
import type { LedgerEntry } from './ledger.js';
import { pageOfLedger } from './ledger-rows.js';
import { isAfter } from './paging.js';
import type { ArtifactTable, Connection, SessionTable, StateTable } from './schema.js';
import { NOBODY } from './state-scopes.js';
import type { MemoryTable } from './tool-tables.js';
import type { ExportFilter, SessionKey } from './store.js';
import type { Transactions } from './transactions.js';

type Direct = Transactions['direct'];
type OwnerColumns = Pick<StateTable, 'app_name' | 'user_id' | 'session_id'>;
type ArtifactColumns = Omit<ArtifactTable, 'bytes' | 'size' | 'mime_type' | 'created_at_ms'>;

export async function* exportLines(direct: Direct, filter: ExportFilter): AsyncGenerator<ExportLine> {
  yield* sharedState(direct, filter);
  yield* artifacts(direct, { ...filter, sessionId: NOBODY });
  yield* memory(direct, filter);
  yield* ledger(direct, filter);
  for await (const row of sessions(direct, filter)) {
    const {
      app_name: appName,
      user_id: userId,
      id,
      created_at_ms: createdAtMs,
      updated_at_ms: updatedAtMs,
    } = row;
    const owner = { appName, userId, sessionId: id };
    yield { type: 'session', ...owner, createdAtMs, updatedAtMs };
    for (const line of await direct((db) => ownState(db, { appName, userId, id }))) yield line;
    yield* events(direct, { appName, userId, id });
    yield* artifacts(direct, owner);
    yield* callRecord(direct, { appName, userId, id });
  }
}

/** Which server had the call is told to nobody. */
async function* callRecord(direct: Direct, session: SessionKey): AsyncGenerator<ExportLine> {
  const record = await direct((db) => endedCallOf(db, session));
  if (record?.ended === undefined) return;
  const { callDirection: direction, callerVerified, startedAtMs, ended } = record;
  const { appName, userId, id: sessionId } = session;
  const end = { atMs: ended.atMs, reason: ended.reason };
  yield { type: 'call', appName, userId, sessionId, direction, callerVerified, startedAtMs, ended: end };
}

async function* sessions(direct: Direct, { appName, userId }: ExportFilter): AsyncGenerator<SessionTable> {
  let last: SessionTable | undefined;
  do {
    const before: SessionTable | undefined = last;
    const rows = await direct((db) => {
      let query = db.selectFrom('session').selectAll();
      if (appName !== undefined) query = query.where('app_name', '=', appName);
      if (userId !== undefined) query = query.where('user_id', '=', userId);
      if (before !== undefined)
        query = query.where(
          isAfter(['app_name', 'user_id', 'id'], [before.app_name, before.user_id, before.id]),
        );
      return query.orderBy('app_name').orderBy('user_id').orderBy('id').limit(SESSION_PAGE_MAX).execute();
    });
    yield* rows;
    last = rows.length < SESSION_PAGE_MAX ? undefined : rows.at(-1);
  } while (last !== undefined);
}

async function* events(direct: Direct, session: SessionKey): AsyncGenerator<ExportLine> {
  const { appName, userId, id: sessionId } = session;
  let after = 0;
  for (;;) {
    const from = after;
    const rows = await direct((db) => rowsAfter(db, session, { after: from, limit: EVENT_PAGE_MAX }));
    for (const { seq, stored_at_ms: storedAtMs, body } of rows)
      yield { type: 'event', appName, userId, sessionId, seq, storedAtMs, event: readEvent(body) };
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.seq;
  }
}

function stateLine({ key, value, updated_at_ms: updatedAtMs, ...owner }: StateTable): ExportLine {
  return { type: 'state', ...ownerOf(owner), key, value: JSON.parse(value) as unknown, updatedAtMs };
}

function ownerOf({ app_name: appName, user_id: userId, session_id: sessionId }: OwnerColumns) {
  return { appName, ...(userId !== NOBODY && { userId }), ...(sessionId !== NOBODY && { sessionId }) };
}

/** What is the app's or the user's. The app's is not one user's. */
async function* sharedState(direct: Direct, { appName, userId }: ExportFilter): AsyncGenerator<ExportLine> {
  let last: StateTable | undefined;
  do {
    const before: StateTable | undefined = last;
    const rows = await direct((db) => {
      let query = db.selectFrom('state').selectAll().where('session_id', '=', NOBODY);
      if (appName !== undefined) query = query.where('app_name', '=', appName);
      if (userId !== undefined) query = query.where('user_id', '=', userId);
      if (before !== undefined)
        query = query.where(
          isAfter(['app_name', 'user_id', 'key'], [before.app_name, before.user_id, before.key]),
        );
      return query.orderBy('app_name').orderBy('user_id').orderBy('key').limit(STATE_PAGE).execute();
    });
    for (const row of rows) yield stateLine(row);
    last = rows.length < STATE_PAGE ? undefined : rows.at(-1);
  } while (last !== undefined);
}

const STATE_PAGE = 500;

async function ownState(connection: Connection, { appName, userId, id }: SessionKey): Promise<ExportLine[]> {
  const rows = await connection
    .selectFrom('state')
    .selectAll()
    .where('app_name', '=', appName)
    .where('user_id', '=', userId)
    .where('session_id', '=', id)
    .orderBy('key')
    .execute();
  return rows.map(stateLine);
}

/** Of one session, or of users where `sessionId` is empty; their bytes one at a time. */
async function* artifacts(
  direct: Direct,
  filter: ExportFilter & { readonly sessionId: string },
): AsyncGenerator<ExportLine> {
  let last: ArtifactColumns | undefined;
  do {
    const before: ArtifactColumns | undefined = last;
    const rows = await direct((db) => artifactPage(db, filter, before));
    for (const row of rows) {
      const whole = await direct((db) =>
        db
          .selectFrom('artifact')
          .select(['version', 'mime_type', 'created_at_ms', 'bytes'])
          .where((eb) => eb.and({ ...row }))
          .executeTakeFirst(),
      );
      if (whole === undefined) continue; // Deleted meanwhile.
      const { bytes, version, mimeType, createdAtMs } = artifactOf(whole);
      const { app_name: appName, user_id: userId, session_id: sessionId, name } = row;
      const owner = { appName, userId, ...(sessionId !== NOBODY && { sessionId }) };
      const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
      yield { type: 'artifact', ...owner, name, version, mimeType, createdAtMs, data };
    }
    last = rows.length < ARTIFACT_LIST_MAX ? undefined : rows.at(-1);
  } while (last !== undefined);
}

const ARTIFACT_ORDER = ['app_name', 'user_id', 'session_id', 'name', 'version'] as const;

function artifactPage(
  connection: Connection,
  { appName, userId, sessionId }: ExportFilter & { readonly sessionId: string },
  before: ArtifactColumns | undefined,
): Promise<ArtifactColumns[]> {
  let query = connection.selectFrom('artifact').select(ARTIFACT_ORDER).where('session_id', '=', sessionId);
  if (appName !== undefined) query = query.where('app_name', '=', appName);
  if (userId !== undefined) query = query.where('user_id', '=', userId);
  if (before !== undefined)
    query = query.where(
      isAfter(
        ARTIFACT_ORDER,
        ARTIFACT_ORDER.map((column) => before[column]),
      ),
    );
  for (const column of ARTIFACT_ORDER) query = query.orderBy(column);
  return query.limit(ARTIFACT_LIST_MAX).execute();
}

const MEMORY_ORDER = ['app_name', 'user_id', 'at_ms', 'place'] as const;

async function* memory(direct: Direct, { appName, userId }: ExportFilter): AsyncGenerator<ExportLine> {
  let last: MemoryTable | undefined;
  do {
    const before: MemoryTable | undefined = last;
    const rows = await direct((db) => {
      let query = db.selectFrom('memory').selectAll();
      if (appName !== undefined) query = query.where('app_name', '=', appName);
      if (userId !== undefined) query = query.where('user_id', '=', userId);
      if (before !== undefined)
        query = query.where(
          isAfter(
            MEMORY_ORDER,
            MEMORY_ORDER.map((column) => before[column]),
          ),
        );
      for (const column of MEMORY_ORDER) query = query.orderBy(column);
      return query.limit(STATE_PAGE).execute();
    });
    for (const row of rows) yield memoryLine(row);
    last = rows.length < STATE_PAGE ? undefined : rows.at(-1);
  } while (last !== undefined);
}

function memoryLine(row: MemoryTable): ExportLine {
  const { app_name: appName, user_id: userId, subject, relation, object, at_ms: atMs } = row;
  return row.kind === 'fact'
    ? { type: 'fact', appName, userId, entity: subject, fact: object, atMs }
    : { type: 'relation', appName, userId, source: subject, relation, target: object, atMs };
}

async function* ledger(direct: Direct, filter: ExportFilter): AsyncGenerator<ExportLine> {
  let after: string | undefined;
  do {
    const from: string | undefined = after;
    const page = await direct((db) =>
      pageOfLedger(db, filter, { ...(from !== undefined && { after: from }) }),
    );
    for (const entry of page.items) yield ledgerLine(entry);
    after = page.next;
  } while (after !== undefined);
}

function ledgerLine(entry: LedgerEntry): ExportLine {
  const { appName, userId, sessionId, key, tool, callId, amount, guards, approvedBy } = entry;
  const { claimedAtMs, settledAtMs, response } = entry;
  const isSettled = settledAtMs !== undefined && response !== undefined;
  return {
    type: 'ledger',
    appName,
    ...(userId !== NOBODY && { userId }),
    ...(sessionId !== NOBODY && { session: sessionId }),
    key,
    tool,
    callId,
    ...(amount && { amount }),
    guards: [...guards],
    ...(approvedBy !== undefined && { approvedBy }),
    claimedAtMs,
    ...(isSettled && { settled: { atMs: settledAtMs, response } }),
  };
}
