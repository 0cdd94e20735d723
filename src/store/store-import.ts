/**
 * Takes the lines of an export into a store. Each session is one transaction, so that one which was cut off is not there at all and
 * comes with the next try; what is there already stays as it is.
 */
import { StoreError } from '../errors.js';
import { importCall } from './call-record-rows.js';
import { NOTHING_DELETED, sumOf } from './deletion.js';
import { insertEvents } from './event-rows.js';
import { readLine, sessionOfLine, type ExportLine } from './export-line.js';
import { importEntry } from './ledger-rows.js';
import { factWords, insertMemory, relationWords } from './memory-rows.js';
import type { ArtifactTable, Connection, EventTable, StateTable } from './schema.js';
import { insertSession } from './session-rows.js';
import { NOBODY, ownerOfArtifact, ownerOfKey } from './state-scopes.js';
import { checkMimeType, checkName } from './stored-name.js';
import type { DeletedCounts, ImportedCounts } from './store.js';
import type { Transactions } from './transactions.js';

type Change = Transactions['change'];
type SessionLine = Extract<ExportLine, { type: 'session' }>;

export async function importLines(
  change: Change,
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<ImportedCounts> {
  let counts: ImportedCounts = { ...NOTHING_DELETED, skippedSessions: 0 };
  let number = 0;
  let run: ExportLine[] = [];
  const flush = async () => {
    const whole = run;
    run = [];
    if (whole.length === 0) return;
    const added = await change((trx) => importRun(trx, whole));
    const skippedSessions = counts.skippedSessions + (added === undefined ? 1 : 0);
    counts = { ...sumOf(counts, added ?? NOTHING_DELETED), skippedSessions };
  };
  for await (const text of lines) {
    number += 1;
    if (text.trim() === '') continue;
    const line = readLine(text, number);
    checkLine(line);
    if (!isAtHome(line))
      throw new StoreError('store_refused', `line ${number} names another owner than its name belongs to`);
    if (run[0] !== undefined && !belongsTo(run[0], line)) await flush();
    run.push(line);
    if (sessionOfLine(line) === undefined) await flush();
  }
  await flush();
  return counts;
}

function checkLine(line: ExportLine): void {
  checkName('the app name', line.appName);
  if (line.userId !== undefined) checkName('the user id', line.userId);
  const sessionId = sessionOfLine(line);
  if (sessionId !== undefined) checkName('the session id', sessionId);
  if (line.type === 'event') checkName('the event id', line.event.id);
  if (line.type === 'state') checkName('a state key', line.key);
  if (line.type === 'artifact') {
    checkName('the artifact name', line.name);
    checkMimeType(line.mimeType);
  }
}

/** What is prefixed as the user's or the app's belongs to no session, and everything else to one: otherwise it would be listed where
 * it cannot be read. */
function isAtHome(line: ExportLine): boolean {
  if (line.type !== 'artifact' && line.type !== 'state') return true;
  // Stands for a session where the line names none: only its place in the owner counts.
  const named = { appName: line.appName, userId: line.userId ?? 'u', id: line.sessionId ?? 's' };
  const owner = line.type === 'artifact' ? ownerOfArtifact(named, line.name) : ownerOfKey(named, line.key);
  if (owner === undefined) return false;
  return (
    (owner.userId === NOBODY) === (line.userId === undefined) &&
    (owner.sessionId === NOBODY) === (line.sessionId === undefined)
  );
}

function belongsTo(first: ExportLine, line: ExportLine): boolean {
  return (
    first.appName === line.appName &&
    first.userId === line.userId &&
    sessionOfLine(first) === sessionOfLine(line)
  );
}

/** One session's lines, or one shared line. `undefined`: the session is there already. */
async function importRun(trx: Connection, run: readonly ExportLine[]): Promise<DeletedCounts | undefined> {
  const [first] = run;
  if (first === undefined) return NOTHING_DELETED;
  const sessions = run.filter((line) => line.type === 'session');
  const events = run.filter((line) => line.type === 'event').map(eventRow);
  if (sessionOfLine(first) !== undefined) {
    const made = first.type === 'session' && (await makeSession(trx, first, events));
    if (!made) return undefined;
  }
  await insertEvents(trx, events);
  const stateKeys = await insertStateRows(trx, run);
  const artifactVersions = await insertArtifactRows(trx, run);
  const memoryFacts = await insertMemoryRows(trx, run);
  for (const line of run) {
    if (line.type === 'ledger') await importEntry(trx, line);
    if (line.type === 'call') await importCall(trx, callOf(line));
  }
  return { sessions: sessions.length, events: events.length, stateKeys, artifactVersions, memoryFacts };
}

async function insertMemoryRows(trx: Connection, run: readonly ExportLine[]): Promise<number> {
  let count = 0;
  for (const line of run) {
    if (line.type !== 'fact' && line.type !== 'relation') continue;
    const words = line.type === 'fact' ? factWords(line.entity, line.fact) : relationWords(line);
    if (await insertMemory(trx, line, { words, atMs: line.atMs })) count += 1;
  }
  return count;
}

function makeSession(trx: Connection, line: SessionLine, events: readonly EventTable[]): Promise<boolean> {
  return insertSession(trx, {
    app_name: line.appName,
    user_id: line.userId,
    id: line.sessionId,
    created_at_ms: line.createdAtMs,
    updated_at_ms: line.updatedAtMs,
    last_seq: events.at(-1)?.seq ?? 0,
  });
}

function callOf(line: Extract<ExportLine, { type: 'call' }>): Parameters<typeof importCall>[1] {
  const { sessionId: callSid, appName, userId, direction, callerVerified, startedAtMs, ended } = line;
  return {
    callSid,
    appName,
    userId,
    callDirection: direction,
    callerVerified,
    startedAtMs,
    ended: { ...ended, mayReturn: false },
  };
}

function eventRow(line: Extract<ExportLine, { type: 'event' }>): EventTable {
  const body = JSON.stringify(line.event);
  return {
    app_name: line.appName,
    user_id: line.userId,
    session_id: line.sessionId,
    seq: line.seq,
    id: line.event.id,
    stored_at_ms: line.storedAtMs,
    bytes: Buffer.byteLength(body),
    body,
  };
}

async function insertStateRows(trx: Connection, run: readonly ExportLine[]): Promise<number> {
  let count = 0;
  for (const line of run) {
    if (line.type !== 'state') continue;
    const row: StateTable = {
      app_name: line.appName,
      user_id: line.userId ?? NOBODY,
      session_id: line.sessionId ?? NOBODY,
      key: line.key,
      value: JSON.stringify(line.value ?? null),
      updated_at_ms: line.updatedAtMs,
    };
    const result = await trx
      .insertInto('state')
      .values(row)
      .onConflict((conflict) => conflict.columns(['app_name', 'user_id', 'session_id', 'key']).doNothing())
      .executeTakeFirst();
    count += Number(result.numInsertedOrUpdatedRows ?? 0);
  }
  return count;
}

async function insertArtifactRows(trx: Connection, run: readonly ExportLine[]): Promise<number> {
  let count = 0;
  for (const line of run) {
    if (line.type !== 'artifact') continue;
    const bytes = Buffer.from(line.data, 'base64');
    const row: ArtifactTable = {
      app_name: line.appName,
      user_id: line.userId,
      session_id: line.sessionId ?? NOBODY,
      name: line.name,
      version: line.version,
      mime_type: line.mimeType,
      created_at_ms: line.createdAtMs,
      size: bytes.byteLength,
      bytes,
    };
    const result = await trx
      .insertInto('artifact')
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['app_name', 'user_id', 'session_id', 'name', 'version']).doNothing(),
      )
      .executeTakeFirst();
    count += Number(result.numInsertedOrUpdatedRows ?? 0);
  }
  return count;
}
