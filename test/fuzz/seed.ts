/**
 * Where the chance of the fuzz tests comes from. By default every run is the same; the environment varies it:
 * FUZZ_SEED (a whole number, or `random`), FUZZ_EFFORT (times as many runs), FUZZ_PATH (with the path that fast-check printed
 * beside its seed, and one test chosen by `-t`: only the failing case).
 */
import type { Parameters } from 'fast-check';

const DEFAULT_SEED = 20_260_101;

function readSeed(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_SEED;
  const seed = text === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(text);
  if (!Number.isInteger(seed)) throw new Error('FUZZ_SEED is a whole number, or random');
  return seed;
}

function readEffort(text: string | undefined): number {
  const effort = Number(text ?? 1);
  if (!(effort > 0)) throw new Error('FUZZ_EFFORT is a number above 0');
  return effort;
}

export const FUZZ_SEED = readSeed(process.env['FUZZ_SEED']);
const FUZZ_EFFORT = readEffort(process.env['FUZZ_EFFORT']);
const FUZZ_PATH = process.env['FUZZ_PATH'] ?? '';

/** For `fc.assert`; `runs` is the number in CI. */
export function fuzzed<T = unknown>(runs: number): Parameters<T> {
  const numRuns = Math.ceil(runs * FUZZ_EFFORT);
  return { seed: FUZZ_SEED, numRuns, ...(FUZZ_PATH === '' ? {} : { path: FUZZ_PATH, endOnFailure: true }) };
}

/** How often something must have come up in all runs of a test, so that it tests what it says; `share` of the runs in CI. */
export function fuzzedAtLeast(share: number): number {
  return FUZZ_PATH === '' ? share * FUZZ_EFFORT : 0;
}

/** So many, times FUZZ_EFFORT. */
export function fuzzCount(count: number): number {
  return Math.ceil(count * FUZZ_EFFORT);
}

/** Runs something that draws from `Chance`, and tells how to run it again when it fails. */
export async function withSeedOnFailure(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new Error(`failed with FUZZ_SEED=${FUZZ_SEED}: ${(error as Error).message}`, { cause: error });
  }
}

/** A stream of numbers that a seed decides (mulberry32), much faster than an arbitrary of fast-check. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** 0 to 2^32 - 1. */
  word(): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return this.word() % bound;
  }

  /** True once in `odds` times. */
  once(odds: number): boolean {
    return this.below(odds) === 0;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; at += 4) {
      const word = this.word();
      bytes[at] = word;
      bytes[at + 1] = word >>> 8;
      bytes[at + 2] = word >>> 16;
      bytes[at + 3] = word >>> 24;
    }
    return bytes;
  }
}
