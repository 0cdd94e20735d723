import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { activeLevelDb } from '../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../src/observe/log.js';
import { officeNoise } from '../../src/replay/office-noise.js';
import { SOUND_LEVEL_DB } from '../../src/replay/recorded-prompt.js';
import { shippedSounds, SOUND_FOLDERS, type ShippedSound } from '../../src/replay/shipped-sounds.js';
import { OFFICE_SNRS_DB } from '../../src/replay/voice-sample.js';
import { SPEECH_VOICES } from '../../src/model/rehearsal/speech-synthesizer.js';
import { projectRoot } from '../tidy/project-files.js';
import { SLOW_MACHINE_MS } from './figures.js';
import { bandLevel, decibels, rmsOf, soundOf } from './line-sound.js';
import { onsets } from './labelled-speech.js';
import { readVoice } from './shipped-callers.js';

/** The sounds of one folder are to stay a small part of a checkout. */
const VOICES_MAX_BYTES = 2_000_000;

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

describe('npm run build:sounds', () => {
  const made: ShippedSound[] = [];
  beforeAll(async () => {
    for await (const sound of shippedSounds(synthesizer)) made.push(sound);
  }, SLOW_MACHINE_MS);

  it('makes the files that are committed, to the byte', () => {
    const drifted = made
      .filter(({ path, bytes }) => Buffer.compare(readFileSync(join(projectRoot, path)), bytes) !== 0)
      .map(({ path }) => path);
    expect(drifted, 'run npm run build:sounds and commit what it wrote').toEqual([]);
  });

  it('makes each sound file that is there', () => {
    const committed = SOUND_FOLDERS.flatMap((folder) =>
      readdirSync(join(projectRoot, folder))
        .filter((name) => /\.(wav|ulaw)$/.test(name))
        .map((name) => `${folder}/${name}`),
    );
    expect(committed.toSorted()).toEqual(made.map(({ path }) => path).toSorted());
  });

  it('keeps the voices small', () => {
    const voices = made.filter(({ path }) => path.includes('/voices/'));
    const bytes = voices.reduce((sum, { path }) => sum + statSync(join(projectRoot, path)).size, 0);
    expect(voices).toHaveLength(SPEECH_VOICES.length * (1 + OFFICE_SNRS_DB.length));
    expect(bytes).toBeLessThan(VOICES_MAX_BYTES);
  });
});

describe('a shipped voice', () => {
  it.each(SPEECH_VOICES)(
    '%s is in the telephone band at a telephone level, and as far over its office as said',
    async (voice) => {
      const clean = soundOf(await readVoice(voice, 'clean'));
      // Its peak may hold a voice up to 1.5 dB below the level.
      const levelDb = activeLevelDb(clean, 8_000);
      expect(levelDb).toBeLessThan(SOUND_LEVEL_DB + 0.2);
      expect(levelDb).toBeGreaterThan(SOUND_LEVEL_DB - 2);
      const levelOf = (lowHz: number, highHz: number) =>
        decibels(bandLevel(clean, { lowHz, highHz }) / rmsOf(clean));
      // What the line takes away is gone, but for mu-law's own noise.
      expect(levelOf(0, 150)).toBeLessThan(-30);
      expect(levelOf(3_600, 3_999)).toBeLessThan(-30);
      for (const snrDb of OFFICE_SNRS_DB) {
        const noisy = soundOf(await readVoice(voice, `office-${snrDb}db`));
        const noise = noisy.map((sample, n) => sample - (clean[n] ?? 0));
        expect(Math.abs(levelDb - decibels(rmsOf(noise)) - snrDb), `${snrDb} dB`).toBeLessThan(0.2);
      }
    },
  );

  it.each(SPEECH_VOICES)('%s says three sentences, and is silent before and between them', async (voice) => {
    const codes = await readVoice(voice, 'clean');
    const beginnings = onsets(soundOf(codes), 30);
    expect(beginnings).toHaveLength(3);
    for (const beginning of beginnings) {
      expect(codes.subarray(beginning - 5_600, beginning - 1_200).every((code) => code === 0xff)).toBe(true);
    }
  });
});

describe('office noise', () => {
  it('has the level asked for, is the same from the same seed, and is not steady', async () => {
    const noise = await officeNoise(synthesizer, 40_000, { levelDb: -33, seed: 1 });
    expect(decibels(rmsOf(noise))).toBeCloseTo(-33, 6);
    const bytes = Buffer.from(noise.buffer);
    const again = await officeNoise(synthesizer, 40_000, { levelDb: -33, seed: 1 });
    const other = await officeNoise(synthesizer, 40_000, { levelDb: -33, seed: 2 });
    expect(Buffer.from(again.buffer).equals(bytes)).toBe(true);
    expect(Buffer.from(other.buffer).equals(bytes)).toBe(false);
    const levels = Array.from({ length: 50 }, (_, n) =>
      decibels(rmsOf(noise.subarray(800 * n, 800 * (n + 1)))),
    );
    // White noise of the same cut differs by less than 2 dB.
    expect(Math.max(...levels) - Math.min(...levels)).toBeGreaterThan(4);
    expect(Math.max(...levels) - Math.min(...levels)).toBeLessThan(20);
  });
});
