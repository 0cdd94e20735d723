import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FunctionCallingConfigMode, type GenerateContentResponse, GoogleGenAI, Type } from '@google/genai';
import { TextGenerationDoor } from '../../../src/model/rehearsal/text-generation-door.js';
import { parseDialogue, readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { settle } from './rehearsal-client.js';
import { serveText, type TextServer } from './text-generation-server.js';
import {
  LOOKUP_ORDER,
  model,
  results,
  said,
  soon,
  TEXT_MODEL,
  textClient,
  user,
  withTools,
} from './text-generation-client.js';

const dialogue = parseDialogue(
  {
    disclosure: 'This is a rehearsal.',
    turns: [
      { say: 'The first line.' },
      { say: 'The second line has a good many words, so that it comes in more than one chunk.' },
      { say: 'Goodbye.', call: { name: 'end_call', args: { reason: 'done' }, thenSay: 'I have hung up.' } },
    ],
    interruptions: [{ say: 'Stopped.' }],
    keys: [],
    texts: [{ contains: 'opening hours', say: 'We open at nine.' }],
    otherText: { say: 'Unknown.' },
  },
  'test',
);
const END_CALL = { name: 'end_call', description: 'Hangs up.' };
const REFUND = {
  name: 'process_refund',
  parameters: {
    type: Type.OBJECT,
    properties: { order_id: { type: Type.STRING }, reason: { type: Type.STRING } },
    required: ['order_id', 'reason'],
  },
};

let clock: VirtualClock;
let server: TextServer;
let ai: GoogleGenAI;
beforeEach(async () => {
  clock = new VirtualClock();
  server = await serveText(new TextGenerationDoor({ clock, log: silentLog, dialogue, seed: 3 }));
  ai = textClient(server.url);
});
afterEach(async () => {
  await server.close();
  if (clock.pendingTimers > 0)
    throw new Error(`${clock.pendingTimers} timers are left after the service closed`);
});

type Request = Omit<Parameters<GoogleGenAI['models']['generateContent']>[0], 'model'>;

function generate(request: Request): Promise<GenerateContentResponse> {
  return soon(clock, ai.models.generateContent({ model: TEXT_MODEL, ...request }));
}

async function streamed(request: Request): Promise<GenerateContentResponse[]> {
  const collect = async () => {
    const chunks: GenerateContentResponse[] = [];
    for await (const chunk of await ai.models.generateContentStream({ model: TEXT_MODEL, ...request })) {
      chunks.push(chunk);
    }
    return chunks;
  };
  return soon(clock, collect());
}

function textIn(chunks: readonly GenerateContentResponse[]): string {
  return chunks
    .flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? [])
    .map(({ text }) => text ?? '')
    .join('');
}

describe('a text conversation', () => {
  it('begins with the disclosure, and follows the lines by the turns of the user', async () => {
    const first = await generate({ contents: 'Hello' });
    expect(first.text).toBe('This is a rehearsal. The first line.');
    const second = await generate({ contents: [user('Hello'), said(first), user('And then?')] });
    expect(second.text).toBe(dialogue.turns[1]?.say);
  });

  it('says the last line again when there are no more', async () => {
    const contents = [1, 2, 3, 4].flatMap((turn) => [model(`${turn} ${dialogue.disclosure}`), user('Go on')]);
    expect((await generate({ contents: [user('Hello'), ...contents] })).text).toBe('Goodbye.');
  });

  it('answers words that the dialogue has a line for, which takes no turn', async () => {
    const asked = await generate({ contents: 'What are your OPENING hours?' });
    expect(asked.text).toBe('This is a rehearsal. We open at nine.');
    const next = await generate({
      contents: [user('What are your opening hours?'), said(asked), user('Fine')],
    });
    expect(next.text).toBe('The first line.');
  });

  it('says word for word what it is asked to, without the disclosure', async () => {
    const exact = await generate({ contents: 'Say this now, word for word: "Good day."' });
    expect(exact.text).toBe('Good day.');
  });

  it('takes the contents of the user between two answers as one turn', async () => {
    const first = await generate({ contents: [user('Hello'), user('Are you there?')] });
    expect(first.text).toBe('This is a rehearsal. The first line.');
  });

  it('names model, response and tokens', async () => {
    const answer = await generate({
      contents: 'Hello',
      config: { systemInstruction: 'Be brief.', temperature: 0.2, safetySettings: [] },
    });
    expect(answer.modelVersion).toBe(TEXT_MODEL);
    expect(answer.responseId).toBe('rehearsal-1');
    expect(answer.candidates?.[0]?.finishReason).toBe('STOP');
    expect(answer.usageMetadata).toMatchObject({
      promptTokenCount: 5,
      candidatesTokenCount: 9,
      totalTokenCount: 14,
    });
  });

  it('stops at maxOutputTokens and at a stop sequence', async () => {
    const short = await generate({ contents: 'Hello', config: { maxOutputTokens: 2 } });
    expect(short.text).toBe('This is ');
    expect(short.candidates?.[0]?.finishReason).toBe('MAX_TOKENS');
    const chunks = await streamed({ contents: 'Hello', config: { maxOutputTokens: 3 } });
    expect(textIn(chunks)).toBe('This is a re');
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe('MAX_TOKENS');
    const stopped = await generate({ contents: 'Hello', config: { stopSequences: [' first'] } });
    expect(stopped.text).toBe('This is a rehearsal. The');
    expect(stopped.candidates?.[0]?.finishReason).toBe('STOP');
  });

  it('gives a value of the schema where JSON is asked for', async () => {
    const responseJsonSchema = {
      type: 'object',
      properties: { order_id: { type: 'string' }, urgent: { type: 'boolean' }, count: { type: 'integer' } },
      required: ['order_id', 'urgent', 'count'],
    };
    const config = { responseMimeType: 'application/json', responseJsonSchema };
    const answer = await generate({ contents: 'Order A-10293, 3 pieces', config });
    expect(JSON.parse(answer.text ?? '')).toEqual({ order_id: 'A-10293', urgent: true, count: 3 });
  });

  it('runs by Vertex paths too', async () => {
    const vertex = new GoogleGenAI({
      vertexai: true,
      apiKey: 'rehearsal',
      httpOptions: { baseUrl: server.url },
    });
    const answer = await soon(clock, vertex.models.generateContent({ model: TEXT_MODEL, contents: 'Hello' }));
    expect(answer.text).toBe('This is a rehearsal. The first line.');
  });

  it('has a dialogue and rules of its own when none are given', () => {
    const door = new TextGenerationDoor({ clock, log: silentLog });
    expect(door.requests).toBe(0);
    expect(readDialogue().disclosure).not.toBe('');
  });
});

