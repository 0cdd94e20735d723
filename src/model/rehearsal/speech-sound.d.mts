/** Kaiser-windowed low-pass taps (odd count); `cutoff` is the -6 dB point in cycles a sample, below 0.5. */
export function lowPassTaps(cutoff: number, halfLength: number, gain: number): Float64Array;
/** The whole utterance at `up / down` times its rate, without delay; the same input gives the same output. */
export function resample(samples: Float64Array, up: number, down: number): Float64Array;
/** RMS of the parts that are not pauses, in dB of full scale; -Infinity for silence. */
export function activeLevelDb(samples: Float64Array, rateHz: number): number;
/** Without the silence at both ends (40 dB below the loudest 10 ms), but for `keepMs`. */
export function trimSilence(samples: Float64Array, rateHz: number, keepMs: number): Float64Array;
/** Brought to `levelDb` by activeLevelDb, or to the loudest level whose peak stays at `peakDb`. */
export function normaliseLevel(
  samples: Float64Array,
  target: { readonly rateHz: number; readonly levelDb: number; readonly peakDb: number },
): Float64Array;
/** Full scale 1.0 to PCM16, clipped. */
export function toPcm16(samples: Float64Array): Int16Array<ArrayBuffer>;
/** PCM16 to full scale 1.0. */
export function fromPcm16(pcm: Int16Array): Float64Array;
