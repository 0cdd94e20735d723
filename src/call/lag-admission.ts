/**
 * Admission by event-loop lag: a loop that runs late makes every caller's sound late, so that no further call is taken
 * until it has been on time again for a while. One late moment is no reason: the playout's lead rides it out.
 */
import type { Clock, Timer } from '../clock.js';
import { LAG_CALM_SAMPLES, LAG_FULL_MS, LAG_FULL_SAMPLES, LAG_ROOM_MS, LAG_SAMPLE_MS } from '../limits.js';

export class LagAdmission {
  readonly #clock: Clock;
  readonly #lagMs: () => number;
  readonly #sample = (): void => this.#look();
  #timer: Timer | undefined;
  #full = false;
  #calmSamples = 0;
  #lateSamples = 0;

  /** `lagMs` gives the 99th percentile since it was last asked. */
  constructor(options: { clock: Clock; lagMs: () => number }) {
    this.#clock = options.clock;
    this.#lagMs = options.lagMs;
    this.#timer = this.#clock.setTimer(LAG_SAMPLE_MS, this.#sample);
  }

  get isFull(): boolean {
    return this.#full;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = this.#clock.setTimer(LAG_SAMPLE_MS, this.#sample);
    const lagMs = this.#lagMs();
    this.#calmSamples = lagMs < LAG_ROOM_MS ? this.#calmSamples + 1 : 0;
    this.#lateSamples = lagMs > LAG_FULL_MS ? this.#lateSamples + 1 : 0;
    if (this.#lateSamples >= LAG_FULL_SAMPLES) this.#full = true;
    else if (this.#calmSamples >= LAG_CALM_SAMPLES) this.#full = false;
  }
}
