/**
 * What a second of a telephone line sounds like, by its energy alone. Speech comes in syllables: within a second it is loud and
 * quiet. A noise is as loud all the time. Nothing here knows a word from a cough.
 */

export type CallerSound = 'silent' | 'speaking' | 'noisy';

/** Of a frame's mean power against full scale: a quiet room stays below it on a telephone line. */
const SILENT_BELOW_DB = -50;
/** Between the loud and the quiet frames of speech; of noise it is less. */
const SYLLABLES_FROM_DB = 9;

/** `frames` are 20 ms of PCM16 little-endian each. Undefined for none at all. */
export function callerSound(frames: readonly Uint8Array[]): CallerSound | undefined {
  const levels = frames.map(levelDb).toSorted((a, b) => a - b);
  const quiet = levels[Math.floor(levels.length * 0.1)];
  const loud = levels[Math.floor(levels.length * 0.9)];
  if (quiet === undefined || loud === undefined) return undefined;
  if (loud < SILENT_BELOW_DB) return 'silent';
  return loud - quiet < SYLLABLES_FROM_DB ? 'noisy' : 'speaking';
}

function levelDb(frame: Uint8Array): number {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const samples = Math.floor(frame.byteLength / 2);
  let sum = 0;
  for (let at = 0; at < samples; at += 1) sum += (view.getInt16(2 * at, true) / 32_768) ** 2;
  return 10 * Math.log10(sum / Math.max(1, samples) + 1e-10);
}