describe('function calls', () => {
  it.each([
    ['call lookup_order with {"order_id":"A-10293"}', { order_id: 'A-10293' }],
    ['lookup order A-10293', { order_id: 'A-10293' }],
    ['Please look up my order, it is A-10293.', { order_id: 'A-10293' }],
    ['A-10293 is the one: lookup order', { order_id: 'A-10293' }],
    ['lookup_order order_id = "B 7"', { order_id: 'B 7' }],
  ])('are made where the user names one: %s', async (text, args) => {
    const answer = await generate({ contents: text, config: withTools([LOOKUP_ORDER, REFUND]) });
    expect(answer.functionCalls).toMatchObject([{ name: 'lookup_order', args }]);
  });

  it('run in parallel where two are named, and each result is told', async () => {
    const config = withTools([LOOKUP_ORDER, REFUND]);
    const question = user('lookup order A-10293, then process_refund A-10294 because it arrived broken');
    const asked = await generate({ contents: [question], config });
    expect(asked.functionCalls).toMatchObject([
      { name: 'lookup_order', args: { order_id: 'A-10293' } },
      { name: 'process_refund', args: { order_id: 'A-10294', reason: 'because it arrived broken' } },
    ]);
    const ids = asked.functionCalls?.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(2);
    const answers = results(
      ['lookup_order', { status: 'delivered' }],
      ['process_refund', { error: 'refused' }],
    );
    const told = await generate({ contents: [question, said(asked), answers], config });
    expect(told.text).toBe('This is a rehearsal. The status is delivered. That did not work: refused.');
  });

  it.each([
    [{ message: 'It is on its way', status: 'sent' }, 'It is on its way.'],
    [{ output: { status: 'delivered' } }, 'The status is delivered.'],
    [{ order_id: 'A-10293' }, 'A-10293.'],
    [{ error: { message: 'No such order!' } }, 'That did not work: No such order!'],
    [{ ok: true }, 'lookup order is done.'],
  ])('are told by their result: %j', async (response, text) => {
    const config = withTools([LOOKUP_ORDER]);
    const asked = await generate({ contents: 'lookup order A-1', config });
    const contents = [user('lookup order A-1'), said(asked), results(['lookup_order', response])];
    expect((await generate({ contents, config })).text).toBe(`This is a rehearsal. ${text}`);
  });

  it('are made where the dialogue says so, with its words before and after', async () => {
    const config = withTools([END_CALL]);
    const contents = [user('a'), model(dialogue.disclosure), user('b'), model('x'), user('c')];
    const asked = await generate({ contents, config });
    expect(asked.candidates?.[0]?.content?.parts).toMatchObject([
      { text: 'Goodbye.' },
      { functionCall: { name: 'end_call', args: { reason: 'done' } } },
    ]);
    const after = [...contents, said(asked), results(['end_call', { status: 'ok' }])];
    expect((await generate({ contents: after, config })).text).toBe('I have hung up.');
    const failed = [...contents, said(asked), results(['end_call', { error: 'busy' }])];
    expect((await generate({ contents: failed, config })).text).toBe('That did not work: busy.');
    expect((await generate({ contents })).functionCalls).toBeUndefined();
  });

  it('are kept from, forced, and limited by the calling config', async () => {
    const mode = (name: FunctionCallingConfigMode, allowedFunctionNames?: string[]) =>
      withTools([LOOKUP_ORDER, REFUND], {
        toolConfig: {
          functionCallingConfig: { mode: name, ...(allowedFunctionNames && { allowedFunctionNames }) },
        },
      });
    const { ANY, NONE } = FunctionCallingConfigMode;
    const none = await generate({ contents: 'lookup order A-1', config: mode(NONE) });
    expect(none.text).toBe('This is a rehearsal. The first line.');
    const any = await generate({ contents: 'Hello', config: mode(ANY) });
    expect(any.functionCalls).toMatchObject([{ name: 'lookup_order' }]);
    expect(textIn([any])).toBe('');
    const only = await generate({ contents: 'lookup order A-1', config: mode(ANY, ['process_refund']) });
    expect(only.functionCalls).toMatchObject([{ name: 'process_refund', args: { order_id: 'A-1' } }]);
  });

  it('have to come back with the signature they came with, but not to Gemini 2', async () => {
    const config = withTools([LOOKUP_ORDER]);
    const asked = await generate({ contents: 'lookup order A-1', config });
    expect(asked.candidates?.[0]?.content?.parts?.[0]?.thoughtSignature).toMatch(/^[\w+/]+=*$/);
    const unsigned = { role: 'model', parts: [{ functionCall: asked.functionCalls?.[0] ?? {} }] };
    const contents = [user('lookup order A-1'), unsigned, results(['lookup_order', { status: 'sent' }])];
    await expect(generate({ contents, config })).rejects.toMatchObject({ status: 400 });
    await expect(generate({ contents, config })).rejects.toThrow(/missing a thought_signature/);
    const older = await soon(
      clock,
      ai.models.generateContent({ model: 'gemini-2.5-flash', contents, config }),
    );
    expect(older.text).toContain('sent');
    const past = [...contents, model('It is sent.'), user('Thanks')];
    expect((await generate({ contents: past, config })).text).toContain('The second line');
  });
});

