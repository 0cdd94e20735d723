/**
 * Sound files at the edge of the phone: reads what a caller is to say into mu-law at 8 kHz, and writes what was
 * heard as WAV. Every refusal is an AudioError (`sound_file_invalid`) that names the file and what is wrong with it.
 * Container and sample formats are wavefile's work, companding alawmulaw's, the change of rate ours.
 */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { AudioError, errorText } from '../errors.js';
import { CALLER_SOUND_MAX_MS, MULAW_BYTES_PER_MS, MULAW_SILENCE, SOUND_FILE_MAX_BYTES } from '../limits.js';
import { toTelephoneRate } from './caller-resampler.js';

// Both packages are CommonJS without names that an ES module could import.
const require = createRequire(import.meta.url);
const { mulaw } = require('alawmulaw') as typeof import('alawmulaw');
const { WaveFile } = require('wavefile') as typeof import('wavefile');

/** Rates that recordings have; a header that says anything beyond is broken. */
const RATE_MIN_HZ = 4_000;
const RATE_MAX_HZ = 384_000;
/** RIFF's unsigned 32-bit "size not known", written by tools that stream into a pipe. */
const SIZE_UNKNOWN = 0xffff_ffff;
/** WAVE format tags (RFC 2361) and WAVE_FORMAT_EXTENSIBLE's, behind which PCM or float stands. */
const FORMAT_IMA_ADPCM = 0x11;

interface WaveFormat {
  readonly audioFormat: number;
  readonly numChannels: number;
  readonly sampleRate: number;
}

function invalid(name: string, what: string, cause?: unknown): AudioError {
  return new AudioError('sound_file_invalid', `${name}: ${what}`, { cause });
}

function tooLong(name: string): AudioError {
  return invalid(name, `is longer than ${CALLER_SOUND_MAX_MS / 60_000} minutes`);
}

/** Reads a caller file: `.wav`, or headerless mu-law as `.ulaw` or `.raw`. Returns mu-law at 8 kHz. */
export async function readCallerSound(path: string): Promise<Uint8Array> {
  const kind = extname(path).toLowerCase();
  if (kind === '.ndjson' || kind === '.jsonl') {
    throw invalid(path, 'is a call fixture; playing one is not built yet');
  }
  if (kind !== '.wav' && kind !== '.ulaw' && kind !== '.raw') {
    throw invalid(path, 'must be a .wav file, or headerless mu-law at 8 kHz as .ulaw or .raw');
  }
  const bytes = await readBounded(path);
  if (kind === '.wav') return decodeWav(bytes, path);
  if (bytes.length > CALLER_SOUND_MAX_MS * MULAW_BYTES_PER_MS) throw tooLong(path);
  return bytes;
}

async function readBounded(path: string): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    const found = await stat(path);
    if (!found.isFile()) throw invalid(path, 'is not a file');
    if (found.size > SOUND_FILE_MAX_BYTES) {
      throw invalid(path, `is over ${SOUND_FILE_MAX_BYTES / 2 ** 20} MiB; convert it to 8 kHz mono first`);
    }
    bytes = new Uint8Array(await readFile(path));
  } catch (error) {
    if (error instanceof AudioError) throw error;
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw invalid(path, missing ? 'does not exist' : `cannot be read (${errorText(error)})`, error);
  }
  if (bytes.length === 0) throw invalid(path, 'is empty');
  return bytes;
}

/** Decodes a whole WAV file (PCM, float, mu-law, A-law or IMA ADPCM, any channels) to mu-law at 8 kHz mono. */
export function decodeWav(bytes: Uint8Array, name: string): Uint8Array {
  const wav = openWav(bytes, name);
  const format = wav.fmt as WaveFormat;
  if (format.sampleRate < RATE_MIN_HZ || format.sampleRate > RATE_MAX_HZ || format.numChannels < 1) {
    throw invalid(name, `has a broken header (${format.sampleRate} Hz, ${format.numChannels} channels)`);
  }
  // Telephone sound as it is: nothing is gained by decoding and encoding it again.
  const { samples: raw } = wav.data as { samples: Uint8Array };
  const isTelephone = wav.bitDepth === '8m' && format.sampleRate === 8_000 && format.numChannels === 1;
  const sound = isTelephone
    ? new Uint8Array(raw)
    : encode(toTelephoneRate(monoOf(wav, name), format.sampleRate));
  if (sound.length === 0) throw invalid(name, 'holds no sound');
  if (sound.length > CALLER_SOUND_MAX_MS * MULAW_BYTES_PER_MS) throw tooLong(name);
  return sound;
}

