/** Answers an HTTP request with the frames of a broadcast; the last step of a route that has found it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { WIRE_WATCHERS_MAX } from '../limits.js';
import type { Broadcast } from './broadcast.js';
import { SseWriter } from './sse-writer.js';

/** The number that a client names as its last one; undefined for none, or for what is not a number of ours. */
export function lastSeqOf(request: Pick<IncomingMessage, 'headers'>): number | undefined {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/**
 * 200 with events; 204 if the client has had everything and nothing will follow, which tells it not to come back; 503 if the
 * stream has all the watchers that it can have.
 */
export function serveEvents(broadcast: Broadcast, request: IncomingMessage, response: ServerResponse): void {
  const lastSeq = lastSeqOf(request);
  if (broadcast.isFinishedAfter(lastSeq)) {
    response.writeHead(204).end();
    return;
  }
  if (broadcast.watchers >= WIRE_WATCHERS_MAX) {
    response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '5' });
    response.end(JSON.stringify({ error: 'the stream has all the watchers that it can have' }));
    return;
  }
  broadcast.watch(new SseWriter(response), { lastSeq });
}
