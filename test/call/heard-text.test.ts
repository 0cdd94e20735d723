import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeardText } from '../../src/call/heard-text.js';
import { TRANSCRIPT_MAX_CHARS } from '../../src/limits.js';

/** Eight fragments of three or four words, as a model speaks them in half a second each. */
const FRAGMENTS = [
  'Thank you for calling',
  ' the help desk.',
  ' My name is Kore,',
  ' and I can look up',
  ' your last order,',
  ' send it back again',
  ' or get you',
  ' a refund right away.',
];

type Order = 'sound first' | 'text first' | 'all text first' | 'all text last' | 'text in two bursts';

/** Four seconds of sound in eight chunks, with the text in the given order. */
function message(order: Order): HeardText {
  const heard = new HeardText();
  const sound = (chunks: number): void => {
    for (let chunk = 0; chunk < chunks; chunk += 1) heard.addAudio(500);
  };
  const text = (from: number, to: number): void => {
    for (const fragment of FRAGMENTS.slice(from, to)) heard.addTranscript(fragment);
  };
  if (order === 'sound first' || order === 'text first') {
    for (let index = 0; index < FRAGMENTS.length; index += 1) {
      if (order === 'text first') text(index, index + 1);
      sound(1);
      if (order === 'sound first') text(index, index + 1);
    }
  } else if (order === 'text in two bursts') {
    text(0, 4);
    sound(1);
    text(4, 8);
    sound(7);
  } else {
    if (order === 'all text first') text(0, 8);
    sound(8);
    if (order === 'all text last') text(0, 8);
  }
  return heard;
}

describe('HeardText', () => {
  it.each<Order>(['sound first', 'text first', 'all text first', 'all text last', 'text in two bursts'])(
    'finds the words of the first 1.5 of 4 seconds within one fragment: %s',
    (order) => {
      const heard = message(order);
      const prefix = heard.heardPrefix(1_500);
      expect(prefix.length).toBeGreaterThanOrEqual(FRAGMENTS.slice(0, 2).join('').length);
      expect(prefix.length).toBeLessThanOrEqual(FRAGMENTS.slice(0, 4).join('').length);
      expect(heard.heardPrefix(4_000)).toBe(FRAGMENTS.join(''));
    },
  );

  it.each<Order>(['sound first', 'text first'])('is exact at the borders of fragments: %s', (order) => {
    const heard = message(order);
    for (let count = 0; count <= FRAGMENTS.length; count += 1) {
      expect(heard.heardPrefix(count * 500)).toBe(FRAGMENTS.slice(0, count).join(''));
    }
  });

  it('never cuts within a word, also where fragments do', () => {
    const heard = new HeardText();
    for (const fragment of ['Un', 'believ', 'able news', ' indeed']) {
      heard.addAudio(400);
      heard.addTranscript(fragment);
    }
    const prefixes = new Set(Array.from({ length: 161 }, (_, index) => heard.heardPrefix(index * 10)));
    expect([...prefixes]).toEqual(['', 'Unbelievable', 'Unbelievable news', 'Unbelievable news indeed']);
  });

  it('takes a word as heard only when its last sound was', () => {
    const heard = new HeardText();
    heard.addTranscript('one two');
    heard.addAudio(700);
    expect(heard.heardPrefix(299)).toBe('');
    expect(heard.heardPrefix(300)).toBe('one');
    expect(heard.heardPrefix(699)).toBe('one');
    expect(heard.heardPrefix(700)).toBe('one two');
  });

  it.each([
    ['Chinese', '您好，这里是客户服务中心。请问有什么可以帮您？'],
    ['Japanese', 'お電話ありがとうございます。ご用件をお聞かせください。'],
    ['Thai', 'สวัสดีค่ะยินดีให้บริการค่ะ'],
  ])('cuts %s, which has no spaces, between its words and never within a character', (_, text) => {
    const heard = new HeardText();
    heard.addTranscript(text);
    heard.addAudio(4_000);
    const graphemes = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)];
    const borders = new Set([...graphemes.map(({ index }) => index), text.length]);
    const lengths = new Set(Array.from({ length: 401 }, (__, step) => heard.heardPrefix(step * 10).length));
    expect(lengths.size).toBeGreaterThan(4);
    for (const length of lengths) expect(borders).toContain(length);
    const half = heard.heardPrefix(2_000).length / text.length;
    expect(half).toBeGreaterThan(0.25);
    expect(half).toBeLessThanOrEqual(0.5);
  });

  it('has nothing to say before there is sound or text', () => {
    const heard = new HeardText();
    expect([heard.text, heard.audioMs, heard.heardPrefix(0), heard.heardPrefix(100)]).toEqual([
      '',
      0,
      '',
      '',
    ]);
    heard.addTranscript('Hello');
    expect(heard.heardPrefix(0)).toBe('');
    const silent = new HeardText();
    silent.addAudio(500);
    expect(silent.heardPrefix(250)).toBe('');
  });

  it('gives the whole text for sound behind the last fragment of a trailing transcription', () => {
    const heard = new HeardText();
    heard.addAudio(500);
    heard.addTranscript('All is said.');
    heard.addAudio(1_000);
    expect(heard.heardPrefix(900)).toBe('All is said.');
  });

  it('keeps a bounded text', () => {
    const heard = new HeardText();
    for (let round = 0; round < 3; round += 1) heard.addTranscript('word '.repeat(TRANSCRIPT_MAX_CHARS / 8));
    heard.addAudio(1_000);
    expect(heard.text).toHaveLength(TRANSCRIPT_MAX_CHARS);
    expect(heard.heardPrefix(1_000)).toHaveLength(TRANSCRIPT_MAX_CHARS);
  });

  it('answers for any number', () => {
    const heard = message('sound first');
    for (const ms of [Number.NaN, -1, Number.NEGATIVE_INFINITY]) expect(heard.heardPrefix(ms)).toBe('');
    expect(heard.heardPrefix(Number.POSITIVE_INFINITY)).toBe(heard.text);
    for (const ms of [Number.NaN, -5, 0, Number.POSITIVE_INFINITY]) heard.addAudio(ms);
    expect(heard.audioMs).toBe(4_000);
  });

  it('always gives a prefix that grows with what was heard, from nothing to everything', () => {
    const arrival = fc.oneof(
      fc.record({ ms: fc.oneof(fc.nat(800), fc.double({ noNaN: false })) }),
      fc.record({
        fragment: fc.oneof(
          fc.string(),
          fc.string({ unit: 'grapheme' }),
          fc.lorem(),
          fc.constantFrom(' ', '。', '我们', 'ab'),
        ),
      }),
    );
    const times = fc.array(fc.oneof(fc.nat(8_000), fc.double({ min: -10, max: 10_000, noNaN: true })));
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 30 }), times, (arrivals, heardTimes) => {
        const heard = new HeardText();
        for (const next of arrivals) {
          if ('ms' in next) heard.addAudio(next.ms);
          else heard.addTranscript(next.fragment);
        }
        const shares = [0.1, 0.25, 0.5, 0.75, 0.9].map((share) => share * heard.audioMs);
        let before = '';
        for (const ms of [...heardTimes, ...shares].sort((a, b) => a - b)) {
          const prefix = heard.heardPrefix(ms);
          expect(heard.text.startsWith(prefix)).toBe(true);
          expect(prefix.startsWith(before)).toBe(true);
          before = prefix;
        }
        expect(heard.heardPrefix(0)).toBe('');
        expect(heard.heardPrefix(Math.max(1, heard.audioMs))).toBe(heard.text);
      }),
      { numRuns: 500 },
    );
  });
});
