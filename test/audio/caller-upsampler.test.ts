import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CallerUpsampler } from '../../src/audio/caller-upsampler.js';
import { designLowpass } from '../../src/audio/kaiser-lowpass.js';
import { amplitudeAt, decibels, ituDecode, ituEncodeAll, samplesOf, seededRandom, tone } from './sound.js';

/** Input samples until the filter is full of the tone. */
const SETTLED = 32;
/** Samples measured: 0.2 s, in which every multiple of 5 Hz makes whole turns. */
const MEASURED = 1600;

let upsampler: CallerUpsampler;
beforeEach(() => {
  upsampler = new CallerUpsampler();
});
afterEach(() => upsampler.release());

/** A steady tone through the filter: what went in (after mu-law) and what came out, both over 0.2 s. */
function throughFilter(frequencyHz: number) {
  const codes = ituEncodeAll(tone(frequencyHz, 8_000, SETTLED + MEASURED, 20_000));
  const heard = Int16Array.from(codes, ituDecode).subarray(SETTLED);
  return { heard, out: samplesOf(upsampler.push(codes)).subarray(2 * SETTLED) };
}

describe('the caller upsampler', () => {
  it('passes 300 to 3400 Hz within 0.3 dB', () => {
    for (let frequencyHz = 300; frequencyHz <= 3400; frequencyHz += 50) {
      upsampler.reset();
      const { heard, out } = throughFilter(frequencyHz);
      const gain = amplitudeAt(out, frequencyHz, 16_000) / amplitudeAt(heard, frequencyHz, 8_000);
      expect(Math.abs(decibels(gain)), `${frequencyHz} Hz`).toBeLessThanOrEqual(0.3);
    }
  });

  it('keeps the image of every tone up to 3400 Hz 60 dB down', () => {
    for (let frequencyHz = 300; frequencyHz <= 3400; frequencyHz += 50) {
      upsampler.reset();
      const { out } = throughFilter(frequencyHz);
      const image = amplitudeAt(out, 8_000 - frequencyHz, 16_000) / amplitudeAt(out, frequencyHz, 16_000);
      expect(decibels(image), `${frequencyHz} Hz`).toBeLessThanOrEqual(-60);
    }
  });

  it('gives an impulse back within 2.5 ms', () => {
    const codes = Buffer.alloc(200, 0xff);
    codes[50] = 0x80;
    const out = samplesOf(upsampler.push(codes));
    const peak = out.reduce((best, sample, i) => (Math.abs(sample) > Math.abs(out[best]!) ? i : best), 0);
    expect(out[peak]).toBe(32_124);
    expect((peak - 2 * 50) / 16).toBeGreaterThan(0);
    expect((peak - 2 * 50) / 16).toBeLessThanOrEqual(2.5);
  });

  it('decodes all 256 codes exactly', () => {
    const codes = Buffer.from(Array.from({ length: 256 + 15 }, (_, i) => i & 0xff));
    const out = samplesOf(upsampler.push(codes));
    // Every odd output sample is an input sample, 15 input samples late.
    const decoded = Array.from({ length: 256 }, (_, code) => out[2 * (code + 15) + 1]);
    expect(decoded).toEqual(Array.from({ length: 256 }, (_, code) => ituDecode(code)));
  });

  it('saturates where the loudest input overshoots, within a step of exact arithmetic', () => {
    const random = seededRandom(1);
    const square = Array.from({ length: 400 }, (_, i) => (i % 16 < 8 ? 0x80 : 0x00));
    const noise = Array.from({ length: 2_000 }, () => (random() < 0.5 ? 0x80 : 0x00));
    const codes = Buffer.from([...square, ...noise]);
    const out = samplesOf(upsampler.push(codes));
    const weights = designLowpass({ taps: 63, sampleRateHz: 16_000, cutoffHz: 4_000, beta: 7 });
    let overshoots = 0;
    for (let i = 0; i < out.length; i++) {
      let exact = 0;
      for (let tap = 0; tap < 63; tap++) {
        const at = i - tap;
        if (at >= 0 && at % 2 === 0) exact += 2 * weights[tap]! * ituDecode(codes[at / 2]!);
      }
      const clipped = Math.max(-32_768, Math.min(32_767, exact));
      if (clipped !== exact) overshoots++;
      // The half-band phases are scaled to a gain of exactly 1 each, which moves full scale by up to 4.
      expect(Math.abs(out[i]! - clipped), `sample ${i}`).toBeLessThanOrEqual(8);
    }
    expect(overshoots).toBeGreaterThan(100);
  });

  it('gives the same bytes however the input is cut, beside another call', () => {
    const other = new CallerUpsampler();
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 5_000, size: 'max' }),
        fc.array(fc.nat({ max: 2_000 }), { maxLength: 40 }),
        (codes, cuts) => {
          upsampler.reset();
          const whole = Buffer.from(upsampler.push(codes));
          upsampler.reset();
          const parts: Buffer[] = [];
          let at = 0;
          for (const cut of [...cuts, codes.length]) {
            parts.push(Buffer.from(upsampler.push(codes.subarray(at, at + cut))));
            other.push(codes);
            at = Math.min(codes.length, at + cut);
          }
          expect(Buffer.concat(parts).equals(whole)).toBe(true);
        },
      ),
    );
    other.release();
  });

  it('gives the same bytes when each byte comes alone', () => {
    const random = seededRandom(2);
    const codes = Buffer.from(Array.from({ length: 1_000 }, () => Math.floor(random() * 256)));
    const whole = Buffer.from(upsampler.push(codes));
    upsampler.reset();
    const parts = Array.from(codes, (code) => Buffer.from(upsampler.push(Buffer.of(code))));
    expect(Buffer.concat(parts).equals(whole)).toBe(true);
  });

  it('gives four bytes for each, none for none, and leaves its input alone', () => {
    const codes = Buffer.alloc(160, 0x42);
    expect(upsampler.push(codes)).toHaveLength(640);
    expect(upsampler.push(codes.subarray(0, 0))).toHaveLength(0);
    expect(upsampler.push(codes)).toHaveLength(640);
    expect(codes.every((code) => code === 0x42)).toBe(true);
  });

  it('makes digital silence of digital silence', () => {
    expect(upsampler.push(Buffer.alloc(480, 0xff)).every((byte) => byte === 0)).toBe(true);
  });
});
