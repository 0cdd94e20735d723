/**
 * The noise of an office behind a caller, made and not recorded: ventilation, colleagues who talk some desks away, and
 * somebody typing. Voices are flite's, everything else is arithmetic on a seed, so the same seed gives the same noise
 * and nothing in it has another licence than the project's and flite's own.
 */
import { lowPassTaps } from '../model/rehearsal/speech-sound.mjs';
import { SeededRandom } from '../model/rehearsal/seeded-random.js';
import type { SpeechSynthesizer, SpeechVoice } from '../model/rehearsal/speech-synthesizer.js';
import { spokenText } from './spoken-text.js';
import { bandLimited, LINE_RATE_HZ, toLineRate } from './telephone-line.js';

/** Shares of the noise's power. Ventilation is the floor; the murmur makes it uneven, as speech does. */
const VENTILATION_SHARE = 0.5;
const MURMUR_SHARE = 0.4;
const KEYS_SHARE = 0.1;

/** Three talkers of two sexes: enough that no word is understood, few enough that the level moves. */
const COLLEAGUES: readonly SpeechVoice[] = ['rms', 'slt', 'awb'];
const COLLEAGUES_SAY = [
  'Did you send the figures to the warehouse this morning',
  'I think the meeting was moved to half past two',
  'They asked for another copy of the delivery note',
  'Let us wait and see what the supplier answers',
] as const;
/** Pause of one talker between two sentences. */
const TALK_PAUSE_MS = { least: 200, most: 1_200 };
/** Screens and furniture take the top of a distant voice away, */
const DISTANCE_HZ = 1_200;
const DISTANCE_HALF_TAPS = 24;
/** and the room smears it: reflections of random sign that decay by 60 dB in this time. */
const ROOM_DECAY_MS = 400;
const ROOM_REFLECTIONS = 60;
const ROOM_LENGTH_MS = 150;

/** Corner of the one-pole low-pass that makes white noise into the rush of air. */
const VENTILATION_HZ = 400;

/** A run of keys, then a pause to think. */
const KEYS_IN_RUN = { least: 3, most: 14 };
const KEY_INTERVAL_MS = { least: 90, most: 220 };
const TYPING_PAUSE_MS = { least: 300, most: 2_000 };
/** The key's return is softer than its stroke. */
const KEY_RELEASE_MS = { least: 55, most: 90 };
const KEY_RELEASE_GAIN = 0.4;
/** A stroke rings at one of the case's resonances and dies away by e in this time. */
const KEY_RING_HZ = { least: 1_200, most: 3_000 };
const KEY_DECAY_MS = 3;
const KEY_LENGTH_MS = 20;

/** Office noise at line rate in the telephone band, whose RMS over its whole length is `levelDb` of full scale. */
export async function officeNoise(
  synthesizer: SpeechSynthesizer,
  length: number,
  { levelDb, seed }: { readonly levelDb: number; readonly seed: number },
): Promise<Float64Array> {
  const random = new SeededRandom(seed);
  const parts = [
    { share: VENTILATION_SHARE, sound: bandLimited(ventilation(length, random)) },
    { share: MURMUR_SHARE, sound: bandLimited(inRoom(await murmur(synthesizer, length, random), random)) },
    { share: KEYS_SHARE, sound: bandLimited(keys(length, random)) },
  ];
  const noise = new Float64Array(length);
  for (const { share, sound } of parts) {
    const gain = Math.sqrt(share) / rmsOf(sound);
    for (let n = 0; n < length; n += 1) noise[n] = (noise[n] ?? 0) + gain * (sound[n] ?? 0);
  }
  const gain = 10 ** (levelDb / 20) / rmsOf(noise);
  return noise.map((sample) => gain * sample);
}

function rmsOf(samples: Float64Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

function samplesIn(ms: number): number {
  return Math.round((LINE_RATE_HZ * ms) / 1_000);
}

function drawn(random: SeededRandom, { least, most }: { least: number; most: number }): number {
  return random.between(least, most);
}

function ventilation(length: number, random: SeededRandom): Float64Array {
  const kept = Math.exp((-2 * Math.PI * VENTILATION_HZ) / LINE_RATE_HZ);
  let air = 0;
  return Float64Array.from({ length }, () => (air = kept * air + (1 - kept) * (2 * random.unit() - 1)));
}

/** Everybody talks on and on, each from somewhere before the beginning. */
async function murmur(
  synthesizer: SpeechSynthesizer,
  length: number,
  random: SeededRandom,
): Promise<Float64Array> {
  const sum = new Float64Array(length);
  for (const voice of COLLEAGUES) {
    let at = -samplesIn(random.between(0, 2_000));
    while (at < length) {
      const text = COLLEAGUES_SAY[random.between(0, COLLEAGUES_SAY.length - 1)] ?? COLLEAGUES_SAY[0];
      const sentence = toLineRate(await spokenText(synthesizer, voice, text));
      for (let n = Math.max(0, -at); n < sentence.length && at + n < length; n += 1) {
        sum[at + n] = (sum[at + n] ?? 0) + (sentence[n] ?? 0);
      }
      at += sentence.length + samplesIn(drawn(random, TALK_PAUSE_MS));
    }
  }
  return sum;
}

/** As it arrives across the room: without its top, and as many late echoes. */
function inRoom(sound: Float64Array, random: SeededRandom): Float64Array {
  const taps = lowPassTaps(DISTANCE_HZ / LINE_RATE_HZ, DISTANCE_HALF_TAPS, 1);
  const dull = sound.map((_, n) => {
    let sum = 0;
    for (let i = 0; i < taps.length; i += 1) sum += (taps[i] ?? 0) * (sound[n + DISTANCE_HALF_TAPS - i] ?? 0);
    return sum;
  });
  const heard = Float64Array.from(dull);
  for (let reflection = 0; reflection < ROOM_REFLECTIONS; reflection += 1) {
    const late = random.between(1, samplesIn(ROOM_LENGTH_MS));
    const decayed = 10 ** ((-3 * late) / samplesIn(ROOM_DECAY_MS));
    const gain = random.chance(0.5) ? decayed : -decayed;
    for (let n = late; n < heard.length; n += 1) heard[n] = (heard[n] ?? 0) + gain * (dull[n - late] ?? 0);
  }
  return heard;
}

function keys(length: number, random: SeededRandom): Float64Array {
  const sound = new Float64Array(length);
  let at = 0;
  while (at < length) {
    for (let key = drawn(random, KEYS_IN_RUN); key > 0; key -= 1) {
      addStroke(sound, at, 1, random);
      addStroke(sound, at + samplesIn(drawn(random, KEY_RELEASE_MS)), KEY_RELEASE_GAIN, random);
      at += samplesIn(drawn(random, KEY_INTERVAL_MS));
    }
    at += samplesIn(drawn(random, TYPING_PAUSE_MS));
  }
  return sound;
}

function addStroke(sound: Float64Array, at: number, gain: number, random: SeededRandom): void {
  const ringHz = drawn(random, KEY_RING_HZ);
  const level = gain * (0.5 + random.unit());
  for (let n = 0; n < samplesIn(KEY_LENGTH_MS) && at + n < sound.length; n += 1) {
    const decay = Math.exp((-1_000 * n) / (KEY_DECAY_MS * LINE_RATE_HZ));
    const ring = Math.sin((2 * Math.PI * ringHz * n) / LINE_RATE_HZ) + (2 * random.unit() - 1);
    sound[at + n] = (sound[at + n] ?? 0) + level * decay * ring;
  }
}
