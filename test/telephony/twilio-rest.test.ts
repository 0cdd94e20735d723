import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { CallClock } from '../../src/call/call-clock.js';
import { scopeOn } from '../support/scopes.js';
import { systemClock } from '../../src/clock.js';
import { parseCallSid, type CallSid } from '../../src/ids.js';
import { HANG_UP_ATTEMPTS_MAX, HANG_UP_MAX_MS } from '../../src/limits.js';
import { TwilioAccount } from '../../src/telephony/twilio-account.js';
import { TwilioCallControl } from '../../src/telephony/twilio-call-control.js';
import type { TwilioRestOptions } from '../../src/telephony/twilio-rest.js';
import { dialTwiml } from '../../src/telephony/twiml.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { until } from './media-door.js';
import { RecordingLog } from './recording-log.js';

const CALL = parseCallSid('CA0123456789') as CallSid;
const SECRET = 'a-secret-auth-token';
const SID = 'AC00000000000000000000000000000001';
const NUMBER = '+15550100';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly authorization: string;
  readonly body: string;
}

type Script = ((response: ServerResponse) => void)[];

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }
});

async function readAll(request: IncomingMessage): Promise<string> {
  let body = '';
  request.setEncoding('utf8');
  for await (const chunk of request) body += String(chunk);
  return body;
}

/** Plays Twilio's REST: answers by the script, the last line of it for ever. */
async function playRest(script: Script) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    void readAll(request).then((body) => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, authorization: headers.authorization ?? '', body });
      (script[seen.length - 1] ?? script.at(-1))?.(response);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  return { seen, baseUrl: `http://127.0.0.1:${port}`, options: restOptions(`http://127.0.0.1:${port}`) };
}

function restOptions(apiBaseUrl: string): TwilioRestOptions {
  return {
    accountSid: SID,
    authToken: SECRET,
    apiKey: undefined,
    apiSecret: undefined,
    region: undefined,
    edge: undefined,
    apiBaseUrl,
  };
}

function json(status: number, body: unknown) {
  return (response: ServerResponse) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body));
  };
}

const ENDED = json(200, { sid: CALL, status: 'completed' });
const garbage = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { 'Content-Type': 'text/html' });
  response.end('<h1>oops</h1>');
};
const torn = (response: ServerResponse) => void response.destroy();

/** No retry waits: jitter of nothing on a clock that is real. */
function control(options: TwilioRestOptions, log = new RecordingLog(), handoffNumber?: string) {
  return new TwilioCallControl({
    ...options,
    random: () => 0,
    handoffNumber,
    publicOrigin: () => 'https://server.example',
    log,
  });
}

