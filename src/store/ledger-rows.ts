/**
 * The ledger in the database. Locks are always taken in one order, the account, the session, the key, so that two claims never wait
 * for each other; who claims of an account reads its sum only when it holds the account's row.
 */
import { z } from 'zod';
import { StoreError } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { LEDGER_PAGE_MAX } from '../tool-limits.js';
import type { ExportLine } from './export-line.js';
import type { ClaimOutcome, LedgerAmount, LedgerClaim, LedgerEntry, LedgerFilter } from './ledger.js';
import { isAfter, readCursor, readPage } from './paging.js';
import type { Connection } from './schema.js';
import { touchSession } from './session-rows.js';
import { NOBODY } from './state-scopes.js';
import { storedJson } from './stored-json.js';
import { checkName, checkSession } from './stored-name.js';
import type { Page, PageRequest } from './store.js';
import type { LedgerTable } from './tool-tables.js';

type LedgerLine = Extract<ExportLine, { type: 'ledger' }>;

/** The row that a claim would make. @throws StoreError `store_refused` */
export function claimRow({ session, ...claim }: LedgerClaim, claimedAtMs: number): LedgerTable {
  checkSession(session);
  const { appName, userId, id: sessionId } = session;
  return openRow({ ...claim, appName, userId, sessionId, claimedAtMs });
}

type OpenEntry = Omit<LedgerEntry, 'state' | 'settledAtMs' | 'response'>;

function openRow(entry: OpenEntry): LedgerTable {
  const { key, tool, callId, amount, approvedBy } = entry;
  checkName('the key', key);
  checkName('the tool', tool);
  checkName('the call id', callId);
  if (approvedBy !== undefined) checkName('who approved', approvedBy);
  if (amount !== undefined) checkAmount(amount);
  const guards = storedJson('the guards', entry.guards);
  return {
    app_name: entry.appName,
    key,
    state: 'open',
    tool,
    call_id: callId,
    session_id: entry.sessionId,
    user_id: entry.userId,
    account: amount?.account ?? null,
    amount_minor: amount?.amountMinor ?? null,
    currency: amount?.currency ?? null,
    limit_minor: amount?.limitMinor ?? null,
    guards,
    approved_by: approvedBy ?? null,
    claimed_at_ms: entry.claimedAtMs,
    settled_at_ms: null,
    response: null,
    bytes: Buffer.byteLength(guards),
  };
}

function checkAmount({ account, amountMinor, currency, limitMinor }: LedgerAmount): void {
  checkName('the account', account);
  checkName('the currency', currency);
  for (const [what, value] of [
    ['the amount', amountMinor],
    ['the limit', limitMinor],
  ] as const)
    if (!Number.isSafeInteger(value) || value < 1)
      throw new StoreError('store_refused', `${what} is not a whole number of minor units above 0`);
}

/** Two that insert the same key meet at the table's key, and the later one tries again and finds the entry. */
export async function claimEntry(trx: Connection, row: LedgerTable): Promise<ClaimOutcome> {
  const { app_name: appName, user_id: userId, session_id: id } = row;
  const amount = amountOf(row);
  if (amount !== undefined) await lockAccount(trx, appName, amount.account);
  const known = await trx
    .selectFrom('ledger')
    .selectAll()
    .where('app_name', '=', appName)
    .where('key', '=', row.key)
    .executeTakeFirst();
  if (known?.state === 'done') {
    const then = amountOf(known);
    const isSameCall = known.call_id === row.call_id && known.session_id === id;
    const response = readJson(known.response);
    return { kind: 'done', response, isSameCall, ...(then !== undefined && { amount: then }) };
  }
  if (known !== undefined) return { kind: 'open', sinceMs: known.claimed_at_ms };
  const why = amount && (await refusalOf(trx, appName, amount));
  if (why !== undefined) return { kind: 'refused', why };
  // Whose data was deleted meanwhile, is not written down again.
  const isThere = await touchSession(trx, { appName, userId, id }, row.claimed_at_ms);
  const names = isThere ? {} : { user_id: NOBODY, session_id: NOBODY };
  await trx
    .insertInto('ledger')
    .values({ ...row, ...names })
    .execute();
  return { kind: 'claimed' };
}

/** Until the commit: an update of nothing, which locks the row on both databases. */
async function lockAccount(trx: Connection, appName: string, account: string): Promise<void> {
  await trx
    .insertInto('ledger_account')
    .values({ app_name: appName, account })
    .onConflict((conflict) =>
      conflict
        .columns(['app_name', 'account'])
        .doUpdateSet((eb) => ({ account: eb.ref('excluded.account') })),
    )
    .execute();
}

/** Why the account does not take this amount, in words for a model. */
async function refusalOf(
  trx: Connection,
  appName: string,
  { account, amountMinor, currency, limitMinor }: LedgerAmount,
): Promise<string | undefined> {
  const kept = await trx
    .selectFrom('ledger')
    .select((eb) => ['currency', 'limit_minor', eb.fn.sum<number | string>('amount_minor').as('sum')])
    .where('app_name', '=', appName)
    .where('account', '=', account)
    .groupBy(['currency', 'limit_minor'])
    .execute();
  const other = kept.find((one) => one.currency !== currency);
  if (other !== undefined)
    return `what was done before was in ${other.currency}, and this is in ${currency}: one currency only`;
  const otherLimit = kept.find((one) => one.limit_minor !== limitMinor);
  if (otherLimit !== undefined)
    return `the limit was ${otherLimit.limit_minor} before, and is said to be ${limitMinor} now (${currency}, minor units)`;
  const left = limitMinor - kept.reduce((sum, one) => sum + Number(one.sum), 0);
  if (amountMinor <= left) return undefined;
  return `${amountMinor} is more than the ${Math.max(left, 0)} that are left of the limit of ${limitMinor} (${currency}, minor units)`;
}

