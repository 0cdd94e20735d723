/** One client's socket over time: a start that does not come, a socket that has died, a door that does not answer. */
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { nextTurn } from '../../src/clock.js';
import { scopeOn } from '../support/scopes.js';
import { CARRIER_SILENCE_MAX_MS, STREAM_START_TIMEOUT_MS } from '../../src/limits.js';
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
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  ping(): void {
    this.pings += 1;
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

const START = Buffer.from(JSON.stringify({ type: 'start', userId: 'u', sessionId: 's' }));

async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
}

function entered() {
  const clock = new VirtualClock(0);
  const socket = new FakeSocket();
  const events: string[] = [];
  const scope = scopeOn(clock);
  const listener = {
    onMedia: () => {},
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
    onSoundDropped: () => {},
  });
  const join = async (fault?: { code: string; message: string }) => {
    answer({ line, broadcast, fault });
    await settle();
  };
  return { clock, socket, events, client, broadcast, join };
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