describe('hanging up', () => {
  it('completes the call, with the credentials it was given', async () => {
    const { seen, options } = await playRest([ENDED]);
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({ kind: 'done' });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      method: 'POST',
      url: `/2010-04-01/Accounts/${SID}/Calls/${CALL}.json`,
      body: 'Status=completed',
      authorization: `Basic ${Buffer.from(`${SID}:${SECRET}`).toString('base64')}`,
    });
  });

  it('prefers an API key, and keeps a base path of a compatible host', async () => {
    const { seen, baseUrl } = await playRest([ENDED]);
    const options = { ...restOptions(`${baseUrl}/compat/`), apiKey: 'SK1', apiSecret: 'key-secret' };
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({ kind: 'done' });
    expect(seen[0]).toMatchObject({
      url: `/compat/2010-04-01/Accounts/${SID}/Calls/${CALL}.json`,
      authorization: `Basic ${Buffer.from('SK1:key-secret').toString('base64')}`,
    });
  });

  it.each([
    [
      '404',
      json(404, { code: 20404, message: `The requested resource ${NUMBER} was not found`, status: 404 }),
    ],
    ['404 without a readable body', garbage(404)],
    ['400 with code 21220', json(400, { code: 21220, message: 'Invalid call state', status: 400 })],
  ])('takes %s for a call that has ended already', async (_name, answer) => {
    const { seen, options } = await playRest([answer]);
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({ kind: 'alreadyEnded' });
    expect(seen).toHaveLength(1);
  });

  it.each([
    ['429', json(429, { code: 20429, message: 'Too many requests', status: 429 })],
    ['500', garbage(500)],
    ['503', json(503, {})],
    ['a torn connection', torn],
    ['an unreadable answer', garbage(200)],
  ])('tries again after %s', async (_name, answer) => {
    const log = new RecordingLog();
    const { seen, options } = await playRest([answer, answer, ENDED]);
    expect(await control(options, log).hangUp(CALL, scopeOn(systemClock))).toEqual({ kind: 'done' });
    expect(seen).toHaveLength(3);
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'warn']);
  });

  it('gives up after a few tries', async () => {
    const { seen, options } = await playRest([garbage(500)]);
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({
      kind: 'failed',
      cause: 'REST answered 500',
    });
    expect(seen).toHaveLength(HANG_UP_ATTEMPTS_MAX);
  });

  it.each([
    [401, 20003],
    [403, 20003],
    [400, 20001],
  ])(
    'does not repeat what was refused with %i, and never tells what the provider wrote',
    async (status, code) => {
      const log = new RecordingLog();
      const message = `no ${SECRET} for ${NUMBER}`;
      const { seen, options } = await playRest([json(status, { code, message, status })]);
      const outcome = await control(options, log).hangUp(CALL, scopeOn(systemClock));
      expect(outcome).toEqual({ kind: 'failed', cause: `REST answered ${status} (code ${code})` });
      expect(seen).toHaveLength(1);
      expect(log.lines.map(({ level }) => level)).toEqual(['error']);
      expect(log.publicText).not.toContain(SECRET);
      expect(log.publicText).not.toContain(NUMBER);
    },
  );

  it('does not follow redirects with the credentials', async () => {
    const { seen, options, baseUrl } = await playRest([
      (response) => {
        response.writeHead(307, { Location: `${baseUrl}/elsewhere` });
        response.end();
      },
    ]);
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toMatchObject({ kind: 'failed' });
    expect(seen).toHaveLength(1);
  });

  it('is bounded when nothing answers, however long that takes', async () => {
    const clock = new VirtualClock();
    const { seen, options } = await playRest([() => {}]);
    const hangingUp = new TwilioCallControl({
      ...options,
      random: () => 0.5,
      handoffNumber: undefined,
      publicOrigin: () => 'https://server.example',
      log: new RecordingLog(),
    });
    let settled = false;
    const outcome = hangingUp.hangUp(CALL, scopeOn(clock)).finally(() => (settled = true));
    await until(() => seen.length === 1);
    clock.advance(HANG_UP_MAX_MS - 1);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(settled).toBe(false);
    clock.advance(1);
    expect(await outcome).toMatchObject({ kind: 'failed' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('waits between tries, longer each time, part of it by chance', async () => {
    const waits: number[][] = [];
    for (const random of [0, 0.999]) {
      const clock = new VirtualClock();
      const { seen, options } = await playRest([garbage(500)]);
      const hangingUp = new TwilioCallControl({
        ...options,
        random: () => random,
        handoffNumber: undefined,
        publicOrigin: () => 'https://server.example',
        log: new RecordingLog(),
      });
      const time = new CallClock(clock);
      const outcome = hangingUp.hangUp(CALL, { clock: time, tap: undefined });
      const waited: number[] = [];
      for (let attempt = 1; attempt < HANG_UP_ATTEMPTS_MAX; attempt += 1) {
        await until(() => seen.length === attempt && time.pendingTimers === 2);
        const beforeMs = clock.nowMs();
        while (time.pendingTimers === 2) clock.advance(1);
        waited.push(clock.nowMs() - beforeMs);
      }
      await outcome;
      waits.push(waited);
    }
    expect(waits).toEqual([
      [100, 200, 400],
      [200, 400, 800],
    ]);
  });

  it('is unavailable without credentials', async () => {
    for (const missing of [
      { accountSid: undefined },
      { authToken: undefined },
      { authToken: undefined, apiKey: 'SK1' },
    ]) {
      const options = { ...restOptions('http://127.0.0.1:9'), ...missing };
      expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({ kind: 'unavailable' });
    }
  });

  it('fails when nobody listens', async () => {
    const { options } = await playRest([ENDED]);
    const server = servers.pop();
    await new Promise((resolve) => server?.close(resolve));
    expect(await control(options).hangUp(CALL, scopeOn(systemClock))).toEqual({
      kind: 'failed',
      cause: 'REST request failed: ECONNREFUSED',
    });
  });
});

describe('connecting a caller with a human', () => {
  const transferring = (options: TwilioRestOptions, log = new RecordingLog()) =>
    control(options, log, NUMBER);

  it('gives the call other instructions: to ring the human, and to tell what came of it', async () => {
    const { seen, options } = await playRest([json(200, { sid: CALL, status: 'in-progress' })]);
    expect(await transferring(options).transfer(CALL, scopeOn(systemClock))).toEqual({ kind: 'done' });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      method: 'POST',
      url: `/2010-04-01/Accounts/${SID}/Calls/${CALL}.json`,
    });
    const form = new URLSearchParams(seen[0]?.body);
    expect([...form.keys()]).toEqual(['Twiml']);
    expect(form.get('Twiml')).toBe(dialTwiml(NUMBER, 'https://server.example'));
  });

  it.each([
    ['a call that has ended', json(404, { code: 20404 }), { kind: 'alreadyEnded' }, 1],
    ['one that is not in progress', json(400, { code: 21220 }), { kind: 'alreadyEnded' }, 1],
    [
      'bad instructions',
      json(400, { code: 12100 }),
      { kind: 'failed', cause: 'REST answered 400 (code 12100)' },
      1,
    ],
    ['a fault', garbage(500), { kind: 'failed', cause: 'REST answered 500' }, HANG_UP_ATTEMPTS_MAX],
  ])('tells %s', async (_name, answer, outcome, tries) => {
    const log = new RecordingLog();
    const { seen, options } = await playRest([answer]);
    expect(await transferring(options, log).transfer(CALL, scopeOn(systemClock))).toEqual(outcome);
    expect(seen).toHaveLength(tries);
    expect(log.publicText).not.toContain(NUMBER);
  });

  it('says why it cannot be done, before anybody is told that it will', async () => {
    const { seen, options } = await playRest([ENDED]);
    expect(transferring(options).whyNoTransfer).toBeUndefined();
    const nobody = control(options);
    expect(nobody.whyNoTransfer).toContain('No number');
    const mute = transferring({ ...options, authToken: undefined });
    expect(mute.whyNoTransfer).toContain('cannot redirect');
    for (const one of [nobody, mute])
      expect(await one.transfer(CALL, scopeOn(systemClock))).toEqual({ kind: 'unavailable' });
    expect(seen).toEqual([]);
  });
});