describe('a text stream', () => {
  const contents = [user('Hello'), model(dialogue.disclosure), user('More')];

  it('comes in chunks of words that repeat from the seed, with the end and the tokens in the last', async () => {
    const chunks = await streamed({ contents });
    const texts = chunks.map((chunk) => textIn([chunk]));
    expect(texts.join('')).toBe(dialogue.turns[1]?.say);
    expect(texts.length).toBeGreaterThan(3);
    expect(new Set(texts.map(({ length }) => length)).size).toBeGreaterThan(2);
    const reasons = chunks.map((chunk) => chunk.candidates?.[0]?.finishReason);
    expect(reasons.slice(0, -1).filter((reason) => reason !== undefined)).toEqual([]);
    expect(reasons.at(-1)).toBe('STOP');
    const totals = chunks.map(({ usageMetadata }) => usageMetadata?.candidatesTokenCount ?? 0);
    expect(totals).toEqual(totals.toSorted((a, b) => a - b));
    expect(totals.at(-1)).toBe(Math.ceil(texts.join('').length / 4));
    expect(new Set(chunks.map(({ responseId }) => responseId)).size).toBe(1);
    expect((await streamed({ contents })).map((chunk) => textIn([chunk]))).toEqual(texts);
  });

  it('says the same as the answer in one piece', async () => {
    expect(textIn(await streamed({ contents }))).toBe((await generate({ contents })).text);
  });

  it('has each function call in a chunk of its own', async () => {
    const config = withTools([LOOKUP_ORDER, REFUND]);
    const chunks = await streamed({ contents: 'lookup order A-1 and process refund A-2', config });
    const calls = chunks.map(({ functionCalls }) => functionCalls?.map(({ name }) => name) ?? []);
    expect(calls).toEqual([['lookup_order'], ['process_refund'], []]);
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe('STOP');
  });

  it('stands still while the clock does, and stops when the client goes away', async () => {
    const abort = new AbortController();
    const opening = ai.models.generateContentStream({
      model: TEXT_MODEL,
      contents,
      config: { abortSignal: abort.signal },
    });
    const stream = await soon(clock, opening);
    const first = await soon(clock, stream.next());
    expect(first.done).toBe(false);
    await settle();
    expect(server.door.requests).toBe(1);
    expect(clock.pendingTimers).toBe(1);
    abort.abort();
    await expect(soon(clock, stream.next())).rejects.toThrow(/abort/i);
    while (server.door.requests > 0) await settle();
    expect(clock.pendingTimers).toBe(0);
  });

  it('is cut off when the service closes, and leaves no timer', async () => {
    const opening = ai.models.generateContentStream({ model: TEXT_MODEL, contents });
    const stream = await soon(clock, opening);
    await server.close();
    await expect(
      (async () => {
        for await (const _ of stream);
      })(),
    ).rejects.toThrow(/terminated/);
    expect(clock.pendingTimers).toBe(0);
  });
});
