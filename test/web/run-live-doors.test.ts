/** Who may come in at `/run_live`, what a client may send, and what happens to those who do not read, do not speak, or leave. */
import { afterEach, describe, expect, it } from 'vitest';
import { initialState, reduce } from '../../src/client/index.js';
import { WEB_FAULTS_BURST, WEB_IMAGES_BURST } from '../../src/limits.js';
import { tone } from '../support/call-rig.js';
import { LiveServer, until } from './live-server.js';

let running: LiveServer | undefined;
async function start(environment?: Record<string, string>): Promise<LiveServer> {
  running = await LiveServer.start(environment);
  return running;
}
afterEach(async () => {
  await running?.close();
  running = undefined;
});

const START = { type: 'start', userId: 'u1', sessionId: 's1' };
const PCM = 'audio/pcm;rate=16000';
const TOKEN = 'console-token of/length+';
const SECURED = {
  PUBLIC_URL: 'https://voice.example.com',
  TWILIO_AUTH_TOKEN: 'auth-token-of-the-account',
  CONSOLE_TOKEN: TOKEN.replaceAll(' ', '-'),
};

async function started(server: LiveServer, first: object = START) {
  const client = await server.socket();
  client.ws.send(JSON.stringify(first));
  await until('ready', () => client.received.some(({ type }) => type === 'ready'));
  const errors = () => client.received.filter(({ type }) => type === 'error');
  return { ...client, errors };
}

describe('the door', () => {
  it('takes a token by header or subprotocol, and never from a query', async () => {
    const server = await start(SECURED);
    const token = SECURED.CONSOLE_TOKEN;
    await expect(server.socket()).rejects.toThrow('401');
    const wrong = { headers: { Authorization: 'Bearer wrong' } };
    await expect(server.socket(wrong)).rejects.toThrow('401');
    await expect(server.socket({ protocols: ['earshot', 'bearer.d3Jvbmc'] })).rejects.toThrow('401');
    const byHeader = await server.socket({ headers: { Authorization: `Bearer ${token}` } });
    expect(byHeader.ws.protocol).toBe('');
    const client = server.connect({ token });
    await until('ready', () => client.state().isReady);
    expect(client.frames[0]?.type).toBe('history');
  });

  it('says that it wants a socket', async () => {
    const server = await start();
    expect((await fetch(`${server.server.url}/run_live`)).status).toBe(426);
  });

  it.each([
    ['not JSON', '{', 'message_invalid'],
    ['a text before start', JSON.stringify({ type: 'text', text: 'x' }), 'start_missing'],
    ['an unknown format', JSON.stringify({ ...START, audio: 'audio/opus' }), 'message_invalid'],
  ])('turns away who begins with %s', async (_what, text, code) => {
    const server = await start();
    const { ws, received, closed } = await server.socket();
    ws.send(text);
    expect(await closed).toBe(1008);
    expect(received).toEqual([expect.objectContaining({ type: 'error', code, fatal: true })]);
    expect(server.gemini.handshakes).toBe(0);
  });

  it('is shut at MAX_CALLS, and the client does not try again', async () => {
    const server = await start({ MAX_CALLS: '1' });
    const first = server.connect();
    await until('ready', () => first.state().isReady);
    expect((await fetch(`${server.server.url}/readyz`)).status).toBe(503);
    const second = server.connect({ sessionId: 's2' });
    expect(await second.live.ended).toMatchObject({ reason: 'finished' });
    expect(second.state().failures).toMatchObject([{ code: 'run_refused', fatal: true }]);
    const metrics = await (await fetch(`${server.server.url}/metrics`)).text();
    expect(metrics).toContain('earshot_calls_total{direction="web",end_reason="busy"} 1');
  });

  it('is shut while the server drains, which waits for who is in', async () => {
    const server = await start();
    const first = server.connect();
    await until('ready', () => first.state().isReady);
    const drained = server.server.drain();
    const second = server.connect({ sessionId: 's2' });
    await second.live.ended;
    expect(second.state().failures).toMatchObject([{ code: 'server_draining', fatal: true }]);
    first.live.end();
    await first.live.ended;
    await drained;
  });
});

