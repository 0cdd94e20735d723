/** Where speech is in a sound whose pauses are clean, by its energy alone. */
import { FRAME, rmsOf } from './line-sound.js';

/** What sound of clean speech must reach to be speech, below the level of that speech while it is active. */
export const LABEL_BELOW_DB = 30;
/** Shorter pauses belong to the speech round them: the closure of a consonant, the end of a syllable. */
const LABEL_PAUSE_FRAMES = 8;
/** Time steps in which a beginning is looked for: 5 ms. */
const ONSET_STEP = 40;
/** No word is as long apart from the next within a sentence: 600 ms. */
const ONSET_PAUSE = 4_800;

/** Root of the mean square of the frames that are no more than 30 dB below the loudest. */
export function activeRms(samples: Float64Array): number {
  const levels = blockLevels(samples, FRAME);
  const loudest = Math.max(...levels);
  const active = levels.filter((level) => level > 0 && level >= loudest * 10 ** (-30 / 20));
  return Math.sqrt(active.reduce((sum, level) => sum + level * level, 0) / active.length);
}

function blockLevels(samples: Float64Array, size: number): number[] {
  return Array.from({ length: Math.floor(samples.length / size) }, (_, block) =>
    rmsOf(samples.subarray(block * size, (block + 1) * size)),
  );
}

/** For each frame whether there is speech in it, which is no more than `belowDb` under its active level. */
export function speechFrames(clean: Float64Array, belowDb = LABEL_BELOW_DB): boolean[] {
  const least = activeRms(clean) * 10 ** (-belowDb / 20);
  const speech = blockLevels(clean, FRAME).map((level) => level > least);
  let last = -Infinity;
  for (let frame = 0; frame < speech.length; frame += 1) {
    if (!speech[frame]) continue;
    if (frame - last <= LABEL_PAUSE_FRAMES) speech.fill(true, last, frame);
    last = frame;
  }
  return speech;
}

/**
 * Samples at which speech begins behind a pause, to the nearest 5 ms before. Under noise a beginning is what can be heard:
 * `belowDb` is then the noise's distance.
 */
export function onsets(clean: Float64Array, belowDb = LABEL_BELOW_DB): number[] {
  const least = activeRms(clean) * 10 ** (-belowDb / 20);
  const found: number[] = [];
  let lastLoud = -Infinity;
  blockLevels(clean, ONSET_STEP).forEach((level, block) => {
    if (level <= least) return;
    if ((block - lastLoud) * ONSET_STEP > ONSET_PAUSE) found.push(block * ONSET_STEP);
    lastLoud = block;
  });
  return found;
}
