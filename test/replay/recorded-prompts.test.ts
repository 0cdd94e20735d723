import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { activeLevelDb, fromPcm16 } from '../../src/model/rehearsal/speech-sound.mjs';
import { RECORDED_PROMPTS } from '../../src/replay/recorded-prompts.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');
const folder = new URL('../../src/call/prompts/', import.meta.url);

describe('the recorded prompts', () => {
  it('ships one for each text', async () => {
    const shipped = (await readdir(folder)).filter((name) => name.endsWith('.ulaw')).sort();
    expect(shipped).toEqual(
      Object.keys(RECORDED_PROMPTS)
        .map((name) => `${name}.ulaw`)
        .sort(),
    );
  });

  it.each(Object.entries(RECORDED_PROMPTS))('speaks "%s" clearly', async (name, text) => {
    const bytes = await readFile(new URL(`${name}.ulaw`, folder));
    const samples = fromPcm16(mulaw.decode(bytes));
    const charsPerSecond = text.length / (samples.length / 8_000);
    expect(charsPerSecond).toBeGreaterThan(10);
    expect(charsPerSecond).toBeLessThan(20);
    expect(Math.abs(activeLevelDb(samples, 8_000) + 20)).toBeLessThan(2);
    expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeLessThan(
      10 ** (-3 / 20),
    );
    // Speech begins at once and nothing is cut off behind it.
    expect(activeLevelDb(samples.slice(0, 1_600), 8_000)).toBeGreaterThan(-40);
    expect(samples.slice(-80).every((sample) => Math.abs(sample) < 0.02)).toBe(true);
  });
});
