/** Conversations of web clients with the module that they use, a scripted model, and real sockets in between. */
import { afterEach, describe, expect, it } from 'vitest';
import { SOUND_FORMATS, soundMs, type SoundFormat } from '../../src/web/sound-format.js';
import { amplitudeAt, samplesOf } from '../audio/sound.js';
import { ituDecode, ituEncode } from '../audio/sound.js';
import { tone } from '../support/call-rig.js';
import { type Client, LiveServer, until } from './live-server.js';

let running: LiveServer | undefined;
async function start(environment?: Record<string, string>): Promise<LiveServer> {
  running = await LiveServer.start(environment);
  return running;
}
afterEach(async () => {
  await running?.close();
  running = undefined;
});

const GREETING = 'Hello, how can I help you today?';
const PCM = 'audio/pcm;rate=16000';

/** A client whose greeting has been said, and heard if it has sound. */
async function greeted(server: LiveServer, audio?: SoundFormat) {
  const client = server.connect(audio === undefined ? {} : { audio });
  const model = await server.greeting();
  model.sendAudio(tone(400));
  model.sendOutputTranscription(GREETING);
  model.generationComplete();
  model.turnComplete();
  await until('the greeting to be done', () => client.frames.some(({ type }) => type === 'done'));
  return { client, model };
}

function heardMs({ sound }: Client, format: SoundFormat): number {
  return sound.reduce((sum, piece) => sum + soundMs(format, piece.length), 0);
}

/** The samples of sound in a format, as numbers. */
function decoded(format: SoundFormat, sound: Buffer): ArrayLike<number> {
  return format.startsWith('audio/x-mulaw') ? Array.from(sound, (code) => ituDecode(code)) : samplesOf(sound);
}

function encoded(format: SoundFormat, frequencyHz: number, ms: number): Buffer {
  const rateHz = Number(format.split('=')[1]);
  const samples = Array.from({ length: (ms * rateHz) / 1000 }, (_, at) =>
    Math.round(8_000 * Math.sin((2 * Math.PI * frequencyHz * at) / rateHz)),
  );
  if (format.startsWith('audio/x-mulaw')) return Buffer.from(samples.map((sample) => ituEncode(sample)));
  return Buffer.from(Int16Array.from(samples).buffer);
}

/** The loudest tenth of a second of a tone, as its amplitude. */
function loudest(samples: ArrayLike<number>, frequencyHz: number, rateHz: number): number {
  const all = Array.from(samples);
  let best = 0;
  for (let at = 0; at + rateHz / 10 <= all.length; at += rateHz / 100) {
    best = Math.max(best, amplitudeAt(all.slice(at, at + rateHz / 10), frequencyHz, rateHz));
  }
  return best;
}

