/** Types of spoken-call.mjs for the tests that use it. */
type DesignLowpass = (typeof import('../src/audio/kaiser-lowpass.js'))['designLowpass'];

export interface SpokenCall {
  readonly samples: number[];
  readonly speech: boolean[];
}

interface Speakers {
  readonly voices: readonly string[];
  readonly sentences: readonly string[];
  readonly designLowpass: DesignLowpass;
}

export const VOICES: readonly string[];
export const SENTENCES: readonly string[];
export function seededRandom(seed: number): () => number;
export function spokenCall(speakers: Speakers): Promise<SpokenCall>;
export function whiteNoise(count: number): number[];
export function babble(options: Speakers & { readonly count: number }): Promise<number[]>;
export function withNoise(options: {
  readonly call: SpokenCall;
  readonly noise: readonly number[];
  readonly snrDb: number;
}): number[];
export function toInt16(samples: readonly number[]): Int16Array;
export function compare(
  verdicts: readonly boolean[],
  speech: readonly boolean[],
): { readonly recall: number; readonly falseAlarms: number; readonly endErrorMs: number };
