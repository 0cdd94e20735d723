/**
 * The fast way through a carrier's `media` message, fifty times a second a call: it walks the bytes of a plain JSON
 * object (any key order, unknown simple fields, but no whitespace, escape, nesting or byte above ASCII) and decodes
 * the base64 straight out of the message into one reused buffer. Whatever it is not sure about it declines, and
 * `parseCarrierMessage` decides; where it accepts, both say the same.
 */
import { CARRIER_PAYLOAD_MAX_BYTES } from '../limits.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Longest timestamp in digits: all of them are exact as a JavaScript number. */
export const TIMESTAMP_DIGITS_MAX = 15;

const INVALID = 0xff;
const SIXES = new Uint8Array(256).fill(INVALID);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
for (let value = 0; value < ALPHABET.length; value += 1) SIXES[ALPHABET.charCodeAt(value)] = value;

const KEY_EVENT = Buffer.from('event');
const KEY_MEDIA = Buffer.from('media');
const KEY_STREAM_SID = Buffer.from('streamSid');
const KEY_TRACK = Buffer.from('track');
const KEY_TIMESTAMP = Buffer.from('timestamp');
const KEY_PAYLOAD = Buffer.from('payload');
const INBOUND = Buffer.from('inbound');

/** Bits of what an object has shown so far; a second time makes the reader decline. */
const SEEN_EVENT = 1;
const SEEN_MEDIA = 2;
const SEEN_STREAM_SID = 4;
const SEEN_TRACK = 8;
const SEEN_TIMESTAMP = 16;
const SEEN_PAYLOAD = 32;
const NEEDED = SEEN_EVENT | SEEN_MEDIA | SEEN_TIMESTAMP | SEEN_PAYLOAD;

function equals(data: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i += 1) if (data[start + i] !== word[i]) return false;
  return true;
}

/** The index of the quote that ends the string begun before `at`, or -1 for anything but plain ASCII. */
function stringEnd(data: Uint8Array, at: number): number {
  for (let i = at; ; i += 1) {
    const byte = data[i] ?? 0;
    if (byte === QUOTE) return i;
    if (byte < 0x20 || byte >= 0x80 || byte === BACKSLASH) return -1;
  }
}

/** The index behind the digits at `at`, or -1 if there are none or too many. */
function digitsEnd(data: Uint8Array, at: number): number {
  let i = at;
  for (; ; i += 1) {
    const byte = data[i] ?? 0;
    if (byte < ZERO || byte > NINE) break;
  }
  return i === at || i - at > TIMESTAMP_DIGITS_MAX ? -1 : i;
}

/** The index behind a string or a whole number without a leading zero, or -1. */
function simpleValueEnd(data: Uint8Array, at: number): number {
  if (data[at] === QUOTE) {
    const end = stringEnd(data, at + 1);
    return end === -1 ? -1 : end + 1;
  }
  const end = digitsEnd(data, at);
  return end > at + 1 && data[at] === ZERO ? -1 : end;
}

/** One per server: what it read is valid until the next read. */
export class MediaFrameReader {
  readonly #decoded = new Uint8Array(Math.ceil((CARRIER_PAYLOAD_MAX_BYTES * 3) / 4));
  #view = this.#decoded.subarray(0, 0);
  #length = 0;
  #seen = 0;
  #timestampMs = 0;

  /** The sound of the last message read: a view of the reused buffer. */
  get mulaw(): Uint8Array {
    return this.#view;
  }

  /** Presentation time of the last message read by `read`. */
  get timestampMs(): number {
    return this.#timestampMs;
  }

