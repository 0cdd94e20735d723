import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamingFir } from '../../src/audio/streaming-fir.js';
import { amplitudeAt, decibels, rms, tone } from './sound.js';

/** Output samples until the filter is full of the tone, and those measured: 0.2 s, whole turns of multiples of 5 Hz. */
const SETTLED = 96;

function halved(frequencyHz: number): Int16Array {
  return StreamingFir.halving()
    .push(tone(frequencyHz, 16_000, 2 * (SETTLED + 1_600), 30_000))
    .subarray(SETTLED);
}

function tripled(frequencyHz: number): Int16Array {
  return StreamingFir.tripling()
    .push(tone(frequencyHz, 8_000, (SETTLED + 4_800) / 3, 30_000))
    .subarray(SETTLED);
}

describe('a streaming filter', () => {
  it('passes 300 to 3400 Hz within 0.3 dB, down from 16 kHz and up to 24 kHz', () => {
    for (let frequencyHz = 300; frequencyHz <= 3_400; frequencyHz += 100) {
      for (const [out, rateHz] of [
        [halved(frequencyHz), 8_000],
        [tripled(frequencyHz), 24_000],
      ] as const) {
        const gain = decibels(amplitudeAt(out, frequencyHz, rateHz) / 30_000);
        expect(Math.abs(gain), `${frequencyHz} Hz at ${rateHz}`).toBeLessThanOrEqual(0.3);
      }
    }
  });

  it('lets tones from 4.6 to 7.9 kHz fold back at -60 dB or less', () => {
    for (let frequencyHz = 4_600; frequencyHz <= 7_900; frequencyHz += 100) {
      const folded = decibels(rms(halved(frequencyHz)) / (30_000 / Math.SQRT2));
      expect(folded, `${frequencyHz} Hz`).toBeLessThanOrEqual(-60);
    }
  });

  it('keeps the images of what it triples at -60 dB or less', () => {
    for (const frequencyHz of [300, 1_000, 2_000, 3_400]) {
      for (const imageHz of [8_000 - frequencyHz, 8_000 + frequencyHz]) {
        const image = decibels(amplitudeAt(tripled(frequencyHz), imageHz, 24_000) / 30_000);
        expect(image, `${frequencyHz} Hz at ${imageHz}`).toBeLessThanOrEqual(-60);
      }
    }
  });

  it('is as loud as possible where it would be too loud, and never wraps', () => {
    const square = Int16Array.from({ length: 4_000 }, (_, at) => (at % 16 < 8 ? 32_767 : -32_768));
    const out = StreamingFir.halving().push(square);
    expect(Math.max(...out)).toBe(32_767);
    expect(Math.min(...out)).toBe(-32_768);
  });

  it('gives the same samples however the input is cut, and after a reset', () => {
    for (const make of [() => StreamingFir.halving(), () => StreamingFir.tripling()]) {
      fc.assert(
        fc.property(
          fc.array(fc.integer({ min: -32_768, max: 32_767 }), { maxLength: 600 }),
          fc.array(fc.nat({ max: 90 }), { maxLength: 12 }),
          (input, cuts) => {
            const samples = Int16Array.from(input);
            const whole = [...make().push(samples)];
            const filter = make();
            filter.push(Int16Array.from([1, 2, 3]));
            filter.reset();
            const parts: number[] = [];
            let at = 0;
            for (const cut of [...cuts, samples.length]) {
              parts.push(...filter.push(samples.subarray(at, at + cut)));
              at += cut;
            }
            expect(parts).toEqual(whole);
          },
        ),
        { numRuns: 100 },
      );
    }
  });
});
