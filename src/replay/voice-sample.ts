/**
 * A short caller in each of flite's voices as a telephone line carries it: the same three sentences, first alone, then
 * in front of an office. They are for tests of the sound itself: all variants of a voice hold the same speech at the
 * same place and level, and the pauses of the clean one are digital silence, so it tells where speech is in the others.
 */
import { createRequire } from 'node:module';
import { activeLevelDb, toPcm16 } from '../model/rehearsal/speech-sound.mjs';
import {
  SPEECH_VOICES,
  type SpeechSynthesizer,
  type SpeechVoice,
} from '../model/rehearsal/speech-synthesizer.js';
import { officeNoise } from './office-noise.js';
import { levelled, SOUND_LEVEL_DB } from './recorded-prompt.js';
import { joined, spokenText } from './spoken-text.js';
import { bandLimited, LINE_RATE_HZ, toLineRate } from './telephone-line.js';

/** A CommonJS package whose types promise named exports. */
const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

export const VOICE_SAMPLE_TEXTS = [
  'Hello, I have a question about my order',
  'The number is A one zero two nine three',
  'Yes please',
] as const;

/** Active speech level over the noise's RMS, both in the telephone band. */
export const OFFICE_SNRS_DB = [20, 10] as const;

/** Before, between and behind the sentences: a detector learns the floor, and each sentence is a turn of its own. */
const PAUSE_MS = 1_200;
/** The noise begins and ends with the file, which is cut to whole frames. */
const FRAME_SAMPLES = LINE_RATE_HZ / 50;

export interface VoiceSample {
  /** `slt-clean`, `slt-office-20db`. */
  readonly name: string;
  readonly voice: SpeechVoice;
  /** Undefined for the clean one. */
  readonly snrDb: number | undefined;
  readonly mulaw: Uint8Array;
}

/** All voices in all variants. */
export async function* voiceSamples(synthesizer: SpeechSynthesizer): AsyncGenerator<VoiceSample> {
  for (const [index, voice] of SPEECH_VOICES.entries()) {
    const speech = levelled(bandLimited(await spokenSample(synthesizer, voice)), SOUND_LEVEL_DB);
    yield { name: `${voice}-clean`, voice, snrDb: undefined, mulaw: mulaw.encode(toPcm16(speech)) };
    // Where a peak holds the speech below its level, the noise follows.
    const levelDb = activeLevelDb(speech, LINE_RATE_HZ);
    const noise = await officeNoise(synthesizer, speech.length, { levelDb, seed: 300 + index });
    for (const snrDb of OFFICE_SNRS_DB) {
      const gain = 10 ** (-snrDb / 20);
      const mixed = speech.map((sample, n) => sample + gain * (noise[n] ?? 0));
      yield { name: `${voice}-office-${snrDb}db`, voice, snrDb, mulaw: mulaw.encode(toPcm16(mixed)) };
    }
  }
}

async function spokenSample(synthesizer: SpeechSynthesizer, voice: SpeechVoice): Promise<Float64Array> {
  const pause = new Float64Array((LINE_RATE_HZ * PAUSE_MS) / 1_000);
  const parts: Float64Array[] = [pause];
  for (const text of VOICE_SAMPLE_TEXTS) {
    parts.push(toLineRate(await spokenText(synthesizer, voice, text)), pause);
  }
  const whole = joined(parts);
  return whole.subarray(0, whole.length - (whole.length % FRAME_SAMPLES));
}
