/**
 * Stored sessions and artifacts over HTTP: read, listed, deleted. Committed events only, in pages; nothing here waits for a run.
 */
import { pipeline } from 'node:stream/promises';
import type { NextFunction, Request, RequestHandler, Response, Router } from 'express';
import { z } from 'zod';
import type { Clock } from '../clock.js';
import { StoreError, errorText } from '../errors.js';
import type { Log } from '../observe/log.js';
import { ARTIFACT_LIST_MAX, EVENT_PAGE_MAX, SESSION_PAGE_MAX } from '../limits.js';
import { type PageBounds, readPage } from './paging.js';
import { sessionJson } from './session-json.js';
import { prune } from '../store/retention.js';
import { isMimeType } from '../store/stored-name.js';
import type { SessionKey, Store } from '../store/store.js';

export interface SessionApiOptions {
  readonly store: Store;
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly log: Log;
}

type Params = Readonly<Record<string, string>>;
type Run = (request: Request, response: Response) => Promise<void>;

const SESSION_PAGES: PageBounds<string> = { limitMax: SESSION_PAGE_MAX, readCursor: (text) => text };
const ARTIFACT_PAGES: PageBounds<string> = { limitMax: ARTIFACT_LIST_MAX, readCursor: (text) => text };
const EVENT_PAGES: PageBounds<number> = {
  limitMax: EVENT_PAGE_MAX,
  readCursor: (text) => (/^[0-9]{1,15}$/.test(text) ? Number(text) : undefined),
};

const pruneSchema = z.strictObject({ days: z.number().positive() });

export function addSessionRoutes(api: Router, { store, clock, log }: SessionApiOptions): void {
  const route = (run: Run): RequestHandler => storeRoute(log, run);
  const sessions = '/apps/:app/users/:user/sessions';
  api.get(
    sessions,
    route((request, response) => listSessions(store, request, response)),
  );
  api.get(
    `${sessions}/:session`,
    route((request, response) => showSession(store, request, response)),
  );
  api.delete(
    `${sessions}/:session`,
    route(async (request, response) => {
      if (await store.deleteSession(keyOf(request))) response.status(204).end();
      else notFound(response, 'session');
    }),
  );
  api.delete(
    '/apps/:app/users/:user',
    route(async (request, response) => {
      const { app, user } = request.params as Params;
      response.json({ deleted: await store.deleteUser({ appName: app ?? '' }, user ?? '') });
    }),
  );
  api.delete(
    '/users/:user',
    route(async (request, response) => {
      const { user = '' } = request.params as Params;
      response.json({ deleted: await store.deleteUser('all', user) });
    }),
  );
  api.post('/sessions/prune', route(createPruning(store, clock)));
  api.get(
    `${sessions}/:session/artifacts`,
    route((request, response) => listArtifacts(store, request, response)),
  );
  const artifact = route((request, response) => loadArtifact(store, request, response));
  api.get(`${sessions}/:session/artifacts/:name`, artifact);
  api.get(`${sessions}/:session/artifacts/:name/versions/:version`, artifact);
}

/** A route that asks the store, whose failures are answered. */
export function storeRoute(
  log: Log,
  run: (request: Request, response: Response, next: NextFunction) => Promise<void>,
): RequestHandler {
  return (request, response, next) =>
    void run(request, response, next).catch((error: unknown) => fail(response, log, error));
}

/** Deletes what is old: `npm run store -- prune` as a route. One at a time: a second one would only wait for the first. */
function createPruning(store: Store, clock: SessionApiOptions['clock']): Run {
  let isPruning = false;
  return async (request, response) => {
    const read = pruneSchema.safeParse(request.body);
    if (!read.success) {
      response.status(400).json({ error: 'the body must be {"days": a number above 0}' });
      return;
    }
    if (isPruning) {
      response.status(409).json({ error: 'old sessions are being deleted already' });
      return;
    }
    isPruning = true;
    try {
      response.json({ deleted: await prune(store, clock, read.data.days) });
    } finally {
      isPruning = false;
    }
  };
}

