/**
 * A caller's sound through the server's own audio path and back: mu-law at 8 kHz, up to 16 kHz as the model gets it, the
 * same sound at 24 kHz as a model that echoes would return it, and down to mu-law. And what it is compared with.
 */
import { createRequire } from 'node:module';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { CallerUpsampler } from '../../src/audio/caller-upsampler.js';
import { fromPcm16, lowPassTaps, resample, toPcm16 } from '../../src/model/rehearsal/speech-sound.mjs';
import { bandLimited } from '../../src/replay/telephone-line.js';
import { bytesOf, samplesOf } from '../audio/sound.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

const RATE_HZ = 8_000;
export const FRAME = 160;

/**
 * The path's delay at 24 kHz: the upsampler's 31 samples at 16 kHz and the decimator's 47.5 at 24 kHz. The echoing model
 * adds none.
 */
const DELAY_24K = (31 * 3) / 2 + 47.5;

/** Samples of full scale 1 as mu-law, once. */
export function encoded(samples: Float64Array): Uint8Array {
  return mulaw.encode(toPcm16(samples));
}

/** Samples of full scale 1 as the carrier sends them, in whole frames. */
export function codesOf(samples: Float64Array): Uint8Array {
  return encoded(samples.subarray(0, samples.length - (samples.length % FRAME)));
}

export function soundOf(codes: Uint8Array): Float64Array {
  return fromPcm16(mulaw.decode(codes));
}

/** `bytes` in pieces of `size` through a filter whose results are views on shared memory. */
export function inPieces(bytes: Uint8Array, size: number, push: (piece: Uint8Array) => Uint8Array): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size)
    parts.push(Buffer.from(push(bytes.subarray(at, at + size))));
  return Buffer.concat(parts);
}

/** PCM16 at 16 kHz, as the model gets it. */
export function toModel(codes: Uint8Array, pieceBytes = codes.length): Buffer {
  const upsampler = new CallerUpsampler();
  const pcm16k = inPieces(codes, pieceBytes, (piece) => upsampler.push(piece));
  upsampler.release();
  return pcm16k;
}

/** What a model that says back what it hears would send: the same sound as PCM16 at 24 kHz. */
export function echo(pcm16k: Buffer): Buffer {
  return bytesOf(toPcm16(resample(fromPcm16(samplesOf(pcm16k)), 3, 2)));
}

/** Mu-law at 8 kHz, as the carrier gets it, without the filter's tail. */
export function toCarrier(pcm24k: Buffer, pieceBytes = pcm24k.length): Buffer {
  const decimator = new AgentDecimator();
  const codes = inPieces(pcm24k, pieceBytes, (piece) => decimator.push(piece));
  decimator.release();
  return codes;
}

export function roundTrip(codes: Uint8Array): Buffer {
  return toCarrier(echo(toModel(codes)));
}

/** The sound that a perfect path of the same delay would return, not encoded. */
export function perfectRoundTrip(codes: Uint8Array): Float64Array {
  const exact = resample(soundOf(codes), 3, 1);
  return Float64Array.from({ length: codes.length }, (_, n) => exact[3 * n - DELAY_24K] ?? 0);
}

export function rmsOf(samples: Float64Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

export function decibels(ratio: number): number {
  return 20 * Math.log10(ratio);
}

export interface Likeness {
  /** Signal over error of 20 ms frames of speech, in dB, in the telephone band: mean, and what 95 % of frames exceed. */
  readonly meanSnrDb: number;
  readonly lowSnrDb: number;
  /** Greatest change of level among the bands of BAND_EDGES_HZ, in dB. */
  readonly bandDeviationDb: number;
}

/** A frame counts as speech above -45 dB of full scale; below, mu-law's own steps are all there is. */
const SPEECH_RMS = 10 ** (-45 / 20);
/** Frames without error would be infinitely good. */
const SNR_MAX_DB = 60;
const BAND_EDGES_HZ = [300, 800, 1_500, 2_400, 3_400] as const;
const BAND_HALF_TAPS = 64;
/** Every so many samples of a band are enough to know its level. */
const BAND_STRIDE = 4;

/** How like `wanted` each of the sounds that came back is. */
export function likenesses(wanted: Float64Array, returned: readonly Uint8Array[]): Likeness[] {
  const reference = bandLimited(wanted);
  const levels = bandLevels(reference);
  return returned.map((codes) => {
    const sound = bandLimited(soundOf(codes));
    const snrs = frameSnrs(reference, sound);
    const deviations = bandLevels(sound).map((level, band) =>
      Math.abs(decibels(level / (levels[band] ?? 0))),
    );
    return {
      meanSnrDb: snrs.reduce((sum, snr) => sum + snr, 0) / snrs.length,
      lowSnrDb: snrs[Math.floor(snrs.length / 20)] ?? Number.NaN,
      bandDeviationDb: Math.max(...deviations),
    };
  });
}

/** Of the frames with speech, in rising order. */
function frameSnrs(reference: Float64Array, sound: Float64Array): number[] {
  const snrs: number[] = [];
  for (let at = 0; at + FRAME <= reference.length; at += FRAME) {
    const frame = reference.subarray(at, at + FRAME);
    const level = rmsOf(frame);
    if (level < SPEECH_RMS) continue;
    const error = rmsOf(frame.map((sample, n) => (sound[at + n] ?? 0) - sample));
    snrs.push(error === 0 ? SNR_MAX_DB : Math.min(SNR_MAX_DB, decibels(level / error)));
  }
  return snrs.sort((a, b) => a - b);
}

/** Root of the mean square in each band. */
function bandLevels(samples: Float64Array): number[] {
  return BAND_EDGES_HZ.slice(1).map((highHz, band) =>
    bandLevel(samples, { lowHz: BAND_EDGES_HZ[band] ?? 0, highHz, halfTaps: BAND_HALF_TAPS }),
  );
}

/** Root of the mean square between two frequencies; more taps make steeper edges, 512 of them 90 Hz. */
export function bandLevel(
  samples: Float64Array,
  { lowHz, highHz, halfTaps = 256 }: { lowHz: number; highHz: number; halfTaps?: number },
): number {
  const low = lowPassTaps(lowHz / RATE_HZ, halfTaps, 1);
  const taps = lowPassTaps(highHz / RATE_HZ, halfTaps, 1).map((tap, i) => tap - (low[i] ?? 0));
  const outputs: number[] = [];
  for (let first = 0; first + taps.length <= samples.length; first += BAND_STRIDE) {
    let sum = 0;
    for (let i = 0; i < taps.length; i += 1) sum += (taps[i] ?? 0) * (samples[first + i] ?? 0);
    outputs.push(sum);
  }
  return rmsOf(Float64Array.from(outputs));
}
