/**
 * `npm run build:sounds`: makes the sounds that ship with the server anew, always the same bytes: the recorded
 * prompts that a caller hears when no model speaks, and the voices of the shipped callers. Needed only when a text
 * or the dialogue changes; the results are committed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../clock.js';
import { toPcm16, normaliseLevel } from '../model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../observe/log.js';
import { RECORDED_PROMPTS } from './recorded-prompts.js';
import { spokenText } from './spoken-text.js';
import { LINE_RATE_HZ, toLineRate } from './telephone-line.js';

/** A CommonJS package whose types promise named exports. */
const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

/** Both commands that compile this file run it from `dist/replay`, two folders below the project. */
const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

const LEVEL_DB = -20;
const PEAK_DB = -3.5;

async function buildPrompts(synthesizer: FliteSynthesizer): Promise<void> {
  const folder = join(projectFolder, 'src', 'call', 'prompts');
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(RECORDED_PROMPTS)) {
    const spoken = toLineRate(await spokenText(synthesizer, 'slt', text));
    const levelled = normaliseLevel(spoken, { rateHz: LINE_RATE_HZ, levelDb: LEVEL_DB, peakDb: PEAK_DB });
    await writeFile(join(folder, `${name}.ulaw`), mulaw.encode(toPcm16(levelled)));
  }
}

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
try {
  await buildPrompts(synthesizer);
} finally {
  await synthesizer.close();
}
