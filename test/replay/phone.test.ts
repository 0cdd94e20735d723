import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import twilio from 'twilio';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TelephonyError } from '../../src/errors.js';
import { Phone, type PhoneOptions } from '../../src/replay/phone.js';
import type { PhoneRecord } from '../../src/replay/phone-record.js';
import { writeWav } from '../../src/replay/sound-file.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { ScriptedServer, until, type SeenStream } from './scripted-server.js';
import { concat, silence, tone } from './tones.js';

let server: ScriptedServer;
let clock: VirtualClock;
beforeEach(async () => {
  server = await new ScriptedServer().start();
  clock = new VirtualClock(5_000.25);
});
afterEach(() => server.stop());

function phoneFor(options: Partial<PhoneOptions> = {}): Phone {
  return new Phone({ clock, url: server.url, ...options });
}

/** Places the call and waits until the server has seen `start`. */
async function connected(options: Partial<PhoneOptions> = {}, after = '') {
  server.answers.set('/twilio/voice', () => ({ body: server.connectTwiml(after) }));
  const phone = phoneFor(options);
  const over = phone.call();
  await until(() => server.streams[0]?.of('start').length === 1);
  return { phone, over, stream: server.streams[0]! };
}

/** Sends through the server's side and waits until the phone has it: a mark behind it comes back only then. */
async function delivered(stream: SeenStream, send: () => void): Promise<void> {
  const before = stream.of('mark').length;
  send();
  await until(() => stream.of('mark').length > before);
}

async function failureOf(phone: Phone): Promise<string> {
  const error: unknown = await phone.call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TelephonyError);
  expect((error as TelephonyError).code).toBe('phone_failed');
  return (error as TelephonyError).message;
}

describe('the phone at the webhook', () => {
  it('posts the parameters that Twilio posts and ends the call behind an empty document', async () => {
    server.answers.set('/twilio/voice', { body: '<Response/>' });
    const phone = phoneFor({ from: '+12025550111', parameters: { StirVerstat: '', CallerName: 'A & B' } });
    const record = await phone.call();
    expect(record.endedBy).toBe('server');
    const [request] = server.asked('/twilio/voice');
    expect(request?.method).toBe('POST');
    expect(request?.headers['content-type']).toContain('application/x-www-form-urlencoded');
    expect(request?.params).toMatchObject({
      CallSid: phone.callSid,
      From: '+12025550111',
      Caller: '+12025550111',
      To: '+12025550199',
      CallStatus: 'ringing',
      Direction: 'inbound',
      ApiVersion: '2010-04-01',
      CallerName: 'A & B',
      FromCountry: 'US',
    });
    expect(request?.params['StirVerstat']).toBeUndefined();
    expect(phone.callSid).toMatch(/^CA[0-9a-f]{32}$/);
    expect(server.asked('/twilio/status')[0]?.params).toMatchObject({
      CallStatus: 'completed',
      CallDuration: '0',
    });
  });

  it('calls the agent that was named', async () => {
    server.answers.set('/twilio/voice/front%20desk', { body: '<Response/>' });
    await phoneFor({ agent: 'front desk' }).call();
    expect(server.asked('/twilio/voice/front%20desk')).toHaveLength(1);
  });

  it('signs every request and the upgrade over the public URL while it reaches the server at its own', async () => {
    const authToken = 'test-token-0123456789';
    const publicUrl = 'https://voice.example.com';
    server.answers.set('/twilio/voice', {
      body: server.connectTwiml('<Redirect>/twilio/after?x=1&amp;y=2</Redirect>', {
        streamUrl: 'wss://voice.example.com/twilio/media',
        extra: ' statusCallback="https://voice.example.com/twilio/stream"',
      }),
    });
    server.answers.set('/twilio/after', { body: '<Response/>' });
    server.answers.set('/twilio/stream', {});
    const over = phoneFor({ authToken, publicUrl }).call();
    await until(() => server.streams[0]?.of('start').length === 1);
    server.streams[0]!.socket.close(1000);
    await over;
    const paths = server.requests.map((request) => request.path);
    expect(new Set(paths)).toEqual(
      new Set(['/twilio/voice', '/twilio/after?x=1&y=2', '/twilio/stream', '/twilio/status']),
    );
    for (const { path, headers, params } of server.requests) {
      const signature = String(headers['x-twilio-signature']);
      expect(twilio.validateRequest(authToken, signature, publicUrl + path, params)).toBe(true);
      expect(twilio.validateRequest('another', signature, publicUrl + path, params)).toBe(false);
    }
    const signature = String(server.streams[0]!.request.headers['x-twilio-signature']);
    expect(twilio.validateRequest(authToken, signature, 'wss://voice.example.com/twilio/media', {})).toBe(
      true,
    );
    expect(server.streams[0]!.request.headers.origin).toBeUndefined();
  });

  it('sends no signature without an auth token', async () => {
    server.answers.set('/twilio/voice', { body: '<Response/>' });
    await phoneFor().call();
    expect(server.requests.every((request) => request.headers['x-twilio-signature'] === undefined)).toBe(
      true,
    );
  });

  it.each([
    ['an error status', { status: 500 }, 'HTTP 500 instead of TwiML (11200)'],
    ['a refused signature', { status: 403 }, 'HTTP 403'],
    ['a redirect of HTTP', { status: 302 }, 'HTTP 302'],
    ['no XML', { body: 'oops' }, 'TwiML from POST'],
    ['JSON', { body: '{}', type: 'application/json' }, '"application/json" is no TwiML (12300)'],
    ['too much', { body: `<Response>${' '.repeat(70_000)}</Response>` }, 'the answer is over 65536 bytes'],
  ])('says what is wrong when the webhook answers with %s', async (_what, answer, message) => {
    server.answers.set('/twilio/voice', answer);
    const failure = await failureOf(phoneFor());
    expect(failure).toContain(message);
    expect(failure).toContain(`${server.url}/twilio/voice`);
    expect(server.asked('/twilio/status')[0]?.params['CallStatus']).toBe('failed');
  });

  it('says that nobody listens', async () => {
    const url = server.url;
    await server.stop();
    expect(await failureOf(new Phone({ clock, url }))).toContain('ECONNREFUSED');
    await server.start();
  });

  it('gives a webhook 15 seconds', async () => {
    const asked: string[] = [];
    server.answers.set('/twilio/voice', (request) => {
      asked.push(request.path);
      clock.advance(14_999);
      return { body: '<Response/>' };
    });
    expect((await phoneFor().call()).endedBy).toBe('server');
    server.answers.set('/twilio/voice', () => {
      clock.advance(15_000);
      return { body: '<Response/>' };
    });
    expect(await failureOf(phoneFor())).toContain('no answer within 15 s');
  });
});

