/**
 * `npm run build:sounds`: writes every sound that ships with the server anew, always the same bytes. Needed only when a
 * text, the dialogue or the making of the sounds changes; the results are committed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../clock.js';
import { FliteSynthesizer } from '../model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../observe/log.js';
import { shippedSounds, SOUND_FOLDERS } from './shipped-sounds.js';

/** Both commands that compile this file run it from `dist/replay`, two folders below the project. */
const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
try {
  for (const folder of SOUND_FOLDERS) await mkdir(join(projectFolder, folder), { recursive: true });
  for await (const { path, bytes } of shippedSounds(synthesizer)) {
    await writeFile(join(projectFolder, path), bytes);
  }
} finally {
  await synthesizer.close();
}
