/** Noise to put over clean speech, at a stated distance below it, and the same in every run. */
import type { FliteSynthesizer } from '../../src/model/rehearsal/speech-synthesizer.js';
import { officeNoise } from '../../src/replay/office-noise.js';
import { whiteNoise } from '../../bench/spoken-call.mjs';
import { activeRms } from './labelled-speech.js';
import { rmsOf } from './line-sound.js';

/** A bed of this length is laid end to end: longer than any detector's memory. */
const BED_S = 20;

/** As long as asked for, of any level. */
export type Noise = (length: number) => Float64Array;

function tiled(bed: Float64Array): Noise {
  return (length) => Float64Array.from({ length }, (_, n) => bed[n % bed.length] ?? 0);
}

export function white(): Noise {
  return tiled(Float64Array.from(whiteNoise(BED_S * 8_000)));
}

export async function office(synthesizer: FliteSynthesizer): Promise<Noise> {
  return tiled(await officeNoise(synthesizer, BED_S * 8_000, { levelDb: -20, seed: 400 }));
}

/** `clean` with `noise` over it: the speech while it is active is `snrDb` over the noise's RMS. */
export function under(clean: Float64Array, noise: Noise, snrDb: number): Float64Array {
  const sound = noise(clean.length);
  const gain = activeRms(clean) / rmsOf(sound) / 10 ** (snrDb / 20);
  return clean.map((sample, n) => sample + gain * (sound[n] ?? 0));
}
