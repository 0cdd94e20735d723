/** Sound for tests: tones, and how loud one is found again. */
import { createRequire } from 'node:module';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

/** A sine at `level` of full scale. */
export function sine(hz: number, ms: number, { rate = 8_000, level = 0.5 } = {}): Float64Array {
  return Float64Array.from(
    { length: Math.round((ms * rate) / 1_000) },
    (_, n) => level * Math.sin((2 * Math.PI * hz * n) / rate),
  );
}

export function toPcm16(samples: Float64Array): Int16Array {
  return Int16Array.from(samples, (sample) => Math.round(sample * 32_767));
}

export function tone(ms: number, hz = 440, level = 0.5): Uint8Array {
  return mulaw.encode(toPcm16(sine(hz, ms, { level })));
}

export function silence(ms: number): Uint8Array {
  return new Uint8Array(ms * 8).fill(0xff);
}

export function decode(bytes: Uint8Array): Float64Array {
  return Float64Array.from(mulaw.decode(bytes), (sample) => sample / 32_768);
}

/** Amplitude of `hz` in `samples` (1 = full scale), edges left out. */
export function amplitudeOf(samples: Float64Array, hz: number, rate = 8_000): number {
  const edge = Math.floor(samples.length / 10);
  let [re, im, count] = [0, 0, 0];
  for (let n = edge; n < samples.length - edge; n++) {
    const window = 1 - Math.cos((2 * Math.PI * (n - edge)) / (samples.length - 2 * edge));
    re += window * (samples[n] ?? 0) * Math.cos((2 * Math.PI * hz * n) / rate);
    im += window * (samples[n] ?? 0) * Math.sin((2 * Math.PI * hz * n) / rate);
    count += window;
  }
  return (2 * Math.hypot(re, im)) / count;
}

export function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}
