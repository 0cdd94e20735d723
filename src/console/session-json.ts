/**
 * A stored session as JSON, in pieces: one of ten thousand events is tens of megabytes, which must not hold up the event loop while
 * they are written, nor lie in memory twice.
 */
import { nextTurn } from '../clock.js';
import { EVENT_READ_SLICE, EVENT_READ_SLICE_BYTES } from '../limits.js';
import type { StoredSession } from '../store/store.js';

export async function* sessionJson(session: StoredSession): AsyncGenerator<string> {
  const { id, appName, userId, state, events, omittedEvents } = session;
  let piece = `${JSON.stringify({ id, appName, userId, state }).slice(0, -1)},"events":[`;
  let count = 0;
  for (const [at, event] of events.entries()) {
    piece += `${at === 0 ? '' : ','}${JSON.stringify(event)}`;
    count += 1;
    if (count < EVENT_READ_SLICE && piece.length < EVENT_READ_SLICE_BYTES) continue;
    yield piece;
    piece = '';
    count = 0;
    await nextTurn();
  }
  yield `${piece}]${omittedEvents > 0 ? `,"omittedEvents":${omittedEvents}` : ''}}`;
}
