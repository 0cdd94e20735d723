import { afterEach, describe, expect, it } from 'vitest';
import {
  CARRIER_CLOSE_MAX_MS,
  PRE_START_MAX_BYTES,
  STREAM_START_TIMEOUT_MS,
  UNSTARTED_SOCKETS_MAX,
} from '../../src/limits.js';
import type { CarrierTrust } from '../../src/telephony/carrier-gate.js';
import { LOCAL, MediaDoor, signature, SIGNED, START, until } from './media-door.js';

const doors: MediaDoor[] = [];

afterEach(async () => {
  for (const door of doors.splice(0)) await door.shut();
});

async function open(trust: CarrierTrust): Promise<MediaDoor> {
  const door = await MediaDoor.open(trust);
  doors.push(door);
  return door;
}

describe('the door of the media socket', () => {
  it.each([
    'wss://example.com/twilio/media',
    'wss://example.com:443/twilio/media',
    'https://example.com/twilio/media',
  ])('lets in an upgrade signed over %s', async (url) => {
    const door = await open(SIGNED);
    expect(await door.knock('/twilio/media', signature(url))).toMatchObject({ status: 101 });
  });

  it('lets a signed upgrade in whatever its Origin and forwarding headers say', async () => {
    const door = await open(SIGNED);
    const headers = { ...signature(), Origin: 'https://evil.example', 'X-Forwarded-For': '203.0.113.9' };
    expect(await door.knock('/twilio/media', headers)).toMatchObject({ status: 101 });
  });

  it('refuses a missing or wrong signature with a bare 403, before there is a WebSocket', async () => {
    const door = await open(SIGNED);
    for (const headers of [
      {},
      { 'X-Twilio-Signature': 'x' },
      signature('wss://example.com/twilio/other'),
      signature('wss://evil.example/twilio/media'),
      { ...signature(), 'X-Twilio-Webhooks-Signature-Settings': 'key=k,algorithm=HMAC_SHA256' },
      {
        ...signature('wss://evil.example/twilio/media'),
        Host: 'evil.example',
        'X-Forwarded-Host': 'evil.example',
      },
    ]) {
      expect(await door.knock('/twilio/media', headers)).toEqual({ status: 403, body: '' });
    }
    expect(door.refused).toEqual(Array(6).fill('signature'));
    expect(door.server.unstartedSockets).toBe(0);
    await until(() => door.sockets.every((socket) => socket.destroyed));
  });

  it('is 404 for every other path', async () => {
    const door = await open(LOCAL);
    for (const path of ['/', '/twilio/media/', '/twilio/medial', '/twilio']) {
      expect(await door.knock(path)).toEqual({ status: 404, body: '' });
    }
    expect(door.refused).toEqual(Array(4).fill('path'));
  });

  it('is 503 while draining', async () => {
    const door = await open(LOCAL);
    door.draining = true;
    expect(await door.knock('/twilio/media')).toEqual({ status: 503, body: '' });
    door.draining = false;
    expect(await door.knock('/twilio/media')).toMatchObject({ status: 101 });
    expect(door.refused).toEqual(['draining']);
  });

  it('is 503 while too many sockets have not started, and opens again', async () => {
    const door = await open(LOCAL);
    const callers = await Promise.all(Array.from({ length: UNSTARTED_SOCKETS_MAX }, () => door.dial()));
    expect(door.server.unstartedSockets).toBe(UNSTARTED_SOCKETS_MAX);
    expect(await door.knock('/twilio/media')).toEqual({ status: 503, body: '' });
    expect(door.refused).toEqual(['unstartedSockets']);
    callers[0]?.ws.terminate();
    await until(() => door.server.unstartedSockets === UNSTARTED_SOCKETS_MAX - 1);
    expect(await door.knock('/twilio/media')).toMatchObject({ status: 101 });
  });

  it('without an auth token serves this machine only', async () => {
    const door = await open(LOCAL);
    const own = `http://127.0.0.1:${door.port}`;
    expect(await door.knock('/twilio/media', { Origin: own })).toMatchObject({ status: 101 });
    expect(await door.knock('/twilio/media', { Host: 'localhost' })).toMatchObject({ status: 101 });
    for (const headers of [
      { Host: 'example.com' },
      { 'X-Forwarded-For': '127.0.0.1' },
      { Forwarded: 'for=127.0.0.1' },
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
    ]) {
      expect(await door.knock('/twilio/media', headers)).toEqual({ status: 403, body: '' });
    }
    expect(door.refused).toEqual([
      'hostNotLoopback',
      'forwarded',
      'forwarded',
      'foreignOrigin',
      'foreignOrigin',
    ]);
  });

  it('answers a malformed handshake with 400', async () => {
    const door = await open(LOCAL);
    expect(await door.knock('/twilio/media', { 'Sec-WebSocket-Key': 'short' })).toMatchObject({
      status: 400,
    });
    expect(door.server.unstartedSockets).toBe(0);
  });
});

