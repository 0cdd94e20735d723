import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventStreamParser, type StreamEvent } from '../../src/client/event-stream-parser.js';
import { fuzzed } from '../fuzz/seed.js';

function parse(chunks: readonly Uint8Array[], maxChars?: number) {
  const events: StreamEvent[] = [];
  const retries: number[] = [];
  const parser = new EventStreamParser(
    { event: (event) => events.push(event), retry: (delayMs) => retries.push(delayMs) },
    maxChars,
  );
  const accepted = chunks.every((chunk) => parser.push(chunk));
  return { events, retries, accepted };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('an event stream', () => {
  test.each([
    ['data of one line', 'data: a\n\n', [{ data: 'a', id: '' }]],
    ['data of several lines', 'data: a\ndata:b\ndata\n\n', [{ data: 'a\nb\n', id: '' }]],
    [
      'an id, which stays',
      'id: 7\ndata: a\n\ndata: b\n\n',
      [
        { data: 'a', id: '7' },
        { data: 'b', id: '7' },
      ],
    ],
    [
      'all three line ends',
      'data: a\r\rdata: b\r\n\r\ndata: c\n\n',
      [
        { data: 'a', id: '' },
        { data: 'b', id: '' },
        { data: 'c', id: '' },
      ],
    ],
    ['comments and other fields', ': hello\nevent: x\nmood: y\ndata: a\n\n', [{ data: 'a', id: '' }]],
    ['a byte order mark', '\uFEFFdata: a\n\n', [{ data: 'a', id: '' }]],
    ['an event that is not complete', 'data: a\n', []],
    ['an event without data', 'id: 3\n\ndata: b\n\n', [{ data: 'b', id: '3' }]],
  ])('is read: %s', (_, text, events) => {
    expect(parse([bytes(text)]).events).toEqual(events);
  });

  test('is read the same in whatever cuts its bytes come', () => {
    const line = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
      fc.constantFrom('', '', 'id: 4', 'id', ': comment', 'retry: 100'),
    );
    const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 30 });
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 10 }), (lines, cuts) => {
        const whole = bytes(lines.map((each) => each.join('')).join(''));
        const at = [0, ...cuts.map((cut) => cut % (whole.length + 1)).sort((a, b) => a - b), whole.length];
        const chunks = at.slice(1).map((end, index) => whole.subarray(at[index], end));
        expect(parse(chunks)).toEqual(parse([whole]));
      }),
      fuzzed(500),
    );
  });

  test.each([
    ['in one line', ['data: ', 'x'.repeat(60), 'x'.repeat(60)]],
    ['in many lines', Array.from({ length: 20 }, () => 'data: 123456789\n')],
  ])('is refused when an event is too long %s', (_, chunks) => {
    expect(parse(chunks.map(bytes), 100).accepted).toBe(false);
  });

  test('tells the wait that the server asks for, and nothing that is no number', () => {
    expect(parse([bytes('retry: 3000\nretry: soon\nretry: -1\n\n')]).retries).toEqual([3_000]);
  });
});