describe('a web client without sound', () => {
  it('reads the greeting, types, reads the answer, and finds it all stored', async () => {
    const server = await start();
    const { client, model } = await greeted(server);
    expect(client.frames[0]).toEqual({ type: 'history', seq: 0, messages: [] });
    expect(client.state().isReady).toBe(true);
    expect(client.live.sendText('Where is my order?')).toBe(true);
    await model.waitFor((frame) => JSON.stringify(frame).includes('Where is my order?'));
    model.sendOutputTranscription('It is ');
    model.sendAudio(tone(20_000));
    model.sendOutputTranscription('on its way.');
    model.generationComplete();
    model.turnComplete();
    await until(
      'the answer',
      () => client.state().messages.at(-1)?.status === 'done' && client.page().length === 3,
    );
    const page = [`model: ${GREETING}`, 'user: Where is my order?', 'model: It is on its way.'];
    expect(client.page()).toEqual(page);
    expect(client.sound).toEqual([]);
    await until('it to be stored', async () => (await server.committed()).length === 3);
    expect(await server.committed()).toEqual(page);
    client.live.end();
    await model.waitForClose();
    expect(await client.live.ended).toMatchObject({ reason: 'finished' });
    await server.nothingLeft();
  });

  it('is answered instead of greeted when it typed first', async () => {
    const server = await start();
    const client = server.connect();
    client.live.sendText('Hi there');
    client.live.sendText('Are you open?');
    const model = await server.gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('Are you open?'));
    expect(model.receivedTextInputs.join('\n')).toBe('Hi there\nAre you open?');
    await until('both texts', () => client.page().length === 2);
    expect(client.page()).toEqual(['user: Hi there', 'user: Are you open?']);
  });

  it('keeps what it has read of a message that its text cuts, and drops what comes late of it', async () => {
    const server = await start();
    const { client, model } = await greeted(server);
    client.live.sendText('Tell me a story');
    await model.waitFor((frame) => JSON.stringify(frame).includes('a story'));
    model.sendAudio(tone(200));
    model.sendOutputTranscription('Once upon a time');
    await until('the story', () => client.page().length === 3);
    client.live.sendText('Stop');
    await model.waitFor((frame) => JSON.stringify(frame).includes('Stop'));
    model.sendOutputTranscription(' there was a late word');
    model.interrupt();
    model.turnComplete();
    model.sendOutputTranscription('Stopped.');
    model.generationComplete();
    model.turnComplete();
    await until('the answer', () => client.frames.filter(({ type }) => type === 'done').length === 4);
    const page = [
      `model: ${GREETING}`,
      'user: Tell me a story',
      'model: Once upon a time —',
      'user: Stop',
      'model: Stopped.',
    ];
    expect(client.page()).toEqual(page);
    await until('it to be stored', async () => (await server.committed()).length === 5);
    expect(await server.committed()).toEqual(page);
  });

  it('hears of the end when the agent ends the conversation, and starts no other', async () => {
    const server = await start();
    const { client, model } = await greeted(server);
    client.live.sendText('Goodbye');
    await model.waitFor((frame) => JSON.stringify(frame).includes('Goodbye'));
    model.sendOutputTranscription('Goodbye.');
    model.toolCall({ id: 'c1', name: 'end_call' });
    await model.waitFor((frame) => 'toolResponse' in frame);
    model.generationComplete();
    model.turnComplete();
    expect(await client.live.ended).toMatchObject({ reason: 'finished' });
    expect(client.page().at(-1)).toBe('model: Goodbye.');
    expect(server.gemini.connections).toHaveLength(1);
    await server.nothingLeft();
  });

  it('reads an apology when the model is lost for good', async () => {
    const server = await start();
    const { client, model } = await greeted(server);
    server.gemini.script.handshake = { httpStatus: 503 };
    model.terminate();
    await client.live.ended;
    expect(client.state().failures.map(({ code, fatal }) => `${code} ${fatal}`)).toEqual([
      'model_lost false',
      'model_lost true',
    ]);
    expect(client.frames.at(-1)).toMatchObject({ type: 'error', fatal: true });
    expect(client.state().messages.map(({ status }) => status)).toEqual(['done', 'done']);
    expect(client.page().at(-1)).toContain('technical problem');
  }, 40_000);
});