function keyOf(request: Request): SessionKey {
  const { app = '', user = '', session = '' } = request.params as Params;
  return { appName: app, userId: user, id: session };
}

async function listSessions(store: Store, request: Request, response: Response): Promise<void> {
  const { appName, userId } = keyOf(request);
  const page = pageOf(request, response, SESSION_PAGES);
  if (page === undefined) return;
  const { items, next } = await store.listSessions({ appName, userId }, page);
  response.json({
    sessions: items.map(({ id, createdAtMs, updatedAtMs }) => ({
      id,
      appName,
      userId,
      createdAt: new Date(createdAtMs).toISOString(),
      updatedAt: new Date(updatedAtMs).toISOString(),
    })),
    ...(next !== undefined && { next }),
  });
}

/** Without a page the whole session with its state; with `?after=` or `?limit=` a page of its events, without the state. */
async function showSession(store: Store, request: Request, response: Response): Promise<void> {
  const key = keyOf(request);
  const isPaged = Object.keys(request.query).some((name) => /^(?:after|limit)(?:\[|$)/.test(name));
  if (isPaged) {
    const page = pageOf(request, response, EVENT_PAGES);
    if (page === undefined) return;
    const events = await store.listEvents(key, page);
    if (events === undefined) return notFound(response, 'session');
    const { items, next } = events;
    response.json({ ...key, events: items.map(({ event }) => event), ...(next !== undefined && { next }) });
    return;
  }
  const session = await store.getSession(key);
  if (session === undefined) return notFound(response, 'session');
  response.type('json');
  // Rejects where the client leaves before it has all, which is nobody's failure.
  await pipeline(sessionJson(session), response).catch(() => undefined);
}

async function listArtifacts(store: Store, request: Request, response: Response): Promise<void> {
  const page = pageOf(request, response, ARTIFACT_PAGES);
  if (page === undefined) return;
  const { items, next } = await store.listArtifacts(keyOf(request), page);
  response.json({ artifacts: items, ...(next !== undefined && { next }) });
}

async function loadArtifact(store: Store, request: Request, response: Response): Promise<void> {
  const { name = '', version } = request.params as Params;
  if (version !== undefined && !/^\d{1,9}$/.test(version)) return notFound(response, 'version');
  const artifact = await store.loadArtifact(
    keyOf(request),
    name,
    version === undefined ? undefined : Number(version),
  );
  if (artifact === undefined) return notFound(response, 'artifact');
  response.set({
    // An older version took what is no type.
    'Content-Type': isMimeType(artifact.mimeType) ? artifact.mimeType : 'application/octet-stream',
    'X-Artifact-Version': String(artifact.version),
    // What a caller or a tool made is never run as a page of ours.
    'Content-Disposition': 'attachment',
    'X-Content-Type-Options': 'nosniff',
  });
  response.send(Buffer.from(artifact.bytes));
}

/** As the store takes a page; undefined when it made no sense, which is answered then. */
export function pageOf<Cursor>(
  request: Request,
  response: Response,
  bounds: PageBounds<Cursor>,
): { after?: Cursor; limit?: number } | undefined {
  const page = readPage(request, response, bounds);
  if (page === undefined) return undefined;
  const { cursor, limit } = page;
  return { ...(cursor !== undefined && { after: cursor }), ...(limit !== undefined && { limit }) };
}

export function notFound(response: Response, what: string): void {
  response.status(404).json({ error: `there is no such ${what}` });
}

function fail(response: Response, log: Log, error: unknown): void {
  const isRefusal = error instanceof StoreError && error.code === 'store_refused';
  if (!isRefusal) log.error({ cause: errorText(error) }, 'the store could not answer');
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const told = error instanceof StoreError ? error.message : 'internal error';
  response.status(isRefusal ? 400 : 503).json({ error: told });
}