function openWav(bytes: Uint8Array, name: string): InstanceType<typeof WaveFile> {
  const wav = new WaveFile();
  try {
    wav.fromBuffer(bytes);
  } catch (error) {
    const isWav = Buffer.from(bytes.subarray(0, 4)).toString('latin1').startsWith('RI');
    throw invalid(name, isWav ? `is a damaged WAV file (${errorText(error)})` : 'is not a WAV file', error);
  }
  const sound = wav.data as { chunkSize: number; samples: Uint8Array };
  if (sound.chunkSize > sound.samples.length && sound.chunkSize !== SIZE_UNKNOWN) {
    const missing = sound.chunkSize - sound.samples.length;
    throw invalid(name, `is truncated: ${missing} of ${sound.chunkSize} bytes of sound are missing`);
  }
  return wav;
}

/** All channels mixed down to one, full scale 1. */
function monoOf(wav: InstanceType<typeof WaveFile>, name: string): Float64Array {
  try {
    if (wav.bitDepth === '8m') wav.fromMuLaw('16');
    else if (wav.bitDepth === '8a') wav.fromALaw('16');
    else if ((wav.fmt as WaveFormat).audioFormat === FORMAT_IMA_ADPCM) wav.fromIMAADPCM('16');
    const channels = (wav.fmt as WaveFormat).numChannels;
    const interleaved = wav.getSamples(true, Float64Array);
    const { scale, offset } = fullScaleOf(wav.bitDepth);
    const mono = new Float64Array(Math.floor(interleaved.length / channels));
    for (let i = 0; i < mono.length; i++) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++) sum += interleaved[i * channels + channel] ?? 0;
      mono[i] = (sum / channels - offset) * scale;
    }
    return mono;
  } catch (error) {
    throw invalid(name, `has a sound format that cannot be read (${errorText(error)})`, error);
  }
}

function fullScaleOf(bitDepth: string): { scale: number; offset: number } {
  if (bitDepth === '32f' || bitDepth === '64') return { scale: 1, offset: 0 };
  const bits = Number.parseInt(bitDepth, 10);
  // Eight-bit PCM is the one unsigned WAV format.
  return { scale: 2 / 2 ** bits, offset: bits === 8 ? 128 : 0 };
}

function encode(samples: Float64Array): Uint8Array {
  const pcm = new Int16Array(samples.length);
  for (let i = 0; i < pcm.length; i++) {
    pcm[i] = Math.max(-32_768, Math.min(32_767, Math.round((samples[i] ?? 0) * 32_768)));
  }
  return mulaw.encode(pcm);
}

/** Writes mu-law as 8 kHz mono PCM16, or two tracks as left and right; the shorter one is padded with silence. */
export async function writeWav(path: string, left: Uint8Array, right?: Uint8Array): Promise<void> {
  const wav = new WaveFile();
  if (right === undefined) {
    wav.fromScratch(1, 8_000, '16', mulaw.decode(left));
  } else {
    const length = Math.max(left.length, right.length);
    const channels = [padded(left, length), padded(right, length)];
    wav.fromScratch(
      2,
      8_000,
      '16',
      channels.map((channel) => mulaw.decode(channel)),
    );
  }
  try {
    await writeFile(path, wav.toBuffer());
  } catch (error) {
    throw invalid(path, `cannot be written (${errorText(error)})`, error);
  }
}

function padded(track: Uint8Array, length: number): Uint8Array {
  const whole = new Uint8Array(length).fill(MULAW_SILENCE);
  whole.set(track);
  return whole;
}
