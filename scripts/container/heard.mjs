/**
 * Fails unless a WAV of `npm run call` (8 kHz, mono, 16 bit) holds at least so many seconds of sound:
 * `heard.mjs FILE SECONDS`. Sound is what is louder than -45 dB of full scale in blocks of 10 ms.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { WaveFile } = createRequire(import.meta.url)('wavefile');

const BLOCK_SAMPLES = 80;
const AUDIBLE = 32_768 * 10 ** (-45 / 20);

const [file, seconds] = process.argv.slice(2);
const samples = new WaveFile(readFileSync(file)).getSamples(false, Int16Array);
let audible = 0;
for (let at = 0; at + BLOCK_SAMPLES <= samples.length; at += BLOCK_SAMPLES) {
  let energy = 0;
  for (let each = at; each < at + BLOCK_SAMPLES; each += 1) energy += samples[each] ** 2;
  if (Math.sqrt(energy / BLOCK_SAMPLES) > AUDIBLE) audible += 0.01;
}
process.stdout.write(
  `the caller heard ${audible.toFixed(1)} s of sound in ${(samples.length / 8000).toFixed(1)} s\n`,
);
if (!(audible >= Number(seconds))) process.exit(1);
