/**
 * A telephone line for sounds that are made beforehand: 24 kHz speech brought down to 8 kHz, the 300–3400 Hz band of
 * an old exchange, and its noise and hum from a seed. Whole sounds at once; nothing here runs in a call.
 */
import { lowPassTaps, resample } from '../model/rehearsal/speech-sound.mjs';
import { SeededRandom } from '../model/rehearsal/seeded-random.js';

export const LINE_RATE_HZ = 8_000;

/** The band that G.712 telephony passes. */
const BAND_LOW_HZ = 300;
const BAND_HIGH_HZ = 3_400;
/** 16 ms on each side: the lower edge is about 250 Hz wide, which takes mains hum down without ringing. */
const BAND_HALF_TAPS = 128;

const HUM_HZ = 50;
/** Hum comes with overtones; the third and fifth reach the telephone band. Amplitudes relative to the noise. */
const HUM_OVERTONES = [
  { order: 1, amplitude: 0.3 },
  { order: 3, amplitude: 0.4 },
  { order: 5, amplitude: 0.3 },
  { order: 7, amplitude: 0.3 },
] as const;

/** 24 kHz to the line's 8 kHz; everything above 4 kHz is at least 75 dB down. */
export function toLineRate(samples24k: Float64Array): Float64Array {
  return resample(samples24k, 1, 3);
}

/** The telephone band of a sound at line rate, same length, no delay. */
export function bandLimited(samples: Float64Array): Float64Array {
  const high = lowPassTaps(BAND_HIGH_HZ / LINE_RATE_HZ, BAND_HALF_TAPS, 1);
  const low = lowPassTaps(BAND_LOW_HZ / LINE_RATE_HZ, BAND_HALF_TAPS, 1);
  const taps = high.map((tap, i) => tap - (low[i] ?? 0));
  // Silence round the sound spares the inner loop its edges; the taps are the same from both ends.
  const padded = new Float64Array(samples.length + 2 * BAND_HALF_TAPS);
  padded.set(samples, BAND_HALF_TAPS);
  return samples.map((_, n) => {
    let sum = 0;
    for (let i = 0; i <= 2 * BAND_HALF_TAPS; i += 1) sum += (padded[n + i] ?? 0) * (taps[i] ?? 0);
    return sum;
  });
}

/** White noise and mains hum of `levelDb` (RMS, dB of full scale); the same seed gives the same noise. */
export function lineNoise(length: number, options: { levelDb: number; seed: number }): Float64Array {
  const random = new SeededRandom(options.seed);
  const humPower = HUM_OVERTONES.reduce((sum, { amplitude }) => sum + amplitude ** 2 / 2, 0);
  const gain = 10 ** (options.levelDb / 20) / Math.sqrt(1 + humPower);
  return Float64Array.from({ length }, (_, n) => {
    let sample = gaussian(random);
    for (const { order, amplitude } of HUM_OVERTONES) {
      sample += amplitude * Math.sin((2 * Math.PI * HUM_HZ * order * n) / LINE_RATE_HZ);
    }
    return gain * sample;
  });
}

/** Unit variance; the sum of twelve uniform numbers is normal enough for noise. */
function gaussian(random: SeededRandom): number {
  let sum = -6;
  for (let i = 0; i < 12; i += 1) sum += random.unit();
  return sum;
}