describe('a web client with sound', () => {
  it.each(SOUND_FORMATS)('hears the agent and is heard as %s', async (audio) => {
    const server = await start();
    const client = server.connect({ audio });
    const model = await server.greeting();
    model.sendAudio(tone(600));
    model.sendOutputTranscription(GREETING);
    model.generationComplete();
    model.turnComplete();
    await until('the greeting to be heard', () => heardMs(client, audio) >= 600);
    const rateHz = Number(audio.split('=')[1]);
    const heard = decoded(audio, Buffer.concat(client.sound));
    expect(loudest(heard, 500, rateHz) / 8_000).toBeGreaterThan(0.95);
    expect(loudest(heard, 500, rateHz) / 8_000).toBeLessThan(1.05);
    const spoken = encoded(audio, 700, 400);
    // Cut where no sample ends.
    for (let at = 0; at < spoken.length; at += 333) client.live.sendAudio(spoken.subarray(at, at + 333));
    await until('the client to be heard', () => model.receivedAudio.length >= 12_000);
    const reached = loudest(samplesOf(model.receivedAudio), 700, 16_000) / 8_000;
    expect(reached).toBeGreaterThan(0.95);
    expect(reached).toBeLessThan(1.05);
  });

  it('cuts in: what the page, the flush and the store hold is what was heard, and no late sound follows', async () => {
    const server = await start();
    const { client, model } = await greeted(server, PCM);
    client.live.sendText('Count');
    await model.waitFor((frame) => JSON.stringify(frame).includes('Count'));
    const before = heardMs(client, PCM);
    for (const word of ['one ', 'two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight ']) {
      model.sendAudio(tone(500));
      model.sendOutputTranscription(word);
    }
    await until('a good second of it', () => heardMs(client, PCM) - before > 1_400);
    model.interrupt();
    await until('the flush', () => client.frames.some(({ type }) => type === 'flush'));
    const atFlush = heardMs(client, PCM);
    model.sendAudio(tone(500));
    model.turnComplete();
    client.live.sendText('Thanks');
    await model.waitFor((frame) => JSON.stringify(frame).includes('heard only this'));
    const flush = client.frames.find((frame) => frame.type === 'flush')!;
    expect(flush.text).toMatch(/^one two/);
    expect(flush.text).not.toContain('seven');
    const cut = `model: ${flush.text.trim()} —`;
    await until('the thanks', () => client.page().length === 4);
    expect(client.page()).toEqual([`model: ${GREETING}`, 'user: Count', cut, 'user: Thanks']);
    await until('it to be stored', async () => (await server.committed()).length === 4);
    expect(await server.committed()).toEqual(client.page());
    expect(heardMs(client, PCM)).toBe(atFlush);
  });

  it('stops what is being said when it types, at once', async () => {
    const server = await start();
    const { client, model } = await greeted(server, PCM);
    client.live.sendText('Count');
    await model.waitFor((frame) => JSON.stringify(frame).includes('Count'));
    model.sendAudio(tone(5_000));
    model.sendOutputTranscription('one two three four five six seven eight nine ten');
    model.generationComplete();
    model.turnComplete();
    const before = heardMs(client, PCM);
    await until('some of it', () => heardMs(client, PCM) - before > 800);
    client.live.sendText('Wait');
    await until('the flush', () => client.frames.some(({ type }) => type === 'flush'));
    await model.waitFor((frame) => JSON.stringify(frame).includes('heard only this'));
    model.sendOutputTranscription('Yes?');
    model.sendAudio(tone(200));
    model.generationComplete();
    model.turnComplete();
    await until('the answer', () => client.page().at(-1) === 'model: Yes?');
    expect(client.page().slice(1)).toEqual([
      'user: Count',
      expect.stringMatching(/^model: one.* —$/),
      'user: Wait',
      'model: Yes?',
    ]);
  });

  it('is told that a model of which nobody knows it takes no picture', async () => {
    const server = await start({ GEMINI_MODEL: 'some-new-live' });
    const { client, model } = await greeted(server);
    client.live.sendImage('image/jpeg', new Uint8Array([255, 216, 255]));
    await until('the refusal', () => client.state().failures.length === 1);
    expect(client.state().failures).toMatchObject([{ code: 'image_refused', fatal: false }]);
    expect(model.received.some((frame) => JSON.stringify(frame).includes('video'))).toBe(false);
  });

  it('shows the model a picture', async () => {
    const server = await start();
    const { client, model } = await greeted(server, PCM);
    expect(client.live.sendImage('image/jpeg', new Uint8Array([255, 216, 255]))).toBe(true);
    const frame = await model.waitFor(({ realtimeInput }) =>
      JSON.stringify(realtimeInput)?.includes('video'),
    );
    expect(frame['realtimeInput']).toEqual({ video: { mimeType: 'image/jpeg', data: '/9j/' } });
  });
});
