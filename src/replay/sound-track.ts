/**
 * One side of a call as it was in time: mu-law at 8 kHz, a byte each 1/8 ms since the call was answered, digital
 * silence wherever nothing was written. Both sides of a call are tracks with one zero, so they line up by
 * construction. Sound may be written ahead of time and erased again before it is played.
 */
import { MULAW_BYTES_PER_MS, MULAW_SILENCE } from '../limits.js';

const FIRST_CAPACITY = 64 * 1024;

/** A time as a place in a track: whole bytes since the call was answered, 8 a millisecond. */
export function positionOf(sinceAnswerMs: number): number {
  return Math.max(0, Math.floor(sinceAnswerMs * MULAW_BYTES_PER_MS + 1e-6));
}

export function msOf(position: number): number {
  return position / MULAW_BYTES_PER_MS;
}

export class SoundTrack {
  #bytes = new Uint8Array(FIRST_CAPACITY).fill(MULAW_SILENCE);
  #end = 0;

  /** The place behind the last byte that was written and not erased. */
  get end(): number {
    return this.#end;
  }

  /** Copies `mulaw` to `position`, over whatever was there. */
  write(position: number, mulaw: Uint8Array): void {
    this.#reserve(position + mulaw.length);
    this.#bytes.set(mulaw, position);
    this.#end = Math.max(this.#end, position + mulaw.length);
  }

  /** Makes everything from `position` on silence again. */
  eraseFrom(position: number): void {
    if (position >= this.#end) return;
    this.#bytes.fill(MULAW_SILENCE, position, this.#end);
    this.#end = position;
  }

  /** Fills `target` from `position`; beyond the end it is silence. */
  readInto(target: Uint8Array, position: number): void {
    const known = Math.min(target.length, Math.max(0, this.#end - position));
    target.set(this.#bytes.subarray(position, position + known));
    target.fill(MULAW_SILENCE, known);
  }

  /** A copy of the first `length` bytes, padded with silence. */
  copy(length: number): Uint8Array {
    const copied = new Uint8Array(length);
    this.readInto(copied, 0);
    return copied;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2)).fill(MULAW_SILENCE);
    grown.set(this.#bytes.subarray(0, this.#end));
    this.#bytes = grown;
  }
}
