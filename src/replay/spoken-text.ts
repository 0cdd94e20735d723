/** Several sentences of one voice as one 24 kHz sound, with a natural pause between them. */
import { sentences } from '../model/rehearsal/sentences.js';
import { fromPcm16 } from '../model/rehearsal/speech-sound.mjs';
import {
  SENTENCE_PAUSE_MS,
  SPEECH_RATE_HZ,
  type SpeechSynthesizer,
  type SpeechVoice,
} from '../model/rehearsal/speech-synthesizer.js';

export async function spokenText(
  synthesizer: SpeechSynthesizer,
  voice: SpeechVoice,
  text: string,
): Promise<Float64Array> {
  const pause = new Float64Array((SPEECH_RATE_HZ * SENTENCE_PAUSE_MS) / 1_000);
  const parts: Float64Array[] = [];
  for (const sentence of sentences(text)) {
    if (parts.length > 0) parts.push(pause);
    parts.push(fromPcm16(await synthesizer.speak(voice, sentence)));
  }
  return joined(parts);
}

/** The parts one after another. */
export function joined(parts: readonly Float64Array[]): Float64Array {
  const whole = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
