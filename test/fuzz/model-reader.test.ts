/** The model's messages, right ones in every order and bundle, and whatever else JSON can say. */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GeminiAudioDecoder } from '../../src/model/gemini-audio-decoder.js';
import { LISTENER_FAILED_CODE } from '../../src/model/gemini-live-connection.js';
import type { GeminiOddity } from '../../src/model/gemini-message-reader.js';
import { RecordingLiveListener, type HeardEvent } from '../support/recording-live-listener.js';
import { scopeOn } from '../support/scopes.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Mutations, readCorpus } from './corpus.js';
import { liveConnection, ModelLine } from './model-line.js';
import { assertOneMessage } from './model-order.js';
import { Chance, fuzzCount, fuzzed, FUZZ_SEED } from './seed.js';
import { BINARY, CLOSE, fragmented, TEXT, wireFrame } from './wire-frames.js';

// --- Messages that mean something, and what must be heard of them ---------------------------------------------------

interface Said {
  readonly message: object;
  readonly hears: readonly HeardEvent[];
}

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const flag = fc.constantFrom(undefined, true, false);
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

/** As it comes back from JSON, which has no negative zero. */
const jsonValue = fc.jsonValue({ maxDepth: 1 }).map((value): unknown => JSON.parse(JSON.stringify(value)));

/** With odd numbers of bytes, empty, and padded or not. */
const sounds = fc.array(fc.tuple(fc.uint8Array({ maxLength: 99 }), fc.boolean()), { maxLength: 3 });

const speech = fc
  .record({
    interrupted: flag,
    sounds: maybe(sounds),
    input: maybe(word),
    output: maybe(word),
    generationComplete: flag,
    turnComplete: flag,
    reason: maybe(word),
  })
  .map((parts): { serverContent: object; hears: HeardEvent[] } => {
    const hears: HeardEvent[] = [];
    const { interrupted, input, output, generationComplete, turnComplete, reason } = parts;
    if (interrupted === true) hears.push({ kind: 'interrupted' });
    for (const [bytes] of parts.sounds ?? [])
      if (bytes.length > 0) hears.push({ kind: 'audio', pcm: Buffer.from(bytes) });
    if (input !== undefined) hears.push({ kind: 'inputTranscription', text: input });
    if (output !== undefined) hears.push({ kind: 'outputTranscription', text: output });
    if (generationComplete === true) hears.push({ kind: 'generationComplete' });
    if (turnComplete === true) hears.push({ kind: 'turnComplete', reason });
    const modelTurn = parts.sounds && {
      parts: parts.sounds.flatMap(([bytes, isPadded]) => {
        const data = Buffer.from(bytes).toString('base64');
        const inlineData = {
          mimeType: 'audio/pcm;rate=24000',
          data: isPadded ? data : data.replaceAll('=', ''),
        };
        return [{ text: 'a thought' }, { inlineData }];
      }),
    };
    const serverContent = {
      turnCompleteReason: reason,
      turnComplete,
      generationComplete,
      outputTranscription: output === undefined ? undefined : { text: output },
      inputTranscription: input === undefined ? undefined : { text: input },
      modelTurn,
      interrupted,
    };
    return { serverContent, hears };
  });

const rest = fc.record({
  call: maybe(
    fc.record({
      id: word,
      name: word,
      args: fc.dictionary(
        word.filter((key) => key !== '__proto__'),
        jsonValue,
        { maxKeys: 2 },
      ),
    }),
  ),
  cancelled: maybe(word),
  leftS: maybe(fc.nat(1_000)),
  handle: maybe(word),
  tokens: maybe(fc.integer({ min: 1, max: 1e6 })),
});

const bundle: fc.Arbitrary<Said> = fc
  .tuple(maybe(speech), rest)
  .map(([spoken, { call, cancelled, leftS, handle, tokens }]) => {
    const hears = [...(spoken?.hears ?? [])];
    if (call !== undefined) hears.push({ kind: 'toolCall', functionCalls: [call] });
    if (cancelled !== undefined) hears.push({ kind: 'toolCallCancellation', ids: [cancelled] });
    if (leftS !== undefined) hears.push({ kind: 'goAway', timeLeftMs: leftS * 1_000 });
    if (handle !== undefined) hears.push({ kind: 'resumption', newHandle: handle, resumable: true });
    if (tokens !== undefined) {
      hears.push({
        kind: 'usage',
        usage: {
          promptTokens: {},
          responseTokens: { MODALITY_UNSPECIFIED: tokens },
          totalTokenCount: tokens,
        },
      });
    }
    const message = {
      usageMetadata:
        tokens === undefined ? undefined : { responseTokenCount: tokens, totalTokenCount: tokens },
      sessionResumptionUpdate: handle === undefined ? undefined : { newHandle: handle, resumable: true },
      goAway: leftS === undefined ? undefined : { timeLeft: `${leftS}s` },
      toolCallCancellation: cancelled === undefined ? undefined : { ids: [cancelled] },
      toolCall: call === undefined ? undefined : { functionCalls: [call] },
      serverContent: spoken?.serverContent,
      setupComplete: hears.length === 0 ? {} : undefined,
    };
    return { message, hears };
  });

