/** What must hold for everything that a live connection tells the call, whatever the model sent. */
import assert from 'node:assert/strict';
import type { HeardEvent } from '../support/recording-live-listener.js';

/** The kinds in the one order in which a message may bring them. */
const ORDER: readonly HeardEvent['kind'][] = [
  'interrupted',
  'audio',
  'inputTranscription',
  'outputTranscription',
  'generationComplete',
  'turnComplete',
  'toolCall',
  'toolCallCancellation',
  'goAway',
  'resumption',
  'usage',
];

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function assertSound(event: HeardEvent): void {
  switch (event.kind) {
    case 'audio':
      return assert(event.pcm.length > 0, 'no empty sound');
    case 'inputTranscription':
    case 'outputTranscription':
      return assert(typeof event.text === 'string' && event.text !== '', 'words are text');
    case 'turnComplete':
      return assert(event.reason === undefined || typeof event.reason === 'string');
    case 'toolCall':
      assert(event.functionCalls.length > 0);
      for (const { id, name, args } of event.functionCalls) {
        assert(typeof id === 'string' && id !== '' && typeof name === 'string' && name !== '');
        assert(typeof args === 'object' && args !== null && !Array.isArray(args));
      }
      return;
    case 'toolCallCancellation':
      return assert(event.ids.length > 0 && event.ids.every((id) => typeof id === 'string' && id !== ''));
    case 'goAway':
      return assert(isCount(event.timeLeftMs), 'time left is never negative');
    case 'resumption':
      assert(event.newHandle === undefined || typeof event.newHandle === 'string');
      return assert.equal(typeof event.resumable, 'boolean');
    case 'usage': {
      const { promptTokens, responseTokens, totalTokenCount } = event.usage;
      const counts = [...Object.values(promptTokens), ...Object.values(responseTokens), totalTokenCount];
      return assert(
        counts.every((count) => Number.isFinite(count) && count >= 0),
        'tokens are finite counts',
      );
    }
    default:
      return;
  }
}

/** Throws unless these are sound events of one message, in the documented order. */
export function assertOneMessage(events: readonly HeardEvent[]): void {
  let last = -1;
  for (const event of events) {
    const place = ORDER.indexOf(event.kind);
    assert(place >= 0, `a message does not bring ${event.kind}`);
    assert(
      place > last || (event.kind === 'audio' && place === last),
      `${event.kind} comes in its place, once`,
    );
    last = place;
    assertSound(event);
  }
}
