/**
 * What this server relies on in the Live protocol, tried against the rehearsal in every run, and against Google's
 * service where `EARSHOT_CONTRACT_GEMINI_API_KEY` is set: where the two differ, the stand-in is wrong.
 * `EARSHOT_CONTRACT_GEMINI_MODEL` names another model than the default. The real run takes minutes and is billed.
 */
import type { LiveServerMessage } from '@google/genai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { parseDialogue } from '../../../src/model/rehearsal/dialogue.js';
import {
  type RehearsalService,
  startRehearsalService,
} from '../../../src/model/rehearsal/rehearsal-service.js';
import { silentLog } from '../../../src/observe/log.js';
import { callerSound, type LiveTarget, LiveWire } from './live-wire.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { chunks, settle, spokenWords } from './rehearsal-client.js';
import { callsIn, toneSynthesizer } from './rehearsal-stage.js';

const KEY = process.env['EARSHOT_CONTRACT_GEMINI_API_KEY'] ?? '';
const MODEL = process.env['EARSHOT_CONTRACT_GEMINI_MODEL'] ?? 'gemini-3.8-live';
const ANSWER_MAX_MS = 120_000;

const GREETING = 'Hello, you have reached Harbour Goods. How can I help you today?';
const askGreeting = `The call has begun. Say this greeting now, word for word: ${JSON.stringify(GREETING)}`;
const TOOLS = [
  {
    functionDeclarations: [
      {
        name: 'look_up_order',
        description: 'Tells where an order is. Call it whenever an order is asked about.',
        parameters: { type: 'OBJECT', properties: { order: { type: 'STRING' } }, required: ['order'] },
      },
    ],
  },
];
const INSTRUCTION = {
  role: 'user',
  parts: [{ text: 'You answer the telephone of a shop. Always answer aloud.' }],
};
/** About five seconds in which a caller asks something. */
const question = callerSound('order-question', 26_000, 31_500);

const completes = ({ serverContent }: LiveServerMessage) => serverContent?.turnComplete === true;
const sounds = ({ serverContent }: LiveServerMessage) =>
  serverContent?.modelTurn?.parts?.some(({ inlineData }) => inlineData !== undefined) === true;
const calls = ({ toolCall }: LiveServerMessage) => toolCall !== undefined;

/** The place of the first message that fits, or of the last. */
function place(
  messages: readonly LiveServerMessage[],
  fits: (message: LiveServerMessage) => boolean,
): number {
  return messages.findIndex(fits);
}
function lastPlace(
  messages: readonly LiveServerMessage[],
  fits: (message: LiveServerMessage) => boolean,
): number {
  return messages.findLastIndex(fits);
}

