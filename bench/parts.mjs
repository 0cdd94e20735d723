/**
 * What a 20 ms frame costs in the sound path, beside the alternatives: alawmulaw's own codec, and the same filters as
 * plain JavaScript. One JSON object a line, then a table: microseconds a frame, median and p95 over batches.
 * `node scripts/build.mjs && node bench/parts.mjs`
 */
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { AgentDecimator } from '../dist/audio/agent-decimator.js';
import { CallerGaps } from '../dist/audio/caller-gaps.js';
import { CallerUpsampler } from '../dist/audio/caller-upsampler.js';
import { designLowpass } from '../dist/audio/kaiser-lowpass.js';
import { VoiceActivity } from '../dist/audio/voice-activity.js';
import { seededRandom } from './spoken-call.mjs';

const { mulaw } = createRequire(import.meta.url)('alawmulaw');

/** Batches are of one length in time, so that being interrupted is as likely in each. */
const BATCH_MS = 0.25;
const BATCHES = 300;
const WARM_UP_FRAMES = 3_000;

const random = seededRandom(1);
/** A few seconds of noise that rises and falls like speech, so that tables and branches see more than one frame. */
const sound24k = Int16Array.from(
  { length: 100 * 480 },
  (_, i) => 16_000 * (random() - 0.5) * (0.5 + 0.5 * Math.sin(i / 4_000)),
);
const frames24k = Array.from({ length: 100 }, (_, frame) =>
  Buffer.from(sound24k.slice(480 * frame, 480 * (frame + 1)).buffer),
);
const frames8k = Array.from({ length: 100 }, (_, frame) => sound24k.slice(160 * frame, 160 * (frame + 1)));
const framesMulaw = frames8k.map((samples) => mulaw.encode(samples));

/** The interpolator as one would write it in JavaScript: 63 taps, of which each output needs 32 or 31. */
function plainUpsampler() {
  const weights = designLowpass({ taps: 63, sampleRateHz: 16_000, cutoffHz: 4_000, beta: 7 });
  const samples = new Float64Array(31 + 160);
  const out = new Int16Array(320);
  return (codes) => {
    samples.copyWithin(0, 160);
    samples.set(mulaw.decode(codes), 31);
    for (let i = 0; i < 320; i++) {
      const newest = 31 + (i >> 1);
      let sum = 0;
      for (let tap = i & 1, at = newest; tap < 63; tap += 2, at--) sum += weights[tap] * samples[at];
      out[i] = Math.max(-32_768, Math.min(32_767, Math.round(2 * sum)));
    }
    return out;
  };
}

/** The decimator in JavaScript: 96 taps. */
function plainDecimator() {
  const weights = designLowpass({ taps: 96, sampleRateHz: 24_000, cutoffHz: 3_900, beta: 7 });
  const samples = new Float64Array(95 + 480);
  const out = new Int16Array(160);
  return (bytes) => {
    samples.copyWithin(0, 480);
    samples.set(new Int16Array(bytes.buffer, bytes.byteOffset, 480), 95);
    for (let m = 0; m < 160; m++) {
      let sum = 0;
      for (let tap = 0; tap < 96; tap++) sum += weights[tap] * samples[3 * m + 95 - tap];
      out[m] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
    }
    return mulaw.encode(out);
  };
}

const upsampler = new CallerUpsampler();
const decimator = new AgentDecimator();
const voice = new VoiceActivity();
const gaps = new CallerGaps();
let timestampMs = 0;

const parts = [
  ['caller: mu-law 8 kHz to PCM16 16 kHz', 'ours', framesMulaw, (codes) => upsampler.push(codes)],
  ['caller: mu-law 8 kHz to PCM16 16 kHz', 'alawmulaw, plain JavaScript', framesMulaw, plainUpsampler()],
  ['agent: PCM16 24 kHz to mu-law 8 kHz', 'ours', frames24k, (bytes) => decimator.push(bytes)],
  ['agent: PCM16 24 kHz to mu-law 8 kHz', 'plain JavaScript, alawmulaw', frames24k, plainDecimator()],
  ['agent: PCM16 24 kHz to PCM16 8 kHz', 'ours', frames24k, (bytes) => decimator.pushToPcm16(bytes)],
  ['codec alone: decode 160 codes', 'alawmulaw', framesMulaw, (codes) => mulaw.decode(codes)],
  ['codec alone: encode 160 samples', 'alawmulaw', frames8k, (samples) => mulaw.encode(samples)],
  ['caller: voice activity', 'ours', framesMulaw, (codes) => voice.push(codes)],
  [
    'caller: gaps',
    'ours',
    framesMulaw,
    (codes) => gaps.onFrame((timestampMs += 20), codes.length, timestampMs),
  ],
];

function measure(frames, run) {
  for (let i = 0; i < WARM_UP_FRAMES; i++) run(frames[i % frames.length]);
  const timeOf = (count) => {
    const startedAtMs = performance.now();
    for (let i = 0; i < count; i++) run(frames[i % frames.length]);
    return (performance.now() - startedAtMs) / count;
  };
  const frameMs = Math.min(...Array.from({ length: 20 }, () => timeOf(50)));
  const batchFrames = Math.max(1, Math.round(BATCH_MS / frameMs));
  const micros = Array.from({ length: BATCHES }, () => 1_000 * timeOf(batchFrames)).sort((a, b) => a - b);
  const at = (share) => Number(micros[Math.floor(share * (BATCHES - 1))].toFixed(3));
  return { medianMicros: at(0.5), p95Micros: at(0.95) };
}

console.log(JSON.stringify({ bench: 'parts', node: process.version, cpu: cpus()[0].model }));
const table = parts.map(([part, by, frames, run]) => {
  const { medianMicros, p95Micros } = measure(frames, run);
  const row = { part, by, medianMicros, p95Micros };
  console.log(JSON.stringify({ bench: 'parts', ...row }));
  return row;
});
console.table(table);
