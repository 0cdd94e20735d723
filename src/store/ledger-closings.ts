/**
 * Entries of the ledger that stayed open and were closed by a person: settled or released together with a row that says who did it,
 * when and why, and which outlives the entry.
 */
import { z } from 'zod';
import { StoreError } from '../errors.js';
import { newId } from '../ids.js';
import { LEDGER_PAGE_MAX, LEDGER_REASON_MAX_CHARS } from '../tool-limits.js';
import type { CloseOutcome, LedgerClosing, LedgerClosingEntry } from './ledger.js';
import { amountOf, releaseEntry, settleEntry } from './ledger-rows.js';
import { isAfter, readCursor, readPage } from './paging.js';
import type { Connection } from './schema.js';
import { storedJson } from './stored-json.js';
import { checkName } from './stored-name.js';
import type { Page, PageRequest } from './store.js';
import type { LedgerClosingTable } from './tool-tables.js';

/** @throws StoreError `store_refused` */
export function checkClosing({ appName, key, reason, by }: LedgerClosing): void {
  checkName('the app name', appName);
  checkName('the key', key);
  if (by !== undefined) checkName('by', by);
  const isText = reason.trim() !== '' && !reason.includes('\0') && reason.length <= LEDGER_REASON_MAX_CHARS;
  if (!isText)
    throw new StoreError(
      'store_refused',
      `the reason is not text of 1 to ${LEDGER_REASON_MAX_CHARS} characters`,
    );
}

export async function closeOpenEntry(
  trx: Connection,
  { appName, key, response, reason, by }: LedgerClosing,
  nowMs: number,
): Promise<CloseOutcome> {
  const entry = await trx
    .selectFrom('ledger')
    .selectAll()
    .where('app_name', '=', appName)
    .where('key', '=', key)
    .executeTakeFirst();
  if (entry === undefined) return 'unknown';
  const isClosed =
    response === undefined
      ? await releaseEntry(trx, appName, key)
      : await settleEntry(trx, { appName, key, response: storedJson('the response', response), nowMs });
  if (!isClosed) return 'notOpen';
  const { tool, call_id, account, amount_minor, currency, limit_minor, claimed_at_ms } = entry;
  const audit: LedgerClosingTable = {
    id: newId(),
    app_name: appName,
    key,
    action: response === undefined ? 'release' : 'settle',
    tool,
    call_id,
    account,
    amount_minor,
    currency,
    limit_minor,
    claimed_at_ms,
    closed_by: by ?? null,
    reason,
    closed_at_ms: nowMs,
  };
  await trx.insertInto('ledger_closing').values(audit).execute();
  return 'closed';
}

const ORDER = ['closed_at_ms', 'id'] as const;
const cursorSchema = z.tuple([z.int(), z.string()]);

/** Oldest first. */
export async function pageOfClosings(
  connection: Connection,
  { after, limit = LEDGER_PAGE_MAX }: PageRequest<string>,
): Promise<Page<LedgerClosingEntry, string>> {
  let query = connection.selectFrom('ledger_closing');
  if (after !== undefined)
    query = query.where(isAfter(ORDER, readCursor(cursorSchema, after, 'what was closed')));
  for (const column of ORDER) query = query.orderBy(column);
  return readPage({
    order: ORDER,
    rowsMax: Math.min(limit, LEDGER_PAGE_MAX),
    sizes: async (rowsMax) => {
      const rows = await query
        .select([...ORDER, 'reason'])
        .limit(rowsMax)
        .execute();
      return rows.map(({ reason, ...place }) => ({ ...place, bytes: Buffer.byteLength(reason) }));
    },
    upTo: async (last) => {
      const rows = await query
        .selectAll()
        .where((eb) => eb.not(isAfter(ORDER, last)))
        .execute();
      return rows.map(closingOf);
    },
  });
}

function closingOf(row: LedgerClosingTable): LedgerClosingEntry {
  const amount = amountOf(row);
  return {
    id: row.id,
    appName: row.app_name,
    key: row.key,
    action: row.action,
    tool: row.tool,
    callId: row.call_id,
    ...(amount && { amount }),
    claimedAtMs: row.claimed_at_ms,
    ...(row.closed_by !== null && { by: row.closed_by }),
    reason: row.reason,
    closedAtMs: row.closed_at_ms,
  };
}
