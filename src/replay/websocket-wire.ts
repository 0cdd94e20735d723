/**
 * The other end of a WebSocket in bytes (RFC 6455): what a replay says to the server, and what it reads off the wire. It
 * knows only what `ws` and our own frame writers send: whole, uncompressed frames.
 */
import { createHash } from 'node:crypto';

const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;
const FIN = 0x80;
const MASKED = 0x80;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
/** RFC 6455, 1.3. */
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export function acceptKey(key: string): string {
  return createHash('sha1').update(key).update(ACCEPT_GUID).digest('base64');
}

export interface FrameListener {
  onText(text: string): void;
  onPing(payload: Buffer): void;
  onClose(code: number): void;
}

/** Reads a stream of frames. */
export class FrameReader {
  readonly #listener: FrameListener;
  #rest: Buffer = Buffer.alloc(0);

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** Bytes in any cut. */
  read(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (let used = this.#readOne(); used > 0; used = this.#readOne()) this.#rest = this.#rest.subarray(used);
  }

  /** The bytes of the frame that was read; 0 if it is not whole yet. */
  #readOne(): number {
    const bytes = this.#rest;
    if (bytes.length < 2) return 0;
    const masked = ((bytes[1] ?? 0) & MASKED) !== 0;
    const short = (bytes[1] ?? 0) & 0x7f;
    const lengthBytes = short === LENGTH_16 ? 2 : short === LENGTH_64 ? 8 : 0;
    const headerBytes = 2 + lengthBytes + (masked ? 4 : 0);
    if (bytes.length < headerBytes) return 0;
    const length =
      lengthBytes === 0 ? short : bytes.readUIntBE(lengthBytes === 8 ? 4 : 2, lengthBytes === 8 ? 6 : 2);
    if (bytes.length < headerBytes + length) return 0;
    const payload = bytes.subarray(headerBytes, headerBytes + length);
    this.#deliver((bytes[0] ?? 0) & 0xf, masked ? unmask(payload, bytes.subarray(headerBytes - 4)) : payload);
    return headerBytes + length;
  }

  #deliver(opcode: number, payload: Buffer): void {
    if (opcode === TEXT || opcode === BINARY) this.#listener.onText(payload.toString());
    else if (opcode === PING) this.#listener.onPing(payload);
    else if (opcode === CLOSE) this.#listener.onClose(payload.length < 2 ? 1005 : payload.readUInt16BE(0));
  }
}

/** By whole words: most of what a server writes to its model is masked sound. */
function unmask(payload: Buffer, mask: Buffer): Buffer {
  const words = new Uint32Array(Math.ceil(payload.length / 4));
  const clear = Buffer.from(words.buffer, 0, payload.length);
  payload.copy(clear);
  const key = new Uint32Array(Uint8Array.from(mask.subarray(0, 4)).buffer)[0] ?? 0;
  for (let at = 0; at < words.length; at += 1) words[at] = (words[at] ?? 0) ^ key;
  return clear;
}

/** Who sends: clients must mask, servers must not. A mask of zeros changes nothing and is a mask. */
export type Side = 'client' | 'server';

function frame(opcode: number, payload: Buffer, side: Side): Buffer {
  const long = payload.length > 0xffff;
  const lengthBytes = payload.length < LENGTH_16 ? 0 : long ? 8 : 2;
  const headerBytes = 2 + lengthBytes + (side === 'client' ? 4 : 0);
  const whole = Buffer.allocUnsafe(headerBytes + payload.length).fill(0, 0, headerBytes);
  whole[0] = FIN | opcode;
  whole[1] =
    (side === 'client' ? MASKED : 0) | (lengthBytes === 0 ? payload.length : long ? LENGTH_64 : LENGTH_16);
  if (lengthBytes === 2) whole.writeUInt16BE(payload.length, 2);
  if (lengthBytes === 8) whole.writeUIntBE(payload.length, 4, 6);
  payload.copy(whole, headerBytes);
  return whole;
}

export function textFrame(text: string, side: Side): Buffer {
  return frame(TEXT, Buffer.from(text, 'utf8'), side);
}

export function binaryFrame(bytes: Buffer, side: Side): Buffer {
  return frame(BINARY, bytes, side);
}

export function pongFrame(payload: Buffer, side: Side): Buffer {
  return frame(PONG, payload, side);
}

export function closeFrame(code: number, reason: string, side: Side): Buffer {
  const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
  payload.writeUInt16BE(code, 0);
  payload.write(reason, 2);
  return frame(CLOSE, payload, side);
}
