/**
 * What the text side promises of the Gemini API, held against the rehearsal and, when EARSHOT_CONTRACT_GEMINI_API_KEY
 * is set, against the real service: a difference shows where the stand-in is wrong. Only forms are compared, never
 * words. EARSHOT_CONTRACT_TEXT_MODEL names another model than the default.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Content, type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import { systemClock } from '../../../src/clock.js';
import { TextGenerationDoor } from '../../../src/model/rehearsal/text-generation-door.js';
import { silentLog } from '../../../src/observe/log.js';
import {
  LOOKUP_ORDER,
  results,
  said,
  TEXT_MODEL,
  textClient,
  user,
  withTools,
} from './text-generation-client.js';
import { serveText, type TextServer } from './text-generation-server.js';

const key = process.env['EARSHOT_CONTRACT_GEMINI_API_KEY'] ?? '';
const realModel = process.env['EARSHOT_CONTRACT_TEXT_MODEL'] ?? TEXT_MODEL;
if (key === '') {
  console.warn(
    'NOT CHECKED: EARSHOT_CONTRACT_GEMINI_API_KEY is not set, so the real text model was not asked.',
  );
}

const QUESTION = 'Please call lookup_order with {"order_id":"A-10293"} and tell me its status.';

interface Subject {
  readonly ai: GoogleGenAI;
  readonly model: string;
}

function contract(subject: () => Subject): void {
  async function collect(contents: string | Content[], config = {}): Promise<GenerateContentResponse[]> {
    const { ai, model } = subject();
    const chunks: GenerateContentResponse[] = [];
    for await (const chunk of await ai.models.generateContentStream({ model, contents, config })) {
      chunks.push(chunk);
    }
    return chunks;
  }

  function checkEnd(answer: GenerateContentResponse | undefined): void {
    expect(answer?.candidates?.[0]?.finishReason).toBe('STOP');
    expect(answer?.modelVersion).toEqual(expect.any(String));
    expect(answer?.responseId).toEqual(expect.any(String));
    const { promptTokenCount, totalTokenCount } = answer?.usageMetadata ?? {};
    expect(promptTokenCount).toBeGreaterThan(0);
    expect(totalTokenCount).toBeGreaterThan(promptTokenCount ?? 0);
  }

  it('answers a question', async () => {
    const { ai, model } = subject();
    const answer = await ai.models.generateContent({ model, contents: 'Say hello in one sentence.' });
    expect(answer.text).not.toBe('');
    expect(answer.candidates?.[0]?.content?.role).toBe('model');
    checkEnd(answer);
  });

  it('streams an answer, finished once, at the end', async () => {
    const chunks = await collect('Count from one to thirty in words.');
    expect(chunks.length).toBeGreaterThan(1);
    const reasons = chunks.map((chunk) => chunk.candidates?.[0]?.finishReason);
    expect(reasons.filter((reason) => reason !== undefined)).toHaveLength(1);
    checkEnd(chunks.at(-1));
    expect(new Set(chunks.map(({ responseId }) => responseId)).size).toBe(1);
  });

  it('calls a function and goes on with its result', async () => {
    const config = withTools([LOOKUP_ORDER]);
    const asked = await collect([user(QUESTION)], config);
    const calls = asked.flatMap(({ functionCalls }) => functionCalls ?? []);
    expect(calls).toMatchObject([{ name: 'lookup_order', args: { order_id: 'A-10293' } }]);
    checkEnd(asked.at(-1));
    const answer = results(['lookup_order', { status: 'delivered' }]);
    const told = await collect([user(QUESTION), said(...asked), answer], config);
    const text = told.map((chunk) => chunk.text ?? '').join('');
    expect(text.toLowerCase()).toContain('delivered');
    checkEnd(told.at(-1));
  });

  it('wants the signature of a call back', async () => {
    const { ai, model } = subject();
    const call = {
      role: 'model',
      parts: [{ functionCall: { name: 'lookup_order', args: { order_id: 'A' } } }],
    };
    const contents = [user(QUESTION), call, results(['lookup_order', { status: 'delivered' }])];
    const request = { model, contents, config: withTools([LOOKUP_ORDER]) };
    await expect(ai.models.generateContent(request)).rejects.toMatchObject({ status: 400 });
  });

  it.each([
    ['no contents', []],
    ['an unknown role', [{ role: 'system', parts: [{ text: 'Hello' }] }]],
    ['an empty part', [{ role: 'user', parts: [{}] }]],
    [
      'a conversation that ends with the model',
      [user('Hello'), { role: 'model', parts: [{ text: 'Hello' }] }],
    ],
    ['a response without a call', [results(['lookup_order', { status: 'sent' }])]],
  ])('refuses %s with 400', async (_, contents) => {
    const { ai, model } = subject();
    // The SDK itself throws at contents that are empty; that is a refusal too.
    await expect(ai.models.generateContent({ model, contents })).rejects.toThrow(/contents|INVALID_ARGUMENT/);
  });
}

describe('the rehearsal text model', () => {
  let server: TextServer;
  beforeAll(async () => {
    server = await serveText(new TextGenerationDoor({ clock: systemClock, log: silentLog }));
  });
  afterAll(() => server.close());
  contract(() => ({ ai: textClient(server.url), model: TEXT_MODEL }));
});

describe.skipIf(key === '')('the real text model', { timeout: 120_000 }, () => {
  contract(() => ({ ai: new GoogleGenAI({ apiKey: key, apiVersion: 'v1beta' }), model: realModel }));
});
