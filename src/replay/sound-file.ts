/**
 * Sound files at the edge of the phone: reads what a caller is to say into mu-law at 8 kHz, and writes what was
 * heard as WAV. Every refusal is an AudioError (`sound_file_invalid`) that names the file and what is wrong with it.
 * Container and sample formats are wavefile's work, companding alawmulaw's, the change of rate ours.
 */
import { constants } from 'node:fs';
import { access, readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname } from 'node:path';
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
/** WAVE format tags (RFC 2361): the formats that are read, and the tag behind which one of them stands. */
const READABLE_FORMATS: Readonly<Record<number, string>> = { 1: 'PCM', 3: 'float', 6: 'A-law', 7: 'mu-law' };
const FORMAT_EXTENSIBLE = 0xff_fe;

interface WaveFormat {
  readonly audioFormat: number;
  readonly numChannels: number;
  readonly sampleRate: number;
  readonly bitsPerSample: number;
  /** The format behind FORMAT_EXTENSIBLE, first of four words. */
  readonly subformat: readonly number[];
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
    throw invalid(path, 'is a call fixture, not a sound');
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

/** Decodes a whole WAV file (PCM, float, mu-law or A-law, any channels) to mu-law at 8 kHz mono. */
export function decodeWav(bytes: Uint8Array, name: string): Uint8Array {
  const wav = openWav(bytes, name);
  // A copy: wavefile empties the object when it converts.
  const format = { ...(wav.fmt as WaveFormat) };
  const { numChannels, sampleRate, bitsPerSample } = format;
  if (sampleRate < RATE_MIN_HZ || sampleRate > RATE_MAX_HZ || numChannels < 1 || bitsPerSample < 1) {
    throw invalid(
      name,
      `has a broken header (${sampleRate} Hz, ${numChannels} channels, ${bitsPerSample} bits)`,
    );
  }
  const { samples: raw } = wav.data as { samples: Uint8Array };
  const soundMs = (raw.length * 8_000) / (numChannels * bitsPerSample * sampleRate);
  if (soundMs > CALLER_SOUND_MAX_MS) throw tooLong(name);
  // Telephone sound as it is: nothing is gained by decoding and encoding it again.
  const isTelephone = wav.bitDepth === '8m' && sampleRate === 8_000 && numChannels === 1;
  const sound = isTelephone ? new Uint8Array(raw) : encode(toTelephoneRate(monoOf(wav, name), sampleRate));
  if (sound.length === 0) throw invalid(name, 'holds no sound');
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
  return withPlainFormat(wav, name);
}

/** wavefile takes every extensible format for PCM; one that is not is read again under its own tag. */
function withPlainFormat(wav: InstanceType<typeof WaveFile>, name: string): InstanceType<typeof WaveFile> {
  const { audioFormat, subformat } = wav.fmt as WaveFormat;
  const format = audioFormat === FORMAT_EXTENSIBLE ? (subformat[0] ?? 0) : audioFormat;
  if (READABLE_FORMATS[format] === undefined) {
    const readable = Object.values(READABLE_FORMATS).join(', ');
    throw invalid(name, `holds sound in a format that is not read (tag ${format}; read are ${readable})`);
  }
  if (format === audioFormat || format === 1) return wav;
  Object.assign(wav.fmt, { audioFormat: format });
  const plain = new WaveFile();
  plain.fromBuffer(wav.toBuffer());
  return plain;
}

/** All channels mixed down to one, full scale 1. */
function monoOf(wav: InstanceType<typeof WaveFile>, name: string): Float64Array {
  try {
    if (wav.bitDepth === '8m') wav.fromMuLaw('16');
    else if (wav.bitDepth === '8a') wav.fromALaw('16');
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

/** Throws now what `writeWav` would throw after a whole call, where the place is known to be no good. */
export async function checkWritable(path: string): Promise<void> {
  const place = await stat(path).then(
    (found) => (found.isFile() ? path : undefined),
    () => dirname(path),
  );
  try {
    if (place === undefined) throw new Error('it is not a file');
    await access(place, constants.W_OK);
  } catch (error) {
    throw invalid(path, `cannot be written (${errorText(error)})`, error);
  }
}

function padded(track: Uint8Array, length: number): Uint8Array {
  const whole = new Uint8Array(length).fill(MULAW_SILENCE);
  whole.set(track);
  return whole;
}
