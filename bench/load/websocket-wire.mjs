/**
 * Just enough of RFC 6455 to drive a server cheaply: the load generator must not be what is measured, so it reads and
 * writes frames on bare TCP sockets. Both directions are here (masked from clients, unmasked from servers).
 * Fragmented messages are not read: no WebSocket library in play sends them, and one that did would be reported.
 */
import { createHash } from 'node:crypto';

export const OPCODE = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** The `Sec-WebSocket-Accept` value for a client's key. */
export function acceptKey(key) {
  return createHash('sha1')
    .update(key + ACCEPT_GUID)
    .digest('base64');
}

/** One whole frame with `payload` (string or bytes); `mask`, a Buffer of 4 bytes, makes it a client's frame. */
export function encodeFrame(opcode, payload, mask) {
  const length = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const bodyAt = 2 + lengthBytes + (mask === undefined ? 0 : 4);
  const frame = Buffer.allocUnsafe(bodyAt + length);
  const maskBit = mask === undefined ? 0 : 0x80;
  frame[0] = 0x80 | opcode;
  if (lengthBytes === 0) frame[1] = maskBit | length;
  else if (lengthBytes === 2) {
    frame[1] = maskBit | 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = maskBit | 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  if (typeof payload === 'string') frame.write(payload, bodyAt);
  else frame.set(payload, bodyAt);
  if (mask !== undefined) {
    mask.copy(frame, bodyAt - 4);
    for (let i = 0; i < length; i += 1) frame[bodyAt + i] ^= mask[i & 3];
  }
  return frame;
}

/**
 * Cuts a TCP stream into frames. `onFrame(opcode, bytes, start, length, maskAt)` gets a view valid only during the
 * call; `maskAt` is where the 4 mask bytes lie in `bytes`, or −1. The payload is left masked: most of it is never read.
 */
export class FrameReader {
  #onFrame;
  #rest;

  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  push(chunk) {
    let bytes = chunk;
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
    }
    let at = 0;
    while (at < bytes.length) {
      const next = this.#readFrame(bytes, at);
      if (next === at) break;
      at = next;
    }
    if (at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at));
  }

  /** The offset behind the frame at `at`, or `at` itself where the frame is not whole yet. */
  #readFrame(bytes, at) {
    const available = bytes.length - at;
    if (available < 2) return at;
    const masked = (bytes[at + 1] & 0x80) !== 0;
    let length = bytes[at + 1] & 0x7f;
    let start = at + 2;
    if (length === 126) {
      if (available < 4) return at;
      length = bytes.readUInt16BE(start);
      start += 2;
    } else if (length === 127) {
      if (available < 10) return at;
      length = Number(bytes.readBigUInt64BE(start));
      start += 8;
    }
    const maskAt = masked ? start : -1;
    if (masked) start += 4;
    if (start + length > bytes.length) return at;
    if ((bytes[at] & 0x80) === 0)
      throw new Error('a fragmented WebSocket message, which the load cannot read');
    this.#onFrame(bytes[at] & 0x0f, bytes, start, length, maskAt);
    return start + length;
  }
}

/** The payload as text, unmasked if need be. */
export function frameText(bytes, start, length, maskAt) {
  if (maskAt === -1) return bytes.toString('utf8', start, start + length);
  const plain = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i += 1) plain[i] = bytes[start + i] ^ bytes[maskAt + (i & 3)];
  return plain.toString('utf8');
}