describe('one client', () => {
  it('is told what is wrong with a message, and goes on', async () => {
    const server = await start();
    const client = await started(server);
    for (const wrong of ['{', '[]', JSON.stringify({ type: 'nothing' }), JSON.stringify(START)])
      client.ws.send(wrong);
    client.ws.send(Buffer.from('{}'), { binary: true });
    client.ws.send(JSON.stringify({ type: 'audio', data: 'AQID' }));
    client.ws.send(JSON.stringify({ type: 'text', text: 'Still here' }));
    const model = await server.gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('Still here'));
    await until('all errors', () => client.errors().length === 6);
    expect(client.errors().every(({ fatal, code }) => fatal === false && code === 'message_invalid')).toBe(
      true,
    );
    expect(new Set(client.errors().map(({ msg }) => msg)).size).toBe(6);
  });

  it('is hung up if it sends nothing else', async () => {
    const server = await start();
    const client = await started(server);
    for (let at = 0; at <= WEB_FAULTS_BURST; at += 1) client.ws.send('{');
    expect(await client.closed).toBe(1008);
    expect(client.received.at(-1)).toMatchObject({ type: 'error', fatal: true });
    await (await server.gemini.connection(0)).waitForClose();
    await server.nothingLeft();
  });

  it('gets only so many pictures and so much sound to the model, and every text', async () => {
    const server = await start();
    const client = await started(server, { ...START, audio: PCM });
    const model = await server.greeting();
    const second = Buffer.alloc(32_000).toString('base64');
    for (let at = 0; at < 60; at += 1) client.ws.send(JSON.stringify({ type: 'audio', data: second }));
    for (let at = 0; at < 10; at += 1) {
      client.ws.send(JSON.stringify({ type: 'image', mimeType: 'image/png', data: 'AQID' }));
    }
    for (let at = 0; at < 20; at += 1) client.ws.send(JSON.stringify({ type: 'text', text: `text ${at}.` }));
    await model.waitFor((frame) => JSON.stringify(frame).includes('text 19.'));
    const texts = model.receivedTextInputs.join(' ');
    expect(Array.from({ length: 20 }, (_, at) => texts.includes(`text ${at}.`))).toEqual(
      Array(20).fill(true),
    );
    expect(model.receivedAudio.length / 32_000).toBeLessThan(12);
    const pictures = model.received.filter((frame) => JSON.stringify(frame).includes('"video"')).length;
    expect(pictures).toBeLessThanOrEqual(WEB_IMAGES_BURST + 1);
    const codes = () => client.errors().map(({ code }) => code);
    await until('both errors', () => codes().includes('too_fast') && codes().includes('image_refused'));
    const metrics = await (await fetch(`${server.server.url}/metrics`)).text();
    expect(metrics).toMatch(/audio_dropped_seconds_total\{direction="inbound",reason="too_fast"\} [45]\d/);
  });

  it('that sends a message beyond all bounds is cut, and nothing else is', async () => {
    const server = await start();
    const other = server.connect({ sessionId: 's2' });
    const client = await started(server);
    client.ws.send('x'.repeat(1024 * 1024 + 1));
    expect(await client.closed).toBe(1009);
    await until('the other to be ready', () => other.state().isReady);
    other.live.end();
    await other.live.ended;
    await server.nothingLeft();
  });

  it.each([
    ['says end', (ws: { send(text: string): void }) => ws.send(JSON.stringify({ type: 'end' }))],
    ['closes', (ws: { close(): void }) => ws.close()],
  ])('that %s ends its conversation at once', async (_what, leave) => {
    const server = await start();
    const client = await started(server);
    const model = await server.greeting();
    leave(client.ws);
    await model.waitForClose();
    await client.closed;
    await server.nothingLeft();
    const metrics = await (await fetch(`${server.server.url}/metrics`)).text();
    expect(metrics).toContain('earshot_calls_total{direction="web",end_reason="caller_hangup"} 1');
  });

  it('that does not read gets no more sound than waits for it, and stops nobody', async () => {
    const server = await start();
    const slow = await started(server, { ...START, audio: 'audio/pcm;rate=24000' });
    const model = await server.greeting();
    const other = server.connect({ sessionId: 's2', audio: PCM });
    const second = await server.greeting(1);
    slow.ws.pause();
    model.sendAudio(tone(60_000));
    model.sendOutputTranscription('A very long story.');
    second.sendAudio(tone(1_000));
    second.sendOutputTranscription('Hello.');
    second.generationComplete();
    second.turnComplete();
    await until('the other’s greeting', () => other.frames.some(({ type }) => type === 'done'));
    expect(other.page()).toEqual(['model: Hello.']);
    slow.ws.resume();
    await until('the words', () => slow.received.some(({ type }) => type === 'delta'));
  });
});

