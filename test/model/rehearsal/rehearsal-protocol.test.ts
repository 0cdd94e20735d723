import { once } from 'node:events';
import { get } from 'node:http';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../../../src/clock.js';
import {
  REHEARSAL_PAYLOAD_MAX_BYTES,
  REHEARSAL_SETUP_TIMEOUT_MS,
} from '../../../src/model/rehearsal/rehearsal-limits.js';
import { readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import {
  type RehearsalService,
  startRehearsalService,
} from '../../../src/model/rehearsal/rehearsal-service.js';
import { fromPcm16, resample, toPcm16 } from '../../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../../../src/model/rehearsal/speech-synthesizer.js';
import type { Log } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { chunks, connectClient, count, eventually, order, spokenWords, until } from './rehearsal-client.js';

const lines: { level: string; fields: object; message: string }[] = [];
function keep(level: string): (fields: object, message: string) => void {
  return (fields, message) => void lines.push({ level, fields, message });
}
const log: Log = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };

const synthesizer = new FliteSynthesizer({ clock: systemClock, log });
afterAll(() => synthesizer.close());
const dialogue = readDialogue();
const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

let clock: VirtualClock;
let service: RehearsalService;
beforeEach(async () => {
  lines.length = 0;
  clock = new VirtualClock();
  service = await startRehearsalService({ clock, log, synthesizer });
});
afterEach(async () => {
  await service.close();
  if (clock.pendingTimers > 0)
    throw new Error(`${clock.pendingTimers} timers are left after the service closed`);
});

function open(target = `${path}?key=rehearsal`): WebSocket {
  return new WebSocket(service.url.replace('http:', 'ws:') + target);
}

/** Sends frames as they are and tells how the service closed. */
async function closedAfter(frames: readonly (string | Buffer)[]): Promise<{ code: number; reason: string }> {
  const webSocket = open();
  await once(webSocket, 'open');
  for (const frame of frames) webSocket.send(frame);
  const [code, reason] = (await once(webSocket, 'close')) as [number, Buffer];
  return { code, reason: reason.toString() };
}

const setup = JSON.stringify({ setup: { model: 'models/gemini-3.8-live' } });

