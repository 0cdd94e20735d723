/** The media socket behind a real `ws`, whatever the pieces in which bytes come: good messages get through, each once and in
 * order; bad ones cost nothing but themselves; broken framing costs that socket only. */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CARRIER_CONTROL_UNSENT_MAX_BYTES,
  CARRIER_PAYLOAD_MAX_BYTES,
  CARRIER_RATE_DEBT_MAX,
  CARRIER_UNSENT_MAX_BYTES,
} from '../../src/limits.js';
import type { MediaStreamListener } from '../../src/telephony/media-stream.js';
import { CarrierDoor, turn, type Wire } from './carrier-line.js';
import { readCorpus } from './corpus.js';
import { fuzzed } from './seed.js';
import { BINARY, CLOSE, fragmented, PING, PONG, wireFrame, ZERO_MASK } from './wire-frames.js';

class Heard implements MediaStreamListener {
  readonly events: string[] = [];
  onMedia(mulaw: Uint8Array, timestampMs: number): void {
    this.events.push(`media ${timestampMs} ${Buffer.from(mulaw).toString('hex')}`);
  }
  onDtmf(digit: string): void {
    this.events.push(`dtmf ${digit}`);
  }
  onMark(name: string): void {
    this.events.push(`mark ${name}`);
  }
  onStop(): void {
    this.events.push('stop');
  }
  onClose(): void {
    this.events.push('close');
  }
}

interface Part {
  readonly bytes: Buffer;
  /** What the call must hear of it. */
  readonly hears?: string;
}

const mask = fc.oneof(fc.constant(ZERO_MASK), fc.uint8Array({ minLength: 4, maxLength: 4 }));
const cuts = fc.oneof(fc.constant<number[]>([]), fc.array(fc.nat(), { maxLength: 4 }));

function said(message: object, hears: string, piece: { mask: Uint8Array; cuts: number[] }): Part {
  return { bytes: fragmented(Buffer.from(JSON.stringify(message)), piece.cuts, { mask: piece.mask }), hears };
}

const piece = fc.record({ mask, cuts });
const good: fc.Arbitrary<Part> = fc.oneof(
  fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 320 }), fc.nat(1e6), piece)
    .map(([mulaw, timestamp, how]) => {
      const sound = Buffer.from(mulaw);
      const media = { track: 'inbound', timestamp: String(timestamp), payload: sound.toString('base64') };
      return said({ event: 'media', media }, `media ${timestamp} ${sound.toString('hex')}`, how);
    }),
  fc
    .tuple(fc.constantFrom('1', '#', 'A'), piece)
    .map(([digit, how]) => said({ event: 'dtmf', dtmf: { digit } }, `dtmf ${digit}`, how)),
  fc
    .tuple(fc.string({ unit: 'grapheme', maxLength: 200 }), piece)
    .map(([name, how]) => said({ event: 'mark', mark: { name } }, `mark ${name}`, how)),
);
const hostile = ['carrier-media.txt', 'carrier-control.txt']
  .flatMap(readCorpus)
  .filter(({ verdict }) => /^(bad|wrong|malformed|unknown|duplicate|connected)/.test(verdict));
const bad: fc.Arbitrary<Part> = fc.oneof(
  fc.tuple(fc.constantFrom(...hostile), piece).map(([{ data }, how]) => ({
    bytes: fragmented(data, how.cuts, { mask: how.mask }),
  })),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ bytes: wireFrame(bytes, { opcode: BINARY }) })),
  fc.tuple(fc.uint8Array({ maxLength: 125 }), fc.constantFrom(PING, PONG)).map(([bytes, opcode]) => ({
    bytes: wireFrame(bytes, { opcode }),
  })),
);
const part = fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: bad });

/** The bytes in pieces as a network might bring them. */
function chunked(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? bytes.length;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

const sizes = fc.oneof(
  fc.constant([1_000_000]),
  fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 10 }),
  fc.constant([2, 7, 1, 60]),
);

const doors: { door: CarrierDoor; wires: Wire[] }[] = [];

function doorFor(heard: MediaStreamListener): CarrierDoor {
  const door = new CarrierDoor(heard);
  const wires: Wire[] = [];
  const dial = door.dial.bind(door);
  door.dial = () => {
    const wire = dial();
    wires.push(wire);
    return wire;
  };
  doors.push({ door, wires });
  return door;
}

async function shutAll(): Promise<void> {
  for (const { door, wires } of doors.splice(0)) {
    await door.shut(wires);
    expect(door.clock.pendingTimers).toBe(0);
  }
}

afterEach(shutAll);

