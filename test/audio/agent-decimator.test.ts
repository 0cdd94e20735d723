import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { designLowpass } from '../../src/audio/kaiser-lowpass.js';
import {
  amplitudeAt,
  bytesOf,
  decibels,
  ituEncode,
  ituEncodeAll,
  rms,
  samplesOf,
  seededRandom,
  tone,
} from './sound.js';

/** Output samples until the filter is full of the tone. */
const SETTLED = 32;
/** Output samples measured: 0.2 s, in which every multiple of 5 Hz makes whole turns. */
const MEASURED = 1600;

let decimator: AgentDecimator;
beforeEach(() => {
  decimator = new AgentDecimator();
});
afterEach(() => decimator.release());

function throughFilter(frequencyHz: number): Int16Array {
  decimator.reset();
  const sound = tone(frequencyHz, 24_000, 3 * (SETTLED + MEASURED), 30_000);
  return samplesOf(decimator.pushToPcm16(bytesOf(sound))).subarray(SETTLED);
}

/** The filter in double precision, for comparison. */
function exactly(samples: Int16Array): number[] {
  const weights = designLowpass({ taps: 96, sampleRateHz: 24_000, cutoffHz: 3_900, beta: 7 });
  return Array.from({ length: Math.ceil(samples.length / 3) }, (_, m) => {
    let sum = 0;
    for (let tap = 0; tap < 96; tap++) sum += weights[tap]! * (samples[3 * m - tap] ?? 0);
    return sum;
  });
}