/** Each promise by its name; `target` is there when the tests run. */
function contract(target: () => LiveTarget): void {
  it('a greeting that is asked for is spoken, as 24 kHz sound with its words', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION });
    wire.ask(askGreeting);
    const messages = await wire.since(0, completes);
    const parts = messages.flatMap(({ serverContent }) => serverContent?.modelTurn?.parts ?? []);
    const kinds = new Set(parts.flatMap(({ inlineData }) => inlineData?.mimeType ?? []));
    expect([...kinds]).toEqual(['audio/pcm;rate=24000']);
    expect(Buffer.concat(chunks(messages)).length).toBeGreaterThan(48_000);
    await wire.close();
  });

  it('flags come in order: sound, generationComplete, turnComplete, and no sound behind them', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION });
    wire.ask(askGreeting);
    const messages = await wire.since(0, completes);
    const generated = place(messages, ({ serverContent }) => serverContent?.generationComplete === true);
    expect(lastPlace(messages, sounds)).toBeLessThanOrEqual(generated);
    expect(generated).toBeLessThanOrEqual(place(messages, completes));
    expect(messages.some(({ serverContent }) => serverContent?.interrupted)).toBe(false);
    await wire.close();
  });

  it('transcription comes in fragments that are joined without adding spaces', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION });
    wire.ask(askGreeting);
    const messages = await wire.since(0, completes);
    const fragments = messages.flatMap(({ serverContent }) => serverContent?.outputTranscription?.text ?? []);
    expect(fragments.length).toBeGreaterThan(1);
    const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z ]/g, '');
    expect(plain(spokenWords(messages))).toContain(plain('How can I help you today'));
    await wire.close();
  });

  it('a caller’s question is transcribed and answered', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION });
    await wire.speak(question);
    const messages = await wire.since(0, completes);
    expect(messages.some(({ serverContent }) => serverContent?.inputTranscription?.text)).toBe(true);
    expect(messages.some(sounds)).toBe(true);
    await wire.close();
  });

  it('a caller who cuts in is answered by interrupted, then turnComplete, with no generationComplete between', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION });
    wire.ask('Count aloud from one to sixty, every number.');
    await wire.since(0, sounds);
    await wire.speak(question);
    const messages = await wire.since(0, ({ serverContent }) => serverContent?.interrupted === true);
    const cut = place(messages, ({ serverContent }) => serverContent?.interrupted === true);
    expect(cut).toBeGreaterThan(0);
    const after = await wire.since(cut, completes);
    const end = after.slice(0, place(after, completes) + 1);
    expect(end.some(({ serverContent }) => serverContent?.generationComplete)).toBe(false);
    await wire.close();
  });

  it('a function is called by a declared name with an id and arguments, and its result is spoken about', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION, tools: TOOLS });
    wire.ask('Please look up my order, its number is 1 0 2.');
    const [call] = callsIn(await wire.since(0, calls));
    expect(call).toMatchObject({ name: 'look_up_order', args: { order: expect.any(String) } });
    expect(call?.id).toMatch(/./);
    const from = wire.messages.length;
    const response = { status: 'delivered' };
    wire.send({ toolResponse: { functionResponses: [{ id: call?.id, name: call?.name, response }] } });
    await wire.since(from, sounds);
    expect(wire.closed).toBeUndefined();
    await wire.close();
  });

  it('a conversation is resumed by the last handle that was given out', async () => {
    const wire = await LiveWire.begin(target(), { systemInstruction: INSTRUCTION, sessionResumption: {} });
    wire.ask(askGreeting);
    const turn = await wire.since(0, completes);
    const isHandle = ({ sessionResumptionUpdate: update }: LiveServerMessage) =>
      update?.resumable === true && update.newHandle !== '';
    await wire.since(turn.length - 1, isHandle);
    const handle = wire.messages.findLast(isHandle)?.sessionResumptionUpdate?.newHandle;
    await wire.close();
    const again = await LiveWire.begin(target(), {
      systemInstruction: INSTRUCTION,
      sessionResumption: { handle },
    });
    again.ask('Are you still there?');
    expect((await again.since(0, completes)).some(sounds)).toBe(true);
    await again.close();
  });

  it.each([
    ['an unknown field', { nonsense: 1 }, 1007, /nonsense/],
    ['a model that is no live model', { model: 'models/gemini-2.5-flash' }, 1008, /not found|not supported/],
    ['a made-up handle', { sessionResumption: { handle: 'made-up' } }, undefined, /./],
  ])('a setup with %s is refused', async (_, more, code, reason) => {
    const wire = await LiveWire.begin(target(), more);
    expect(wire.messages.some(({ setupComplete }) => setupComplete)).toBe(false);
    expect(wire.closed?.reason).toMatch(reason);
    if (code !== undefined) expect(wire.closed?.code).toBe(code);
  });

  it('media chunks are refused, in words that say what to use', async () => {
    const wire = await LiveWire.begin(target());
    wire.send({ realtimeInput: { mediaChunks: [{ mimeType: 'audio/pcm;rate=16000', data: '' }] } });
    await target().until(() => wire.isClosed);
    expect(wire.closed).toMatchObject({ code: 1007, reason: expect.stringMatching(/deprecated/) });
  });

  it('a caller without a key is closed on with 1008', async () => {
    const wire = await LiveWire.open(target(), '');
    await target().until(() => wire.isClosed);
    expect(wire.closed).toMatchObject({ code: 1008 });
  });
}

describe.each(['text', 'binary', 'mixed'] as const)(
  'the rehearsal keeps the contract in %s frames',
  (frames) => {
    const clock = new VirtualClock();
    let service: RehearsalService;
    beforeAll(async () => {
      const count =
        'One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen.';
      const dialogue = parseDialogue(
        {
          disclosure: 'This is a rehearsal.',
          turns: [{ say: 'I have heard you.' }],
          interruptions: [{ say: 'I have stopped.' }],
          texts: [
            { contains: 'count aloud', say: count },
            {
              contains: 'look up',
              say: 'I look.',
              call: { name: 'look_up_order', thenSay: 'It is {result.status}.' },
            },
          ],
          otherText: { say: 'I am here.' },
        },
        'contract.json',
      );
      service = await startRehearsalService({
        clock,
        log: silentLog,
        dialogue,
        frames,
        synthesizer: toneSynthesizer,
      });
    });
    afterAll(() => service.close());

    contract(() => ({
      origin: service.url.replace('http', 'ws'),
      key: 'rehearsal',
      model: 'models/gemini-3.8-live',
      async until(condition) {
        while (!condition()) {
          clock.advance(20);
          await settle();
        }
      },
      async pace(ms) {
        clock.advance(ms);
        await settle();
      },
    }));
  },
);

describe.skipIf(KEY === '')(
  `Google keeps it, asked only with EARSHOT_CONTRACT_GEMINI_API_KEY`,
  { timeout: ANSWER_MAX_MS },
  () => {
    const wait = (ms: number) => new Promise<void>((resolve) => systemClock.setTimer(ms, resolve));
    contract(() => ({
      origin: 'wss://generativelanguage.googleapis.com',
      key: KEY,
      model: `models/${MODEL}`,
      async until(condition) {
        while (!condition()) await wait(20);
      },
      pace: wait,
    }));
  },
);
