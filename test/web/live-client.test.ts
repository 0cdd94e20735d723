/** One client's socket over time: a start that does not come, a socket that has died, a door that does not answer. */
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { nextTurn } from '../../src/clock.js';
import { scopeOn } from '../support/scopes.js';
import {
  CARRIER_SILENCE_MAX_MS,
  STREAM_START_TIMEOUT_MS,
  WEB_EARLY_MAX_BYTES,
  WEB_MESSAGES_BURST,
  WEB_MESSAGES_DEBT_MAX,
  WEB_TEXTS_BURST,
} from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { LiveClient } from '../../src/web/live-client.js';
import type { OpenLive } from '../../src/web/live-runs.js';
import { Broadcast } from '../../src/wire/broadcast.js';

class FakeSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  readonly sent: Record<string, unknown>[] = [];
  pings = 0;
  pongs = 0;
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  ping(): void {
    this.pings += 1;
  }
  pong(): void {
    this.pongs += 1;
  }
  pause(): void {}
  resume(): void {}
  close(code: number): void {
    this.#end(code);
  }
  terminate(): void {
    this.#end(1006);
  }
  #end(code: number): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.emit('close', code, Buffer.alloc(0));
  }
}

const START_MESSAGE = { type: 'start', userId: 'u', sessionId: 's' };
const START = Buffer.from(JSON.stringify(START_MESSAGE));
const AUDIO_START = Buffer.from(JSON.stringify({ ...START_MESSAGE, audio: 'audio/x-mulaw;rate=8000' }));

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
}

function entered() {
  const clock = new VirtualClock(0);
  const socket = new FakeSocket();
  const events: string[] = [];
  /** Sound that was passed on, and that was left out. */
  const heard = { ms: 0, droppedMs: 0 };
  const scope = scopeOn(clock);
  const listener = {
    onMedia: (sound: Uint8Array) => void (heard.ms += sound.length / 8),
    onDtmf: () => {},
    onMark: () => {},
    onStop: () => void events.push('stop'),
    onClose: (code: number) => void events.push(`close ${code}`),
  };
  const broadcast = new Broadcast({ clock });
  const line = {
    callSid: 'web-1',
    listener,
    scope,
    isReady: true,
    type: (text: string) => events.push(text) > 0,
    show: () => false,
  };
  let answer: (opened: Awaited<ReturnType<OpenLive>>) => void = () => {};
  const client = new LiveClient({
    ws: socket as unknown as WebSocket,
    clock,
    log: silentLog,
    open: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
    onJoined: () => {},
    onGone: () => void events.push('gone'),
    onSoundDropped: (ms) => void (heard.droppedMs += ms),
  });
  const join = async (fault?: { code: string; message: string }) => {
    answer({ line, broadcast, fault });
    await settle();
  };
  return { clock, socket, events, heard, client, broadcast, join };
}

