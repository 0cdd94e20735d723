import { describe, expect, it } from 'vitest';
import { bandLimited, LINE_RATE_HZ, lineNoise } from '../../src/replay/telephone-line.js';

function tone(toneHz: number): Float64Array {
  return Float64Array.from({ length: LINE_RATE_HZ }, (_, n) =>
    Math.sin((2 * Math.PI * toneHz * n) / LINE_RATE_HZ),
  );
}

function rmsDb(samples: Float64Array): number {
  return 10 * Math.log10(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

describe('the made telephone line', () => {
  it('passes the telephone band and takes hum and the top away', () => {
    const passed = (toneHz: number) =>
      rmsDb(bandLimited(tone(toneHz)).slice(1_000, -1_000)) + 10 * Math.log10(2);
    for (const toneHz of [500, 1_000, 2_000, 3_000]) expect(Math.abs(passed(toneHz))).toBeLessThan(0.1);
    for (const toneHz of [50, 3_800]) expect(passed(toneHz)).toBeLessThan(-50);
  });

  it('makes noise of the level asked for, and the same from the same seed', () => {
    for (const levelDb of [-30, -60]) {
      expect(Math.abs(rmsDb(lineNoise(16_000, { levelDb, seed: 3 })) - levelDb)).toBeLessThan(0.3);
    }
    expect(lineNoise(50, { levelDb: -30, seed: 3 })).toEqual(lineNoise(50, { levelDb: -30, seed: 3 }));
    expect(lineNoise(50, { levelDb: -30, seed: 4 })).not.toEqual(lineNoise(50, { levelDb: -30, seed: 3 }));
  });
});