describe('a media socket before its start', () => {
  it('may say connected or not, then start, and is asked about with its parameters', async () => {
    for (const first of [[{ event: 'connected', protocol: 'Call', version: '0.2.0' }], []]) {
      const door = await open(LOCAL);
      const caller = await door.dial();
      for (const message of [...first, START]) caller.say(message);
      await until(() => door.accepted.length === 1);
      expect(door.accepted[0]?.start).toEqual({
        streamSid: 'MZ1',
        callSid: 'CA1',
        accountSid: 'AC1',
        customParameters: { token: 'a-token' },
      });
      expect(door.server.openStreams).toBe(1);
      expect(door.server.unstartedSockets).toBe(0);
      expect(door.anomalies).toEqual([]);
    }
  });

  it('counts what comes too early or is no message, and starts all the same', async () => {
    const door = await open(LOCAL);
    const caller = await door.dial();
    caller.say('{');
    caller.ws.send(Buffer.from([1, 2, 3]));
    caller.say({ event: 'media', media: { payload: 'AAAA', timestamp: '1' } });
    caller.say({ event: 'hello' });
    caller.say(START);
    await until(() => door.accepted.length === 1);
    expect(door.anomalies).toEqual(['malformedJson', 'binaryFrame', 'beforeStart', 'unknownEvent']);
    expect(door.listener.media).toEqual([]);
  });

  it('is closed with 1008 when start does not come in time', async () => {
    const door = await open(LOCAL);
    const caller = await door.dial();
    caller.say({ event: 'connected' });
    door.clock.advance(STREAM_START_TIMEOUT_MS - 1);
    expect(door.anomalies).toEqual([]);
    door.clock.advance(1);
    await until(() => caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1008);
    expect(door.anomalies).toEqual(['startTimeout']);
    await until(() => door.server.unstartedSockets === 0);
    expect(door.clock.pendingTimers).toBe(0);
    expect(door.accepted).toEqual([]);
  });

  it('is cut when it does not even close', async () => {
    const door = await open(LOCAL);
    const caller = await door.dial();
    caller.ws.pause();
    door.clock.advance(STREAM_START_TIMEOUT_MS);
    expect(door.server.unstartedSockets).toBe(1);
    door.clock.advance(CARRIER_CLOSE_MAX_MS);
    await until(() => door.server.unstartedSockets === 0);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it('is closed with 1008 after too many bytes', async () => {
    const door = await open(LOCAL);
    const caller = await door.dial();
    const filler = JSON.stringify({ event: 'connected', filler: 'x'.repeat(PRE_START_MAX_BYTES / 4) });
    for (let i = 0; i < 4; i += 1) caller.say(filler);
    caller.say(START);
    await until(() => caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1008);
    expect(door.anomalies).toEqual(['tooMuchBeforeStart']);
    expect(door.accepted).toEqual([]);
  });

  it('is closed with 1008 when its start names no call or a sound that cannot be played', async () => {
    const door = await open(LOCAL);
    for (const start of [
      { streamSid: 'MZ1' },
      { ...START.start, mediaFormat: { encoding: 'audio/x-l16', sampleRate: 16000 } },
    ]) {
      const caller = await door.dial();
      caller.say({ event: 'start', start });
      await until(() => caller.closeCode !== undefined);
      expect(caller.closeCode).toBe(1008);
    }
    expect(door.anomalies).toEqual(['badStart', 'badStart']);
    expect(door.accepted).toEqual([]);
  });

  it('is closed with 1008 and without a reason when the call is not accepted', async () => {
    const door = await open(LOCAL);
    door.accept = () => ({ refused: 'wrong token' });
    const caller = await door.dial();
    let reason = 'none yet';
    caller.ws.on('close', (_code, text: Buffer) => (reason = text.toString()));
    caller.say(START);
    caller.say({ event: 'stop' });
    await until(() => caller.closeCode !== undefined);
    expect([caller.closeCode, reason]).toEqual([1008, '']);
    expect(door.refused).toEqual(['notAccepted']);
    expect(door.log.publicText).toContain('wrong token');
    await until(() => door.server.openStreams === 0);
    expect(door.clock.pendingTimers).toBe(0);
  });

  it('is closed with 1011 when accepting it fails', async () => {
    const door = await open(LOCAL);
    door.accept = () => {
      throw new Error('broken');
    };
    const caller = await door.dial();
    caller.say(START);
    await until(() => caller.closeCode !== undefined);
    expect(caller.closeCode).toBe(1011);
  });
});

describe('shutting the door', () => {
  it('closes every socket, cuts the ones that do not answer and takes no more', async () => {
    const door = await open(LOCAL);
    const { caller } = await door.call();
    const waiting = await door.dial();
    const frozen = await door.dial();
    frozen.ws.pause();
    const closed = door.server.close();
    const again = door.server.close();
    expect(await door.knock('/twilio/media')).toMatchObject({ status: 503 });
    await until(() => caller.closeCode !== undefined && waiting.closeCode !== undefined);
    expect([caller.closeCode, waiting.closeCode]).toEqual([1000, 1001]);
    await until(() => door.server.unstartedSockets === 1);
    door.clock.advance(CARRIER_CLOSE_MAX_MS);
    await Promise.all([closed, again]);
    expect([door.server.openStreams, door.server.unstartedSockets]).toEqual([0, 0]);
    expect(door.clock.pendingTimers).toBe(0);
    await door.server.close();
  });
});