const seeds = ['model-speech.txt', 'model-control.txt'].flatMap(readCorpus).map(({ data }) => data);

describe('a message of the model', () => {
  it('is heard whole and in the documented order, with every flag and bundle, sound to the byte', () => {
    const property = fc.property(fc.array(bundle, { maxLength: 8 }), (said) => {
      const line = new ModelLine();
      for (const { message } of said) line.receive(JSON.stringify(message));
      expect(line.listener.events).toEqual(said.flatMap(({ hears }) => hears));
      expect(line.oddities).toEqual([]);
    });
    fc.assert(property, fuzzed(1_000));
  });

  it('of any shape around the schema throws nothing and brings only sound events, in order', () => {
    const key = fc.constantFrom(
      'parts',
      'inlineData',
      'data',
      'mimeType',
      'text',
      'ids',
      'functionCalls',
      'id',
      'name',
      'timeLeft',
    );
    const leaf = fc.oneof(
      fc.constantFrom<unknown>(null, true, 'AAAA', 'audio/pcm', '5s', -1, 1e308, ''),
      fc.string(),
    );
    const { node } = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(key, tie('node'), { maxKeys: 3 }),
      ),
    }));
    const topKey = fc.constantFrom(
      'serverContent',
      'toolCall',
      'toolCallCancellation',
      'goAway',
      'sessionResumptionUpdate',
      'usageMetadata',
      'x',
    );
    const contentKey = fc.constantFrom(
      'modelTurn',
      'interrupted',
      'turnComplete',
      'inputTranscription',
      'outputTranscription',
      'interactionStatus',
    );
    const any = fc.dictionary(topKey, fc.oneof(node, fc.dictionary(contentKey, node, { maxKeys: 4 })), {
      maxKeys: 4,
    });
    const property = fc.property(
      any,
      fc.constantFrom('gemini-3.8-live', 'gemini-2.5-flash-native-audio'),
      (message, modelName) => {
        const line = new ModelLine(modelName);
        line.receive(JSON.stringify(message));
        assertOneMessage(line.listener.events);
        expect(line.oddities).not.toContain('listener_threw');
      },
    );
    fc.assert(property, fuzzed(2_000));
  });

  it('that was damaged throws nothing, brings only sound events, and leaves the connection as it was', () => {
    const mutations = new Mutations(seeds, new Chance(FUZZ_SEED));
    const line = new ModelLine();
    for (let count = fuzzCount(20_000); count > 0; count -= 1) {
      const text = mutations.next().toString('utf8');
      line.listener.events.length = 0;
      line.receive(text);
      try {
        assertOneMessage(line.listener.events);
      } catch (cause) {
        throw new Error(`FUZZ_SEED=${FUZZ_SEED}: ${text.slice(0, 1_000)}`, { cause });
      }
    }
    expect(line.oddities).not.toContain('listener_threw');
  });

  it('whose listener throws ends that connection, once, and nothing of it is heard any more', () => {
    const property = fc.property(
      fc.array(bundle, { minLength: 1, maxLength: 8 }),
      fc.nat(20),
      (said, after) => {
        const line = new ModelLine();
        let left = after;
        line.listener.onEvent = () => {
          if ((left -= 1) < 0) throw new Error('the call is broken');
        };
        for (const { message } of said) line.receive(JSON.stringify(message));
        const heard = said.flatMap(({ hears }) => hears);
        expect(line.listener.events).toEqual(heard.slice(0, after + 1));
        line.connection.onEnd({ code: 1006, reason: '', httpStatus: undefined, error: undefined });
        const code = heard.length > after ? LISTENER_FAILED_CODE : 1006;
        expect(line.listener.closes.map((close) => close.code)).toEqual([code]);
      },
    );
    fc.assert(property, fuzzed(300));
  });
});

