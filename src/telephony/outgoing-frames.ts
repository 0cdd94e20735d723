/**
 * What we say to the carrier as ready WebSocket frames: text, unmasked, unfragmented, uncompressed (RFC 6455, 5.2).
 * A frame is a Latin-1 string whose characters are its bytes, because Node hands such a string to the kernel without
 * making a Buffer of it. Writing it whole on the upgraded socket is safe beside ws: ws writes its own frames whole
 * too, within one turn, as long as no compression and no Blob is in play. The stream's id is prepared once.
 */
import type { StreamSid } from '../ids.js';

/** Sounds up to this long are encoded through one reused buffer. */
const SCRATCH_BYTES = 16 * 1024;
const scratch = Buffer.alloc(SCRATCH_BYTES);

const TEXT_FIN = 0x81;
const MEDIA_END = '"}}';

/** JSON text in pure ASCII, so that characters and bytes are the same. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The header of a text frame of `length` payload bytes. */
function textHeader(length: number): string {
  if (length < 126) return String.fromCharCode(TEXT_FIN, length);
  if (length < 0x1_0000) return String.fromCharCode(TEXT_FIN, 126, length >> 8, length & 0xff);
  const header = Buffer.alloc(10);
  header[0] = TEXT_FIN;
  header[1] = 127;
  header.writeBigUInt64BE(BigInt(length), 2);
  return header.toString('latin1');
}

function base64(bytes: Uint8Array): string {
  if (bytes.length > SCRATCH_BYTES) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  }
  scratch.set(bytes);
  return scratch.toString('base64', 0, bytes.length);
}

/** The frames of one stream. */
export class OutgoingFrames {
  readonly #mediaStart: string;
  readonly #markStart: string;
  readonly #clear: string;
  /** Header and start of a media message, kept while its length stays the same. */
  #mediaHead = '';
  #mediaHeadBase64 = -1;

  constructor(streamSid: StreamSid) {
    const sid = asciiJson(streamSid);
    this.#mediaStart = `{"event":"media","streamSid":${sid},"media":{"payload":"`;
    this.#markStart = `{"event":"mark","streamSid":${sid},"mark":{"name":`;
    const clear = `{"event":"clear","streamSid":${sid}}`;
    this.#clear = textHeader(clear.length) + clear;
  }

  /** The bytes are copied. */
  media(mulaw: Uint8Array): string {
    const payload = base64(mulaw);
    if (payload.length !== this.#mediaHeadBase64) {
      this.#mediaHeadBase64 = payload.length;
      const length = this.#mediaStart.length + payload.length + MEDIA_END.length;
      this.#mediaHead = textHeader(length) + this.#mediaStart;
    }
    return this.#mediaHead + payload + MEDIA_END;
  }

  mark(name: string): string {
    const text = `${this.#markStart}${asciiJson(name)}}}`;
    return textHeader(text.length) + text;
  }

  clear(): string {
    return this.#clear;
  }
}

/** The messages in frames that were made here; for a recorder. Anything else in `frames` is a fault of ours. */
export function textsOf(frames: string): string[] {
  const texts: string[] = [];
  for (let at = 0; at < frames.length;) {
    const short = frames.charCodeAt(at + 1);
    let length = short;
    let header = 2;
    if (short >= 126) {
      header = short === 126 ? 4 : 10;
      length = 0;
      for (let index = at + 2; index < at + header; index += 1)
        length = length * 256 + frames.charCodeAt(index);
    }
    texts.push(frames.slice(at + header, at + header + length));
    at += header + length;
  }
  return texts;
}