describe('a session', () => {
  it('goes on when a lost client comes back, with whole messages and the same model', async () => {
    const server = await start();
    const client = server.connect();
    const model = await server.greeting();
    model.sendOutputTranscription('Hello, ');
    await until('half a greeting', () => client.page().length === 1);
    const lost = await server.socket();
    lost.ws.send(JSON.stringify({ ...START, sessionId: 's2' }));
    const second = await server.greeting(1);
    second.sendOutputTranscription('Hi there');
    await until('a greeting', () => lost.received.some(({ type }) => type === 'delta'));
    lost.ws.terminate();
    await until('the loss to be seen', async () => (await server.json('/debug/runs'))['streams'] === 1);
    const back = await started(server, { ...START, sessionId: 's2' });
    expect(server.gemini.connections).toHaveLength(2);
    expect(back.received[0]).toMatchObject({ type: 'history' });
    const page = () => back.received.reduce(reduce, initialState).messages;
    // It may be told before it is stored, as cut, or afterwards, as history.
    await until('the cut greeting', () => page()[0]?.text === 'Hi there' && page()[0]?.status !== 'open');
    second.turnComplete();
    back.ws.send(JSON.stringify({ type: 'text', text: 'Are you still there?' }));
    await second.waitFor((frame) => JSON.stringify(frame).includes('still there'));
    expect(client.page()).toEqual(['model: Hello,']);
  });

  it('begins anew with its history for the page and for the model', async () => {
    const server = await start();
    const first = server.connect();
    const model = await server.greeting();
    model.sendOutputTranscription('Hello.');
    model.generationComplete();
    model.turnComplete();
    await until('the greeting', () => first.page().length === 1);
    first.live.sendText('My name is Ada');
    await model.waitFor((frame) => JSON.stringify(frame).includes('Ada'));
    first.live.end();
    await first.live.ended;
    const again = server.connect();
    await until('ready', () => again.state().isReady);
    expect(again.page()).toEqual(['model: Hello.', 'user: My name is Ada']);
    const next = await server.gemini.connection(1);
    expect(JSON.stringify(next.setup)).toContain('My name is Ada');
    const stranger = server.connect({ userId: 'u2' });
    await until('the other to be ready', () => stranger.state().isReady);
    expect(stranger.page()).toEqual([]);
    expect(JSON.stringify((await server.gemini.connection(2)).setup)).not.toContain('Ada');
  });

  it('belongs to the client that came last', async () => {
    const server = await start();
    const first = server.connect();
    await until('ready', () => first.state().isReady);
    const second = server.connect();
    expect(await first.live.ended).toMatchObject({ reason: 'finished' });
    expect(first.state().failures).toMatchObject([{ code: 'run_conflict', fatal: true }]);
    await until('the second to be ready', () => second.state().isReady);
    expect(server.gemini.connections).toHaveLength(1);
    second.live.sendText('Only me');
    await (await server.gemini.connection(0)).waitFor((frame) => JSON.stringify(frame).includes('Only me'));
  });

  it('has one run at a time, whatever its mode, and each client its own', async () => {
    const server = await start();
    const first = server.connect();
    const other = server.connect({ sessionId: 's2' });
    await until('both to be ready', () => first.state().isReady && other.state().isReady);
    const run = await fetch(`${server.server.url}/run`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ userId: 'u1', sessionId: 's1', newMessage: { parts: [{ text: 'Hi' }] } }),
    });
    expect(run.status).toBe(409);
    first.live.sendText('one');
    other.live.sendText('two');
    await until(
      'their words',
      () => first.page().includes('user: one') && other.page().includes('user: two'),
    );
    expect(first.page().includes('user: two')).toBe(false);
    expect((await server.json('/calls'))['calls']).toEqual([]);
  });
});