describe('the rehearsal service refuses with 1007', () => {
  it.each([
    ['a first frame that is not setup', [JSON.stringify({ realtimeInput: { text: 'hi' } })], /must be setup/],
    ['a second setup', [setup, setup], /already received/],
    ['text that is not JSON', ['{"setup":'], /Invalid JSON payload/],
    ['JSON that is no object', ['null'], /Invalid value/],
    ['an empty frame', ['{}'], /one message type/],
    ['two messages in one frame', [setup, '{"realtimeInput":{},"toolResponse":{}}'], /one message type/],
    ['an unknown key', [setup, '{"hello":1}'], /Unknown name "hello": Cannot find field/],
    ['an unknown setup field', ['{"setup":{"model":"m","x":1}}'], /Unknown name "x" at 'setup'/],
    ['a setup without a model', ['{"setup":{}}'], /Invalid value at 'setup\.model'/],
    ['an unknown handle', ['{"setup":{"model":"m","sessionResumption":{"handle":"old"}}}'], /handle/],
    ['deprecated media chunks', [setup, '{"realtimeInput":{"mediaChunks":[]}}'], /deprecated/],
    [
      'sound of an unknown kind',
      [setup, '{"realtimeInput":{"audio":{"mimeType":"audio/wav","data":""}}}'],
      /Unsupported audio/,
    ],
    [
      'activity signals beside automatic detection',
      [setup, '{"realtimeInput":{"activityStart":{}}}'],
      /Explicit/,
    ],
    ['a reason longer than a close frame holds', [setup, `{"${'ü'.repeat(200)}":1}`], /Unknown name "ü+/],
  ])('%s', async (_, frames, reason) => {
    const close = await closedAfter(frames);
    expect(close.code).toBe(1007);
    expect(close.reason).toMatch(reason);
    await eventually(() => service.connections === 0);
  });
});

describe('the doors of the rehearsal service', () => {
  it('close on a client without a key, in words like the real ones', async () => {
    const webSocket = open(path);
    const [code, reason] = (await once(webSocket, 'close')) as [number, Buffer];
    expect([code, reason.toString()]).toEqual([1008, expect.stringMatching(/unregistered callers/)]);
  });

  it.each(['/', '/ws/other', '//'])('answer 404 at %s', async (target) => {
    const [error] = (await once(open(`${target}?key=x`), 'error')) as [Error];
    expect(error.message).toMatch(/404/);
    const [response] = (await once(get(service.url + target), 'response')) as [{ statusCode: number }];
    expect(response.statusCode).toBe(404);
  });

  it.each([`/${path}`, `/proxy/${path}`, path.replace('v1beta', 'v1')])('open at %s', async (target) => {
    const webSocket = open(`${target}?key=x`);
    await once(webSocket, 'open');
    webSocket.send(Buffer.from(setup));
    const [data, isBinary] = (await once(webSocket, 'message')) as [Buffer, boolean];
    expect(JSON.parse(data.toString())).toEqual({ setupComplete: { sessionId: 'rehearsal-session-1' } });
    expect(isBinary).toBe(true);
    webSocket.terminate();
  });

  it('close on a message beyond the limit', async () => {
    expect((await closedAfter([setup, 'x'.repeat(REHEARSAL_PAYLOAD_MAX_BYTES + 1)])).code).toBe(1009);
  });

  it('close on a client that sends no setup', async () => {
    const webSocket = open();
    await once(webSocket, 'open');
    await eventually(() => clock.pendingTimers > 0);
    clock.advance(REHEARSAL_SETUP_TIMEOUT_MS);
    const [code] = (await once(webSocket, 'close')) as [number];
    expect(code).toBe(1008);
  });

  it('fail with a clear error when the port is taken', async () => {
    const port = Number(new URL(service.url).port);
    await expect(startRehearsalService({ clock, log, port, synthesizer })).rejects.toMatchObject({
      code: 'rehearsal_failed',
    });
  });

  it('close quietly right after opening, while the voices are still loaded', async () => {
    const brief = await startRehearsalService({ clock: systemClock, log });
    await brief.close();
    await brief.close();
    await expect(fetch(brief.url)).rejects.toThrow(/fetch failed/);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('send text frames when asked to', async () => {
    const textual = await startRehearsalService({ clock, log, synthesizer, frames: 'text' });
    const { session, messages } = await connectClient(textual.url);
    session.sendRealtimeInput({ text: 'Say word for word: "Hi."' });
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(spokenWords(messages)).toBe('Hi.');
    await textual.close();
  });

  it('tell every client that the service goes away, in the middle of a turn too', async () => {
    const { session, messages, closes } = await connectClient(service.url);
    session.sendRealtimeInput({ text: 'Say word for word: "This will be cut off."' });
    await until(clock, () => count(messages, 'audio') >= 1);
    await Promise.all([service.close(), service.close()]);
    await eventually(() => closes.length === 1);
    expect(closes[0]?.code).toBe(1001);
    expect(clock.pendingTimers).toBe(0);
  });

  it('say once in the log that it rehearses, and never what was typed or instructed', async () => {
    const { session, messages } = await connectClient(service.url, {
      systemInstruction: 'A secret instruction.',
    });
    session.sendRealtimeInput({ text: 'Say word for word: "A secret greeting."' });
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(lines.filter(({ message }) => /understands no speech/.test(message))).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toMatch(/secret/i);
    expect(lines.some(({ fields }) => 'instructionChars' in fields && fields.instructionChars === 21)).toBe(
      true,
    );
    session.close();
  });
});

describe('connections to the rehearsal service', () => {
  it('are independent of one another', async () => {
    const [one, two] = await Promise.all([
      connectClient(service.url),
      connectClient(service.url, {
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Puck' } } },
      }),
    ]);
    expect(service.connections).toBe(2);
    for (const { session } of [one, two])
      session.sendRealtimeInput({ text: 'Say word for word: "Good day."' });
    await until(clock, () => [one, two].every(({ messages }) => count(messages, 'audio') > 0));
    one.session.sendRealtimeInput({ text: '7 was pressed: [The caller pressed 7]' });
    await until(
      clock,
      () => count(one.messages, 'turnComplete') === 2 && count(two.messages, 'turnComplete') === 1,
    );
    expect(order(two.messages)).toEqual(['audio', 'generationComplete', 'turnComplete']);
    const spoken = Buffer.concat(chunks(two.messages));
    const rms = await synthesizer.speak('rms', 'Good day.');
    expect(spoken.equals(new Uint8Array(rms.buffer))).toBe(true);
    one.session.close();
    await eventually(() => service.connections === 1);
    two.session.close();
  });

  it('can be resumed where the dialogue stood', async () => {
    const first = await connectClient(service.url, { sessionResumption: {} });
    const updates = () =>
      first.messages.flatMap(({ sessionResumptionUpdate }) => sessionResumptionUpdate ?? []);
    first.session.sendRealtimeInput({ text: 'The caller pressed the key "4" on the phone.' });
    await until(clock, () => count(first.messages, 'turnComplete') === 1 && updates().length === 3);
    expect(updates().map(({ resumable }) => resumable)).toEqual([true, false, true]);
    first.session.close();
    const handle = updates().at(-1)?.newHandle ?? '';
    const second = await connectClient(service.url, { sessionResumption: { handle } });
    second.session.sendRealtimeInput({ text: 'The caller pressed the key "#" on the phone.' });
    await until(clock, () => count(second.messages, 'turnComplete') === 1);
    expect(spokenWords(second.messages)).toContain('order number 4.');
    second.session.close();
  });

  it('take the client’s own activity signals when automatic detection is disabled', async () => {
    const { session, messages } = await connectClient(service.url, {
      realtimeInputConfig: { automaticActivityDetection: { disabled: true } },
    });
    session.sendRealtimeInput({ activityStart: {} });
    session.sendRealtimeInput({ text: 'Say word for word: "A marker."' });
    await until(clock, () => count(messages, 'turnComplete') === 1);
    clock.advance(500);
    session.sendRealtimeInput({ activityEnd: {} });
    await until(clock, () => count(messages, 'turnComplete') === 2);
    expect(spokenWords(messages)).toBe(`A marker.${dialogue.disclosure} ${dialogue.turns[0]?.say}`);
    session.close();
  });

  it('hear 8 kHz sound too, and the end of a stream as the end of a turn', async () => {
    const { session, messages } = await connectClient(service.url);
    const pcm = toPcm16(resample(fromPcm16(await synthesizer.speak('slt', 'Hello there.')), 1, 3));
    const bytes = Buffer.concat([Buffer.alloc(8_000), Buffer.from(pcm.buffer)]);
    // An odd cut: the service carries the half sample.
    for (const part of [bytes.subarray(0, 9_001), bytes.subarray(9_001)]) {
      session.sendRealtimeInput({
        audio: { mimeType: 'audio/pcm;rate=8000', data: part.toString('base64') },
      });
    }
    session.sendRealtimeInput({ audioStreamEnd: true });
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(order(messages)[0]).toBe('inputTranscription');
    expect(spokenWords(messages)).toBe(`${dialogue.disclosure} ${dialogue.turns[0]?.say}`);
    session.close();
  });

  it('go on when the synthesizer fails, without the words that were not spoken', async () => {
    const failing = {
      speak: (_: string, text: string) =>
        text === 'Broken.' ? Promise.reject(new Error('no voice')) : Promise.resolve(new Int16Array(24_000)),
      close: () => Promise.resolve(),
    };
    const hoarse = await startRehearsalService({ clock, log, synthesizer: failing });
    const { session, messages } = await connectClient(hoarse.url);
    session.sendRealtimeInput({ text: 'Say word for word: "One. Broken. Two."' });
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(spokenWords(messages)).toBe('One. Two.');
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    await hoarse.close();
  });
});
