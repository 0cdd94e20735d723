/**
 * A caller's voice to the model and back keeps what it was. The yardstick is one coding as mu-law of the sound that a
 * perfect path would return: nothing that ends in mu-law can be better. `EARSHOT_SOUND_FIGURES=1 npx vitest run
 * test/sound` prints what is measured.
 */
import { describe, expect, it } from 'vitest';
import { describeHumanSpeech, readRecording } from './human-speech.js';
import {
  codesOf,
  echo,
  encoded,
  FRAME,
  likenesses,
  perfectRoundTrip,
  roundTrip,
  toCarrier,
  toModel,
} from './line-sound.js';
import { note, SLOW_MACHINE_MS } from './figures.js';
import { readVoice, VOICE_VARIANTS } from './shipped-callers.js';

/** Seconds of each recording that are sent round. */
const RECORDING_MAX_S = 4;

/** Loss against the yardstick: measured -0.1 (better by chance) to 0.1 dB in the mean, to 0.6 dB in the worst frames. */
const MEAN_LOSS_MAX_DB = 0.3;
const LOW_LOSS_MAX_DB = 1.5;
/** Change of level in any of four bands: measured up to 0.11 dB, where quiet speech meets mu-law's steps. */
const BAND_DEVIATION_MAX_DB = 0.3;

/** Sends it round, holds it to the limits, and returns the mean signal over error in dB. */
function expectKept(name: string, codes: Uint8Array): number {
  const wanted = perfectRoundTrip(codes);
  const [returned, best] = likenesses(wanted, [roundTrip(codes), encoded(wanted)]);
  note('round trip', { name, ...returned, bestMeanSnrDb: best!.meanSnrDb, bestLowSnrDb: best!.lowSnrDb });
  expect(best!.meanSnrDb - returned!.meanSnrDb, `${name} is as it was`).toBeLessThanOrEqual(MEAN_LOSS_MAX_DB);
  expect(best!.lowSnrDb - returned!.lowSnrDb, `${name} is as it was`).toBeLessThanOrEqual(LOW_LOSS_MAX_DB);
  expect(returned!.bandDeviationDb, `${name} is as it was`).toBeLessThanOrEqual(BAND_DEVIATION_MAX_DB);
  return returned!.meanSnrDb;
}

describe('a voice to the model and back', { timeout: SLOW_MACHINE_MS }, () => {
  it.each(VOICE_VARIANTS)('is kept: $name', async ({ voice, variant, name }) => {
    // Measured 36.6 to 37.9 dB.
    expect(expectKept(name, await readVoice(voice, variant))).toBeGreaterThan(35);
  });

  it('would be found changed by a filter that is 0.5 dB off, late by a sample, or clicks', async () => {
    const codes = await readVoice('slt', 'clean');
    const wanted = perfectRoundTrip(codes);
    const good = roundTrip(codes);
    const louder = encoded(wanted.map((sample) => 10 ** (0.5 / 20) * sample));
    const late = Buffer.concat([Buffer.of(0xff), good]).subarray(0, good.length);
    const clicking = good.map((code, n) => (n % FRAME === 0 ? 0xff : code));
    const [asItIs, ...bad] = likenesses(wanted, [good, louder, late, clicking]);
    expect(bad[0]!.bandDeviationDb).toBeGreaterThan(BAND_DEVIATION_MAX_DB);
    for (const { meanSnrDb } of bad) expect(asItIs!.meanSnrDb - meanSnrDb).toBeGreaterThan(5);
  });
});

/** Bytes of one piece: single bytes, primes, a frame and its neighbours, more than the kernel's blocks. */
const PIECES = [1, 37, 159, 160, 161, 320, 1_009, 20_011];

describe('a border between two pieces', { timeout: SLOW_MACHINE_MS }, () => {
  it.each(PIECES)('cannot be heard at %i bytes, on any leg', async (piece) => {
    const codes = await readVoice('rms', 'office-20db');
    const pcm16k = toModel(codes);
    expect(toModel(codes, piece).equals(pcm16k)).toBe(true);
    const pcm24k = echo(pcm16k);
    expect(toCarrier(pcm24k, piece).equals(toCarrier(pcm24k))).toBe(true);
  });
});

describeHumanSpeech('a person to the model and back', (recordings) => {
  it(
    'is kept in every recording',
    () => {
      for (const recording of recordings) {
        const codes = codesOf(readRecording(recording)).subarray(0, RECORDING_MAX_S * 8_000);
        // Measured 30.4 (very quiet speech) to 37.3 dB.
        expect(expectKept(recording.name, codes), `${recording.name}: mean`).toBeGreaterThan(29);
      }
    },
    SLOW_MACHINE_MS,
  );

  it.each(PIECES)(
    'has no border at %i bytes',
    (piece) => {
      for (const { name, ...recording } of recordings.filter(({ path }) =>
        /hts1a|hts2a|0880|vm-sorry/.test(path),
      )) {
        const codes = codesOf(readRecording({ name, ...recording }));
        const pcm16k = toModel(codes);
        expect(toModel(codes, piece).equals(pcm16k), `${name} is as it was`).toBe(true);
        const pcm24k = echo(pcm16k);
        expect(toCarrier(pcm24k, piece).equals(toCarrier(pcm24k)), `${name} is as it was`).toBe(true);
      }
    },
    SLOW_MACHINE_MS,
  );
});
