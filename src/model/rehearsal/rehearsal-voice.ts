/** Which of flite's voices speaks for one of Gemini's: always the same, so that an agent keeps its voice. */
import type { SpeechVoice } from './speech-synthesizer.js';

const DEFAULT_VOICE: SpeechVoice = 'slt';
/** Voices that Google describes, by pitch; every other name is mapped by its letters. */
const KNOWN_VOICES: ReadonlyMap<string, SpeechVoice> = new Map([
  ['kore', 'slt'],
  ['aoede', 'slt'],
  ['leda', 'slt'],
  ['zephyr', 'slt'],
  ['puck', 'rms'],
  ['orus', 'rms'],
  ['charon', 'awb'],
  ['fenrir', 'kal16'],
]);
const OTHER_VOICES: readonly SpeechVoice[] = ['slt', 'rms', 'awb', 'kal16'];

export function rehearsalVoice(voiceName: string | undefined): SpeechVoice {
  if (voiceName === undefined || voiceName.trim() === '') return DEFAULT_VOICE;
  const name = voiceName.trim().toLowerCase();
  let sum = 0;
  for (let i = 0; i < name.length; i += 1) sum += name.charCodeAt(i);
  return KNOWN_VOICES.get(name) ?? OTHER_VOICES[sum % OTHER_VOICES.length] ?? DEFAULT_VOICE;
}
