/** The shipped callers for the sound tests: each voice in each variant, and where its speech is. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SPEECH_VOICES, type SpeechVoice } from '../../src/model/rehearsal/speech-synthesizer.js';
import { readCallerSound } from '../../src/replay/sound-file.js';

const folder = fileURLToPath(new URL('../../fixtures/callers/', import.meta.url));

export const VARIANTS = ['clean', 'office-20db', 'office-10db'] as const;
export type Variant = (typeof VARIANTS)[number];

export const VOICE_VARIANTS = SPEECH_VOICES.flatMap((voice) =>
  VARIANTS.map((variant) => ({ voice, variant, name: `${voice}-${variant}` })),
);

/** Mu-law of one voice. */
export function readVoice(voice: SpeechVoice, variant: Variant): Promise<Uint8Array> {
  return readCallerSound(`${folder}voices/${voice}-${variant}.wav`);
}

/** Names of the callers who talk with the rehearsal model. */
export const CONVERSATION_CALLERS = readdirSync(folder)
  .filter((name) => name.endsWith('.wav'))
  .map((name) => name.slice(0, -'.wav'.length));

export function readConversation(name: string): Promise<Uint8Array> {
  return readCallerSound(`${folder}${name}.wav`);
}
