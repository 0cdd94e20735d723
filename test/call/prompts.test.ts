import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import { loadPrompts, PROMPT_NAMES, PROMPT_TEXTS } from '../../src/call/prompts.js';
import { systemClock } from '../../src/clock.js';
import { activeLevelDb, fromPcm16 } from '../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../src/observe/log.js';
import { recordedPrompt } from '../../src/replay/recorded-prompt.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');
const folder = new URL('../../src/call/prompts/', import.meta.url);
const prompts = loadPrompts();
const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

function samplesOf(clip: Uint8Array): Float64Array {
  return fromPcm16(mulaw.decode(clip));
}

describe('the recorded prompts', () => {
  it('are the clips that ship, one for each text', async () => {
    const shipped = (await readdir(folder)).sort();
    expect(shipped).toEqual(PROMPT_NAMES.map((name) => `${name}.ulaw`).sort());
    expect(Object.keys(PROMPT_TEXTS).sort()).toEqual([...PROMPT_NAMES].sort());
  });

  it.each(PROMPT_NAMES)('say in "%s" what its text says', async (name) => {
    const shipped = samplesOf(prompts[name]);
    const spoken = samplesOf(await recordedPrompt(synthesizer, PROMPT_TEXTS[name]));
    expect(shipped).toHaveLength(spoken.length);
    // A machine that computes a sine differently in its last bit may round a sample to the next step.
    const apart = shipped.reduce((sum, sample, n) => sum + Math.abs(sample - (spoken[n] ?? 0)), 0);
    expect(apart / shipped.length).toBeLessThan(1e-4);
  });

  it.each(PROMPT_NAMES)('speak "%s" clearly', (name) => {
    const samples = samplesOf(prompts[name]);
    const charsPerSecond = PROMPT_TEXTS[name].length / (samples.length / 8_000);
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
