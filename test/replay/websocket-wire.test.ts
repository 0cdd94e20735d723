/** Both ways against `ws`: what we write it reads, and what it writes we read, at every length and in any cut. */
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import * as ws from 'ws';
import {
  acceptKey,
  binaryFrame,
  closeFrame,
  FrameReader,
  pongFrame,
  type Side,
  textFrame,
} from '../../src/replay/websocket-wire.js';

type SendOptions = { fin: boolean; compress: boolean; binary: boolean; mask: boolean };
/** The parts of `ws` that its types leave out. */
interface WsParts {
  readonly Receiver: new (options: { isServer: boolean }) => NodeJS.WritableStream & {
    on(event: string, listener: (...args: never[]) => void): unknown;
    write(bytes: Buffer, done: (error?: Error | null) => void): boolean;
  };
  readonly Sender: new (socket: Duplex) => {
    send(data: Buffer, options: SendOptions): void;
    ping(data: Buffer, mask: boolean): void;
    close(code: number | undefined, reason: string | undefined, mask: boolean): void;
  };
}
const { Receiver, Sender } = ws as unknown as WsParts;

/** Around each border between the three ways in which a frame tells its length, and one way past a read. */
const LENGTHS = [
  0, 1, 2, 3, 4, 5, 124, 125, 126, 127, 128, 255, 256, 65_534, 65_535, 65_536, 65_537, 200_001,
];
const SIDES: readonly Side[] = ['client', 'server'];

function textOf(length: number): string {
  return Array.from({ length }, (_, at) => String.fromCharCode(97 + (at % 26))).join('');
}

interface Got {
  readonly kind: string;
  readonly value: string;
}

/** What `ws` reads of `bytes`, handed over in pieces of `cut` bytes. */
async function readByWs(bytes: Buffer, from: Side, cut = bytes.length): Promise<Got[]> {
  const got: Got[] = [];
  const receiver = new Receiver({ isServer: from === 'client' });
  receiver.on('message', (data: Buffer, isBinary: boolean) => {
    got.push({ kind: isBinary ? 'binary' : 'text', value: data.toString() });
  });
  receiver.on('pong', (data: Buffer) => got.push({ kind: 'pong', value: data.toString() }));
  receiver.on('conclude', (code: number, reason: Buffer) => {
    got.push({ kind: 'close', value: `${code} ${reason.toString()}` });
  });
  for (let at = 0; at < bytes.length; at += cut) {
    await new Promise<void>((resolve, reject) => {
      receiver.write(bytes.subarray(at, at + cut), (error) => (error ? reject(error) : resolve()));
    });
  }
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  return got;
}

/** What `ws` writes. */
function writtenByWs(write: (sender: InstanceType<WsParts['Sender']>) => void): Buffer {
  const chunks: Buffer[] = [];
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  write(new Sender(socket));
  expect(chunks.length).toBeGreaterThan(0);
  return Buffer.concat(chunks);
}

function readByUs(bytes: Buffer, cut = bytes.length): Got[] {
  const got: Got[] = [];
  const reader = new FrameReader({
    onText: (text) => got.push({ kind: 'text', value: text }),
    onPing: (payload) => got.push({ kind: 'ping', value: payload.toString() }),
    onClose: (code) => got.push({ kind: 'close', value: String(code) }),
  });
  for (let at = 0; at < bytes.length; at += cut) reader.read(bytes.subarray(at, at + cut));
  return got;
}

const SEND = { fin: true, compress: false, binary: false } as const;

describe.each(SIDES)('frames that a %s sends', (side) => {
  it.each(LENGTHS)('are read by ws: %i bytes, text and binary', async (length) => {
    const value = textOf(length);
    const bytes = Buffer.concat([textFrame(value, side), binaryFrame(Buffer.from(value), side)]);
    expect(await readByWs(bytes, side)).toEqual([
      { kind: 'text', value },
      { kind: 'binary', value },
    ]);
  });

  it('carry text beyond ASCII, pongs and closes with a reason', async () => {
    const frames = [textFrame('こんにちは, 你好, 🙂', side), pongFrame(Buffer.from('ping'), side)];
    const bytes = Buffer.concat([...frames, closeFrame(1011, 'überlastet', side)]);
    for (const cut of [1, 2, 3, 7, bytes.length]) {
      expect(await readByWs(bytes, side, cut)).toEqual([
        { kind: 'text', value: 'こんにちは, 你好, 🙂' },
        { kind: 'pong', value: 'ping' },
        { kind: 'close', value: '1011 überlastet' },
      ]);
    }
  });

  it.each(LENGTHS)('are read back as ws writes them: %i bytes', (length) => {
    const value = textOf(length);
    const mask = side === 'client';
    const bytes = writtenByWs((sender) => sender.send(Buffer.from(value), { ...SEND, mask }));
    expect(readByUs(bytes)).toEqual([{ kind: 'text', value }]);
  });

  it('are read in any cut, pings and closes between them', () => {
    const mask = side === 'client';
    const texts = ['', 'a', textOf(126), 'ein Stück', textOf(300)];
    const bytes = writtenByWs((sender) => {
      for (const text of texts) sender.send(Buffer.from(text), { ...SEND, mask });
      sender.ping(Buffer.from('p'), mask);
      sender.close(1000, 'done', mask);
    });
    const whole = readByUs(bytes);
    expect(whole.map(({ kind }) => kind)).toEqual([...texts.map(() => 'text'), 'ping', 'close']);
    expect(whole.slice(0, texts.length).map(({ value }) => value)).toEqual(texts);
    for (let cut = 1; cut <= 40; cut += 1) expect(readByUs(bytes, cut)).toEqual(whole);
  });
});

describe('the ends of a WebSocket', () => {
  it('knows a close without a code', () => {
    const bytes = writtenByWs((sender) => sender.close(undefined, undefined, false));
    expect(readByUs(bytes)).toEqual([{ kind: 'close', value: '1005' }]);
  });

  it('answers the key as the standard shows', () => {
    expect(acceptKey('dGhlIHNhbXBsZSBub25jZQ==')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  });
});
