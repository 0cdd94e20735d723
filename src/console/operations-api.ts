/**
 * The HTTP side for operators and tools: health, metrics and the calls. Routes that the contract names but that are
 * not built yet answer 501 and say so.
 */
import express, { type NextFunction, type Request, type Response, Router } from 'express';
import type { Registry } from 'prom-client';
import type { Clock } from '../clock.js';
import type { Log } from '../observe/log.js';
import { errorText } from '../errors.js';
import type { PendingCalls } from '../store/pending-calls.js';
import type { Store } from '../store/store.js';
import type { CallBook, CallView } from './call-view.js';
import { addApprovalRoutes } from './approval-api.js';
import { requireJson, requireToken } from './gatekeeper.js';
import { addLedgerRoutes } from './ledger-api.js';
import { CALL_PAGE_MAX, CALL_PAGE_USUAL, HTTP_BODY_MAX_BYTES } from '../limits.js';
import { type PageBounds, readPage } from './paging.js';
import { requestFault } from './request-error.js';
import { addRunRoutes, type RunDoor } from './run-api.js';
import { addSessionRoutes } from './session-api.js';

export interface OperationsOptions {
  readonly calls: CallBook;
  readonly registry: Registry;
  readonly consoleToken: string | undefined;
  readonly metricsToken: string | undefined;
  /** Opens `/debug/runs`. */
  readonly debug: boolean;
  readonly runs: RunDoor;
  readonly store: Store | undefined;
  /** Decides about a call that waits, and carries the decision out; absent where nothing is kept. */
  readonly decide: PendingCalls['decidePendingCall'] | undefined;
  /** What the ledger guards is being done on this server. */
  readonly isBeingDone: (appName: string, key: string) => boolean;
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly log: Log;
}

const NOT_BUILT_YET = [
  'get /',
  'get /calls/:callSid/timeline',
  'post /calls',
  'post /calls/:callSid/transfer',
  'post /calls/:callSid/say',
] as const;

export function createOperationsApi(options: OperationsOptions): Router {
  const { calls, store, decide, clock, log } = options;
  const api = Router();
  api.use(forNobodyElse);
  api.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' });
  });
  api.get('/readyz', (_request, response) => {
    if (calls.draining) response.status(503).json({ status: 'draining' });
    else if (!calls.hasRoom) response.status(503).json({ status: 'full' });
    else response.json({ status: 'ready' });
  });
  api.get(
    '/metrics',
    requireToken(options.metricsToken ?? options.consoleToken),
    async (_request, response) => {
      response.set('Content-Type', options.registry.contentType).send(await options.registry.metrics());
    },
  );
  api.use(requireToken(options.consoleToken));
  if (store !== undefined && decide !== undefined) addApprovalRoutes(api, { store, decide, log });
  api.use(requireJson);
  api.use(express.json({ limit: HTTP_BODY_MAX_BYTES }));
  api.get('/calls', (request, response) => listCalls(calls, request, response));
  api.get('/calls/:callSid', (request, response) => {
    const call = calls.find(request.params.callSid);
    if (call === undefined) response.status(404).json({ error: 'there is no such call' });
    else response.json(call);
  });
  api.post('/calls/:callSid/hangup', (request, response) => {
    if (calls.hangUp(request.params.callSid)) response.status(202).json({});
    else response.status(404).json({ error: 'there is no such call in progress' });
  });
  addRunRoutes(api, options);
  if (store !== undefined) {
    addSessionRoutes(api, { store, clock, log });
    addLedgerRoutes(api, { store, isBeingDone: options.isBeingDone, log });
  }
  if (options.debug) {
    api.get('/debug/runs', (_request, response) => {
      response.json({ ...calls.counts(), ...options.runs.counts() });
    });
  }
  refuseNotBuilt(api);
  api.use((_request: Request, response: Response) => {
    response.status(404).json({ error: 'there is no such route' });
  });
  return api;
}

function refuseNotBuilt(api: Router): void {
  for (const route of NOT_BUILT_YET) {
    const [method, path] = route.split(' ') as ['get' | 'post' | 'delete', string];
    api[method](path, (_request, response) => {
      response
        .status(501)
        .json({ error: `${method.toUpperCase()} ${path} is not built yet in this version` });
    });
  }
}

/** What is told here is one operator's to read, and may be deleted the next moment: nothing on the way keeps it. */
function forNobodyElse(_request: Request, response: Response, next: NextFunction): void {
  response.set('Cache-Control', 'no-store');
  next();
}

const CALL_PAGES: PageBounds<number> = {
  limitMax: CALL_PAGE_MAX,
  cursorName: 'before',
  readCursor: (text) => (Number.isNaN(Date.parse(text)) ? undefined : Date.parse(text)),
  cursorWords: 'an ISO 8601 time',
};

/** `?limit=` (1 to 200, 50 by default), `?before=` a call's `startedAt`, `?state=live|ended`. */
function listCalls(calls: CallBook, request: Request, response: Response): void {
  const page = readPage(request, response, CALL_PAGES);
  if (page === undefined) return;
  const { cursor: beforeMs, limit = CALL_PAGE_USUAL } = page;
  const state = request.query['state'];
  if (state !== undefined && state !== 'live' && state !== 'ended') {
    response.status(400).json({ error: 'state must be live or ended' });
    return;
  }
  const matches = (call: CallView): boolean =>
    (beforeMs === undefined || Date.parse(call.startedAt) < beforeMs) &&
    (state === undefined || (state === 'ended') === (call.endReason !== null));
  // By the cursor, so that no page skips one that is still going on.
  const found = calls
    .list()
    .filter(matches)
    .toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt))
    .slice(0, limit);
  response.json({
    calls: found.map(({ messages, ...summary }) => ({ ...summary, messages: messages.length })),
  });
}

/** The last resort of the HTTP edge: says nothing about the inside. Errors of body parsers carry their status. */
export function createErrorHandler(log: Log) {
  return (error: unknown, _request: Request, response: Response, next: NextFunction): void => {
    const fault = requestFault(error);
    if (fault === undefined) log.error({ cause: errorText(error) }, 'a request failed');
    if (response.headersSent) next(error);
    else response.status(fault?.status ?? 500).json({ error: fault?.error ?? 'internal error' });
  };
}
