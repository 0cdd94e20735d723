import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocketServer, WebSocket, type RawData } from 'ws';
import { systemClock } from '../../src/clock.js';
import {
  connectLive,
  initialState,
  reduce,
  storedMessages,
  type LiveOptions,
  type LiveSocketClass,
} from '../../src/client/index.js';
import { WAITING_TEXTS_MAX } from '../../src/client/bounds.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { LiveSocketSink } from '../../src/wire/live-socket-sink.js';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

type Received = Record<string, unknown>;

/** A server of live conversations; `open` is called for each socket. */
async function serve(open: (socket: WebSocket, attempt: number) => void) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const received: Received[][] = [];
  server.on('connection', (socket) => {
    const messages: Received[] = [];
    received.push(messages);
    socket.on('message', (data) => messages.push(JSON.parse(textOf(data)) as Received));
    open(socket, received.length);
  });
  closing.push(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, received };
}

/** What `ws` gives for a text message by default. */
function textOf(data: RawData): string {
  return (data as Buffer).toString();
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

function options(url: string): LiveOptions {
  const SocketClass = WebSocket as unknown as LiveSocketClass;
  return { url, userId: 'u', sessionId: 's', WebSocket: SocketClass, retryFirstMs: 0, retryMaxMs: 0 };
}

const done = (seq: number, msg: string) =>
  JSON.stringify({ type: 'done', seq, msg, role: 'model', text: msg });

describe('a live conversation', () => {
  test('starts, sends what waited, and takes frames and sound', async () => {
    const { url, received } = await serve((socket) => {
      socket.send(JSON.stringify({ type: 'ready', seq: 1 }));
      socket.send(JSON.stringify({ type: 'audio', data: 'AQID' }));
      socket.send(JSON.stringify({ type: 'clear' }));
      socket.send(JSON.stringify({ type: 'audio', data: 'BA==' }));
      socket.send(done(2, 'a'));
    });
    const sound: (Uint8Array | 'clear')[] = [];
    const live = connectLive({
      ...options(url),
      audio: { format: 'pcm16' },
      onAudio: (each) => sound.push(each),
      onClear: () => sound.push('clear'),
    });
    expect([live.sendText('Hello'), live.sendAudio(new Uint8Array([1]))]).toEqual([true, false]);
    await until(() => live.state.messages.length === 1);
    expect(live.state.isReady).toBe(true);
    expect(live.sendAudio(new Uint8Array([1, 2, 3]))).toBe(true);
    expect(live.sendImage('image/jpeg', new Uint8Array([255]))).toBe(true);
    live.end();
    await until(() => received[0]?.length === 5);
    expect(received[0]).toEqual([
      { type: 'start', userId: 'u', sessionId: 's', audio: { format: 'pcm16' } },
      { type: 'text', text: 'Hello' },
      { type: 'audio', data: 'AQID' },
      { type: 'image', mimeType: 'image/jpeg', data: '/w==' },
      { type: 'end' },
    ]);
    expect(sound).toEqual([new Uint8Array([1, 2, 3]), 'clear', new Uint8Array([4])]);
    live.close();
    expect(await live.ended).toMatchObject({ reason: 'closed' });
    expect(live.sendText('late')).toBe(false);
  });

  test('comes back after a loss without a fragment, and sends nothing twice', async () => {
    const broadcast = new Broadcast({ clock: systemClock });
    const sockets: WebSocket[] = [];
    const { url, received } = await serve((socket) => {
      sockets.push(socket);
      broadcast.watch(new LiveSocketSink(socket));
    });
    const live = connectLive(options(url));
    live.sendText('Hello');
    broadcast.publish({ kind: 'done', msg: 'a', role: 'model', text: 'Yes.' });
    broadcast.publish({ kind: 'delta', msg: 'b', role: 'model', text: 'Half ' });
    await until(() => live.state.messages.length === 2 && received[0]?.length === 2);
    sockets[0]?.terminate();
    await until(() => sockets.length === 2);
    broadcast.publish({ kind: 'done', msg: 'b', role: 'model', text: 'Half and whole.' });
    await until(() => storedMessages(live.state).length === 2 && received[1]?.length === 1);
    expect(live.state.messages.map(({ text }) => text)).toEqual(['Yes.', 'Half and whole.']);
    expect(received.map((messages) => messages.map(({ type }) => type))).toEqual([
      ['start', 'text'],
      ['start'],
    ]);
    broadcast.end();
    live.close();
    await live.ended;
  });

  test('hears nothing more of a socket that it left: what comes late does not touch the next one', async () => {
    const made: LateSocket[] = [];
    class LateSocket {
      readonly bufferedAmount = 0;
      readonly sent: string[] = [];
      readonly #listeners = new Map<string, (event: object) => void>();
      constructor() {
        made.push(this);
      }
      send(text: string): void {
        this.sent.push(text);
      }
      close(): void {
        // Its end comes much later.
      }
      addEventListener(type: string, listener: (event: object) => void): void {
        this.#listeners.set(type, listener);
      }
      say(type: string): void {
        this.#listeners.get(type)?.({ code: 1000 });
      }
    }
    const SocketClass = LateSocket as unknown as LiveSocketClass;
    const live = connectLive({ ...options('ws://late/'), WebSocket: SocketClass, silenceMaxMs: 5 });
    await until(() => made.length === 2);
    made[1]?.say('open');
    for (const late of ['open', 'message', 'error', 'close']) made[0]?.say(late);
    expect(live.sendText('Hello')).toBe(true);
    expect(made[1]?.sent.map((text) => (JSON.parse(text) as Received)['type'])).toEqual(['start', 'text']);
    live.close();
    expect(await live.ended).toMatchObject({ reason: 'closed' });
  });

  test('ends for good with a fatal error, and when it was told to end', async () => {
    const error = {
      type: 'error',
      seq: 1,
      msg: 'e',
      code: 'model_unreachable',
      message: 'later',
      fatal: true,
    };
    const { url } = await serve((socket, attempt) => {
      if (attempt === 1) socket.send(JSON.stringify(error), () => socket.close());
      else socket.on('message', (data) => textOf(data).includes('"end"') && socket.close());
    });
    const fatal = connectLive(options(url));
    expect(await fatal.ended).toMatchObject({ reason: 'finished' });
    expect(fatal.state.failures).toHaveLength(1);
    const seen: string[] = [];
    const ended = connectLive({ ...options(url), onStatus: (status) => seen.push(status) });
    await until(() => seen.includes('open'));
    ended.end();
    expect(await ended.ended).toMatchObject({ reason: 'finished' });
  });

  test('gives up after so many attempts, and keeps no more texts than the bound', async () => {
    const { url } = await serve((socket) => socket.terminate());
    const live = connectLive({ ...options(url.replace(/:\d+/, ':1')), attemptsMax: 3 });
    const kept = Array.from({ length: WAITING_TEXTS_MAX + 5 }, () => live.sendText('x')).filter(Boolean);
    expect(kept).toHaveLength(WAITING_TEXTS_MAX);
    expect(await live.ended).toMatchObject({ reason: 'lost' });
  });

  test('says so where there is no WebSocket', () => {
    const before = Object.getOwnPropertyDescriptor(globalThis, 'WebSocket');
    Reflect.deleteProperty(globalThis, 'WebSocket');
    try {
      expect(() => connectLive({ url: 'ws://localhost/', userId: 'u', sessionId: 's' })).toThrow(TypeError);
    } finally {
      if (before) Object.defineProperty(globalThis, 'WebSocket', before);
    }
  });
});

describe('a live socket that is not read', () => {
  test('stalls only itself, and is told the whole when it reads again', async () => {
    const broadcast = new Broadcast({ clock: systemClock });
    let server: WebSocket | undefined;
    const { url } = await serve((socket) => {
      server = socket;
      broadcast.watch(new LiveSocketSink(socket));
    });
    const socket = new WebSocket(url);
    await once(socket, 'open');
    socket.pause();
    await until(() => broadcast.watchers === 1);
    const text = 'x'.repeat(8_000);
    let state = initialState;
    socket.on('message', (data) => (state = reduce(state, JSON.parse(textOf(data)))));
    for (let index = 0; index < 200; index += 1) {
      broadcast.publish({ kind: 'delta', msg: 'm', role: 'model', text });
      if (index % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(server?.bufferedAmount).toBeLessThan(1024 * 1024);
    broadcast.end();
    socket.resume();
    await once(socket, 'close');
    expect(state.messages[0]?.text).toHaveLength(200 * 8_000);
    expect(state.counts).toMatchObject({ missing: 0, lost: 0 });
    await until(() => broadcast.watchers === 0);
  });
});