/** One that was kept elsewhere; whatever is here under its key stays as it is. @throws StoreError `store_refused` */
export async function importEntry(trx: Connection, line: LedgerLine): Promise<void> {
  const { appName, amount, settled, userId = NOBODY, session: sessionId = NOBODY } = line;
  if (sessionId !== NOBODY) checkName('the session id', sessionId);
  const row = openRow({ ...line, userId, sessionId });
  if (amount !== undefined) await lockAccount(trx, appName, amount.account);
  await trx
    .insertInto('ledger')
    .values(settled === undefined ? row : doneRow(row, settled))
    .onConflict((conflict) => conflict.columns(['app_name', 'key']).doNothing())
    .execute();
}

function doneRow(row: LedgerTable, { atMs, response }: { atMs: number; response: JsonObject }): LedgerTable {
  const json = storedJson('the response', response);
  const bytes = row.bytes + Buffer.byteLength(json);
  return { ...row, state: 'done', response: json, settled_at_ms: atMs, bytes };
}

/** `false`: it was not open. */
export async function settleEntry(
  trx: Connection,
  { appName, key, response, nowMs }: { appName: string; key: string; response: string; nowMs: number },
): Promise<boolean> {
  const row = await trx
    .updateTable('ledger')
    .set((eb) => ({
      state: 'done' as const,
      response,
      settled_at_ms: nowMs,
      bytes: eb('bytes', '+', Buffer.byteLength(response)),
    }))
    .where('app_name', '=', appName)
    .where('key', '=', key)
    .where('state', '=', 'open')
    .returning('key')
    .executeTakeFirst();
  return row !== undefined;
}

/** `false`: it was not open. */
export async function releaseEntry(trx: Connection, appName: string, key: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('ledger')
    .where('app_name', '=', appName)
    .where('key', '=', key)
    .where('state', '=', 'open')
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows) > 0;
}

/** What one user's entries say of the user is taken out of them; the rest stays. */
export async function blankEntries(
  trx: Connection,
  { appName, userId }: { readonly appName: string | undefined; readonly userId: string },
): Promise<void> {
  let query = trx
    .updateTable('ledger')
    .set({ user_id: NOBODY, session_id: NOBODY })
    .where('user_id', '=', userId);
  if (appName !== undefined) query = query.where('app_name', '=', appName);
  await query.execute();
}

const ORDER = ['claimed_at_ms', 'app_name', 'key'] as const;
const cursorSchema = z.tuple([z.int(), z.string(), z.string()]);

/** @throws StoreError `store_refused` */
export function checkLedgerFilter({ appName, account, userId }: LedgerRowFilter): void {
  if (appName !== undefined) checkName('the app name', appName);
  if (account !== undefined) checkName('the account', account);
  if (userId !== undefined) checkName('the user id', userId);
}

export interface LedgerRowFilter extends LedgerFilter {
  readonly userId?: string;
}

/** Oldest first. */
export async function pageOfLedger(
  connection: Connection,
  { appName, account, state, userId }: LedgerRowFilter,
  { after, limit = LEDGER_PAGE_MAX }: PageRequest<string>,
): Promise<Page<LedgerEntry, string>> {
  let query = connection.selectFrom('ledger');
  if (appName !== undefined) query = query.where('app_name', '=', appName);
  if (account !== undefined) query = query.where('account', '=', account);
  if (state !== undefined) query = query.where('state', '=', state);
  if (userId !== undefined) query = query.where('user_id', '=', userId);
  if (after !== undefined) query = query.where(isAfter(ORDER, readCursor(cursorSchema, after, 'the ledger')));
  for (const column of ORDER) query = query.orderBy(column);
  return readPage({
    order: ORDER,
    rowsMax: Math.min(limit, LEDGER_PAGE_MAX),
    sizes: (rowsMax) =>
      query
        .select([...ORDER, 'bytes'])
        .limit(rowsMax)
        .execute(),
    upTo: async (last) => {
      const rows = await query
        .selectAll()
        .where((eb) => eb.not(isAfter(ORDER, last)))
        .execute();
      return rows.map(entryOf);
    },
  });
}

function entryOf(row: LedgerTable): LedgerEntry {
  const amount = amountOf(row);
  return {
    appName: row.app_name,
    key: row.key,
    state: row.state,
    tool: row.tool,
    callId: row.call_id,
    sessionId: row.session_id,
    userId: row.user_id,
    ...(amount && { amount }),
    guards: JSON.parse(row.guards) as string[],
    ...(row.approved_by !== null && { approvedBy: row.approved_by }),
    claimedAtMs: row.claimed_at_ms,
    ...(row.settled_at_ms !== null && { settledAtMs: row.settled_at_ms }),
    ...(row.response !== null && { response: readJson(row.response) }),
  };
}

/** Of an entry, or of the audit of one. */
export function amountOf({
  account,
  amount_minor,
  currency,
  limit_minor,
}: Pick<LedgerTable, 'account' | 'amount_minor' | 'currency' | 'limit_minor'>): LedgerAmount | undefined {
  if (account === null || amount_minor === null || currency === null || limit_minor === null)
    return undefined;
  return { account, amountMinor: amount_minor, currency, limitMinor: limit_minor };
}

function readJson(json: string | null): JsonObject {
  return JSON.parse(json ?? '{}') as JsonObject;
}
