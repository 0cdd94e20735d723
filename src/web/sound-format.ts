/**
 * The formats in which a web client and the server exchange sound, and the filters between them and the telephone's mu-law at
 * 8 kHz, in which every conversation is held. All are mono; PCM is 16 bit, little-endian, and may be cut anywhere.
 */
import { AgentDecimator } from '../audio/agent-decimator.js';
import { CallerUpsampler } from '../audio/caller-upsampler.js';
import { kernel, MULAW_SAMPLES } from '../audio/kernel.js';
import { StreamingFir } from '../audio/streaming-fir.js';

/** What `start.audio` may say; the same format holds in both directions. */
export const SOUND_FORMATS = [
  'audio/x-mulaw;rate=8000',
  'audio/pcm;rate=8000',
  'audio/pcm;rate=16000',
  'audio/pcm;rate=24000',
] as const;
export type SoundFormat = (typeof SOUND_FORMATS)[number];

const BYTES_PER_MS: Readonly<Record<SoundFormat, number>> = {
  'audio/x-mulaw;rate=8000': 8,
  'audio/pcm;rate=8000': 16,
  'audio/pcm;rate=16000': 32,
  'audio/pcm;rate=24000': 48,
};

/** A filter's half of a conversation: takes one format, gives another; the result holds until the next use of any. */
export interface SoundFilter {
  push(sound: Uint8Array): Uint8Array;
  /** Forgets what was heard: what follows has nothing to do with it. */
  reset(): void;
  release(): void;
}

/** Reads a format's name, whatever its case and spaces; undefined for one that is not known. */
export function soundFormatOf(name: string): SoundFormat | undefined {
  const plain = name.toLowerCase().replaceAll(' ', '');
  return SOUND_FORMATS.find((format) => format === plain);
}

export function soundMs(format: SoundFormat, byteLength: number): number {
  return byteLength / BYTES_PER_MS[format];
}

/** From the client's sound to mu-law. */
export function inwardFilter(format: SoundFormat): SoundFilter {
  switch (format) {
    case 'audio/x-mulaw;rate=8000':
      return UNCHANGED;
    case 'audio/pcm;rate=8000':
      return new PcmReader((samples) => samples);
    case 'audio/pcm;rate=16000': {
      const fir = StreamingFir.halving();
      return new PcmReader(
        (samples) => fir.push(samples),
        () => fir.reset(),
      );
    }
    case 'audio/pcm;rate=24000':
      return new AgentDecimator();
  }
}

/** From mu-law to the client's sound. */
export function outwardFilter(format: SoundFormat): SoundFilter {
  switch (format) {
    case 'audio/x-mulaw;rate=8000':
      return UNCHANGED;
    case 'audio/pcm;rate=8000':
      return { ...UNCHANGED, push: (mulaw) => bytesOf(decoded(mulaw)) };
    case 'audio/pcm;rate=16000':
      return new CallerUpsampler();
    case 'audio/pcm;rate=24000': {
      const fir = StreamingFir.tripling();
      return {
        push: (mulaw) => bytesOf(fir.push(decoded(mulaw))),
        reset: () => fir.reset(),
        release: () => {},
      };
    }
  }
}

const UNCHANGED: SoundFilter = { push: (sound) => sound, reset: () => {}, release: () => {} };

/** PCM16 to mu-law, through a filter to 8 kHz. */
class PcmReader implements SoundFilter {
  readonly #to8k: (samples: Int16Array) => Int16Array;
  readonly #forget: () => void;
  /** Half a sample that waits for its other half. */
  #half: number | undefined;

  constructor(to8k: (samples: Int16Array) => Int16Array, forget: () => void = () => {}) {
    this.#to8k = to8k;
    this.#forget = forget;
  }

  push(pcm: Uint8Array): Uint8Array {
    return encoded(this.#to8k(this.#samplesOf(pcm)));
  }

  reset(): void {
    this.#half = undefined;
    this.#forget();
  }

  release(): void {
    // Nothing of it is the kernel's.
  }

  #samplesOf(pcm: Uint8Array): Int16Array {
    const bytes = this.#half === undefined ? pcm : Uint8Array.of(this.#half, ...pcm);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#half = bytes.length % 2 === 0 ? undefined : bytes.at(-1);
    return Int16Array.from({ length: bytes.length >> 1 }, (_, index) => view.getInt16(2 * index, true));
  }
}

function decoded(mulaw: Uint8Array): Int16Array {
  return Int16Array.from(mulaw, (code) => MULAW_SAMPLES[code] ?? 0);
}

function encoded(pcm8k: Int16Array): Uint8Array {
  const mulaw = new Uint8Array(pcm8k.length);
  for (let at = 0; at < pcm8k.length; at += kernel.upBlockBytes) {
    mulaw.set(kernel.encodeToMulaw(pcm8k.subarray(at, at + kernel.upBlockBytes)), at);
  }
  return mulaw;
}

/** Little-endian on every machine. */
function bytesOf(samples: Int16Array): Uint8Array {
  const bytes = new Uint8Array(2 * samples.length);
  const view = new DataView(bytes.buffer);
  samples.forEach((sample, index) => view.setInt16(2 * index, sample, true));
  return bytes;
}
