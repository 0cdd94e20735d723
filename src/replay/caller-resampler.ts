/**
 * Brings a whole recording of any rate to the telephone's 8 kHz. It is an offline converter for caller files, made
 * for quality: a Kaiser-windowed sinc low-pass, evaluated once per phase of the rate's ratio and applied directly.
 * The live path has its own streaming filters; nothing here runs during a call.
 */

const TELEPHONE_RATE = 8_000;
/** Zero crossings of the sinc on each side, at the lower of the two rates: a transition band of about 0.4 kHz. */
const ZERO_CROSSINGS = 40;
/** Kaiser beta 8: side lobes near -80 dB. */
const KAISER_BETA = 8;
/** The -6 dB point as a share of the lower Nyquist frequency: 3.8 kHz here, so that 4.2 kHz is gone. */
const CUTOFF_SHARE = 0.95;
/** Phases are tabulated up to this many; an odd rate with more is rounded to the nearest phase (-100 dB of jitter). */
const PHASES_MAX = 8_192;

function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Taps for one fractional offset (0 to 1 of an input sample); normalised, so that level is kept exactly at 0 Hz. */
function tapsAt(offset: number, half: number, cutoff: number): Float64Array {
  const taps = new Float64Array(2 * half);
  let sum = 0;
  for (let i = 0; i < taps.length; i++) {
    const t = i - half + 1 - offset;
    const x = Math.PI * cutoff * t;
    const sinc = Math.abs(x) < 1e-9 ? 1 : Math.sin(x) / x;
    const ratio = t / half;
    const window = Math.abs(ratio) >= 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - ratio * ratio));
    taps[i] = sinc * window;
    sum += sinc * window;
  }
  return taps.map((tap) => tap / sum);
}

/** Returns `samples` (any full scale) taken at `rate` Hz as samples at 8 kHz; the input itself if it is at 8 kHz. */
export function toTelephoneRate(samples: Float64Array, rate: number): Float64Array {
  if (rate === TELEPHONE_RATE) return samples;
  const cutoff = CUTOFF_SHARE * Math.min(1, TELEPHONE_RATE / rate);
  const half = Math.ceil(ZERO_CROSSINGS / Math.min(1, TELEPHONE_RATE / rate));
  const divisor = greatestCommonDivisor(rate, TELEPHONE_RATE);
  const phases = Math.min(PHASES_MAX, TELEPHONE_RATE / divisor);
  const table: (Float64Array | undefined)[] = [];
  const length = Math.round((samples.length * TELEPHONE_RATE) / rate);
  const resampled = new Float64Array(length);
  for (let n = 0; n < length; n++) {
    const place = (n * rate) / TELEPHONE_RATE;
    let whole = Math.floor(place);
    let phase = Math.round((place - whole) * phases);
    if (phase === phases) {
      whole += 1;
      phase = 0;
    }
    const taps = (table[phase] ??= tapsAt(phase / phases, half, cutoff));
    const first = whole - half + 1;
    let sum = 0;
    for (let i = Math.max(0, -first); i < taps.length && first + i < samples.length; i++) {
      sum += (taps[i] ?? 0) * (samples[first + i] ?? 0);
    }
    resampled[n] = sum;
  }
  return resampled;
}
