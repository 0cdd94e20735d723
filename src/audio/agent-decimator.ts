/**
 * Stands between the model's PCM16 at 24 kHz and the carrier's mu-law at 8 kHz, one instance a call. A linear-phase
 * low-pass, 1.98 ms late, keeps what lies above the telephone band from folding into it by 60 dB or more; too loud
 * becomes as loud as possible, never a wrapped sample. The result does not depend on how the input was cut, bytes of
 * a sample included. Cutting into frames is left to the playout.
 */
import assert from 'node:assert/strict';
import { kernel } from './kernel.js';

const RELEASED = 0;
/** Silence that moves the last sample through the whole filter: one sample less than its 96 taps. */
const TAIL = new Uint8Array(2 * 95);

type Filter = (slot: number, pcm24k: Uint8Array) => Buffer;
const toMulaw: Filter = (slot, pcm24k) => kernel.decimateToMulaw(slot, pcm24k);
const toPcm16: Filter = (slot, pcm24k) => kernel.decimate(slot, pcm24k);

export class AgentDecimator {
  #slot = kernel.takeDownSlot();
  /** Whether the filter still holds sound, so that a flush has something to give. */
  #holdsSound = false;

  /**
   * Takes PCM16 at 24 kHz, little-endian, of any byte length, which it does not keep, and returns mu-law at 8 kHz: one
   * byte for each third sample, from the first on. The result is a view, valid until the next push of any filter of
   * this thread or the making of a new one. Must not be called after `release`.
   */
  push(pcm24k: Uint8Array): Buffer {
    return this.#push(pcm24k, toMulaw);
  }

  /** As `push`, but gives PCM16 at 8 kHz, little-endian, as it is before mu-law. */
  pushToPcm16(pcm24k: Uint8Array): Buffer {
    return this.#push(pcm24k, toPcm16);
  }

  /**
   * The end of an utterance: returns the 4 ms of mu-law that were still in the filter (nothing, if nothing was pushed)
   * and leaves it as new. Half a sample at the end is dropped. The same rules as for `push` hold.
   */
  flush(): Buffer {
    return this.#flush(toMulaw);
  }

  /** As `flush`, but gives PCM16. */
  flushToPcm16(): Buffer {
    return this.#flush(toPcm16);
  }

  /** Barge-in: forgets what was pushed, as if new. */
  reset(): void {
    if (this.#slot !== RELEASED) kernel.clearDownSlot(this.#slot);
    this.#holdsSound = false;
  }

  /** Gives the state back to the kernel. Idempotent. */
  release(): void {
    if (this.#slot === RELEASED) return;
    kernel.giveBackDownSlot(this.#slot);
    this.#slot = RELEASED;
  }

  #push(pcm24k: Uint8Array, filter: Filter): Buffer {
    if (this.#slot === RELEASED) assert.fail('a decimator is not used after its release');
    if (pcm24k.length > 0) this.#holdsSound = true;
    if (pcm24k.length <= kernel.downBlockBytes) return filter(this.#slot, pcm24k);
    const blocks: Buffer[] = [];
    for (let start = 0; start < pcm24k.length; start += kernel.downBlockBytes) {
      blocks.push(Buffer.from(filter(this.#slot, pcm24k.subarray(start, start + kernel.downBlockBytes))));
    }
    return Buffer.concat(blocks);
  }

  #flush(filter: Filter): Buffer {
    if (this.#slot === RELEASED) assert.fail('a decimator is not used after its release');
    kernel.dropOddByte(this.#slot);
    const tail = filter(this.#slot, this.#holdsSound ? TAIL : TAIL.subarray(0, 0));
    this.reset();
    return tail;
  }
}
