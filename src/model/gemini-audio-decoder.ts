/**
 * The model's sound, from the base64 of an `inlineData` part to PCM bytes. One decoder serves every connection of the
 * process: its buffer is reused, and what it hands out is valid only until the next call.
 */

/** A second of 24 kHz PCM16; the model's usual chunk is a third of that. */
const FIRST_BUFFER_BYTES = 48_000;
/** Chunks above this are decoded into a buffer of their own, so that one huge one is not kept for ever. */
const KEPT_BUFFER_MAX_BYTES = 1024 * 1024;

/** How many bytes well-formed base64 of this text decodes to. */
function decodedLength(base64: string): number {
  let digits = base64.length;
  while (digits > 0 && base64.length - digits < 2 && base64.charCodeAt(digits - 1) === 0x3d) digits -= 1;
  return Math.floor((digits * 3) / 4);
}

export class GeminiAudioDecoder {
  #buffer = Buffer.allocUnsafeSlow(FIRST_BUFFER_BYTES);

  /** A view of the decoded bytes, valid until the next call; undefined for text that is not base64. */
  decode(base64: string): Uint8Array | undefined {
    const lengthBytes = decodedLength(base64);
    const buffer = this.#room(lengthBytes);
    // Node skips what is not base64 without a word; the count of bytes tells.
    const written = buffer.write(base64, 'base64');
    return written === lengthBytes ? buffer.subarray(0, written) : undefined;
  }

  #room(lengthBytes: number): Buffer {
    if (lengthBytes > KEPT_BUFFER_MAX_BYTES) return Buffer.allocUnsafeSlow(lengthBytes);
    if (lengthBytes > this.#buffer.length) {
      this.#buffer = Buffer.allocUnsafeSlow(
        Math.min(KEPT_BUFFER_MAX_BYTES, Math.max(lengthBytes, 2 * this.#buffer.length)),
      );
    }
    return this.#buffer;
  }
}
