/**
 * Function calls that wait for a person or for slow work, over HTTP: listed, and decided once.
 */
import express, { type Request, type Response, type Router } from 'express';
import { z } from 'zod';
import type { Log } from '../observe/log.js';
import type { PendingCalls } from '../store/pending-calls.js';
import { requireJson } from './gatekeeper.js';
import type { PageBounds } from './paging.js';
import { notFound, pageOf, storeRoute } from './session-api.js';
import { PENDING_PAGE_MAX } from '../tool-limits.js';

const PENDING_PAGES: PageBounds<string> = { limitMax: PENDING_PAGE_MAX, readCursor: (text) => text };

export interface ApprovalApiOptions {
  readonly store: Pick<PendingCalls, 'listPendingCalls' | 'findPendingCall'>;
  /** Decides, and sees to it that the decision is carried out. */
  readonly decide: PendingCalls['decidePendingCall'];
  readonly log: Log;
}

const BODY_MAX = '4kb';
const body = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  by: z.string().min(1).max(256).exactOptional(),
});

/** Before anything reads bodies: an id that is not known is not found, whatever the body. */
export function addApprovalRoutes(api: Router, { store, decide, log }: ApprovalApiOptions): void {
  api.get(
    '/approvals',
    storeRoute(log, (request, response) => listApprovals(store, request, response)),
  );
  api.post(
    '/approvals/:id',
    storeRoute(log, async (request, response, next) => {
      if ((await store.findPendingCall(idOf(request))) === undefined) notFound(response, 'approval');
      else next();
    }),
    requireJson,
    express.json({ limit: BODY_MAX }),
    storeRoute(log, (request, response) => decideApproval(decide, request, response)),
  );
}

function idOf(request: Request): string {
  return String(request.params['id']);
}

async function listApprovals(
  store: ApprovalApiOptions['store'],
  request: Request,
  response: Response,
): Promise<void> {
  const page = pageOf(request, response, PENDING_PAGES);
  if (page === undefined) return;
  const { items, next } = await store.listPendingCalls(page);
  response.json({
    approvals: items.map(({ id, callSid, session, tool, args, kind, isWorking, requestedAtMs }) => ({
      id,
      callSid,
      sessionId: session.id,
      tool,
      args,
      kind,
      waitsFor: isWorking === true ? 'handler' : 'decision',
      requestedAt: new Date(requestedAtMs).toISOString(),
    })),
    ...(next !== undefined && { next }),
  });
}

/** Answers what was decided: now, or before. `null`: the call ended before anybody decided. */
async function decideApproval(
  decide: ApprovalApiOptions['decide'],
  request: Request,
  response: Response,
): Promise<void> {
  const id = idOf(request);
  const read = body.safeParse(request.body ?? {});
  if (!read.success) {
    response.status(400).json({ error: faultOf(read.error) });
    return;
  }
  const outcome = await decide(id, read.data);
  if (outcome.kind === 'unknown') notFound(response, 'approval');
  else {
    const decision = outcome.kind === 'decided' ? outcome.call.decision : outcome.decision;
    response.json({ id, decision: decision ?? null });
  }
}

function faultOf({ issues: [issue] }: z.ZodError): string {
  if (issue?.code === 'unrecognized_keys') return `${issue.keys.join(', ')}: only decision and by are known`;
  if (issue === undefined || issue.path.length === 0) return 'the body must be {"decision", "by"?}';
  return `${issue.path.join('.')}: ${issue.message}`;
}
