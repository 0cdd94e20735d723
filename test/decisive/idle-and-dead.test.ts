/**
 * Idle is not dead, and dead is found out: rows G8 and I4. Over real sockets; time is a virtual clock's, or goes faster than ours.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Clock, systemClock } from '../../src/clock.js';
import { CARRIER_PING_INTERVAL_MS, CARRIER_SILENCE_MAX_MS } from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { LiveDoor } from '../../src/web/live-door.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { serveEvents } from '../../src/wire/serve-events.js';
import { FrameReader } from '../support/frame-reader.js';
import { scopeOn } from '../support/scopes.js';
import { ScriptedCarrier } from '../support/scripted-carrier.js';
import { Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** The server's seconds are an eighth of ours. */
const HURRY = 8;
const HURRIED: Clock = {
  nowMs: () => systemClock.nowMs() * HURRY,
  wallMs: () => systemClock.wallMs(),
  setTimer: (delayMs, fire) => systemClock.setTimer(delayMs / HURRY, fire),
};

const closing: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** One conversation, watched by server-sent events and held by a web client. */
async function idleConversation() {
  const clock = new VirtualClock();
  const broadcast = new Broadcast({ clock });
  const heard: string[] = [];
  const line = {
    callSid: 'web-1',
    listener: {
      onMedia: () => {},
      onDtmf: () => {},
      onMark: () => {},
      onStop: () => void heard.push('stop'),
      onClose: (code: number) => void heard.push(`close ${code}`),
    },
    scope: scopeOn(clock),
    isReady: true,
    type: () => true,
    show: () => false,
  };
  const live = new LiveDoor({
    open: async () => ({ line, broadcast }),
    clock,
    log: silentLog,
    onSoundDropped: () => {},
  });
  const http = createServer((request, response) => serveEvents(broadcast, request, response));
  http.on('upgrade', (request, socket, head) => live.handleUpgrade(request, socket, head));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  closing.push(async () => {
    broadcast.end();
    await live.close();
    http.closeAllConnections();
    http.close();
  });
  const address = `127.0.0.1:${(http.address() as AddressInfo).port}`;
  const watcher = new FrameReader(`http://${address}/`);
  const ws = new WebSocket(`ws://${address}/`);
  const types: string[] = [];
  let pings = 0;
  ws.on('message', (data) => types.push((JSON.parse((data as Buffer).toString()) as { type: string }).type));
  ws.on('ping', () => (pings += 1));
  ws.on('error', () => {});
  await once(ws, 'open');
  ws.send(JSON.stringify({ type: 'start', userId: 'u', sessionId: 's' }));
  await waitUntil('both to be told something', () => watcher.read.length > 0 && types.includes('ready'));
  return { clock, live, watcher, ws, types, heard, pings: () => pings };
}

describe('a stream of which nothing is to be told', () => {
  it('G8: has two heartbeats in 35 s, as server-sent events and on a web client’s socket', async () => {
    const { clock, watcher, ws, types, heard, pings } = await idleConversation();
    for (let seconds = 5; seconds <= 35; seconds += 5) {
      const before = pings();
      clock.advance(5_000);
      // The client answers pings by itself; the server must have had the answer before time goes on.
      await waitUntil('a ping', () => pings() > before);
      ws.ping();
      await once(ws, 'pong');
    }
    const beats = (all: readonly string[]): number => all.filter((type) => type === 'heartbeat').length;
    await waitUntil('the heartbeats', () => beats(types) >= 2);
    await watcher.until('the heartbeats', ({ frames }) => beats(frames.map(({ type }) => type)) >= 2);
    expect(heard).toEqual([]);
    expect(ws.readyState).toBe(WebSocket.OPEN);
    expect(watcher.isEnded).toBe(false);
  });
});

describe('a line that has died without a word', () => {
  it('I4: of a web client is cut within its limit, and not before; the conversation is told', async () => {
    const { clock, live, ws, heard } = await idleConversation();
    ws.pause();
    clock.advance(CARRIER_SILENCE_MAX_MS - CARRIER_PING_INTERVAL_MS);
    expect(live.clients).toBe(1);
    clock.advance(CARRIER_PING_INTERVAL_MS);
    await waitUntil('the end', () => live.clients === 0);
    // Lost, not closed: it may come back.
    expect(heard).toEqual(['close 1006']);
    ws.terminate();
  });

  it('I4: of a phone ends the call and the model’s connection within its limit', async () => {
    const stage = await Stage.open({}, HURRIED);
    closing.push(() => stage.close());
    const carrier = new ScriptedCarrier(stage.url);
    await carrier.ring();
    const model = await stage.gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    carrier.freeze();
    await waitUntil('the end', async () => {
      return (await stage.json(`/calls/${carrier.callSid}`)).body['state'] === 'ended';
    });
    await model.waitForClose();
    expect((await stage.json(`/calls/${carrier.callSid}`)).body['endReason']).toBe('carrier_lost');
    await stage.idle();
  });
});