  /**
   * True for an inbound `media` message of this stream, whose sound and time then stand in `mulaw` and
   * `timestampMs`; false for everything else.
   */
  read(data: Uint8Array, streamSid: Uint8Array): boolean {
    const last = data.length - 1;
    if (last > CARRIER_PAYLOAD_MAX_BYTES || data[0] !== OPEN || data[last] !== CLOSE) return false;
    this.#seen = 0;
    let at = 0;
    do {
      at = this.#readField(data, at + 1, streamSid);
      if (at === -1) return false;
    } while (data[at] === COMMA);
    if (at !== last || (this.#seen & NEEDED) !== NEEDED) return false;
    this.#takeView();
    return true;
  }

  /** Decodes base64 text into `mulaw`; false if it is empty, too long or not base64. */
  decode(text: string): boolean {
    if (text === '' || text.length > CARRIER_PAYLOAD_MAX_BYTES) return false;
    const bytes = Buffer.from(text, 'utf8');
    if (this.#decodeFrom(bytes, 0) !== bytes.length) return false;
    this.#takeView();
    return true;
  }

  /** Reads `"key":value` at `at` of the outer object; the index behind it, or -1. */
  #readField(data: Uint8Array, at: number, streamSid: Uint8Array): number {
    if (data[at] !== QUOTE) return -1;
    const keyEnd = stringEnd(data, at + 1);
    if (keyEnd === -1 || data[keyEnd + 1] !== COLON) return -1;
    const valueAt = keyEnd + 2;
    if (equals(data, at + 1, keyEnd, KEY_MEDIA)) {
      return this.#sees(SEEN_MEDIA) ? this.#readMedia(data, valueAt) : -1;
    }
    const end = simpleValueEnd(data, valueAt);
    if (end === -1) return -1;
    if (equals(data, at + 1, keyEnd, KEY_EVENT)) {
      return this.#sees(SEEN_EVENT) && isText(data, valueAt, end, KEY_MEDIA) ? end : -1;
    }
    if (equals(data, at + 1, keyEnd, KEY_STREAM_SID)) {
      return this.#sees(SEEN_STREAM_SID) && isText(data, valueAt, end, streamSid) ? end : -1;
    }
    return end;
  }

  #readMedia(data: Uint8Array, openAt: number): number {
    if (data[openAt] !== OPEN) return -1;
    let at = openAt;
    do {
      at = this.#readMediaField(data, at + 1);
      if (at === -1) return -1;
    } while (data[at] === COMMA);
    return data[at] === CLOSE ? at + 1 : -1;
  }

  #readMediaField(data: Uint8Array, at: number): number {
    if (data[at] !== QUOTE) return -1;
    const keyEnd = stringEnd(data, at + 1);
    if (keyEnd === -1 || data[keyEnd + 1] !== COLON) return -1;
    const valueAt = keyEnd + 2;
    if (equals(data, at + 1, keyEnd, KEY_PAYLOAD)) {
      if (!this.#sees(SEEN_PAYLOAD) || data[valueAt] !== QUOTE) return -1;
      const end = this.#decodeFrom(data, valueAt + 1);
      return end !== -1 && data[end] === QUOTE ? end + 1 : -1;
    }
    const end = simpleValueEnd(data, valueAt);
    if (end === -1) return -1;
    if (equals(data, at + 1, keyEnd, KEY_TIMESTAMP)) {
      return this.#sees(SEEN_TIMESTAMP) && this.#readTimestamp(data, valueAt, end) ? end : -1;
    }
    if (equals(data, at + 1, keyEnd, KEY_TRACK)) {
      return this.#sees(SEEN_TRACK) && isText(data, valueAt, end, INBOUND) ? end : -1;
    }
    return end;
  }

  /** A whole number, in quotes or bare. */
  #readTimestamp(data: Uint8Array, valueAt: number, valueEnd: number): boolean {
    const quoted = data[valueAt] === QUOTE ? 1 : 0;
    const start = valueAt + quoted;
    const end = valueEnd - quoted;
    if (digitsEnd(data, start) !== end) return false;
    let value = 0;
    for (let i = start; i < end; i += 1) value = value * 10 + (data[i] ?? ZERO) - ZERO;
    this.#timestampMs = value;
    return true;
  }

  /** Notes that a key appeared; false if it had before. */
  #sees(key: number): boolean {
    const first = (this.#seen & key) === 0;
    this.#seen |= key;
    return first;
  }

  /** Decodes up to the first byte that is not base64; its index, or -1 if the length or padding is wrong. */
  #decodeFrom(data: Uint8Array, start: number): number {
    const out = this.#decoded;
    let at = start;
    let length = 0;
    for (;;) {
      const a = SIXES[data[at] ?? 0] ?? INVALID;
      const b = SIXES[data[at + 1] ?? 0] ?? INVALID;
      const c = SIXES[data[at + 2] ?? 0] ?? INVALID;
      const d = SIXES[data[at + 3] ?? 0] ?? INVALID;
      if ((a | b | c | d) === INVALID) {
        return this.#decodeTail(data, { at, length, a, b, c });
      }
      out[length] = (a << 2) | (b >> 4);
      out[length + 1] = (b << 4) | (c >> 2);
      out[length + 2] = (c << 6) | d;
      length += 3;
      at += 4;
    }
  }

  #decodeTail(
    data: Uint8Array,
    tail: { at: number; length: number; a: number; b: number; c: number },
  ): number {
    const { at, length, a, b, c } = tail;
    if (a === INVALID) {
      this.#length = length;
      return length === 0 ? -1 : at;
    }
    if (b === INVALID) return -1;
    this.#decoded[length] = (a << 2) | (b >> 4);
    const two = c === INVALID;
    if (!two) this.#decoded[length + 1] = (b << 4) | (c >> 2);
    this.#length = length + (two ? 1 : 2);
    // Padding is whole or absent.
    const end = at + (two ? 2 : 3);
    if (data[end] !== EQUALS) return end;
    if (!two) return end + 1;
    return data[end + 1] === EQUALS ? end + 2 : -1;
  }

  /** Messages of one call have one length, so that the view is hardly ever made anew. */
  #takeView(): void {
    if (this.#view.length !== this.#length) this.#view = this.#decoded.subarray(0, this.#length);
  }
}

/** Whether the value from `at` to `end` is the string `word`. */
function isText(data: Uint8Array, at: number, end: number, word: Uint8Array): boolean {
  return data[at] === QUOTE && equals(data, at + 1, end - 1, word);
}
