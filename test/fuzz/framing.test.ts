/** Frames made without `ws` (to the carrier and to the model), read by the receiver of `ws` itself. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as ws from 'ws';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import { audioFrame, audioMessage } from '../../src/model/audio-frame.js';
import { OutgoingFrames } from '../../src/telephony/outgoing-frames.js';
import { fuzzed } from './seed.js';

// `ws` exports its receiver; the published types do not say so.
const Receiver = Reflect.get(ws, 'Receiver') as new (options: { isServer: boolean }) => Writable;

/** The messages in these bytes, given to the receiver in pieces of the given sizes; fails on any protocol error. */
async function received(
  bytes: Buffer,
  isServer: boolean,
  sizes: readonly number[] = [bytes.length],
): Promise<string[]> {
  const receiver = new Receiver({ isServer });
  const messages: string[] = [];
  receiver.on('message', (data: Buffer, isBinary: boolean) => {
    expect(isBinary).toBe(false);
    messages.push(data.toString('utf8'));
  });
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = Math.max(1, sizes[index % sizes.length] ?? 1);
    receiver.write(bytes.subarray(at, at + size));
    at += size;
  }
  const finished = once(receiver, 'finish');
  receiver.end();
  await finished;
  return messages;
}

/** Small pieces between large ones: thousands of small ones in a row cost `ws` seconds. */
const sizes = fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 5 }).map((small) => [...small, 10_000]);
const sid = fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/).map((text) => parseStreamSid(text) as StreamSid);
/** Any UTF-16, halves of pairs too. */
const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom('', '"', '\\', '\u0000', '\u007f', '\u0080', '\u2028', '\ud800', '\udfff\ud800', '"}}'),
);

describe('frames to the carrier', () => {
  it('carry sound, marks with any name, and clear, whole and in order, in any pieces of the network', async () => {
    const mulaw = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 400 }),
      fc.nat(70_000).map((length) => new Uint8Array(length + 1).fill(length & 0xff)),
    );
    const part = fc.oneof(
      mulaw.map((sound) => ({ sound, mark: undefined })),
      name.map((mark) => ({ sound: undefined, mark })),
      fc.constant({ sound: undefined, mark: undefined }),
    );
    const property = fc.asyncProperty(
      sid,
      fc.array(part, { maxLength: 8 }),
      sizes,
      async (streamSid, parts, pieces) => {
        const frames = new OutgoingFrames(streamSid);
        const wanted: object[] = [];
        let sent = '';
        for (const { sound, mark } of parts) {
          if (sound !== undefined) {
            sent += frames.media(sound);
            const payload = Buffer.from(sound).toString('base64');
            wanted.push({ event: 'media', streamSid, media: { payload } });
          } else if (mark !== undefined) {
            sent += frames.mark(mark);
            wanted.push({ event: 'mark', streamSid, mark: { name: mark } });
          } else {
            sent += frames.clear();
            wanted.push({ event: 'clear', streamSid });
          }
        }
        const messages = await received(Buffer.from(sent, 'latin1'), false, pieces);
        expect(messages.map((text): unknown => JSON.parse(text))).toEqual(wanted);
      },
    );
    await fc.assert(property, fuzzed(200));
  });

  it('have the right length field at each of its borders', async () => {
    const streamSid = parseStreamSid('MZ1') as StreamSid;
    const frames = new OutgoingFrames(streamSid);
    const around = frames.mark('').length - 2;
    for (const payload of [around, 125, 126, 127, 65_534, 65_535, 65_536, 65_537, 200_000]) {
      const mark = 'm'.repeat(payload - around);
      const bytes = Buffer.from(frames.mark(mark), 'latin1');
      expect(bytes[1]).toBe(payload < 126 ? payload : payload < 65_536 ? 126 : 127);
      const [text] = await received(bytes, false, [3, 1, 30_000]);
      expect(text?.length).toBe(payload);
      expect(JSON.parse(text ?? '')).toEqual({ event: 'mark', streamSid, mark: { name: mark } });
    }
    for (const length of [
      1, 2, 3, 47, 48, 49, 50, 16_383, 16_384, 16_385, 49_100, 49_101, 49_102, 49_103, 49_104,
    ]) {
      const sound = new Uint8Array(length).fill(0x7f);
      const twice = frames.media(sound) + frames.media(sound);
      const messages = await received(Buffer.from(twice, 'latin1'), false);
      const payload = Buffer.from(sound).toString('base64');
      const wanted = { event: 'media', streamSid, media: { payload } };
      expect(messages.map((text): unknown => JSON.parse(text))).toEqual([wanted, wanted]);
    }
  });
});

describe('frames of sound to the model', () => {
  /** Through the ready frame where there is one; what it declines goes out as text. */
  async function sounded(pcm: Buffer): Promise<{ text: string | undefined; isFramed: boolean }> {
    const frame = audioFrame(pcm);
    if (frame === undefined) return { text: audioMessage(pcm), isFramed: false };
    const messages = await received(frame, true, [5, 1, 9_000]);
    expect(messages).toHaveLength(1);
    return { text: messages[0], isFramed: true };
  }

  function wanted(pcm: Buffer): object {
    return { realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', data: pcm.toString('base64') } } };
  }

  it('carry it whole for any bytes and lengths, in whatever order lengths come', async () => {
    const pcm = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 1_000 }),
      fc.nat(60_000).map((length) => new Uint8Array(length + 1).fill(length & 0xff)),
    );
    const property = fc.asyncProperty(fc.array(pcm, { minLength: 1, maxLength: 4 }), async (pieces) => {
      for (const bytes of pieces.map((piece) => Buffer.from(piece))) {
        const { text } = await sounded(bytes);
        expect(JSON.parse(text ?? '')).toEqual(wanted(bytes));
      }
    });
    await fc.assert(property, fuzzed(150));
  });

  it('are made exactly where a 16-bit length is the right one', async () => {
    const around = audioMessage(Buffer.alloc(0)).length;
    const framedUpTo = Math.floor((65_535 - around) / 4) * 3;
    const framedFrom = (Math.ceil((126 - around) / 4) - 1) * 3 + 1;
    for (const length of [1, framedFrom - 1, framedFrom, framedUpTo - 1, framedUpTo, framedUpTo + 1]) {
      const pcm = Buffer.alloc(length, 0xa5);
      const { text, isFramed } = await sounded(pcm);
      expect([length, isFramed]).toEqual([length, length >= framedFrom && length <= framedUpTo]);
      expect(JSON.parse(text ?? '')).toEqual(wanted(pcm));
    }
  });
});