describe('the media socket', () => {
  it('hands over every good message once and in order, however the bytes are cut, and survives the bad ones', async () => {
    const property = fc.asyncProperty(
      fc.array(part, { minLength: 1, maxLength: 25 }),
      sizes,
      async (parts, pieces) => {
        const heard = new Heard();
        const { wire } = await doorFor(heard).open();
        const bytes = Buffer.concat(parts.map((one) => one.bytes));
        for (const chunk of chunked(bytes, pieces)) {
          wire.feed(chunk);
          if (chunk.length > 100) await turn();
        }
        await turn();
        await turn();
        expect(heard.events).toEqual(parts.flatMap(({ hears }) => hears ?? []));
        await shutAll();
        expect(heard.events.at(-1)).toBe('close');
      },
    );
    await fc.assert(property, fuzzed(150));
  });

  it('closes one socket, and tells its call once, when the framing is broken; others hear nothing of it', async () => {
    const broken = fc.oneof(
      fc.uint8Array({ minLength: 20, maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
      fc.constant(wireFrame(Buffer.from('{}'), { mask: new Uint8Array(0) })),
      fc.constant(wireFrame(Buffer.from('{}'), { reserved: 4 })),
      fc.constant(wireFrame(Buffer.from('{}'), { opcode: 3 })),
      fc.constant(wireFrame(Buffer.alloc(126), { opcode: PING })),
      fc.constant(wireFrame(Buffer.from([0x03]), { opcode: CLOSE })),
      fc.constant(wireFrame(Buffer.from([0x03, 0xed]), { opcode: CLOSE })),
      fc.constant(wireFrame(Buffer.from([0x03, 0xe8, 0xff]), { opcode: CLOSE })),
      fc.constant(wireFrame(Buffer.from('{}'), { opcode: 0 })),
      fc.constant(wireFrame(Buffer.alloc(CARRIER_PAYLOAD_MAX_BYTES + 1, 0x20))),
      fc.constant(Buffer.from([0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
      fc.nat(10).map((cut) => wireFrame(Buffer.from('{"event":"stop"}')).subarray(0, cut)),
    );
    const property = fc.asyncProperty(
      fc.array(good, { maxLength: 3 }),
      broken,
      sizes,
      async (before, bytes, pieces) => {
        const heard = new Heard();
        const other = new Heard();
        const door = doorFor(heard);
        const { wire } = await door.open();
        door.accept = () => door.accepted(other);
        const { wire: otherWire } = await door.open();
        for (const chunk of chunked(Buffer.concat([...before.map((one) => one.bytes), bytes]), pieces))
          wire.feed(chunk);
        await turn();
        wire.hangUp();
        while (!heard.events.includes('close')) {
          door.clock.advance(500);
          await turn();
        }
        expect(heard.events.filter((event) => event === 'close')).toHaveLength(1);
        expect(heard.events.slice(0, before.length)).toEqual(before.map(({ hears }) => hears));
        otherWire.feed(wireFrame(Buffer.from('{"event":"dtmf","dtmf":{"digit":"7"}}')));
        await turn();
        expect(other.events).toEqual(['dtmf 7']);
        await shutAll();
      },
    );
    await fc.assert(property, fuzzed(100));
  });

  it('holds at most one message of an unfinished one, whatever its fragments', async () => {
    const heard = new Heard();
    const door = doorFor(heard);
    const { wire } = await door.open();
    wire.feed(wireFrame(Buffer.from('{"event":"'), { fin: false }));
    for (let sent = 0; sent < 100 && !heard.events.includes('close'); sent += 1) {
      wire.feed(wireFrame(Buffer.alloc(1_000, 0x61), { opcode: 0, fin: false }));
      await turn();
    }
    expect(heard.events).toEqual(['close']);
    expect(door.countOf('oversized')).toBe(1);
  });

  it('keeps no more than its bound for a peer that pings, reads nothing and is spoken to', async () => {
    const heard = new Heard();
    const door = doorFor(heard);
    const { wire, stream } = await door.open();
    wire.stuck = true;
    const sound = new Uint8Array(320);
    for (let times = 0; times < 3_000; times += 1) {
      wire.feed(wireFrame(Buffer.alloc(125), { opcode: PING }));
      stream.sendMedia(sound, `g1:m${times}`);
      if (times % 50 === 0) await turn();
      expect(stream.bufferedAmount).toBeLessThan(CARRIER_UNSENT_MAX_BYTES + 64 * 1024);
    }
  });

  it.each(['clear', 'mark'])(
    'is cut when a peer that reads nothing leaves no room for a %s',
    async (kind) => {
      const heard = new Heard();
      const door = doorFor(heard);
      const { wire, stream } = await door.open();
      wire.stuck = true;
      for (let times = 0; times < 40_000; times += 1) {
        if (kind === 'clear') stream.sendClear();
        else stream.sendMark(`g1:m${times}`);
        if (stream.bufferedAmount > CARRIER_CONTROL_UNSENT_MAX_BYTES + 1_024) expect.fail('the bound');
      }
      expect(door.countOf('unsentOverflow')).toBe(1);
      while (!heard.events.includes('close')) await turn();
      expect(heard.events).toEqual(['close']);
    },
  );

  it('closes on a flood after a bounded debt, hears keys until then, and nothing afterwards', async () => {
    const heard = new Heard();
    const door = doorFor(heard);
    const { wire } = await door.open();
    const key = wireFrame(Buffer.from('{"event":"dtmf","dtmf":{"digit":"7"}}'));
    const flood = Buffer.concat(Array.from({ length: 1_000 }, () => key));
    for (let times = 0; times < 20; times += 1) {
      wire.feed(flood);
      await turn();
    }
    const keys = heard.events.filter((event) => event === 'dtmf 7').length;
    expect(keys).toBeGreaterThan(CARRIER_RATE_DEBT_MAX);
    expect(keys).toBeLessThan(CARRIER_RATE_DEBT_MAX + 1_000);
    door.clock.advance(10_000);
    while (!heard.events.includes('close')) await turn();
    expect(heard.events.at(-1)).toBe('close');
  });
});
