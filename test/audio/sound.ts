/** Sounds to put through the filters, and ways to find them again. */

/** The samples of a steady tone, from phase 0. */
export function tone(
  frequencyHz: number,
  sampleRateHz: number,
  count: number,
  amplitude: number,
): Int16Array {
  return Int16Array.from({ length: count }, (_, i) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * frequencyHz * i) / sampleRateHz)),
  );
}

/** Amplitude of one frequency. Exact when the frequency makes a whole number of turns in the samples. */
export function amplitudeAt(samples: ArrayLike<number>, frequencyHz: number, sampleRateHz: number): number {
  let real = 0;
  let imaginary = 0;
  for (let i = 0; i < samples.length; i++) {
    const angle = (2 * Math.PI * frequencyHz * i) / sampleRateHz;
    real += samples[i]! * Math.cos(angle);
    imaginary += samples[i]! * Math.sin(angle);
  }
  return (2 * Math.hypot(real, imaginary)) / samples.length;
}

export function rms(samples: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < samples.length; i++) sum += samples[i]! ** 2;
  return Math.sqrt(sum / samples.length);
}

export function decibels(ratio: number): number {
  return 20 * Math.log10(ratio);
}

/** PCM16 as its bytes, little-endian. */
export function bytesOf(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(2 * samples.length);
  samples.forEach((sample, i) => bytes.writeInt16LE(sample, 2 * i));
  return bytes;
}

/** A copy of the samples in little-endian PCM16 bytes. */
export function samplesOf(bytes: Buffer): Int16Array {
  return Int16Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
}

/** Uniform numbers from 0 to below 1, the same for each seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * ITU-T G.711 mu-law written from its description, with the 14-bit rounding of the reference software: a sample is
 * taken to 14 bits (negative ones by their one's complement), 33 is added, and the position of the leading one bit
 * gives the segment, the four bits behind it the step.
 */
export function ituEncode(sample: number): number {
  const magnitude = Math.min((sample < 0 ? ~sample >> 2 : sample >> 2) + 33, 0x1fff);
  const segment = 31 - Math.clz32(magnitude) - 5;
  const step = (magnitude >> (segment + 1)) & 0x0f;
  return ~((sample < 0 ? 0x80 : 0) | (segment << 4) | step) & 0xff;
}

/** The sample of a mu-law code, in 16 bits. */
export function ituDecode(code: number): number {
  const bits = ~code & 0xff;
  const segment = (bits >> 4) & 7;
  const magnitude = ((((bits & 0x0f) << 1) + 33) << segment) - 33;
  return bits & 0x80 ? 0 - 4 * magnitude : 4 * magnitude;
}

/** Mu-law of PCM16 by the formula. */
export function ituEncodeAll(samples: Int16Array): Buffer {
  return Buffer.from(Array.from(samples, ituEncode));
}
