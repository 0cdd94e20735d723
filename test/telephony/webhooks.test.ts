import { createHash } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import twilio from 'twilio';
import { afterEach, describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import type { CallSid } from '../../src/ids.js';
import { WEBHOOK_BODY_MAX_BYTES, WEBHOOK_PARAMETERS_MAX } from '../../src/limits.js';
import type { CarrierTrust } from '../../src/telephony/carrier-gate.js';
import type {
  CallStatus,
  VoiceAnswer,
  DialResult,
  VoiceDoor,
  VoiceWebhook,
} from '../../src/telephony/voice-door.js';
import { createWebhooks } from '../../src/telephony/webhooks.js';
import { RecordingLog } from './recording-log.js';

const TOKEN = 'the-primary-auth-token';
const SIGNED: CarrierTrust = { publicUrl: 'https://example.com', authToken: TOKEN, sharedKey: undefined };
const LOCAL: CarrierTrust = { publicUrl: undefined, authToken: undefined, sharedKey: undefined };
const FORM = {
  CallSid: 'CA0123456789',
  AccountSid: 'AC0123456789',
  From: '+15550100',
  To: '+15550101',
  Direction: 'inbound',
  StirVerstat: 'TN-Validation-Passed-A',
  FutureParameter: 'x',
};

class RecordingDoor implements VoiceDoor {
  readonly voices: VoiceWebhook[] = [];
  readonly afters: CallSid[] = [];
  readonly statuses: [CallSid, CallStatus][] = [];
  readonly handoffs: DialResult[] = [];
  answer: VoiceAnswer | Error = { kind: 'stream', token: 'a-token' };
  after: () => VoiceAnswer | Promise<VoiceAnswer> = () => ({ kind: 'hangup' });

  onVoice(webhook: VoiceWebhook): VoiceAnswer {
    this.voices.push(webhook);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }

  onAfter(callSid: CallSid): VoiceAnswer | Promise<VoiceAnswer> {
    this.afters.push(callSid);
    return this.after();
  }

  onHandoff(_callSid: CallSid, result: DialResult): VoiceAnswer {
    this.handoffs.push(result);
    return { kind: result === 'completed' ? 'hangup' : 'nobodyAnswered' };
  }

  onStatus(callSid: CallSid, status: CallStatus): void {
    this.statuses.push([callSid, status]);
  }

  onAnswered(): void {}

  get asked(): number {
    return this.voices.length + this.afters.length + this.statuses.length;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Outgoing {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function openDoor(trust: CarrierTrust) {
  const door = new RecordingDoor();
  const log = new RecordingLog();
  const refused: string[] = [];
  const streamEvents: string[] = [];
  const app = express();
  app.use(
    createWebhooks({
      ...trust,
      door,
      log,
      observe: {
        onRefused: (reason) => refused.push(reason),
        onStreamEvent: (event) => streamEvents.push(event),
      },
    }),
  );
  const server = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const send = (path: string, outgoing: Outgoing = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { method = 'POST', headers = {}, body = '' } = outgoing;
      const outgoingRequest = httpRequest({ port, host: '127.0.0.1', path, method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
        });
      });
      outgoingRequest.on('error', reject);
      outgoingRequest.end(body);
    });
  return { door, log, refused, streamEvents, port, send };
}

function formBody(params: Record<string, string | string[]>): string {
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) body.append(name, one);
  }
  return body.toString();
}

function signedForm(path: string, params: Record<string, string | string[]>, token = TOKEN): Outgoing {
  const signature = twilio.getExpectedTwilioSignature(token, `https://example.com${path}`, params);
  return {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Twilio-Signature': signature },
    body: formBody(params),
  };
}

function plainForm(
  params: Record<string, string | string[]>,
  headers: Record<string, string> = {},
): Outgoing {
  return {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: formBody(params),
  };
}

