import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import {
  CARRIER_CLOSE_MAX_MS,
  CARRIER_MESSAGES_PER_SECOND_MAX,
  CARRIER_PAYLOAD_MAX_BYTES,
  CARRIER_PING_INTERVAL_MS,
  CARRIER_RATE_DEBT_MAX,
  CARRIER_SILENCE_MAX_MS,
  CARRIER_UNSENT_MAX_BYTES,
} from '../../src/limits.js';
import { OutgoingFrames } from '../../src/telephony/outgoing-frames.js';
import { LOCAL, media, MediaDoor, START, until } from './media-door.js';

const doors: MediaDoor[] = [];

afterEach(async () => {
  for (const door of doors.splice(0)) await door.shut();
});

async function open(): Promise<MediaDoor> {
  const door = await MediaDoor.open(LOCAL);
  doors.push(door);
  return door;
}

const SOUND = Uint8Array.from({ length: 160 }, (_, i) => i);

describe('what the carrier says', () => {
  it('reaches the listener in order: sound, key presses, marks, stop, close', async () => {
    const door = await open();
    const { caller } = await door.call();
    caller.say(media(SOUND, 0));
    caller.say(JSON.stringify(media(SOUND.subarray(0, 7), 20), null, 2));
    caller.say({ event: 'dtmf', streamSid: 'MZ1', dtmf: { track: 'inbound_track', digit: '5' } });
    caller.say({ event: 'mark', streamSid: 'MZ1', mark: { name: 'g1:7' } });
    caller.say({ event: 'stop', streamSid: 'MZ1', stop: { callSid: 'CA1' } });
    caller.ws.close(1000, 'bye');
    await until(() => door.listener.closed);
    expect(door.listener.heard).toEqual(['media', 'media', 'dtmf 5', 'mark g1:7', 'stop', 'close 1000bye']);
    expect(door.listener.media).toEqual([
      { mulaw: [...SOUND], timestampMs: 0 },
      { mulaw: [...SOUND.subarray(0, 7)], timestampMs: 20 },
    ]);
    expect(door.anomalies).toEqual([]);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it.each([
    ['malformedJson', '{'],
    ['malformedJson', Buffer.from([0x7b, 0xff, 0x7d])],
    ['unknownEvent', { event: 'hello' }],
    ['duplicateStart', START],
    ['wrongStream', { ...media(SOUND, 0), streamSid: 'MZ2' }],
    ['wrongTrack', { event: 'media', media: { track: 'outbound', timestamp: '0', payload: 'AAAA' } }],
    ['badMedia', { event: 'media', media: { timestamp: {}, payload: 'AAAA' } }],
    ['badPayload', { event: 'media', media: { timestamp: '0', payload: 'A*AA' } }],
    ['badPayload', { event: 'media', media: { timestamp: '0', payload: '' } }],
    ['badDtmf', { event: 'dtmf', dtmf: { digit: '12' } }],
    ['badMark', { event: 'mark', mark: {} }],
  ])('is counted as %s, logged once, and the call goes on', async (kind, message) => {
    const door = await open();
    const { caller } = await door.call();
    for (let i = 0; i < 3; i += 1) caller.say(message);
    caller.say(media(SOUND, 40));
    await until(() => door.listener.media.length === 1);
    expect(door.anomalies).toEqual([kind, kind, kind]);
    expect(door.listener.heard).toEqual(['media']);
    const logged = door.log.lines.filter(({ fields }) => fields['anomaly'] === kind);
    expect(logged).toHaveLength(1);
    expect(logged[0]?.fields).toMatchObject({ callSid: 'CA1', streamSid: 'MZ1' });
  });

  it('may be binary, which is counted and skipped', async () => {
    const door = await open();
    const { caller } = await door.call();
    caller.ws.send(Buffer.from(JSON.stringify(media(SOUND, 0))), { binary: true });
    caller.say(media(SOUND, 20));
    await until(() => door.listener.media.length === 1);
    expect(door.anomalies).toEqual(['binaryFrame']);
    expect(door.listener.media[0]?.timestampMs).toBe(20);
  });

  it('counts for nothing after stop, but for the close', async () => {
    const door = await open();
    const { caller } = await door.call();
    for (const message of [
      { event: 'stop' },
      media(SOUND, 0),
      { event: 'mark', mark: { name: 'x' } },
      { event: 'dtmf', dtmf: { digit: '1' } },
      { event: 'stop' },
    ]) {
      caller.say(message);
    }
    caller.ws.close();
    await until(() => door.listener.closed);
    expect(door.listener.heard).toEqual(['stop', 'close 1005']);
    expect(door.anomalies).toEqual(Array(4).fill('afterStop'));
  });

  it('ends the socket with 1009 when a message is larger than any may be', async () => {
    const door = await open();
    const { caller } = await door.call();
    caller.say('x'.repeat(CARRIER_PAYLOAD_MAX_BYTES + 1));
    await until(() => door.listener.closed && caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1009);
    expect(door.anomalies).toEqual(['oversized']);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it('ends the socket when its frames break the protocol', async () => {
    const door = await open();
    const { caller } = await door.call();
    caller.socket?.write(Buffer.from([0x83, 0x80, 0, 0, 0, 0]));
    await until(() => door.listener.closed);
    expect(door.anomalies).toEqual(['protocolError']);
  });

  it('ends only its own call when the listener fails', async () => {
    for (const failOn of ['media', 'mark', 'stop']) {
      const door = await open();
      door.listener.failOn = failOn;
      const { caller } = await door.call();
      for (const message of [media(SOUND, 0), { event: 'mark', mark: { name: 'x' } }, { event: 'stop' }]) {
        caller.say(message);
      }
      await until(() => caller.closeCode !== undefined && door.listener.closed);
      expect(caller.closeCode).toBe(1011);
      expect(door.log.lines.some(({ level }) => level === 'error')).toBe(true);
    }
    const door = await open();
    door.listener.failOn = 'close';
    const { caller } = await door.call();
    caller.ws.close();
    await until(() => door.listener.closed);
    expect(door.log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('too many messages', () => {
  it('lose their sound but not their marks, and the call goes on when the flood ends', async () => {
    const door = await open();
    const { caller } = await door.call();
    const extra = 20;
    for (let i = 0; i < CARRIER_MESSAGES_PER_SECOND_MAX + extra; i += 1) caller.say(media(SOUND, i * 20));
    caller.say(`{"event":"mark","filler":"${'x'.repeat(1_100)}","mark":{"name":"long"}}`);
    caller.say({ event: 'mark', mark: { name: 'after' } });
    await until(() => door.listener.heard.at(-1) === 'mark after');
    expect(door.listener.media).toHaveLength(CARRIER_MESSAGES_PER_SECOND_MAX);
    expect(door.anomalies).toEqual(Array(extra + 1).fill('overRate'));
    door.clock.advance(1_000);
    caller.say(media(SOUND, 99_999));
    await until(() => door.listener.media.at(-1)?.timestampMs === 99_999);
  });

  it('never trouble a carrier that catches up after a gap', async () => {
    const door = await open();
    const { caller } = await door.call();
    for (let second = 0; second < 5; second += 1) {
      for (let i = 0; i < CARRIER_MESSAGES_PER_SECOND_MAX; i += 1) caller.say(media(SOUND, i));
      await until(() => door.listener.media.length === (second + 1) * CARRIER_MESSAGES_PER_SECOND_MAX);
      door.clock.advance(1_000);
    }
    expect(door.anomalies).toEqual([]);
  });

  it('end the socket with 1008 when there is no end of them', async () => {
    const door = await open();
    const { caller } = await door.call();
    const most = CARRIER_MESSAGES_PER_SECOND_MAX + CARRIER_RATE_DEBT_MAX;
    for (let i = 0; i < most + 10; i += 1) caller.say('{}');
    await until(() => caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1008);
    expect(door.anomalies).toHaveLength(most + 1);
    expect(door.anomalies.at(-1)).toBe('overRate');
  });
});

describe('what we say to the carrier', () => {
  it('is media, mark and clear, each exactly in its shape', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    stream.sendMedia(SOUND);
    stream.sendMedia(SOUND.subarray(3, 5), 'g1:1');
    stream.sendMark('g1:2');
    stream.sendClear();
    stream.sendMedia(new Uint8Array(0), 'only a mark');
    stream.sendMedia(new Uint8Array(0));
    stream.sendMark('last');
    await until(() => caller.frames.length === 7);
    const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
    expect(caller.frames).toEqual([
      { event: 'media', streamSid: 'MZ1', media: { payload: base64(SOUND) } },
      { event: 'media', streamSid: 'MZ1', media: { payload: base64(SOUND.subarray(3, 5)) } },
      { event: 'mark', streamSid: 'MZ1', mark: { name: 'g1:1' } },
      { event: 'mark', streamSid: 'MZ1', mark: { name: 'g1:2' } },
      { event: 'clear', streamSid: 'MZ1' },
      { event: 'mark', streamSid: 'MZ1', mark: { name: 'only a mark' } },
      { event: 'mark', streamSid: 'MZ1', mark: { name: 'last' } },
    ]);
    expect(caller.texts.includes('binary')).toBe(false);
  });

  it('goes out in one write, in order, when it is sent between cork and uncork', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    stream.cork();
    stream.sendMedia(SOUND);
    stream.sendMedia(SOUND, 'g1:1');
    stream.sendClear();
    expect(stream.bufferedAmount).toBe(0);
    stream.uncork();
    stream.cork();
    stream.uncork();
    await until(() => caller.frames.length === 4);
    expect(caller.frames.map((frame) => (frame as { event: string }).event)).toEqual([
      'media',
      'media',
      'mark',
      'clear',
    ]);
    stream.cork();
    stream.sendMark('late');
    stream.terminate();
    stream.uncork();
  });

  it('arrives whole for any length and any mark, between pings and pongs of both sides', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    const lengths = [1, 2, 3, 31, 32, 33, 160, 320, 480, 16_384, 16_385, 48_000, 70_000, 320];
    const names = [
      '',
      'a"b\\c\n',
      '\u0000\u007f\u0080\u00ff',
      'na\u00efve \u{1F600}',
      'x'.repeat(70),
      'y'.repeat(70_000),
    ];
    const expected: unknown[] = [];
    for (const [i, length] of lengths.entries()) {
      const bytes = Uint8Array.from({ length }, (_, k) => (k * 31 + i) & 0xff);
      const name = names[i % names.length] ?? '';
      caller.ws.ping();
      door.clock.advance(CARRIER_PING_INTERVAL_MS);
      stream.sendMedia(bytes, name);
      expected.push({
        event: 'media',
        streamSid: 'MZ1',
        media: { payload: Buffer.from(bytes).toString('base64') },
      });
      expected.push({ event: 'mark', streamSid: 'MZ1', mark: { name } });
      bytes.fill(0);
      await until(() => caller.frames.length === expected.length);
    }
    expect(caller.frames).toEqual(expected);
    expect(caller.pings).toBe(lengths.length);
    expect(caller.closeCode).toBe(undefined);
  });

  it('is in bytes what it is in characters, whatever the stream is called', () => {
    const name = fc.string({ maxLength: 200, unit: 'binary' });
    const property = fc.property(name, name, fc.uint8Array({ maxLength: 300 }), (sid, mark, bytes) => {
      const frames = new OutgoingFrames(sid as StreamSid);
      for (const frame of [frames.media(bytes), frames.mark(mark), frames.clear()]) {
        const wire = Buffer.from(frame, 'latin1');
        const small = (wire[1] ?? 0) < 126;
        const length = small ? wire[1] : wire.readUInt16BE(2);
        const text = wire.subarray(small ? 2 : 4);
        expect([wire[0], length]).toEqual([0x81, text.length]);
        const parsed = JSON.parse(text.toString('utf8')) as { streamSid: string; mark?: { name: string } };
        expect(parsed.streamSid).toBe(JSON.parse(JSON.stringify(sid)));
        if (parsed.mark) expect(parsed.mark.name).toBe(JSON.parse(JSON.stringify(mark)));
      }
    });
    expect(() => fc.assert(property)).not.toThrow();
    expect(parseStreamSid('MZ 1')).toBe(undefined);
  });

  it('waits in bufferedAmount when the carrier does not read, and beyond a limit is dropped with its mark', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    expect(stream.bufferedAmount).toBe(0);
    caller.ws.pause();
    const second = new Uint8Array(8_000);
    let sent = 0;
    while (stream.bufferedAmount <= CARRIER_UNSENT_MAX_BYTES) {
      stream.sendMedia(second, `m${sent}`);
      sent += 1;
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    const full = stream.bufferedAmount;
    stream.sendMedia(second, 'dropped');
    expect(stream.bufferedAmount).toBe(full);
    expect(door.anomalies).toEqual(['unsentOverflow']);
    stream.sendClear();
    expect(stream.bufferedAmount).toBeGreaterThan(full);
    caller.ws.resume();
    await until(() => caller.frames.length === 2 * sent + 1);
    expect(caller.frames.at(-1)).toEqual({ event: 'clear', streamSid: 'MZ1' });
    expect(caller.texts.some((text) => text.includes('dropped'))).toBe(false);
    await until(() => stream.bufferedAmount === 0);
  });
});

describe('the end of a stream', () => {
  it('by close is a handshake with 1000; afterwards nothing is sent or heard', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    stream.sendMark('goodbye');
    stream.close();
    stream.close();
    stream.sendMedia(SOUND, 'late');
    stream.sendClear();
    caller.say(media(SOUND, 0));
    await until(() => door.listener.closed && caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1000);
    expect(caller.frames).toHaveLength(1);
    expect(door.listener.heard).toEqual(['close 1000']);
    stream.sendMedia(SOUND, 'later');
    stream.sendMark('later');
    stream.close();
    stream.terminate();
    expect(stream.bufferedAmount).toBe(0);
    expect(door.clock.pendingTimers).toBe(0);
    expect(door.listener.heard).toHaveLength(1);
  });

  it('is bounded when the carrier does not answer the close', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    caller.ws.pause();
    stream.close();
    door.clock.advance(CARRIER_CLOSE_MAX_MS - 1);
    expect(door.listener.heard).toEqual([]);
    door.clock.advance(1);
    await until(() => door.listener.closed);
    expect(door.listener.heard).toEqual(['close 1006']);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it('by terminate is at once, also in the middle of a message', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    stream.terminate();
    stream.terminate();
    stream.sendMedia(SOUND, 'late');
    caller.say(media(SOUND, 0));
    await until(() => door.listener.closed && caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1006);
    expect(door.listener.heard).toEqual(['close 1006']);
    expect(door.clock.pendingTimers).toBe(0);
    await until(() => door.server.openStreams === 0);
  });

  it('may come while the stream is still being accepted', async () => {
    for (const end of ['close', 'terminate'] as const) {
      const door = await open();
      door.accept = (_start, stream) => {
        stream[end]();
        return door.listener;
      };
      const { caller } = await door.call();
      await until(() => door.listener.closed && caller.closeCode !== undefined);
      expect(door.listener.heard).toHaveLength(1);
      expect(door.clock.pendingTimers).toBe(0);
    }
  });

  it('by a torn connection is told once', async () => {
    const door = await open();
    const { caller, stream } = await door.call();
    caller.socket?.resetAndDestroy();
    stream.sendMedia(SOUND, 'into the void');
    await until(() => door.listener.closed);
    stream.sendMedia(SOUND, 'into the void');
    expect(door.listener.heard).toEqual(['close 1006']);
    expect(door.clock.pendingTimers).toBe(0);
  });
});

describe('the watchdog', () => {
  it('finds a frozen peer after the silence limit, and not before', async () => {
    const door = await open();
    const { caller } = await door.call();
    caller.ws.pause();
    door.clock.advance(CARRIER_SILENCE_MAX_MS - 1);
    expect(door.anomalies).toEqual([]);
    door.clock.advance(1);
    expect(door.anomalies).toEqual(['silence']);
    await until(() => door.listener.closed);
    expect(door.listener.heard).toEqual(['close 1006']);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it('counts from the last thing heard, not from its own ticks', async () => {
    const door = await open();
    const { caller } = await door.call();
    door.clock.advance(CARRIER_PING_INTERVAL_MS - 1);
    caller.say(media(SOUND, 0));
    await until(() => door.listener.media.length === 1);
    caller.ws.pause();
    door.clock.advance(CARRIER_SILENCE_MAX_MS - 1);
    expect(door.anomalies).toEqual([]);
    door.clock.advance(1);
    expect(door.anomalies).toEqual(['silence']);
  });

  it('is content with pongs alone', async () => {
    const door = await open();
    const { caller } = await door.call();
    let pongs = 0;
    door.sockets[0]?.on('data', () => (pongs += 1));
    for (let tick = 1; tick <= 10; tick += 1) {
      door.clock.advance(CARRIER_PING_INTERVAL_MS);
      await until(() => pongs === tick);
    }
    expect(caller.pings).toBe(10);
    expect(door.anomalies).toEqual([]);
    expect(door.listener.heard).toEqual([]);
  });
});
