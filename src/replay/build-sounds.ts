/**
 * `npm run build:sounds`: makes the sounds that ship with the server anew, always the same bytes: the recorded
 * prompts that a caller hears when no model speaks, and the voices of the shipped callers. Needed only when a text
 * or the dialogue changes; the results are committed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROMPT_TEXTS } from '../call/prompts.js';
import { systemClock } from '../clock.js';
import { readDialogue } from '../model/rehearsal/dialogue.js';
import { toPcm16 } from '../model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../observe/log.js';
import { callerScripts, callerSound } from './caller-voices.js';
import { levelled, recordedPrompt, SOUND_LEVEL_DB } from './recorded-prompt.js';
import { bandLimited, LINE_RATE_HZ, lineNoise } from './telephone-line.js';

/** A CommonJS package whose types promise named exports. */
const { WaveFile } = createRequire(import.meta.url)('wavefile') as typeof import('wavefile');

/** Both commands that compile this file run it from `dist/replay`, two folders below the project. */
const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

async function buildPrompts(synthesizer: FliteSynthesizer): Promise<void> {
  const folder = join(projectFolder, 'src', 'call', 'prompts');
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(PROMPT_TEXTS)) {
    await writeFile(join(folder, `${name}.ulaw`), await recordedPrompt(synthesizer, text));
  }
}

/** Line noise of a good connection, and of the noisy variants: 15 dB below the caller's speech. */
const QUIET_LINE_DB = -62;
const NOISY_LINE_DB = SOUND_LEVEL_DB - 15;

async function buildCallers(synthesizer: FliteSynthesizer): Promise<void> {
  const folder = join(projectFolder, 'fixtures', 'callers');
  await mkdir(folder, { recursive: true });
  for (const [index, script] of callerScripts(readDialogue()).entries()) {
    const spoken = await callerSound(synthesizer, script);
    const quiet = lineNoise(spoken.length, { levelDb: QUIET_LINE_DB, seed: 100 + index });
    await writeFile(join(folder, `${script.name}.wav`), wavOf(mixed(spoken, quiet)));
    const noise = bandLimited(lineNoise(spoken.length, { levelDb: NOISY_LINE_DB, seed: 200 + index }));
    // The band takes the lowest tones of a voice away, so speech and noise are levelled behind it.
    const noisy = mixed(levelled(bandLimited(spoken), SOUND_LEVEL_DB), levelled(noise, NOISY_LINE_DB));
    await writeFile(join(folder, `${script.name}-noisy.wav`), wavOf(noisy));
  }
}

function mixed(one: Float64Array, other: Float64Array): Float64Array {
  return one.map((sample, n) => sample + (other[n] ?? 0));
}

function wavOf(samples: Float64Array): Uint8Array {
  const wav = new WaveFile();
  wav.fromScratch(1, LINE_RATE_HZ, '16', toPcm16(samples));
  return wav.toBuffer();
}

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
try {
  await buildPrompts(synthesizer);
  await buildCallers(synthesizer);
} finally {
  await synthesizer.close();
}
