/**
 * The ledger over HTTP: for the person who has to find out what became of an entry that stayed open, and says so.
 */
import type { Request, Response, Router } from 'express';
import { z } from 'zod';
import type { Log } from '../observe/log.js';
import type { Ledger, LedgerClosing, LedgerClosingEntry, LedgerEntry } from '../store/ledger.js';
import { LEDGER_PAGE_MAX, LEDGER_REASON_MAX_CHARS } from '../tool-limits.js';
import type { PageBounds } from './paging.js';
import { notFound, pageOf, storeRoute } from './session-api.js';

const LEDGER_PAGES: PageBounds<string> = { limitMax: LEDGER_PAGE_MAX, readCursor: (text) => text };

export interface LedgerApiOptions {
  readonly store: Pick<Ledger, 'listLedger' | 'closeEntry' | 'listClosings'>;
  /** The deed is being done on this server, and settles its entry by itself. */
  readonly isBeingDone: (appName: string, key: string) => boolean;
  readonly log: Log;
}

const query = z.object({
  app: z.string().exactOptional(),
  account: z.string().exactOptional(),
  state: z.enum(['open', 'done']).exactOptional(),
});

const because = {
  reason: z.string().trim().min(1).max(LEDGER_REASON_MAX_CHARS),
  by: z.string().min(1).max(256).exactOptional(),
};
const released = z.strictObject(because);
const settled = z.strictObject({ ...because, response: z.record(z.string(), z.unknown()) });

/** Behind what reads bodies. `?app=`, `?account=`, `?state=open` or `done`, `?limit=`, `?after=`. */
export function addLedgerRoutes(api: Router, options: LedgerApiOptions): void {
  const { store, log } = options;
  api.get(
    '/ledger',
    storeRoute(log, (request, response) => listEntries(store, request, response)),
  );
  api.get(
    '/ledger/closings',
    storeRoute(log, (request, response) => listClosings(store, request, response)),
  );
  for (const [action, body] of [
    ['settle', settled],
    ['release', released],
  ] as const)
    api.post(
      `/ledger/:id/${action}`,
      storeRoute(log, (request, response) => closeEntry(options, body, request, response)),
    );
}

async function listEntries(
  store: LedgerApiOptions['store'],
  request: Request,
  response: Response,
): Promise<void> {
  const read = query.safeParse(request.query);
  if (!read.success) {
    response.status(400).json({ error: faultOf(read.error) });
    return;
  }
  const page = pageOf(request, response, LEDGER_PAGES);
  if (page === undefined) return;
  const { app, ...filter } = read.data;
  const { items, next } = await store.listLedger(
    { ...filter, ...(app !== undefined && { appName: app }) },
    page,
  );
  response.json({ entries: items.map(shown), ...(next !== undefined && { next }) });
}

async function listClosings(
  store: LedgerApiOptions['store'],
  request: Request,
  response: Response,
): Promise<void> {
  const page = pageOf(request, response, LEDGER_PAGES);
  if (page === undefined) return;
  const { items, next } = await store.listClosings(page);
  response.json({ closings: items.map(shownClosing), ...(next !== undefined && { next }) });
}

async function closeEntry(
  { store, isBeingDone, log }: LedgerApiOptions,
  body: typeof settled | typeof released,
  request: Request,
  response: Response,
): Promise<void> {
  const read = body.safeParse(request.body ?? {});
  if (!read.success) {
    response.status(400).json({ error: faultOf(read.error) });
    return;
  }
  const entry = entryOf(String(request.params['id']));
  if (entry === undefined) return notFound(response, 'ledger entry');
  if (isBeingDone(entry.appName, entry.key)) {
    response.status(409).json({ error: 'it is being carried out at this moment, and will settle by itself' });
    return;
  }
  const closing: LedgerClosing = { ...entry, ...read.data };
  switch (await store.closeEntry(closing)) {
    case 'unknown':
      return notFound(response, 'ledger entry');
    case 'notOpen':
      response.status(409).json({ error: 'it is not open: it is done already' });
      return;
    case 'closed': {
      const state = closing.response === undefined ? 'released' : 'done';
      log.warn(
        { app: entry.appName, state, pii: read.data },
        'an open entry of the ledger was closed by a person',
      );
      response.json({ id: idOf(entry), state });
    }
  }
}

interface EntryName {
  readonly appName: string;
  readonly key: string;
}

const nameSchema = z.tuple([z.string(), z.string()]);

/** An entry is named by its app and its key, either of which may hold what no address can. */
function idOf({ appName, key }: EntryName): string {
  return Buffer.from(JSON.stringify([appName, key])).toString('base64url');
}

/** Undefined for what `idOf` never gave. */
function entryOf(id: string): EntryName | undefined {
  try {
    const [appName, key] = nameSchema.parse(JSON.parse(Buffer.from(id, 'base64url').toString()));
    return idOf({ appName, key }) === id ? { appName, key } : undefined;
  } catch {
    return undefined;
  }
}

function shown({ claimedAtMs, settledAtMs, ...entry }: LedgerEntry): object {
  return {
    id: idOf(entry),
    ...entry,
    claimedAt: new Date(claimedAtMs).toISOString(),
    ...(settledAtMs !== undefined && { settledAt: new Date(settledAtMs).toISOString() }),
  };
}

function shownClosing({ claimedAtMs, closedAtMs, ...closing }: LedgerClosingEntry): object {
  return {
    ...closing,
    claimedAt: new Date(claimedAtMs).toISOString(),
    closedAt: new Date(closedAtMs).toISOString(),
  };
}

function faultOf({ issues: [issue] }: z.ZodError): string {
  if (issue === undefined || issue.path.length === 0) return issue?.message ?? 'it makes no sense';
  return `${issue.path.join('.')}: ${issue.message}`;
}
