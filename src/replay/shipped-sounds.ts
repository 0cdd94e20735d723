/**
 * Every sound that ships with the server, as the file it is: the recorded prompts that a caller hears when no model
 * speaks, the callers who talk with the rehearsal model, and each voice alone. All are made from texts, voices inside
 * flite, arithmetic and seeds; the same code gives the same bytes. `npm run build:sounds` writes them, a test compares
 * them with what is committed.
 */
import { createRequire } from 'node:module';
import { PROMPT_TEXTS } from '../call/prompts.js';
import { readDialogue } from '../model/rehearsal/dialogue.js';
import { toPcm16 } from '../model/rehearsal/speech-sound.mjs';
import type { SpeechSynthesizer } from '../model/rehearsal/speech-synthesizer.js';
import { callerScripts, callerSound } from './caller-voices.js';
import { levelled, recordedPrompt, SOUND_LEVEL_DB } from './recorded-prompt.js';
import { bandLimited, LINE_RATE_HZ, lineNoise } from './telephone-line.js';
import { voiceSamples } from './voice-sample.js';

/** A CommonJS package whose types promise named exports. */
const { WaveFile } = createRequire(import.meta.url)('wavefile') as typeof import('wavefile');

export interface ShippedSound {
  /** From the project's folder, with forward slashes. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The folders that hold shipped sounds and no other sound. */
export const SOUND_FOLDERS = ['src/call/prompts', 'fixtures/callers', 'fixtures/callers/voices'] as const;
const [PROMPTS, CALLERS, VOICES] = SOUND_FOLDERS;

/** Line noise of a good connection, and of the noisy variants: 15 dB below the caller's speech. */
const QUIET_LINE_DB = -62;
const NOISY_LINE_DB = SOUND_LEVEL_DB - 15;

export async function* shippedSounds(synthesizer: SpeechSynthesizer): AsyncGenerator<ShippedSound> {
  for (const [name, text] of Object.entries(PROMPT_TEXTS)) {
    yield { path: `${PROMPTS}/${name}.ulaw`, bytes: await recordedPrompt(synthesizer, text) };
  }
  yield* callers(synthesizer);
  for await (const { name, mulaw } of voiceSamples(synthesizer)) {
    yield { path: `${VOICES}/${name}.wav`, bytes: wavOf('8m', mulaw) };
  }
}

async function* callers(synthesizer: SpeechSynthesizer): AsyncGenerator<ShippedSound> {
  for (const [index, script] of callerScripts(readDialogue()).entries()) {
    const spoken = await callerSound(synthesizer, script);
    const quiet = lineNoise(spoken.length, { levelDb: QUIET_LINE_DB, seed: 100 + index });
    yield { path: `${CALLERS}/${script.name}.wav`, bytes: wavOf('16', toPcm16(mixed(spoken, quiet))) };
    const noise = bandLimited(lineNoise(spoken.length, { levelDb: NOISY_LINE_DB, seed: 200 + index }));
    // The band takes the lowest tones of a voice away, so speech and noise are levelled behind it.
    const noisy = mixed(levelled(bandLimited(spoken), SOUND_LEVEL_DB), levelled(noise, NOISY_LINE_DB));
    yield { path: `${CALLERS}/${script.name}-noisy.wav`, bytes: wavOf('16', toPcm16(noisy)) };
  }
}

function mixed(one: Float64Array, other: Float64Array): Float64Array {
  return one.map((sample, n) => sample + (other[n] ?? 0));
}

/** Mono at line rate: mu-law where the bytes are what a line would carry, PCM16 where they are still to be sent. */
function wavOf(bitDepth: '8m' | '16', samples: Uint8Array | Int16Array): Uint8Array {
  const wav = new WaveFile();
  wav.fromScratch(1, LINE_RATE_HZ, bitDepth, samples);
  return wav.toBuffer();
}
