/** WebSocket frames by hand, right ones and wrong ones (RFC 6455, 5.2), for what a library would not send. */

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;
const CONTINUATION = 0;

export interface FrameOptions {
  readonly opcode?: number;
  readonly fin?: boolean;
  /** A client must mask, a server must not. */
  readonly mask?: Uint8Array | undefined;
  /** The three reserved bits. */
  readonly reserved?: number;
}

export const ZERO_MASK = new Uint8Array(4);

/** One frame, the length in its shortest form. */
export function wireFrame(payload: Uint8Array, options: FrameOptions = {}): Buffer {
  const { opcode = TEXT, fin = true, mask = ZERO_MASK, reserved = 0 } = options;
  const { length } = payload;
  const lengthBytes = length < 126 ? 0 : length < 0x1_0000 ? 2 : 8;
  const frame = Buffer.allocUnsafe(2 + lengthBytes + mask.length + length);
  frame[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  frame[1] = (mask.length > 0 ? 0x80 : 0) | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2);
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  frame.set(mask, 2 + lengthBytes);
  const start = 2 + lengthBytes + mask.length;
  frame.set(payload, start);
  if (mask !== ZERO_MASK && mask.length > 0) {
    for (let at = 0; at < length; at += 1) frame[start + at]! ^= mask[at & 3]!;
  }
  return frame;
}

/** One message cut at the given places (any numbers) into a frame and its continuations. */
export function fragmented(payload: Uint8Array, cuts: readonly number[], options: FrameOptions = {}): Buffer {
  const places = [...new Set(cuts.map((cut) => cut % (payload.length + 1)))].toSorted((a, b) => a - b);
  const ends = [...places, payload.length];
  const frames = ends.map((end, index) => {
    const part = payload.subarray(index === 0 ? 0 : ends[index - 1], end);
    const opcode = index === 0 ? (options.opcode ?? TEXT) : CONTINUATION;
    return wireFrame(part, { ...options, opcode, fin: index === ends.length - 1 });
  });
  return Buffer.concat(frames);
}