describe('a signed webhook', () => {
  it('announces the call and is answered with TwiML under the public URL', async () => {
    const { door, send, log } = await openDoor(SIGNED);
    const answer = await send('/twilio/voice', signedForm('/twilio/voice', FORM));
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/xml; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.body).toContain('<Stream url="wss://example.com/twilio/media"');
    expect(door.voices).toEqual([
      {
        request: {
          path: '/twilio/voice',
          params: {
            AccountSid: 'AC0123456789',
            CallSid: 'CA0123456789',
            Direction: 'inbound',
            From: '+15550100',
            FutureParameter: 'x',
            StirVerstat: 'TN-Validation-Passed-A',
            To: '+15550101',
          },
        },
        callSid: 'CA0123456789',
        accountSid: 'AC0123456789',
        from: '+15550100',
        to: '+15550101',
        direction: 'inbound',
        stirVerstat: 'TN-Validation-Passed-A',
        agentName: undefined,
      },
    ]);
    expect(log.publicText).not.toContain('555010');
  });

  it('names the agent from the path, escapes undone', async () => {
    const { door, send } = await openDoor(SIGNED);
    await send('/twilio/voice/front%20desk', signedForm('/twilio/voice/front%20desk', FORM));
    expect(door.voices[0]?.agentName).toBe('front desk');
  });

  it('is 404 for an agent that the door does not know', async () => {
    const { door, send } = await openDoor(SIGNED);
    door.answer = { kind: 'unknownAgent' };
    const answer = await send('/twilio/voice/nobody', signedForm('/twilio/voice/nobody', FORM));
    expect(answer).toMatchObject({ status: 404, body: '' });
  });

  it('counts every parameter as signed, repeated and oddly named ones too', async () => {
    const { door, send } = await openDoor(SIGNED);
    const odd = { ...FORM, Many: ['b', 'a', 'b'], 'a[b]': '1', 'c[]': ['2', '3'], hasOwnProperty: 'y' };
    const more = Object.fromEntries([
      ...Object.entries(odd),
      ['__proto__', 'z'],
      ['\u00e9 &=+', '\u{1F600}'],
    ]);
    const answer = await send('/twilio/voice?x=1', signedForm('/twilio/voice?x=1', more));
    expect(answer.status).toBe(200);
    expect(door.voices).toHaveLength(1);
  });

  it('asks the door what follows a stream', async () => {
    const { door, send } = await openDoor(SIGNED);
    const answer = await send('/twilio/after', signedForm('/twilio/after', FORM));
    expect(answer.body).toContain('<Hangup/>');
    expect(door.afters).toEqual(['CA0123456789']);
  });

  it('waits for a door that has to look up what follows a stream; one that fails is a 500', async () => {
    const { door, send } = await openDoor(SIGNED);
    door.after = () => nextTurn().then(() => ({ kind: 'hold' }));
    const answer = await send('/twilio/after', signedForm('/twilio/after', FORM));
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body).toContain('<Redirect');
    door.after = () => Promise.reject(new Error('broken'));
    expect(await send('/twilio/after', signedForm('/twilio/after', FORM))).toMatchObject({
      status: 500,
      body: '',
    });
  });

  it('tells the door what came of dialling a human, and the caller too where nobody answered', async () => {
    const { door, send } = await openDoor(SIGNED);
    const said = ['completed', 'answered', 'no-answer', 'busy', 'failed', 'canceled', 'teleported'];
    for (const DialCallStatus of said) {
      const answer = await send(
        '/twilio/handoff',
        signedForm('/twilio/handoff', { ...FORM, DialCallStatus }),
      );
      expect(answer.status).toBe(200);
      expect(answer.body).toContain('<Hangup/>');
      expect(answer.body.includes('<Say>')).toBe(!['completed', 'answered'].includes(DialCallStatus));
    }
    expect(door.handoffs).toEqual([
      'completed',
      'completed',
      'no_answer',
      'busy',
      'failed',
      'canceled',
      'failed',
    ]);
    expect((await send('/twilio/handoff', signedForm('/twilio/handoff', FORM))).status).toBe(400);
    const forged = signedForm('/twilio/after', { ...FORM, DialCallStatus: 'completed' });
    expect((await send('/twilio/handoff', forged)).status).toBe(403);
    expect(door.handoffs).toHaveLength(said.length);
  });

  it('passes call statuses on and shrugs at one that is new', async () => {
    const { door, send } = await openDoor(SIGNED);
    for (const CallStatus of ['completed', 'no-answer', 'teleported']) {
      const answer = await send('/twilio/status', signedForm('/twilio/status', { ...FORM, CallStatus }));
      expect(answer).toMatchObject({ status: 200 });
      expect(answer.body).toContain('<Response/>');
    }
    expect(door.statuses).toEqual([
      ['CA0123456789', 'completed'],
      ['CA0123456789', 'no-answer'],
    ]);
  });

  it('counts stream events and warns of a stream error by its code', async () => {
    const { send, log, streamEvents } = await openDoor(SIGNED);
    const path = '/twilio/stream';
    await send(path, signedForm(path, { ...FORM, StreamEvent: 'stream-started' }));
    const failed = {
      ...FORM,
      StreamEvent: 'stream-error',
      StreamError: '31921 Stream - Close Error +15550100',
    };
    await send(path, signedForm(path, failed));
    expect(streamEvents).toEqual(['stream-started', 'stream-error']);
    const warning = log.lines.find(({ level }) => level === 'warn');
    expect(warning?.fields).toMatchObject({ streamErrorCode: '31921', callSid: 'CA0123456789' });
    expect(log.publicText).not.toContain('555010');
  });

  it('may carry JSON, covered by bodySHA256', async () => {
    const { door, send } = await openDoor(SIGNED);
    const body = JSON.stringify({ ...FORM, CallStatus: 'completed', nested: { a: 1 } });
    const path = `/twilio/status?bodySHA256=${createHash('sha256').update(body).digest('hex')}`;
    const signature = twilio.getExpectedTwilioSignature(TOKEN, `https://example.com${path}`, {});
    const headers = { 'Content-Type': 'application/json', 'X-Twilio-Signature': signature };
    expect(await send(path, { headers, body })).toMatchObject({ status: 200 });
    expect(await send(path, { headers, body: body.replace('completed', 'failed') })).toMatchObject({
      status: 403,
    });
    expect(door.statuses).toEqual([['CA0123456789', 'completed']]);
  });

  it('may be signed with a SharedKey', async () => {
    const trust = { ...SIGNED, sharedKey: 'shared-secret' };
    const settings = 'key=webhooks_sharedkey_1,algorithm=HMAC_SHA256';
    const signature = twilio.getExpectedTwilioSignature(
      'shared-secret',
      'https://example.com/twilio/voice',
      FORM,
      'HMAC_SHA256',
    );
    const outgoing = plainForm(FORM, {
      'X-Twilio-Signature': signature,
      'X-Twilio-Webhooks-Signature-Settings': settings,
    });
    const withKey = await openDoor(trust);
    expect(await withKey.send('/twilio/voice', outgoing)).toMatchObject({ status: 200 });
    const withoutKey = await openDoor(SIGNED);
    expect(await withoutKey.send('/twilio/voice', outgoing)).toMatchObject({ status: 403 });
  });

  it('may carry a foreign Origin and forwarding headers, which say nothing once it is signed', async () => {
    const { send } = await openDoor(SIGNED);
    const outgoing = signedForm('/twilio/voice', FORM);
    const headers = {
      ...outgoing.headers,
      Origin: 'https://evil.example',
      'X-Forwarded-Host': 'evil.example',
    };
    expect(await send('/twilio/voice', { ...outgoing, headers })).toMatchObject({ status: 200 });
  });
});

