/**
 * Sound in which every piece says its number, so that what arrived can be compared with what was sent: three tones at once, each
 * one of eight, are 512 numbers. All of them are whole periods in 20 ms.
 */
import { toPcm16 } from '../replay/tones.js';

/** What is looked at at once. */
const WINDOW_MS = 20;
const TONES = 8;
const STEP_HZ = 100;
const LOWEST_HZ = [400, 1_200, 2_000] as const;
/** Of one tone, as a share of full scale; what is under it is silence. */
const AUDIBLE = 0.0003;

function tonesOf(number: number): number[] {
  return LOWEST_HZ.map((hz, place) => hz + (Math.floor(number / TONES ** place) % TONES) * STEP_HZ);
}

/** Pieces number 0 up to `count`, each so long. `level`: of each tone, as a share of full scale. */
export function numberedSound(
  count: number,
  { pieceMs = WINDOW_MS, rate = 8_000, level = (_number: number): number => 0.2 } = {},
): Int16Array {
  const perPiece = (pieceMs * rate) / 1_000;
  const samples = Float64Array.from({ length: count * perPiece }, (_, at) => {
    const number = Math.floor(at / perPiece);
    const waves = tonesOf(number).map((hz) => Math.sin((2 * Math.PI * hz * at) / rate));
    return level(number) * waves.reduce((sum, wave) => sum + wave, 0);
  });
  return toPcm16(samples);
}

/** Goertzel's: one tone's amplitude, as a share of full scale. */
function amplitude(samples: Int16Array, hz: number, rate: number): number {
  const step = 2 * Math.cos((2 * Math.PI * hz) / rate);
  let [last, before] = [0, 0];
  for (const sample of samples) [last, before] = [sample + step * last - before, last];
  const power = last * last + before * before - step * last * before;
  return (2 * Math.sqrt(Math.max(0, power))) / samples.length / 32_768;
}

/** The number of each window of 20 ms; undefined where it is silent. */
export function numbersIn(samples: Int16Array, rate: number): (number | undefined)[] {
  const size = (WINDOW_MS * rate) / 1_000;
  const numbers: (number | undefined)[] = [];
  for (let at = 0; at + size <= samples.length; at += size)
    numbers.push(numberOf(samples.subarray(at, at + size), rate));
  return numbers;
}

function numberOf(window: Int16Array, rate: number): number | undefined {
  if (window.every((sample) => sample === 0)) return undefined;
  let number = 0;
  for (const [place, lowestHz] of LOWEST_HZ.entries()) {
    const levels = Array.from({ length: TONES }, (_, tone) =>
      amplitude(window, lowestHz + tone * STEP_HZ, rate),
    );
    const loudest = Math.max(...levels);
    if (loudest < AUDIBLE) return undefined;
    number += levels.indexOf(loudest) * TONES ** place;
  }
  return number;
}
