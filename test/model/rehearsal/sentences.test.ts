import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sentences } from '../../../src/model/rehearsal/sentences.js';

describe('text cut into sentences', () => {
  it('ends a piece where a sentence ends, and nowhere else', () => {
    expect(sentences('Hello.  How are "you?" It costs 3.5 euros!\nGood')).toEqual([
      'Hello.',
      'How are "you?"',
      'It costs 3.5 euros!',
      'Good',
    ]);
    expect(sentences('  ')).toEqual([]);
  });

  it('cuts a long sentence at a comma or a space', () => {
    const long = `${'many words and '.repeat(10)}a comma, ${'more of them '.repeat(20)}`;
    const pieces = sentences(long);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces[0]).toMatch(/a comma,$/);
    expect(pieces.join(' ')).toBe(long.trim());
  });

  it('loses and invents nothing, and cuts no character in two', () => {
    const wrong: string[] = [];
    const property = fc.property(fc.string({ unit: 'grapheme', maxLength: 900 }), (text) => {
      const pieces = sentences(text);
      const kept = (part: string) => part.replaceAll(/\s/g, '');
      if (kept(pieces.join('')) !== kept(text)) wrong.push(text);
      if (pieces.some((piece) => piece.length > 240 || Buffer.from(piece).toString() !== piece))
        wrong.push(text);
    });
    expect(() => fc.assert(property)).not.toThrow();
    expect(wrong).toEqual([]);
  });
});