describe('a webhook that is not let in', () => {
  it.each(['/twilio/voice', '/twilio/voice/support', '/twilio/after', '/twilio/status', '/twilio/stream'])(
    'is 403 at %s, says nothing and asks nothing about the call',
    async (path) => {
      const { door, send, refused, streamEvents } = await openDoor(SIGNED);
      const params = { ...FORM, CallStatus: 'completed', StreamEvent: 'stream-started' };
      for (const outgoing of [
        plainForm(params),
        signedForm(path, params, 'another-token'),
        signedForm('/twilio/elsewhere', params),
        signedForm(path, { ...params, CallSid: '' }, 'another-token'),
        { ...signedForm(path, params), body: formBody({ ...params, CallSid: 'CA999' }) },
      ]) {
        const answer = await send(path, outgoing);
        expect(answer).toMatchObject({ status: 403, body: '' });
      }
      expect(refused).toEqual(Array(5).fill('signature'));
      expect(door.asked).toBe(0);
      expect(streamEvents).toEqual([]);
    },
  );

  it('is 403 with an auth token but no public URL to check against', async () => {
    const { send } = await openDoor({ ...SIGNED, publicUrl: undefined });
    const answer = await send('/twilio/voice', signedForm('/twilio/voice', FORM));
    expect(answer.status).toBe(403);
  });

  it('is 400 naming the parameter when a signed CallSid is missing, doubled or malformed', async () => {
    const { door, send, refused } = await openDoor(SIGNED);
    const { CallSid: _left, ...without } = FORM;
    for (const params of [
      without,
      { ...FORM, CallSid: '' },
      { ...FORM, CallSid: 'CA1\nCA2' },
      { ...FORM, CallSid: 'x'.repeat(129) },
      { ...FORM, CallSid: ['CA1', 'CA2'] },
    ]) {
      const answer = await send('/twilio/voice', signedForm('/twilio/voice', params));
      expect(answer.status).toBe(400);
      expect(answer.body).toContain('CallSid');
    }
    const status = await send('/twilio/status', signedForm('/twilio/status', FORM));
    expect(status).toMatchObject({ status: 400 });
    expect(status.body).toContain('CallStatus');
    const event = await send('/twilio/stream', signedForm('/twilio/stream', { ...FORM, StreamEvent: 'x' }));
    expect(event.body).toContain('StreamEvent');
    expect(refused).toEqual(Array(7).fill('badParameter'));
    expect(door.asked).toBe(0);
  });

  it('is 405 with Allow for every other method', async () => {
    const { send, refused, door } = await openDoor(LOCAL);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      for (const path of [
        '/twilio/voice',
        '/twilio/voice/x',
        '/twilio/after',
        '/twilio/status',
        '/twilio/stream',
      ]) {
        const answer = await send(path, { method });
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toBe('POST');
      }
    }
    expect(refused).toHaveLength(25);
    expect(door.asked).toBe(0);
  });

  it('is 415 for other content types and encodings', async () => {
    const { send, refused } = await openDoor(LOCAL);
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', 'application/jsonx', '']) {
      const answer = await send('/twilio/voice', { headers: { 'Content-Type': type }, body: 'CallSid=CA1' });
      expect(answer.status).toBe(415);
    }
    const encoded = plainForm(FORM, { 'Content-Encoding': 'x-unknown' });
    expect(await send('/twilio/voice', encoded)).toMatchObject({ status: 415 });
    expect(refused).toEqual(Array(5).fill('contentType'));
  });

  it('is 413 when the body is too long and 400 when it cannot be read', async () => {
    const { send, refused, door } = await openDoor(LOCAL);
    const long = await send(
      '/twilio/voice',
      plainForm({ ...FORM, Long: 'x'.repeat(WEBHOOK_BODY_MAX_BYTES) }),
    );
    expect(long.status).toBe(413);
    const many = { headers: plainForm({}).headers ?? {}, body: 'a&'.repeat(WEBHOOK_PARAMETERS_MAX) };
    expect(await send('/twilio/voice', many)).toMatchObject({ status: 400 });
    for (const body of ['{', '[]', '"x"', 'null', '']) {
      const json = await send('/twilio/voice', { headers: { 'Content-Type': 'application/json' }, body });
      expect(json.status).toBe(400);
    }
    const path = await send('/twilio/voice/%ff', plainForm(FORM));
    expect(path).toMatchObject({ status: 400, body: '' });
    expect(refused).toEqual(['tooLarge', ...Array<string>(7).fill('unreadable')]);
    expect(door.asked).toBe(0);
  });

  it('is 500 without a word when the door fails, so that Twilio asks the fallback URL', async () => {
    const { door, send, log } = await openDoor(LOCAL);
    door.answer = new Error('the registry is broken');
    const answer = await send('/twilio/voice', plainForm(FORM));
    expect(answer).toMatchObject({ status: 500, body: '' });
    expect(log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('without an auth token, on this machine only', () => {
  it.each(['127.0.0.1', '127.0.0.1:8080', '127.9.8.7', 'localhost:1', 'LOCALHOST', '[::1]', '[::1]:8080'])(
    'a webhook for Host %s is answered with its own origin',
    async (host) => {
      const { send } = await openDoor(LOCAL);
      const answer = await send('/twilio/voice', plainForm(FORM, { Host: host }));
      expect(answer.status).toBe(200);
      expect(answer.body).toContain(`url="ws://${host}/twilio/media"`);
      expect(answer.body).toContain(`>http://${host}/twilio/after<`);
    },
  );

  it.each([
    'example.com',
    '127.0.0.1.example.com',
    '128.0.0.1',
    '127.0.0.256',
    'localhost.',
    'a@127.0.0.1',
    '[::2]',
  ])('a webhook for Host "%s" is refused', async (host) => {
    const { send, refused, door } = await openDoor(LOCAL);
    expect(await send('/twilio/voice', plainForm(FORM, { Host: host }))).toMatchObject({
      status: 403,
      body: '',
    });
    expect(refused).toEqual(['hostNotLoopback']);
    expect(door.asked).toBe(0);
  });

  it.each([
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded',
    'Via',
    'X-Real-IP',
  ])('a webhook that came through a proxy or tunnel (%s) is refused', async (header) => {
    const { send, refused } = await openDoor(LOCAL);
    const answer = await send('/twilio/voice', plainForm(FORM, { [header]: '127.0.0.1' }));
    expect(answer).toMatchObject({ status: 403, body: '' });
    expect(refused).toEqual(['forwarded']);
  });

  it('a web page may post only from the origin it was loaded from', async () => {
    const { send, refused, port } = await openDoor(LOCAL);
    for (const origin of [
      'https://evil.example',
      'null',
      'http://localhost:1',
      `http://127.0.0.1:${port}.evil.example`,
    ]) {
      expect(await send('/twilio/voice', plainForm(FORM, { Origin: origin }))).toMatchObject({ status: 403 });
    }
    expect(refused).toEqual(Array(4).fill('foreignOrigin'));
    const own = plainForm(FORM, { Origin: `http://127.0.0.1:${port}` });
    expect(await send('/twilio/voice', own)).toMatchObject({ status: 200 });
  });

  it('leaves every other path to the rest of the application', async () => {
    const { send, refused } = await openDoor(LOCAL);
    for (const path of ['/', '/twilio', '/twilio/voices', '/twilio/voice/a/b', '/twilio/media']) {
      expect(await send(path, plainForm(FORM))).toMatchObject({ status: 404 });
    }
    expect(refused).toEqual([]);
  });
});
