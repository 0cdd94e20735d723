import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { connectEvents, storedMessages, type ConnectionStatus } from '../../src/client/index.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { serveEvents } from '../../src/wire/serve-events.js';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve(listener: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

const event = (seq: number, frame: object): string =>
  `id: ${seq}\ndata: ${JSON.stringify({ seq, ...frame })}\n\n`;
const done = (seq: number, msg: string) => event(seq, { type: 'done', msg, role: 'model', text: msg });

function begin(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'Content-Type': 'text/event-stream' });
}

/** Waits that take no time. */
const quick = { retryFirstMs: 0, retryMaxMs: 0 };

describe('watching a call', () => {
  test('goes on after every loss with what is missing, and finishes with the call', async () => {
    const broadcast = new Broadcast({ clock: systemClock });
    const responses: ServerResponse[] = [];
    const { url, requests } = await serve((request, response) => {
      responses.push(response);
      serveEvents(broadcast, request, response);
    });
    const connection = connectEvents({ url, ...quick, headers: { Authorization: 'Bearer token' } });
    for (let index = 0; index < 20; index += 1) {
      broadcast.publish({ kind: 'delta', msg: `m${index}`, role: 'model', text: 'Hel' });
      await until(() => connection.state.messages.length === index + 1);
      broadcast.publish({ kind: 'done', msg: `m${index}`, role: 'model', text: 'Hello.' });
      responses.at(-1)?.destroy();
    }
    await until(() => storedMessages(connection.state).length === 20);
    broadcast.end();
    expect(await connection.ended).toMatchObject({ reason: 'finished' });
    expect(connection.state.counts).toMatchObject({ missing: 0, lost: 0, refused: 0 });
    expect(requests.every(({ headers }) => headers.authorization === 'Bearer token')).toBe(true);
    expect(requests.length).toBeGreaterThan(20);
  });

  test('begins anew where the server does, whose numbers are smaller then', async () => {
    let attempt = 0;
    const { url } = await serve((_, response) => {
      attempt += 1;
      const history = event(0, { type: 'history', messages: [{ msg: 'a', role: 'model', text: 'a' }] });
      if (attempt === 1)
        begin(response).end(done(7, 'a') + event(8, { type: 'delta', msg: 'b', role: 'user', text: 'b' }));
      else if (attempt === 2) begin(response).end(history + done(1, 'c'));
      else response.writeHead(204).end();
    });
    const connection = connectEvents({ url, ...quick });
    await connection.ended;
    expect(connection.state.messages.map(({ msg }) => msg)).toEqual(['a', 'c']);
  });

  test('gives up after so many attempts that bring nothing new', async () => {
    const { url, requests } = await serve((_, response) => void response.writeHead(503).end());
    const seen: ConnectionStatus[] = [];
    const connection = connectEvents({
      url,
      ...quick,
      attemptsMax: 4,
      onStatus: (status) => seen.push(status),
    });
    expect(await connection.ended).toMatchObject({ reason: 'lost' });
    expect(requests).toHaveLength(4);
    expect(seen.at(-1)).toBe('ended');
  });

  test.each([
    [401, 'application/json', 'refused'],
    [404, 'application/json', 'refused'],
    [200, 'text/html', 'refused'],
    [204, 'text/plain', 'finished'],
  ])('does not come back after %d with %s', async (status, type, reason) => {
    const { url, requests } = await serve(
      (_, response) => void response.writeHead(status, { 'Content-Type': type }).end(),
    );
    expect(await connectEvents({ url, ...quick }).ended).toMatchObject({ reason });
    expect(requests).toHaveLength(1);
  });

  test('takes a silent connection for dead', async () => {
    const clock = new VirtualClock();
    const { url, requests } = await serve((_, response) => begin(response).flushHeaders());
    const opened: ConnectionStatus[] = [];
    const onStatus = (status: ConnectionStatus) => opened.push(status);
    const connection = connectEvents({ url, clock, onStatus, silenceMaxMs: 100, chance: () => 0 });
    await until(() => opened.includes('open'));
    clock.advance(100);
    await until(() => opened.includes('waiting'));
    clock.advance(500);
    await until(() => requests.length === 2);
    connection.close();
    expect(await connection.ended).toMatchObject({ reason: 'closed' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('waits longer each time, up to a bound, never all at once, and ends within a wait', async () => {
    const clock = new VirtualClock();
    const { url, requests } = await serve((_, response) => void response.writeHead(503).end());
    const waits: number[] = [];
    const abort = new AbortController();
    const connection = connectEvents({
      url,
      clock,
      chance: () => 0.5,
      retryFirstMs: 100,
      retryMaxMs: 300,
      signal: abort.signal,
      silenceMaxMs: 1e9,
    });
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      await until(
        () => requests.length === attempt && clock.pendingTimers === 1 && (clock.nextTimerAtMs ?? 1e9) < 1e8,
      );
      waits.push((clock.nextTimerAtMs ?? 0) - clock.nowMs());
      if (attempt < 4) clock.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([75, 150, 225, 225]);
    abort.abort();
    expect(await connection.ended).toMatchObject({ reason: 'closed' });
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends with what the application threw', async () => {
    const { url } = await serve((_, response) => void begin(response).write(done(1, 'a')));
    const onChange = () => {
      throw new Error('of the page');
    };
    await expect(connectEvents({ url, onChange }).ended).rejects.toThrow('of the page');
  });
});

describe('a run', () => {
  test('is sent once, with what it is to do, and ends with its stream', async () => {
    const bodies: string[] = [];
    const { url, requests } = await serve((request, response) => {
      request.on('data', (chunk: Buffer) => bodies.push(String(chunk)));
      request.on('end', () => begin(response).end(done(1, 'a')));
    });
    const connection = connectEvents({ url, ...quick, body: { userId: 'u' } });
    expect(await connection.ended).toMatchObject({ reason: 'finished' });
    expect([requests[0]?.method, bodies.join('')]).toEqual(['POST', '{"userId":"u"}']);
    expect(storedMessages(connection.state)).toHaveLength(1);
  });

  test('is not sent again when its stream breaks', async () => {
    const { url, requests } = await serve((_, response) => {
      begin(response).write(done(1, 'a'), () => response.destroy());
    });
    expect(await connectEvents({ url, ...quick, body: {} }).ended).toMatchObject({ reason: 'lost' });
    expect(requests).toHaveLength(1);
  });
});