describe('looking at the account', () => {
  it('tells that the credentials are good', async () => {
    const { seen, options } = await playRest([json(200, { sid: SID, status: 'active', type: 'Trial' })]);
    expect(await new TwilioAccount(options).fetchAccount()).toEqual({
      kind: 'found',
      status: 'active',
      type: 'Trial',
    });
    expect(seen[0]?.url).toBe(`/2010-04-01/Accounts/${SID}.json`);
  });

  it.each([
    [
      'refused credentials',
      json(401, { code: 20003, message: SECRET, status: 401 }),
      'REST answered 401 (code 20003)',
    ],
    ['garbage', garbage(200), 'REST request failed: unreadable answer'],
    ['an empty object', json(200, {}), 'REST request failed: unreadable answer'],
    ['a torn connection', torn, 'REST request failed: ECONNRESET'],
  ])('tells of %s', async (_name, answer, cause) => {
    const { options } = await playRest([answer]);
    const said = await new TwilioAccount(options).fetchAccount();
    expect(said).toMatchObject({ kind: 'failed', failure: { cause } });
  });

  it('finds where the number leads, and only that number', async () => {
    const page = (numbers: object[]) =>
      json(200, { incoming_phone_numbers: numbers, page: 0, page_size: 20, next_page_uri: null, uri: '/x' });
    const other = { phone_number: `${NUMBER}9`, voice_url: 'https://other.example' };
    const own = {
      phone_number: NUMBER,
      voice_url: 'https://example.com/twilio/voice',
      voice_method: 'POST',
      voice_fallback_url: '',
      status_callback: 'https://example.com/twilio/status',
      status_callback_method: 'POST',
    };
    const { seen, options } = await playRest([page([other, own]), page([other])]);
    const account = new TwilioAccount(options);
    expect(await account.findNumber(NUMBER)).toEqual({
      kind: 'found',
      settings: {
        voiceUrl: 'https://example.com/twilio/voice',
        voiceMethod: 'POST',
        voiceFallbackUrl: undefined,
        statusCallback: 'https://example.com/twilio/status',
        statusCallbackMethod: 'POST',
      },
    });
    expect(seen[0]?.url).toContain('PhoneNumber=%2B15550100');
    expect(await account.findNumber(NUMBER)).toEqual({ kind: 'notOwned' });
  });

  it('says so without credentials, and for a sid that is not one', async () => {
    const none = new TwilioAccount({ ...restOptions('http://127.0.0.1:9'), authToken: undefined });
    expect(await none.fetchAccount()).toEqual({ kind: 'noCredentials' });
    expect(await none.findNumber(NUMBER)).toEqual({ kind: 'noCredentials' });
    const odd = new TwilioAccount({ ...restOptions('http://127.0.0.1:9'), accountSid: 'no-sid' });
    expect(await odd.fetchAccount()).toMatchObject({ kind: 'failed' });
  });
});
