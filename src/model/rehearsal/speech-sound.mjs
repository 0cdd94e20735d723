/**
 * What happens to a synthesizer's sound before anybody hears it: whole-utterance resampling by a ratio of small
 * numbers, trimming of the silence at both ends, and one loudness for all voices. Plain JavaScript, because the
 * speech worker runs it as it stands, from source and from the build; the types are in `speech-sound.d.mts`.
 */

/** Zero crossings of the filter's sinc on each side: 90 dB of rejection with a transition of 7 % of the band. */
const ZERO_CROSSINGS = 48;
/** The -6 dB point as a share of the narrower Nyquist band, so that the stop band begins near its edge. */
const CUTOFF_SHARE = 0.94;
const KAISER_BETA = 9;

const LEVEL_FRAME_MS = 10;
/** A frame more than this far below the loudest one is a pause and does not count for the level. */
const ACTIVE_BELOW_LOUDEST_DB = 30;

/** Modified Bessel function of the first kind, order 0, by its power series. */
function besselI0(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

export function lowPassTaps(cutoff, halfLength, gain) {
  const taps = new Float64Array(2 * halfLength + 1);
  const scale = besselI0(KAISER_BETA);
  for (let i = -halfLength; i <= halfLength; i += 1) {
    const angle = Math.PI * i;
    const sinc = i === 0 ? 2 * cutoff : Math.sin(2 * cutoff * angle) / angle;
    const window = besselI0(KAISER_BETA * Math.sqrt(1 - (i / (halfLength + 1)) ** 2)) / scale;
    taps[i + halfLength] = gain * sinc * window;
  }
  return taps;
}

export function resample(samples, up, down) {
  if (up === down) return Float64Array.from(samples);
  const widest = Math.max(up, down);
  const halfLength = Math.ceil((ZERO_CROSSINGS * widest) / CUTOFF_SHARE);
  const taps = lowPassTaps((CUTOFF_SHARE * 0.5) / widest, halfLength, up);
  const resampled = new Float64Array(Math.floor((samples.length * up) / down));
  for (let n = 0; n < resampled.length; n += 1) {
    // Position of this output on the grid that is `up` times finer; only every `up`-th tap meets an input sample.
    const centre = n * down;
    const first = Math.max(0, Math.ceil((centre - halfLength) / up));
    const last = Math.min(samples.length - 1, Math.floor((centre + halfLength) / up));
    let sum = 0;
    for (let k = first; k <= last; k += 1) sum += samples[k] * taps[centre - k * up + halfLength];
    resampled[n] = sum;
  }
  return resampled;
}

function framePowers(samples, rateHz) {
  const frame = Math.max(1, Math.round((rateHz * LEVEL_FRAME_MS) / 1000));
  const powers = [];
  for (let start = 0; start < samples.length; start += frame) {
    const end = Math.min(samples.length, start + frame);
    let sum = 0;
    for (let i = start; i < end; i += 1) sum += samples[i] * samples[i];
    powers.push(sum / (end - start));
  }
  return { frame, powers };
}

function loudest(powers) {
  let most = 0;
  for (const power of powers) most = Math.max(most, power);
  return most;
}

export function activeLevelDb(samples, rateHz) {
  const { powers } = framePowers(samples, rateHz);
  const floor = loudest(powers) * 10 ** (-ACTIVE_BELOW_LOUDEST_DB / 10);
  const active = powers.filter((power) => power > 0 && power >= floor);
  if (active.length === 0) return -Infinity;
  return 10 * Math.log10(active.reduce((sum, power) => sum + power, 0) / active.length);
}

export function trimSilence(samples, rateHz, keepMs) {
  const { frame, powers } = framePowers(samples, rateHz);
  const floor = loudest(powers) * 1e-4;
  const isSound = (power) => power > 0 && power >= floor;
  const first = powers.findIndex(isSound);
  if (first === -1) return new Float64Array(0);
  const last = powers.findLastIndex(isSound);
  const keep = Math.round((rateHz * keepMs) / 1000);
  return samples.slice(
    Math.max(0, first * frame - keep),
    Math.min(samples.length, (last + 1) * frame + keep),
  );
}

export function normaliseLevel(samples, { rateHz, levelDb, peakDb }) {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  if (peak === 0) return Float64Array.from(samples);
  const wanted = 10 ** ((levelDb - activeLevelDb(samples, rateHz)) / 20);
  const gain = Math.min(wanted, 10 ** (peakDb / 20) / peak);
  return samples.map((sample) => sample * gain);
}

export function toPcm16(samples) {
  return Int16Array.from(samples, (sample) =>
    Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768))),
  );
}

export function fromPcm16(pcm) {
  return Float64Array.from(pcm, (sample) => sample / 32_768);
}
