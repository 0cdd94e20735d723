/**
 * One `realtimeInput` with sound as a ready WebSocket frame: text, masked, unfragmented (RFC 6455, 5.2 and 5.3), so that the
 * socket takes it in a single write. `ws` hands header and payload to the kernel as two pieces, and that system call is
 * most of what a caller's frame costs. Writing it whole beside ws is safe: ws writes its own frames whole too, within
 * one turn, as long as no compression and no Blob is in play.
 */
import { fillRandom } from '../ids.js';

/** The message around a base64 of 16 kHz PCM, byte for byte what the SDK sends. */
const HEAD = Buffer.from('{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"', 'latin1');
const TAIL = Buffer.from('"}}}', 'latin1');

/** FIN and opcode, mask bit and a 16-bit length, the length, the mask: the payload begins on a word. */
const HEADER_BYTES = 8;
const TEXT_FIN = 0x81;
const MASKED_LENGTH_16 = 0xfe;
const LENGTH_16_MIN = 126;
const LENGTH_16_MAX = 0xffff;

const scratch = Buffer.from(new ArrayBuffer(HEADER_BYTES + LENGTH_16_MAX + 4));
const words = new Uint32Array(scratch.buffer, 0, Math.floor(scratch.length / 4));

const masks = new Uint32Array(1024);
let nextMask = masks.length;

/** Unpredictable, as RFC 6455 asks; drawn in bulk. */
function newMask(): number {
  if (nextMask === masks.length) {
    fillRandom(masks);
    nextMask = 0;
  }
  const mask = masks[nextMask] ?? 0;
  nextMask += 1;
  return mask;
}

/** The text of the message, for a length that the frame below does not take. */
export function audioMessage(pcm16k: Buffer): string {
  return `${HEAD.toString('latin1')}${pcm16k.toString('base64')}${TAIL.toString('latin1')}`;
}

/** A frame of its own memory, or undefined when the sound is too short or too long for a 16-bit length. */
export function audioFrame(pcm16k: Buffer): Buffer | undefined {
  const base64Bytes = Math.ceil(pcm16k.length / 3) * 4;
  const payloadBytes = HEAD.length + base64Bytes + TAIL.length;
  if (payloadBytes < LENGTH_16_MIN || payloadBytes > LENGTH_16_MAX) return undefined;
  const mask = newMask();
  const frameBytes = HEADER_BYTES + payloadBytes;
  HEAD.copy(scratch, HEADER_BYTES);
  scratch.write(pcm16k.toString('base64'), HEADER_BYTES + HEAD.length, 'latin1');
  TAIL.copy(scratch, HEADER_BYTES + HEAD.length + base64Bytes);
  const wordsEnd = Math.ceil(frameBytes / 4);
  // The mask is applied in memory order on either endianness: it is written to the header as the same word.
  for (let at = HEADER_BYTES / 4; at < wordsEnd; at += 1) words[at] = (words[at] ?? 0) ^ mask;
  words[1] = mask;
  scratch[0] = TEXT_FIN;
  scratch[1] = MASKED_LENGTH_16;
  scratch[2] = payloadBytes >> 8;
  scratch[3] = payloadBytes & 0xff;
  // A copy, because a socket that cannot take it at once keeps it; the pool makes that cheaper than a lock on it.
  const frame = Buffer.allocUnsafe(frameBytes);
  scratch.copy(frame, 0, 0, frameBytes);
  return frame;
}