describe('the agent decimator', () => {
  it('passes 300 to 3400 Hz within 0.3 dB', () => {
    for (let frequencyHz = 300; frequencyHz <= 3400; frequencyHz += 50) {
      const gain = amplitudeAt(throughFilter(frequencyHz), frequencyHz, 8_000) / 30_000;
      expect(Math.abs(decibels(gain)), `${frequencyHz} Hz`).toBeLessThanOrEqual(0.3);
    }
  });

  it('lets tones from 4.6 to 11 kHz fold back at -60 dB or less', () => {
    for (let frequencyHz = 4_600; frequencyHz <= 11_000; frequencyHz += 50) {
      const folded = rms(throughFilter(frequencyHz)) / (30_000 / Math.SQRT2);
      expect(decibels(folded), `${frequencyHz} Hz`).toBeLessThanOrEqual(-60);
    }
  });

  it('gives an impulse back within 2.5 ms, wherever it falls between two outputs', () => {
    for (const impulseAt of [300, 301, 302]) {
      decimator.reset();
      let peak = 0;
      let peakAt = 0;
      for (let i = 0; i < 600; i++) {
        const out = samplesOf(decimator.pushToPcm16(bytesOf(Int16Array.of(i === impulseAt ? 30_000 : 0))));
        if (out.length === 0 || Math.abs(out[0]!) <= peak) continue;
        peak = Math.abs(out[0]!);
        peakAt = i;
      }
      expect(peak).toBeGreaterThan(6_000);
      expect((peakAt - impulseAt) / 24).toBeGreaterThan(0);
      expect((peakAt - impulseAt) / 24).toBeLessThanOrEqual(2.5);
    }
  });

  it('encodes all 65,536 samples as the ITU formula does', () => {
    const held = new Int16Array(97);
    const wrong: number[] = [];
    for (let sample = -32_768; sample <= 32_767; sample++) {
      decimator.reset();
      const bytes = bytesOf(held.fill(sample));
      const code = decimator.push(bytes).at(-1);
      decimator.reset();
      if (decimator.pushToPcm16(bytes).readInt16LE(2 * 32) !== sample || code !== ituEncode(sample)) {
        wrong.push(sample);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('saturates where the loudest input overshoots, within a step of exact arithmetic', () => {
    const random = seededRandom(3);
    const sound = new Int16Array(30_000);
    for (let i = 0; i < sound.length; i++) {
      const high = i < 10_000 ? i % 24 < 12 : i < 20_000 ? random() < 0.5 : i % 8 < 4;
      sound[i] = high ? 32_767 : -32_768;
    }
    const exact = exactly(sound);
    const out = samplesOf(decimator.pushToPcm16(bytesOf(sound)));
    expect(out).toHaveLength(exact.length);
    let overshoots = 0;
    exact.forEach((value, i) => {
      const clipped = Math.max(-32_768, Math.min(32_767, value));
      if (clipped !== value) overshoots++;
      expect(Math.abs(out[i]! - clipped), `sample ${i}`).toBeLessThanOrEqual(0.6);
    });
    expect(overshoots).toBeGreaterThan(100);
  });

  it('gives mu-law of what it gives as PCM16', () => {
    const random = seededRandom(4);
    const bytes = bytesOf(Int16Array.from({ length: 9_000 }, () => Math.round((random() - 0.5) * 40_000)));
    const expected = ituEncodeAll(samplesOf(decimator.pushToPcm16(bytes)));
    const tail = ituEncodeAll(samplesOf(decimator.flushToPcm16()));
    expect(Buffer.from(decimator.push(bytes)).equals(expected)).toBe(true);
    expect(decimator.flush().equals(tail)).toBe(true);
  });

  it('gives the same bytes however the input is cut, within a sample too, beside another call', () => {
    const other = new AgentDecimator();
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 25_000, size: 'max' }),
        fc.array(fc.nat({ max: 12_000 }), { maxLength: 20 }),
        (bytes, cuts) => {
          decimator.reset();
          const whole = [Buffer.from(decimator.push(bytes)), Buffer.from(decimator.flush())];
          const parts: Buffer[] = [];
          let at = 0;
          for (const cut of [...cuts, bytes.length]) {
            parts.push(Buffer.from(decimator.push(bytes.subarray(at, at + cut))));
            other.push(bytes);
            at = Math.min(bytes.length, at + cut);
          }
          parts.push(decimator.flush());
          expect(Buffer.concat(parts).equals(Buffer.concat(whole))).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
    other.release();
  });

  it('gives the same bytes when each byte comes alone', () => {
    const random = seededRandom(5);
    const bytes = Buffer.from(Array.from({ length: 3_001 }, () => Math.floor(random() * 256)));
    const whole = Buffer.from(decimator.push(bytes));
    decimator.reset();
    const parts = Array.from(bytes, (byte) => Buffer.from(decimator.push(Buffer.of(byte))));
    expect(Buffer.concat(parts).equals(whole)).toBe(true);
  });

  it('gives one frame of mu-law for each frame of PCM16, from the first', () => {
    for (let frame = 0; frame < 5; frame++) expect(decimator.push(Buffer.alloc(960))).toHaveLength(160);
    expect(decimator.push(Buffer.alloc(0))).toHaveLength(0);
  });

  it('pushes the whole tail out at the end of an utterance, less half a sample', () => {
    const sound = tone(1_000, 24_000, 1_000, 20_000);
    const expected = Buffer.from(decimator.push(bytesOf(Int16Array.of(...sound, ...new Int16Array(95)))));
    decimator.reset();
    const head = Buffer.from(decimator.push(bytesOf(sound)));
    decimator.push(Buffer.of(0x7f));
    const tail = Buffer.from(decimator.flush());
    expect(Buffer.concat([head, tail]).equals(expected)).toBe(true);
    expect(tail.length).toBeGreaterThan(30);
  });

  it('has nothing to flush before the first push, after a flush and after a reset', () => {
    expect(decimator.flush()).toHaveLength(0);
    decimator.push(Buffer.alloc(960, 0x11));
    expect(decimator.flush()).not.toHaveLength(0);
    expect(decimator.flush()).toHaveLength(0);
    decimator.push(Buffer.alloc(960, 0x11));
    decimator.reset();
    expect(decimator.flush()).toHaveLength(0);
  });

  it('begins as new after a flush and after a reset', () => {
    const bytes = bytesOf(tone(700, 24_000, 960, 20_000));
    const expected = Buffer.from(decimator.push(bytes));
    decimator.flush();
    expect(decimator.push(bytes).equals(expected)).toBe(true);
    decimator.push(Buffer.of(1));
    decimator.reset();
    expect(decimator.push(bytes).equals(expected)).toBe(true);
  });
});
