/**
 * Chance that repeats: the rehearsal's uneven chunks and the shipped line noise come out the same way from the same
 * seed. A 32-bit xorshift generator; good enough for sizes and noise, no use for secrets.
 */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    // Spreads neighbouring seeds apart (a Knuth multiplier), and a xorshift state must not be zero.
    this.#state = Math.imul(seed | 0, 0x9e3779b1) || 0x2545f491;
    for (let i = 0; i < 8; i += 1) this.unit();
  }

  /** At least 0, below 1. */
  unit(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) / 0x1_0000_0000;
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.unit() * (most - least + 1));
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.unit() < probability;
  }
}