describe('the phone on the media socket', () => {
  it('says connected and start as Twilio does, with the parameters of the TwiML', async () => {
    server.answers.set('/twilio/voice', {
      body: server.connectTwiml('', {
        parameters: '<Parameter name="token" value="a&amp;b"/><Parameter name="n" value="1"/>',
      }),
    });
    const phone = phoneFor({ accountSid: 'AC123' });
    const over = phone.call();
    await until(() => server.streams[0]?.messages.length === 2);
    const [first, second] = server.streams[0]!.messages;
    expect(first).toEqual({ event: 'connected', protocol: 'Call', version: '1.0.0' });
    const { streamSid } = server.streams[0]!;
    expect(streamSid).toMatch(/^MZ[0-9a-f]{32}$/);
    expect(second).toEqual({
      event: 'start',
      sequenceNumber: '1',
      streamSid,
      start: {
        accountSid: 'AC123',
        streamSid,
        callSid: phone.callSid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: { token: 'a&b', n: '1' },
      },
    });
    phone.hangUp();
    await over;
  });

  it('sends 20 ms frames, each when its sound is complete, and silence behind what is said', async () => {
    const voice = concat(tone(40), silence(20), tone(20, 880));
    const { phone, over, stream } = await connected({ voice });
    clock.advance(19.9);
    phone.dtmf('5');
    clock.advance(0.1);
    clock.advance(80);
    await until(() => stream.of('media').length === 5);
    expect(stream.of('dtmf')).toEqual([
      {
        event: 'dtmf',
        sequenceNumber: '2',
        streamSid: stream.streamSid,
        dtmf: { track: 'inbound_track', digit: '5' },
      },
    ]);
    const frames = stream.of('media') as unknown as {
      sequenceNumber: string;
      media: Record<string, string>;
    }[];
    expect(
      frames.map((frame) => [frame.sequenceNumber, frame.media['chunk'], frame.media['timestamp']]),
    ).toEqual([
      ['3', '1', '0'],
      ['4', '2', '20'],
      ['5', '3', '40'],
      ['6', '4', '60'],
      ['7', '5', '80'],
    ]);
    expect(frames.every((frame) => frame.media['track'] === 'inbound')).toBe(true);
    const sent = concat(
      ...frames.map((frame) => new Uint8Array(Buffer.from(frame.media['payload'] ?? '', 'base64'))),
    );
    expect(sent).toEqual(concat(voice, silence(20)));
    phone.hangUp();
    const record = await over;
    expect(record.said).toEqual(concat(voice, silence(20)));
    expect(record.durationMs).toBeCloseTo(100);
  });

  it('puts what is said later behind what is said already', async () => {
    const { phone, over } = await connected({ voice: tone(100) });
    clock.advance(40);
    phone.say(tone(40, 880));
    expect(phone.hasVoiceLeft).toBe(true);
    clock.advance(160);
    expect(phone.hasVoiceLeft).toBe(false);
    phone.say(tone(20, 660));
    clock.advance(40);
    phone.hangUp();
    const { said } = await over;
    expect(said).toEqual(concat(tone(100), tone(40, 880), silence(60), tone(20, 660), silence(20)));
  });

  it('presses its timed keys when they are due', async () => {
    const keys = [
      { atMs: 50, digit: '1' },
      { atMs: 90, digit: '#' },
    ];
    const { phone, over, stream } = await connected({ keys });
    clock.advance(60);
    phone.hangUp();
    await over;
    await until(() => stream.closed !== undefined);
    expect(stream.of('dtmf').map((message) => message['dtmf'])).toEqual([
      { track: 'inbound_track', digit: '1' },
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('catches up with a burst when it is late, skips when it is very late, and says so', async () => {
    class JumpingClock extends VirtualClock {
      jumpMs = 0;
      override nowMs(): number {
        return super.nowMs() + this.jumpMs;
      }
    }
    const jumping = new JumpingClock();
    clock = jumping;
    const { phone, over, stream } = await connected();
    jumping.advance(20);
    jumping.jumpMs = 100;
    jumping.advance(20);
    await until(() => stream.of('media').length === 7);
    jumping.jumpMs += 3_000;
    jumping.advance(20);
    phone.hangUp();
    const { pacing } = await over;
    expect(pacing.latenessMaxMs).toBe(3_000);
    expect(pacing.framesSkipped).toBe(150);
    await until(() => stream.closed !== undefined);
    const last = stream.of('media').at(-1) as unknown as { media: Record<string, string> };
    expect(last.media).toMatchObject({ chunk: '8', timestamp: String((7 + 150) * 20) });
  });

  it('hears on one timeline what the server sent, and echoes marks when it was played', async () => {
    const { phone, over, stream } = await connected();
    clock.advance(60);
    const [first, second] = [tone(100), tone(50, 880)];
    await delivered(stream, () => stream.mark('at once'));
    stream.media(first);
    stream.mark('played');
    await delivered(stream, () => {
      stream.media(second);
      stream.clear();
    });
    // The clear has dropped all of it, so that the mark came back without its sound.
    expect(stream.of('mark').map((message) => message['mark'])).toEqual([
      { name: 'at once' },
      { name: 'played' },
    ]);
    clock.advance(40);
    stream.media(first);
    stream.mark('end');
    stream.socket.ping();
    await new Promise((resolve) => stream.socket.once('pong', resolve));
    clock.advance(99);
    stream.socket.ping();
    await new Promise((resolve) => stream.socket.once('pong', resolve));
    expect(stream.of('mark')).toHaveLength(2);
    clock.advance(1);
    await until(() => stream.of('mark').length === 3);
    expect(stream.of('mark').at(-1)).toMatchObject({
      event: 'mark',
      mark: { name: 'end' },
      streamSid: stream.streamSid,
    });
    clock.advance(20);
    phone.hangUp();
    const record = await over;
    expect(record.heard).toEqual(concat(silence(100), first, silence(20)));
    expect(record.clears).toMatchObject([{ droppedMs: 150, marksReturned: 1 }]);
    expect(record.marksPlayed).toBe(2);
  });

  it('ignores and reports what Twilio would not take', async () => {
    const { phone, over, stream } = await connected();
    const { streamSid } = stream;
    const wrong: [string, unknown][] = [
      ['not JSON', 'hello'],
      ['no object', '[1]'],
      ['an unknown event', { event: 'stop', streamSid }],
      ['a foreign streamSid', { event: 'clear', streamSid: 'MZother' }],
      ['no streamSid', { event: 'clear' }],
      ['an extra field', { event: 'clear', streamSid, sequenceNumber: '1' }],
      ['an extra media field', { event: 'media', streamSid, media: { payload: 'AAAA', track: 'outbound' } }],
      ['a payload that is not base64', { event: 'media', streamSid, media: { payload: '!!!!' } }],
      ['a payload that is no string', { event: 'media', streamSid, media: { payload: 5 } }],
      ['a mark without a name', { event: 'mark', streamSid, mark: {} }],
    ];
    for (const [, message] of wrong) {
      stream.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    }
    stream.socket.send(Buffer.from('binary'));
    await delivered(stream, () => stream.mark('end'));
    phone.hangUp();
    const record = await over;
    expect(record.warnings).toHaveLength(wrong.length + 1);
    expect(record.warnings.filter((warning) => warning.includes('(31951)'))).toHaveLength(wrong.length);
    expect(record.warnings.at(-1)).toContain('(31950)');
    expect(record.heard.every((code) => code === 0xff)).toBe(true);
  });

  it.each([403, 503, 302])('names the status when the upgrade is refused with %i', async (status) => {
    server.refuseUpgrade = status;
    server.answers.set('/twilio/voice', { body: server.connectTwiml() });
    const failure = await failureOf(phoneFor());
    expect(failure).toContain(`/twilio/media: the upgrade was refused with HTTP ${status} (31920)`);
  });

  it('names the socket when the connection is cut in the upgrade', async () => {
    server.refuseUpgrade = 0;
    server.answers.set('/twilio/voice', { body: server.connectTwiml() });
    expect(await failureOf(phoneFor())).toContain('/twilio/media: ');
  });

  it.each([
    ['ws://voice.example.com/media', '31922'],
    ['https://voice.example.com/media', '31922'],
    ['wss://voice.example.com/media?token=1', 'query string'],
    ['wss://', '31923'],
  ])('refuses the stream URL %s as Twilio does', async (streamUrl, why) => {
    server.answers.set('/twilio/voice', { body: server.connectTwiml('', { streamUrl }) });
    expect(await failureOf(phoneFor())).toContain(why);
  });

  it('takes a relative stream URL from the document', async () => {
    server.answers.set('/twilio/voice', { body: server.connectTwiml('', { streamUrl: '/twilio/media' }) });
    const phone = phoneFor();
    const over = phone.call();
    await until(() => server.streams.length === 1);
    phone.hangUp();
    expect((await over).endedBy).toBe('caller');
  });
});

describe('the phone at the end of a call', () => {
  it('says stop, closes the socket and posts the status when the caller hangs up', async () => {
    const { phone, over, stream } = await connected();
    clock.advance(61_000);
    stream.media(tone(1_000));
    phone.hangUp();
    phone.hangUp();
    const record = await over;
    expect(record.endedBy).toBe('caller');
    await until(() => stream.closed !== undefined);
    const stop = stream.messages.at(-1);
    expect(stop).toMatchObject({
      event: 'stop',
      streamSid: stream.streamSid,
      stop: { callSid: phone.callSid },
    });
    expect(Number(stop?.['sequenceNumber'])).toBe(stream.messages.length - 1);
    expect(server.asked('/twilio/status').map((request) => request.params)).toMatchObject([
      { CallStatus: 'completed', Duration: '2', CallDuration: '61', SequenceNumber: '0' },
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('ends the same way when the carrier cuts the line, and does not go on behind <Connect>', async () => {
    const { phone, over, stream } = await connected({}, '<Redirect>/twilio/after</Redirect>');
    phone.endCall();
    const record = await over;
    expect(record.endedBy).toBe('carrier');
    await until(() => stream.closed !== undefined);
    expect(stream.of('stop')).toHaveLength(1);
    expect(server.asked('/twilio/after')).toHaveLength(0);
  });

  it('terminates a socket whose server does not answer the close', async () => {
    const { phone, over, stream } = await connected();
    stream.socket.pause();
    phone.hangUp();
    await until(() => clock.pendingTimers > 0);
    clock.advance(2_000);
    expect((await over).streams[0]?.closeCode).toBe(1006);
  });

  it('gives up a call that has lasted four hours', async () => {
    server.answers.set('/twilio/voice', { body: '<Response><Pause length="20000"/></Response>' });
    const phone = phoneFor();
    const over = phone.call();
    await until(() => phone.state === 'listening');
    clock.advance(4 * 3_600_000);
    expect((await over).endedBy).toBe('carrier');
  });

  it('hangs up while the webhook is still thinking', async () => {
    const phone = phoneFor();
    server.answers.set('/twilio/voice', () => {
      phone.hangUp();
      return { body: '<Response/>' };
    });
    const record = await phone.call();
    expect(record.endedBy).toBe('caller');
    expect(record.durationMs).toBe(0);
    expect(server.asked('/twilio/status')[0]?.params['CallStatus']).toBe('canceled');
    expect(clock.pendingTimers).toBe(0);
  });

  it('places only one call', async () => {
    server.answers.set('/twilio/voice', { body: '<Response/>' });
    const phone = phoneFor();
    await phone.call();
    await expect(phone.call()).rejects.toThrow('a phone places one call');
  });
});

describe('the phone behind <Connect>', () => {
  /** Runs the clock in small steps until the call is over; the steps leave a request plenty of turns. */
  async function finish(over: Promise<PhoneRecord>): Promise<PhoneRecord> {
    const done = over.then((record) => ({ record }));
    for (;;) {
      const step = await Promise.race([
        done,
        new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 1)),
      ]);
      if (step !== undefined) return step.record;
      clock.advance(20);
    }
  }

  it('opens a new stream on the same call when the redirect asks for it, on the same timeline', async () => {
    const { phone, over, stream } = await connected(
      { voice: tone(200) },
      '<Redirect>/twilio/after</Redirect>',
    );
    server.answers.set('/twilio/after', { body: server.connectTwiml('<Hangup/>') });
    clock.advance(40);
    await delivered(stream, () => {
      stream.mark('before');
      stream.media(tone(100));
      stream.mark('lost');
      stream.clear();
      stream.media(tone(60));
    });
    clock.advance(20);
    stream.socket.ping();
    await new Promise((resolve) => stream.socket.once('pong', resolve));
    stream.socket.close(1012);
    await until(() => server.streams[1]?.of('start').length === 1);
    const second = server.streams[1]!;
    expect(server.asked('/twilio/after')[0]?.params).toMatchObject({
      CallSid: phone.callSid,
      CallStatus: 'in-progress',
    });
    expect(second.streamSid).not.toBe(stream.streamSid);
    expect(second.of('start')[0]).toMatchObject({ sequenceNumber: '1', start: { callSid: phone.callSid } });
    clock.advance(40);
    await until(() => second.of('media').length === 2);
    second.socket.close(1000);
    const record = await over;
    expect(record.endedBy).toBe('server');
    expect(record.streams.map((opened) => opened.closeCode)).toEqual([1012, 1000]);
    expect(record.warnings).toEqual(['the media socket was closed with 1012 (31921)']);
    expect(record.durationMs).toBeCloseTo(100);
    expect(record.said).toEqual(tone(200).subarray(0, 800));
    // The second stream goes on in the caller's sentence where time has come to.
    const [frame] = second.of('media') as unknown as { media: Record<string, string> }[];
    expect(new Uint8Array(Buffer.from(frame?.media['payload'] ?? '', 'base64'))).toEqual(
      tone(200).subarray(480, 640),
    );
    expect(record.cutMs).toBe(40);
  });

  it('goes on behind a socket that broke, and tells the stream callback why', async () => {
    server.answers.set('/twilio/voice', {
      body: server.connectTwiml('<Hangup/>', {
        extra: ` name="n1" statusCallback="${server.url}/twilio/stream"`,
      }),
    });
    server.answers.set('/twilio/stream', {});
    const over = phoneFor().call();
    await until(() => server.streams[0]?.of('start').length === 1);
    server.streams[0]!.socket.terminate();
    const record = await over;
    expect(record.endedBy).toBe('server');
    const told = server.asked('/twilio/stream').map((request) => request.params);
    expect(told).toHaveLength(2);
    expect(told).toContainEqual(expect.objectContaining({ StreamEvent: 'stream-started', StreamName: 'n1' }));
    expect(told).toContainEqual(
      expect.objectContaining({ StreamEvent: 'stream-error', StreamError: '31903' }),
    );
  });

  it('breaks its own stream on demand without stop, as a lost network does', async () => {
    const { phone, over, stream } = await connected({}, '<Hangup/>');
    phone.breakStream();
    expect((await over).endedBy).toBe('server');
    await until(() => stream.closed !== undefined);
    expect(stream.closed?.code).toBe(1006);
    expect(stream.of('stop')).toHaveLength(0);
  });

  it('asks the action of <Connect> and drops the verbs behind it', async () => {
    const body = server
      .connectTwiml('<Redirect>/never</Redirect>')
      .replace('<Connect>', '<Connect action="/next">');
    server.answers.set('/twilio/voice', { body });
    server.answers.set('/next', { body: '<Response/>' });
    const over = phoneFor().call();
    await until(() => server.streams[0]?.of('start').length === 1);
    server.streams[0]!.socket.close();
    await over;
    expect(server.asked('/next')).toHaveLength(1);
    expect(server.asked('/never')).toHaveLength(0);
  });

  it('plays recordings, pauses and takes time for what is said', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'earshot-phone-'));
    const sorry = tone(200, 660);
    await writeWav(join(folder, 'sorry.wav'), sorry);
    const wav = new Uint8Array(await readFile(join(folder, 'sorry.wav')));
    await rm(folder, { recursive: true });
    server.answers.set('/sorry.wav', { type: 'audio/wav', body: wav });
    server.answers.set('/broken.wav', { type: 'audio/wav', body: 'no sound' });
    server.answers.set('/twilio/voice', {
      body: '<Response><Play loop="2">/sorry.wav</Play><Play>/broken.wav</Play><Pause/><Say>Goodbye.</Say><Hangup/></Response>',
    });
    const record = await finish(phoneFor().call());
    // How long the carrier took to fetch the recording is not said; it is then played twice without a gap.
    expect(Buffer.from(record.heard).indexOf(concat(sorry, sorry))).toBeGreaterThanOrEqual(0);
    expect(record.durationMs).toBeGreaterThanOrEqual(400 + 1_000 + 8 * 65);
    expect(record.carrierSpeech).toMatchObject([
      { verb: 'Play', text: `${server.url}/sorry.wav` },
      { verb: 'Play', text: `${server.url}/broken.wav` },
      { verb: 'Say', text: 'Goodbye.' },
    ]);
    expect(record.warnings).toEqual([
      `<Play> ${server.url}/broken.wav: ${server.url}/broken.wav: is not a WAV file`,
    ]);
  });

  it('follows a redirect by GET with the parameters in the query', async () => {
    server.answers.set('/twilio/voice', {
      body: '<Response><Redirect method="GET">/next?a=1</Redirect></Response>',
    });
    server.answers.set('/next', { body: '<Response/>' });
    await phoneFor().call();
    const next = server.requests.find((request) => request.path.startsWith('/next'));
    expect(next?.method).toBe('GET');
    expect(next?.path).toMatch(/^\/next\?a=1&CallSid=CA/);
  });

  it('leaves a circle of redirects', async () => {
    server.answers.set('/twilio/voice', { body: '<Response><Redirect>/twilio/voice</Redirect></Response>' });
    expect(await failureOf(phoneFor())).toContain('over 50 documents in one call');
    expect(server.asked('/twilio/voice')).toHaveLength(50);
  });

  it('keeps what was heard when the server fails in the middle of the call', async () => {
    server.answers.set('/twilio/voice', { body: server.connectTwiml('<Redirect>/twilio/after</Redirect>') });
    server.answers.set('/twilio/after', { status: 500 });
    const phone = phoneFor();
    const over = failureOf(phone);
    await until(() => server.streams[0]?.of('start').length === 1);
    const stream = server.streams[0]!;
    stream.media(tone(100));
    stream.socket.ping();
    await new Promise((resolve) => stream.socket.once('pong', resolve));
    clock.advance(60);
    stream.socket.close(1000);
    expect(await over).toContain('/twilio/after: HTTP 500');
    const record = phone.record();
    expect(record.endedBy).toBe('failure');
    expect(record.heard).toEqual(tone(100).subarray(0, 480));
    expect(server.asked('/twilio/status')[0]?.params['CallStatus']).toBe('completed');
  });

  it('warns of a status callback that fails, and of nothing more', async () => {
    server.answers.set('/twilio/voice', { body: '<Response/>' });
    server.answers.set('/twilio/status', { status: 500 });
    const record = await phoneFor().call();
    expect(record.warnings).toEqual([`callback ${server.url}/twilio/status: HTTP 500 (11200)`]);
  });
});
