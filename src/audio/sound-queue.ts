/**
 * A first-in first-out queue of mu-law bytes for sound that waits to be played. It grows in fixed chunks, so that
 * minutes of waiting speech cost their own size and nothing is copied twice; emptied chunks are used again.
 * It has no bound of its own: the playout refuses sound before it writes.
 */

/** About half a second of mu-law: a chunk is filled by a few pieces of model sound. */
const CHUNK_BYTES = 4_096;
/** Emptied chunks kept for the next sound; the others are left to the garbage collector. */
const SPARE_CHUNKS_MAX = 2;

export class SoundQueue {
  readonly #chunks: Uint8Array[] = [];
  readonly #spares: Uint8Array[] = [];
  /** Where reading goes on in the first chunk. */
  #readAt = 0;
  #bytes = 0;

  /** Bytes waiting. */
  get length(): number {
    return this.#bytes;
  }

  /** Appends a copy of `sound`. */
  write(sound: Uint8Array): void {
    let done = 0;
    while (done < sound.length) {
      const end = this.#readAt + this.#bytes;
      const chunk = this.#chunks[Math.floor(end / CHUNK_BYTES)] ?? this.#addChunk();
      const at = end % CHUNK_BYTES;
      const size = Math.min(sound.length - done, CHUNK_BYTES - at);
      chunk.set(size === sound.length ? sound : sound.subarray(done, done + size), at);
      done += size;
      this.#bytes += size;
    }
  }

  /** Moves up to `size` bytes to the beginning of `target` and returns how many there were. */
  read(target: Uint8Array, size: number): number {
    const wanted = Math.min(size, this.#bytes, target.length);
    let done = 0;
    while (done < wanted) {
      const chunk = this.#chunks[0];
      if (chunk === undefined) break;
      const part = Math.min(wanted - done, CHUNK_BYTES - this.#readAt);
      // A few hundred bytes: a loop is cheaper than making a view for `set`.
      for (let index = 0; index < part; index += 1) target[done + index] = chunk[this.#readAt + index] ?? 0;
      done += part;
      this.#advance(part);
    }
    return done;
  }

  /** Drops the first `size` bytes. */
  skip(size: number): void {
    let left = Math.min(size, this.#bytes);
    while (left > 0) {
      const part = Math.min(left, CHUNK_BYTES - this.#readAt);
      left -= part;
      this.#advance(part);
    }
  }

  /** Drops everything behind the first `size` bytes. */
  keepFirst(size: number): void {
    if (size <= 0) {
      this.clear();
      return;
    }
    this.#bytes = Math.min(this.#bytes, size);
    const needed = Math.ceil((this.#readAt + this.#bytes) / CHUNK_BYTES);
    while (this.#chunks.length > needed) this.#spare(this.#chunks.pop());
  }

  clear(): void {
    while (this.#chunks.length > 0) this.#spare(this.#chunks.pop());
    this.#readAt = 0;
    this.#bytes = 0;
  }

  #addChunk(): Uint8Array {
    const chunk = this.#spares.pop() ?? new Uint8Array(CHUNK_BYTES);
    this.#chunks.push(chunk);
    return chunk;
  }

  /** `size` must not reach beyond the first chunk. */
  #advance(size: number): void {
    this.#readAt += size;
    this.#bytes -= size;
    if (this.#readAt === CHUNK_BYTES) {
      this.#spare(this.#chunks.shift());
      this.#readAt = 0;
    }
  }

  #spare(chunk: Uint8Array | undefined): void {
    if (chunk !== undefined && this.#spares.length < SPARE_CHUNKS_MAX) this.#spares.push(chunk);
  }
}
