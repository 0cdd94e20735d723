/** A connection that never was on a network, as its two ends see it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { MemorySocket } from '../../src/replay/memory-socket.js';
import { acceptKey, FrameReader, textFrame } from '../../src/replay/websocket-wire.js';

function connect() {
  const written: string[] = [];
  const faults: unknown[] = [];
  let gone = 0;
  const socket = new MemorySocket({
    onWritten: (bytes) => written.push(bytes.toString('latin1')),
    onGone: () => (gone += 1),
    onFault: (error) => faults.push(error),
  });
  return { socket, written, faults, gone: () => gone };
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

describe('a socket in memory', () => {
  it('hands over what is written at once, whatever its form', () => {
    const { socket, written } = connect();
    socket.write('text');
    socket.write('ff00', 'hex');
    socket.write(Buffer.from([1, 2]));
    socket.cork();
    socket.write('a');
    socket.write(Buffer.from('b'));
    socket.uncork();
    expect(written.slice(0, 3)).toEqual(['text', 'ÿ\u0000', '\u0001\u0002']);
    expect(written.slice(3).join('')).toBe('ab');
    expect(socket.writableLength).toBe(0);
  });

  it('keeps what is written while the other side does not read, in order, and counts it', () => {
    const { socket, written } = connect();
    socket.write('1');
    socket.setReads(false);
    for (const text of ['22', '333', '4444']) socket.write(text);
    socket.setReads(false);
    expect(written).toEqual(['1']);
    expect(socket.writableLength).toBe(9);
    socket.setReads(true);
    socket.setReads(true);
    expect(written.join('')).toBe('1223334444');
  });

  it('takes no write with it that was never read when it is cut', async () => {
    const { socket, written, gone } = connect();
    socket.on('error', () => {});
    socket.setReads(false);
    socket.write('unread');
    socket.destroy();
    await turn();
    socket.setReads(true);
    expect(written).toEqual([]);
    expect(gone()).toBe(1);
  });

  it('tells once that it has gone, however often it is ended and cut', async () => {
    const { socket, gone } = connect();
    socket.end();
    await turn();
    socket.destroy();
    socket.destroy();
    await turn();
    expect(gone()).toBe(1);
  });

  it('keeps what its listener throws from the server that writes, and tells it', async () => {
    const faults: unknown[] = [];
    const failed: unknown[] = [];
    const socket = new MemorySocket({
      onWritten: () => {
        throw new Error('written');
      },
      onGone: () => {
        throw new Error('gone');
      },
      onFault: (error) => faults.push(error),
    });
    socket.on('error', (error) => failed.push(error));
    socket.write('1');
    socket.setReads(false);
    socket.write('2');
    socket.setReads(true);
    socket.end();
    await turn();
    socket.destroy();
    await turn();
    expect(faults.map(String)).toEqual(['Error: written', 'Error: written', 'Error: gone']);
    expect(failed).toEqual([]);
  });

  it('is fed and hung up in order, and not behind its end', async () => {
    const { socket } = connect();
    const read: string[] = [];
    socket.on('data', (bytes: Buffer) => read.push(bytes.toString()));
    socket.feed(Buffer.from('a'));
    socket.feed(Buffer.from('b'));
    socket.hangUp();
    await once(socket, 'end');
    socket.hangUp();
    socket.destroy();
    socket.feed(Buffer.from('c'));
    expect(read.join('')).toBe('ab');
  });

  it('is a socket to Node’s HTTP server and to ws', async () => {
    const http = createServer((_request, response) => response.end('here'));
    const webSockets = new WebSocketServer({ noServer: true });
    http.on('upgrade', (request, socket, head) => {
      webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        webSocket.on('message', (data: Buffer) => webSocket.send(`heard ${data.toString()}`));
      });
    });
    const asked = connect();
    http.emit('connection', asked.socket);
    asked.socket.feed(Buffer.from('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'));
    while (asked.gone() === 0) await turn();
    expect(asked.written.join('')).toMatch(/^HTTP\/1\.1 200 OK[^]*here$/);

    const texts: string[] = [];
    const reader = new FrameReader({ onText: (text) => texts.push(text), onPing() {}, onClose() {} });
    const heads: string[] = [];
    const socket = new MemorySocket({
      onWritten: (bytes) => {
        if (heads.length > 0) reader.read(bytes);
        else heads.push(bytes.toString());
      },
      onGone() {},
      onFault: (error) => {
        throw error;
      },
    });
    http.emit('connection', socket);
    const key = Buffer.alloc(16).toString('base64');
    socket.feed(
      Buffer.from(
        `GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\n` +
          'Sec-WebSocket-Version: 13\r\n\r\n',
      ),
    );
    while (heads.length === 0) await turn();
    expect(heads[0]).toContain(`Sec-WebSocket-Accept: ${acceptKey(key)}`);
    const long = 'x'.repeat(70_000);
    for (const text of ['one', long]) socket.feed(textFrame(text, 'client'));
    while (texts.length < 2) await turn();
    expect(texts).toEqual(['heard one', `heard ${long}`]);
    socket.destroy();
    webSockets.close();
    http.close();
  });
});