describe('the sound of the model', () => {
  it('is whole, however it was cut into messages and bytes, small chunks and huge ones', () => {
    const cut = fc.oneof(
      fc.nat(9),
      fc.nat(4_000),
      fc.constantFrom(47_999, 48_000, 48_001, 1_048_576, 1_048_577),
    );
    const property = fc.property(fc.array(cut, { maxLength: 12 }), fc.nat(), (lengths, seed) => {
      const line = new ModelLine();
      const chance = new Chance(seed);
      const chunks = lengths.map((length) => chance.bytes(Math.min(length, 2_000)).subarray(0, length));
      const whole = chunks.map((chunk, index) => Buffer.concat([chunk], lengths[index]));
      for (const chunk of whole) {
        const inlineData = { mimeType: 'audio/pcm;rate=24000', data: chunk.toString('base64') };
        line.receive(JSON.stringify({ serverContent: { modelTurn: { parts: [{ inlineData }] } } }));
      }
      expect(Buffer.compare(line.listener.audio, Buffer.concat(whole))).toBe(0);
    });
    fc.assert(property, fuzzed(60));
  });

  it('is never half decoded: what is not base64 is no sound at all', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc
        .tuple(fc.base64String(), fc.string({ unit: 'binary', maxLength: 2 }), fc.base64String())
        .map((parts) => parts.join('')),
    );
    const decoder = new GeminiAudioDecoder();
    const property = fc.property(text, (base64) => {
      const decoded = decoder.decode(base64);
      if (decoded === undefined) return;
      expect(base64).toMatch(/^[A-Za-z0-9+/_-]*={0,2}$/);
      expect(Buffer.from(decoded).toString('base64').replaceAll('=', '').length).toBe(
        base64.replaceAll('=', '').length,
      );
    });
    fc.assert(property, fuzzed(3_000));
  });
});

// --- Through a real socket ------------------------------------------------------------------------------------------

/** A server that answers the handshake and then writes bytes as they are. */
class RawModel {
  readonly #server: Server = createServer();
  #waiting: ((socket: Socket) => void)[] = [];

  constructor() {
    this.#server.on('upgrade', (request, socket) => {
      const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash('sha1').update(key).digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.on('error', () => socket.destroy());
      socket.on('end', () => socket.end());
      socket.resume();
      (socket as Socket).setNoDelay(true);
      this.#waiting.shift()?.(socket as Socket);
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
  }

  async connect(listener: RecordingLiveListener, oddities: GeminiOddity[]): Promise<Socket> {
    const { port } = this.#server.address() as AddressInfo;
    const url = `ws://127.0.0.1:${port}/`;
    const { connection, socket } = liveConnection({
      listener,
      oddities,
      url,
      scope: scopeOn(new VirtualClock()),
    });
    connection.start();
    const accepted = new Promise<Socket>((resolve) => {
      this.#waiting.push(resolve);
    });
    socket.connect();
    return accepted;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

describe('a socket of the model', () => {
  const model = new RawModel();
  beforeAll(() => model.open());
  afterAll(() => model.close());

  it('hears the same from text and binary frames, fragments and any pieces of the network, and one close', async () => {
    const how = fc.record({
      opcode: fc.constantFrom(TEXT, BINARY),
      cuts: fc.array(fc.nat(), { maxLength: 3 }),
    });
    const junk = fc
      .constantFrom(...seeds.filter((data) => data.length < 10_000))
      .map((data) => data.toString('utf8'));
    const said = fc.array(
      fc.tuple(fc.oneof({ weight: 4, arbitrary: bundle }, { weight: 1, arbitrary: junk }), how),
      { maxLength: 10 },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 8 });
    const property = fc.asyncProperty(said, sizes, async (messages, pieces) => {
      const listener = new RecordingLiveListener();
      const texts = messages.map(([one]) => (typeof one === 'string' ? one : JSON.stringify(one.message)));
      const bytes = Buffer.concat([
        ...messages.map(([, { opcode, cuts }], index) =>
          fragmented(Buffer.from(texts[index] ?? ''), cuts, { opcode, mask: new Uint8Array(0) }),
        ),
        wireFrame(Buffer.from([0x03, 0xf3]), { opcode: CLOSE, mask: new Uint8Array(0) }),
      ]);
      const socket = await model.connect(listener, []);
      for (let at = 0, index = 0; at < bytes.length; index += 1) {
        const size = pieces[index % pieces.length] ?? 1;
        socket.write(bytes.subarray(at, at + size));
        at += size;
      }
      await listener.waitFor('close');
      const straight = new ModelLine();
      for (const text of texts) straight.receive(text);
      expect(listener.events.slice(0, -1)).toEqual(straight.listener.events);
      expect(listener.closes).toEqual([{ code: 1011, reason: '', local: false }]);
    });
    await fc.assert(property, fuzzed(60));
  });

  it('tells its call one close, whatever bytes come in the place of frames', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 2, maxLength: 300 }).map((raw) => Buffer.from(raw)),
      fc.constant(wireFrame(Buffer.from('{}'))),
      fc.constant(wireFrame(Buffer.from([0xff, 0xfe]), { mask: new Uint8Array(0) })),
      fc.constant(Buffer.from([0x82, 127, 0, 0, 0, 0, 0x10, 0, 0, 0])),
    );
    const property = fc.asyncProperty(bytes, async (raw) => {
      const listener = new RecordingLiveListener();
      const socket = await model.connect(listener, []);
      socket.end(raw);
      await listener.waitFor('close');
      expect(listener.closes).toHaveLength(1);
    });
    await fc.assert(property, fuzzed(60));
  });
});
