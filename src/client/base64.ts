/** Bytes as base64 and back, with what browsers and Node both have. */

/** Arguments of one call of `fromCharCode`; engines allow some 100,000. */
const CHUNK_BYTES = 8_192;

export function base64Of(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  }
  return btoa(binary);
}

/** Throws if the text is not base64. */
export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
