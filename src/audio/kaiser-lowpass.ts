/**
 * Designs the low-pass filters of the sound path: an ideal low-pass (sinc) cut to length by a Kaiser window. Runs once
 * at start; the filters themselves run in the kernel. Kaiser's rules of thumb connect the numbers: a window of shape
 * `beta` leaves about `beta / 0.1102 + 8.7` dB in the stop band, and `taps` of them need a transition of
 * `(dB - 7.95) / (14.36 * (taps - 1))` of the sample rate (J. F. Kaiser, "Nonrecursive digital filter design using
 * the I0-sinh window function", 1974).
 */

export interface LowpassDesign {
  readonly taps: number;
  readonly sampleRateHz: number;
  /** Middle of the transition, where the response is half (-6 dB). */
  readonly cutoffHz: number;
  /** Shape of the Kaiser window. */
  readonly beta: number;
}

/** Linear-phase taps, symmetric, scaled to a sum of 1. Their delay is (taps - 1) / 2 samples. */
export function designLowpass(design: LowpassDesign): Float64Array {
  const { taps, sampleRateHz, cutoffHz, beta } = design;
  const middle = (taps - 1) / 2;
  const cyclesPerSample = cutoffHz / sampleRateHz;
  const weights = new Float64Array(taps);
  let sum = 0;
  for (let tap = 0; tap < taps; tap++) {
    const offset = tap - middle;
    const edge = offset / middle;
    const weight = sinc(2 * cyclesPerSample * offset) * besselI0(beta * Math.sqrt(1 - edge * edge));
    weights[tap] = weight;
    sum += weight;
  }
  return weights.map((weight) => weight / sum);
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** The modified Bessel function of order 0 by its power series, whose terms fall fast for the small `x` of a window. */
function besselI0(x: number): number {
  const quarter = (x * x) / 4;
  let term = 1;
  let sum = 1;
  for (let n = 1; term > sum * Number.EPSILON; n++) {
    term *= quarter / (n * n);
    sum += term;
  }
  return sum;
}
