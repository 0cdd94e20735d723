/**
 * The model's sound, from the base64 of an `inlineData` part to PCM bytes. One decoder serves every connection of the
 * process: its buffer is reused, and what it hands out is valid only until the next call.
 */

/** A second of 24 kHz PCM16; the model's usual chunk is a third of that. */
const FIRST_BUFFER_BYTES = 48_000;
/** Chunks above this are decoded into a buffer of their own, so that one huge one is not kept for ever. */
const KEPT_BUFFER_MAX_BYTES = 1024 * 1024;

const PADDING = 0x3d;

/** How many characters of this base64 are digits: all but the one or two of its padding. */
function digitCount(base64: string): number {
  let digits = base64.length;
  while (digits > 0 && base64.length - digits < 2 && base64.charCodeAt(digits - 1) === PADDING) digits -= 1;
  return digits;
}

export class GeminiAudioDecoder {
  #buffer = Buffer.allocUnsafeSlow(FIRST_BUFFER_BYTES);

  /** A view of the decoded bytes, valid until the next call; undefined for text that is not base64. */
  decode(base64: string): Uint8Array | undefined {
    const digits = digitCount(base64);
    // Six bits make no byte.
    if (digits % 4 === 1) return undefined;
    const lengthBytes = Math.floor((digits * 3) / 4);
    const buffer = this.#room(lengthBytes);
    // Node skips what is not base64 without a word; the count of bytes tells. Of a character beyond Latin-1 it may take
    // the low byte for a digit, which only the text's own length shows.
    const written = buffer.write(base64, 'base64');
    const isBase64 = written === lengthBytes && Buffer.byteLength(base64) === base64.length;
    return isBase64 ? buffer.subarray(0, written) : undefined;
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
