/** A text as the recorded clip of `src/call/prompts` that says it: raw mu-law at line rate, in the agent's voice. */
import { createRequire } from 'node:module';
import { normaliseLevel, toPcm16 } from '../model/rehearsal/speech-sound.mjs';
import type { SpeechSynthesizer } from '../model/rehearsal/speech-synthesizer.js';
import { spokenText } from './spoken-text.js';
import { LINE_RATE_HZ, toLineRate } from './telephone-line.js';

/** A CommonJS package whose types promise named exports. */
const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

/** Level of everything that ships as sound, while it speaks, and the peak that it stays below. */
export const SOUND_LEVEL_DB = -20;
const PEAK_DB = -3.5;

export function levelled(samples: Float64Array, levelDb: number): Float64Array {
  return normaliseLevel(samples, { rateHz: LINE_RATE_HZ, levelDb, peakDb: PEAK_DB });
}

export async function recordedPrompt(synthesizer: SpeechSynthesizer, text: string): Promise<Uint8Array> {
  const spoken = toLineRate(await spokenText(synthesizer, 'slt', text));
  return mulaw.encode(toPcm16(levelled(spoken, SOUND_LEVEL_DB)));
}