describe('a client’s socket', () => {
  it('is told when it joins that what was said before could not be read', async () => {
    const { socket, join } = entered();
    socket.emit('message', START, false);
    await join({ code: 'store_failed', message: 'What was said before could not be read.' });
    await nextTurn();
    await nextTurn();
    expect(socket.sent.find(({ type }) => type === 'error')).toMatchObject({
      code: 'store_failed',
      message: 'What was said before could not be read.',
      fatal: false,
    });
  });

  it('is closed when no start comes', () => {
    const { clock, socket, events } = entered();
    clock.advance(STREAM_START_TIMEOUT_MS);
    expect(socket.sent).toMatchObject([{ type: 'error', code: 'start_missing', fatal: true }]);
    expect(events).toEqual(['gone']);
  });

  it('is pinged, and cut once nothing comes any more; the conversation may then be taken up again', async () => {
    const { clock, socket, events, join, broadcast } = entered();
    socket.emit('message', START, false);
    await join();
    for (let at = 0; at < 10; at += 1) {
      clock.advance(CARRIER_SILENCE_MAX_MS / 3);
      socket.emit('pong');
    }
    expect(socket.readyState).toBe(1);
    expect(socket.pings).toBeGreaterThanOrEqual(9);
    clock.advance(CARRIER_SILENCE_MAX_MS);
    expect(socket.readyState).toBe(3);
    expect(events).toEqual(['close 1006', 'gone']);
    broadcast.end();
  });

  it('loses no text that came while its conversation was opened, and ends what opens after it has gone', async () => {
    const { socket, events, join, broadcast } = entered();
    socket.emit('message', START, false);
    socket.emit('message', Buffer.from('{"type":"text","text":"early"}'), false);
    expect(events).toEqual([]);
    await join();
    expect(events).toEqual(['early']);
    broadcast.end();
    const gone = entered();
    gone.socket.emit('message', START, false);
    gone.socket.terminate();
    await gone.join();
    expect(gone.events).toEqual(['gone', 'close 1006']);
    gone.broadcast.end();
  });

  it.each([
    ['as the shipped client writes them', (text: string) => ({ type: 'text', text })],
    ['with the keys in another order', (text: string) => ({ text, type: 'text' })],
  ])('loses no text however fast sound and pictures come, %s', async (_, textOf) => {
    const { socket, events, heard, join, broadcast } = entered();
    const send = (message: object) => socket.emit('message', Buffer.from(JSON.stringify(message)), false);
    socket.emit('message', AUDIO_START, false);
    await join();
    const frame = { type: 'audio', data: Buffer.alloc(160).toString('base64') };
    const long = 'a long text '.repeat(500);
    const texts = Array.from({ length: WEB_TEXTS_BURST }, (__, at) => `${at} ${long}`);
    const rounds = WEB_MESSAGES_BURST + 500;
    for (let round = 0; round < rounds; round += 1) {
      send(frame);
      send({ type: 'image', mimeType: 'image/png', data: 'AQID' });
      const text = texts[round - rounds + texts.length];
      if (text !== undefined) send(textOf(text));
    }
    expect(events).toEqual(texts);
    // Counted without being read: nearly exact.
    expect(Math.abs(heard.ms + heard.droppedMs - rounds * 20)).toBeLessThan(0.02 * rounds * 20);
    expect(heard.droppedMs).toBeGreaterThan(500 * 20);
    await nextTurn();
    await nextTurn();
    const errors = socket.sent.filter(({ type }) => type === 'error');
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.every(({ fatal }) => fatal === false)).toBe(true);
    expect(socket.readyState).toBe(1);
    broadcast.end();
  });

  it('is told of each text that is left out, and which it was', async () => {
    const { socket, events, join, broadcast } = entered();
    socket.emit('message', START, false);
    await join();
    const count = WEB_TEXTS_BURST + 5;
    for (let at = 1; at <= count; at += 1)
      socket.emit('message', Buffer.from(JSON.stringify({ type: 'text', text: `text ${at}` })), false);
    await nextTurn();
    await nextTurn();
    const told = socket.sent.flatMap(({ code, fatal, message }) => {
      const [, number] = /text (\d+) of this connection is left out/.exec(String(message)) ?? [];
      return code === 'too_fast' && fatal === false && number !== undefined ? [`text ${number}`] : [];
    });
    expect([...events, ...told]).toEqual(Array.from({ length: count }, (_, at) => `text ${at + 1}`));
    expect(told).toHaveLength(5);
    broadcast.end();
  });

  it('is hung up when it sends too much before its conversation is open', async () => {
    const { socket, events, join, broadcast } = entered();
    socket.emit('message', START, false);
    const text = Buffer.from(JSON.stringify({ type: 'text', text: 'x'.repeat(1_000_000) }));
    for (let sent = text.length; sent <= WEB_EARLY_MAX_BYTES; sent += text.length)
      socket.emit('message', text, false);
    expect(socket.readyState).toBe(1);
    socket.emit('message', text, false);
    expect(socket.sent.at(-1)).toMatchObject({ type: 'error', code: 'too_fast', fatal: true });
    expect(socket.readyState).toBe(3);
    await join();
    // Its line ends at once: the model does not wait for somebody who does not come back.
    expect(events).toEqual(['gone', 'stop', 'close 1006']);
    broadcast.end();
  });

  describe.each(['ping', 'pong', 'message'] as const)('with a flood of %s', (kind) => {
    const flood = (socket: FakeSocket, count: number): void => {
      const sound = Buffer.from('{"type":"audio","data":"////"}');
      for (let sent = 0; sent < count; sent += 1)
        socket.emit(kind, kind === 'message' ? sound : Buffer.from('x'), false);
    };
    it.each([150, WEB_MESSAGES_BURST - 10])('stays for a burst of %i', async (count) => {
      const { socket, events, join, broadcast } = entered();
      socket.emit('message', AUDIO_START, false);
      await join();
      flood(socket, count);
      expect([socket.readyState, events.includes('stop')]).toEqual([1, false]);
      expect(socket.pongs).toBe(kind === 'ping' ? count : 0);
      broadcast.end();
    });

    it('is hung up with 1008, and its conversation is over', async () => {
      const { socket, events, join, broadcast } = entered();
      let code: number | undefined;
      socket.on('close', (closed: number) => (code = closed));
      socket.emit('message', AUDIO_START, false);
      await join();
      flood(socket, WEB_MESSAGES_BURST + WEB_MESSAGES_DEBT_MAX + 1);
      expect(socket.sent.at(-1)).toMatchObject({ type: 'error', code: 'too_fast', fatal: true });
      expect([code, events.includes('stop')]).toEqual([1008, true]);
      expect(socket.pongs).toBeLessThanOrEqual(WEB_MESSAGES_BURST);
      broadcast.end();
    });
  });

  it('that does not read is sent no pongs', async () => {
    const { socket, join, broadcast } = entered();
    socket.emit('message', START, false);
    await join();
    socket.bufferedAmount = 1024 * 1024;
    for (let sent = 0; sent < 50; sent += 1) socket.emit('ping', Buffer.from('x'));
    expect(socket.pongs).toBe(0);
    broadcast.end();
  });

  it('that gives way says so and leaves the conversation to the other', async () => {
    const { socket, events, client, join, broadcast } = entered();
    socket.emit('message', START, false);
    await join();
    client.giveWay();
    expect(socket.sent.at(-1)).toMatchObject({ type: 'error', code: 'run_conflict', fatal: true });
    expect(events).toContain('gone');
    broadcast.end();
  });
});
