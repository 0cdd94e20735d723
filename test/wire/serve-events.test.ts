import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import {
  WIRE_FINISH_MAX_MS,
  WIRE_HEARTBEAT_MS,
  WIRE_LOG_FRAMES_MAX,
  WIRE_LOG_MAX_CHARS,
} from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { serveEvents } from '../../src/wire/serve-events.js';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(broadcast: Broadcast): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer((request, response) => serveEvents(broadcast, request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    broadcast.end();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, port, server };
}

/** A client that sends a request and reads nothing. */
async function stalledClient(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause();
  closing.push(() => socket.destroy());
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return socket;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const done = (msg: string, text: string) => ({ kind: 'done', msg, role: 'model', text }) as const;

describe('an HTTP client', () => {
  test('gets events with the number as id, one line of data each, and headers that nothing holds back', async () => {
    const broadcast = new Broadcast({ clock: systemClock });
    const { url } = await serve(broadcast);
    broadcast.publish(done('a', 'First\nline'));
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(response.headers.get('cache-control')).toContain('no-transform');
    broadcast.publish(done('b', 'Second'));
    broadcast.end();
    expect(await response.text()).toBe(
      [
        'retry: 2000\n',
        'id: 1\ndata: {"type":"history","seq":1,"messages":[{"msg":"a","role":"model","text":"First\\nline"}]}\n',
        'id: 2\ndata: {"type":"done","seq":2,"msg":"b","role":"model","text":"Second"}\n\n',
      ].join('\n'),
    );
  });

  test('goes on after its Last-Event-ID, and is told not to come back when it has had everything', async () => {
    const broadcast = new Broadcast({ clock: systemClock });
    const { url } = await serve(broadcast);
    for (const msg of ['a', 'b', 'c']) broadcast.publish(done(msg, msg));
    broadcast.end();
    const resumed = await fetch(url, { headers: { 'Last-Event-ID': '2' } });
    expect([...(await resumed.text()).matchAll(/^id: (\d+)$/gm)].map(([, id]) => id)).toEqual(['3']);
    expect((await fetch(url, { headers: { 'Last-Event-ID': '3' } })).status).toBe(204);
    const unreadable = await fetch(url, { headers: { 'Last-Event-ID': 'three' } });
    expect(await unreadable.text()).toContain('"history"');
  });

  test('that went away before it was answered leaves nothing behind', async () => {
    const clock = new VirtualClock();
    const broadcast = new Broadcast({ clock });
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const socket = await stalledClient((server.address() as AddressInfo).port);
    const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
    socket.destroy();
    await until(() => response.destroyed);
    serveEvents(broadcast, request, response);
    expect(broadcast.watchers).toBe(0);
    broadcast.end();
    expect(clock.pendingTimers).toBe(0);
  });
});

/** Reads a stream as it comes. */
class Reader {
  text = '';
  readonly ended: Promise<void>;

  constructor(response: Response) {
    this.ended = this.#read(response);
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of response.body!)
      this.text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
}

/** Publishes messages of 4 kB, and lets those that read keep up. */
async function publishMany(broadcast: Broadcast, count: number, readers: readonly Reader[]): Promise<void> {
  const text = 'x'.repeat(4_096);
  for (let index = 0; index < count; index += 1) {
    broadcast.publish({ kind: 'delta', msg: `m${index}`, role: 'model', text: text.slice(0, 100) });
    broadcast.publish(done(`m${index}`, text));
    if (index % 100 !== 99) continue;
    await until(() => readers.every((reader) => reader.text.includes(`\nid: ${broadcast.seq}\n`)));
    expect(broadcast.kept.frames).toBeLessThanOrEqual(WIRE_LOG_FRAMES_MAX);
    expect(broadcast.kept.chars).toBeLessThanOrEqual(WIRE_LOG_MAX_CHARS);
  }
}

describe('a client that does not read', () => {
  test('is hung up alone once it is too far behind', async () => {
    const clock = new VirtualClock();
    const broadcast = new Broadcast({ clock });
    const { url, port } = await serve(broadcast);
    const stalled = await stalledClient(port);
    await until(() => broadcast.watchers === 1);
    const reader = new Reader(await fetch(url));
    // 12 MB: more than a kernel keeps for one socket, 4 MB by default (https://docs.kernel.org/networking/ip-sysctl.html).
    await publishMany(broadcast, 3_000, [reader]);
    clock.advance(WIRE_HEARTBEAT_MS);
    await until(() => broadcast.watchers === 1);
    broadcast.end();
    await reader.ended;
    expect(reader.text.match(/"type":"done"/g)).toHaveLength(3_000);
    expect(stalled.bytesRead).toBeLessThan(1024 * 1024);
  });
});

describe('two hundred watchers of one stream, half of them stalled', () => {
  test('the others get everything, and what is kept for all stays bounded', { timeout: 60_000 }, async () => {
    const clock = new VirtualClock();
    const broadcast = new Broadcast({ clock });
    const { url, port } = await serve(broadcast);
    await Promise.all(Array.from({ length: 100 }, () => stalledClient(port)));
    const readers = await Promise.all(Array.from({ length: 100 }, async () => new Reader(await fetch(url))));
    await until(() => broadcast.watchers === 200);
    await publishMany(broadcast, 300, readers);
    broadcast.end();
    await Promise.all(readers.map((reader) => reader.ended));
    for (const each of readers) expect(each.text.match(/"type":"done"/g)).toHaveLength(300);
    clock.advance(WIRE_FINISH_MAX_MS);
    await until(() => broadcast.watchers === 0);
    expect(clock.pendingTimers).toBe(0);
  });
});
