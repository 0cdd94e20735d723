import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { audioFrame, audioMessage } from '../../src/model/audio-frame.js';

/** Reads a masked text frame with a 16-bit length, as RFC 6455 lays it out. */
function unmask(frame: Buffer): string {
  expect(frame[0]).toBe(0x81);
  expect(frame[1]).toBe(0x80 | 126);
  expect(frame.readUInt16BE(2)).toBe(frame.length - 8);
  const payload = Buffer.from(frame.subarray(8));
  for (let at = 0; at < payload.length; at += 1) payload[at]! ^= frame[4 + (at % 4)]!;
  return payload.toString('latin1');
}

describe('a ready frame of caller sound', () => {
  it('unmasks to the message, for any sound that fits its length field', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 3_000 }), (bytes) => {
        const sound = Buffer.from(bytes);
        expect(unmask(audioFrame(sound)!)).toBe(audioMessage(sound));
      }),
    );
  });

  it('carries its own mask each time and stays whole when the next one is made', () => {
    const sound = Buffer.alloc(640, 7);
    const first = audioFrame(sound)!;
    const copy = Buffer.from(first);
    const others = Array.from({ length: 2_000 }, () => audioFrame(sound)!.readUInt32LE(4));
    expect(first).toEqual(copy);
    expect(new Set(others).size).toBeGreaterThan(1_900);
  });

  it('is declined where the length field does not fit', () => {
    expect(audioFrame(Buffer.alloc(12))).toBeUndefined();
    expect(audioFrame(Buffer.alloc(60_000))).toBeUndefined();
    expect(JSON.parse(audioMessage(Buffer.alloc(12)))).toMatchObject({
      realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000' } },
    });
  });
});
