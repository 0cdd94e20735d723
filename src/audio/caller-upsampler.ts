/**
 * Stands between the carrier's mu-law at 8 kHz and the model's PCM16 at 16 kHz, one instance a call. Decodes exactly and
 * interpolates with a linear-phase filter that keeps the images of speech 60 dB down, 1.94 ms late. The result does
 * not depend on how the input was cut.
 */
import assert from 'node:assert/strict';
import { kernel } from './kernel.js';

const RELEASED = 0;

export class CallerUpsampler {
  #slot = kernel.takeUpSlot();

  /**
   * Takes mu-law of any length, which it does not keep, and returns four bytes for each: PCM16 at 16 kHz, little-endian.
   * The result is a view, valid until the next push of any filter of this thread or the making of a new one.
   * Must not be called after `release`.
   */
  push(mulaw: Uint8Array): Buffer {
    if (this.#slot === RELEASED) assert.fail('an upsampler is not used after its release');
    if (mulaw.length <= kernel.upBlockBytes) return kernel.upsample(this.#slot, mulaw);
    const pcm16k = Buffer.allocUnsafe(4 * mulaw.length);
    for (let start = 0; start < mulaw.length; start += kernel.upBlockBytes) {
      const block = kernel.upsample(this.#slot, mulaw.subarray(start, start + kernel.upBlockBytes));
      pcm16k.set(block, 4 * start);
    }
    return pcm16k;
  }

  /** Forgets what was heard, as if new. */
  reset(): void {
    if (this.#slot !== RELEASED) kernel.clearUpSlot(this.#slot);
  }

  /** Gives the state back to the kernel. Idempotent. */
  release(): void {
    if (this.#slot === RELEASED) return;
    kernel.giveBackUpSlot(this.#slot);
    this.#slot = RELEASED;
  }
}
