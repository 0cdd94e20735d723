/**
 * The ledger over HTTP: for the person who has to find out what became of an entry that stayed open.
 */
import type { Request, Response, Router } from 'express';
import { z } from 'zod';
import type { Log } from '../observe/log.js';
import type { Ledger, LedgerEntry } from '../store/ledger.js';
import type { PageBounds } from './paging.js';
import { pageOf, storeRoute } from './session-api.js';
import { LEDGER_PAGE_MAX } from '../tool-limits.js';

const LEDGER_PAGES: PageBounds<string> = { limitMax: LEDGER_PAGE_MAX, readCursor: (text) => text };

export interface LedgerApiOptions {
  readonly store: Pick<Ledger, 'listLedger'>;
  readonly log: Log;
}

const query = z.object({
  app: z.string().exactOptional(),
  account: z.string().exactOptional(),
  state: z.enum(['open', 'done']).exactOptional(),
});

/** `?app=`, `?account=`, `?state=open` or `done`, `?limit=`, `?after=`. */
export function addLedgerRoutes(api: Router, { store, log }: LedgerApiOptions): void {
  api.get(
    '/ledger',
    storeRoute(log, (request, response) => listEntries(store, request, response)),
  );
}

async function listEntries(
  store: LedgerApiOptions['store'],
  request: Request,
  response: Response,
): Promise<void> {
  const read = query.safeParse(request.query);
  if (!read.success) {
    const [issue] = read.error.issues;
    response.status(400).json({ error: `${issue?.path.join('.')}: ${issue?.message}` });
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

function shown({ claimedAtMs, settledAtMs, ...entry }: LedgerEntry): object {
  return {
    ...entry,
    claimedAt: new Date(claimedAtMs).toISOString(),
    ...(settledAtMs !== undefined && { settledAt: new Date(settledAtMs).toISOString() }),
  };
}
