import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REHEARSAL_OUTPUT_TOKENS_MAX } from '../../../src/model/rehearsal/rehearsal-limits.js';
import { readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { SeededRandom } from '../../../src/model/rehearsal/seeded-random.js';
import { textAnswer } from '../../../src/model/rehearsal/text-generation-answer.js';
import {
  answerChunks,
  type ChunkOptions,
  type GenerateResponse,
  promptTokens,
  wholeAnswer,
} from '../../../src/model/rehearsal/text-generation-chunks.js';
import { readGenerateRequest } from '../../../src/model/rehearsal/text-generation-request.js';
import { LOOKUP_ORDER, model, TEXT_MODEL, user } from './text-generation-client.js';

const dialogue = readDialogue();
/** Found the same way each time; the number means nothing. */
const RUNS = { seed: 3, numRuns: 300 };

interface Candidate {
  readonly content: { readonly parts?: { readonly text?: string; readonly functionCall?: object }[] };
  readonly finishReason?: string;
}

function optionsFor(body: object, seed: number): ChunkOptions {
  const read = readGenerateRequest(JSON.stringify(body), TEXT_MODEL);
  if ('refusal' in read) throw new Error(read.refusal.message);
  return {
    request: read.request,
    model: TEXT_MODEL,
    responseId: 'a',
    answer: textAnswer(dialogue, read.request),
    promptTokenCount: promptTokens(read.request),
    random: new SeededRandom(seed),
  };
}

function candidatesOf(responses: readonly GenerateResponse[]): Candidate[] {
  return responses.flatMap((response) => response['candidates'] as Candidate[]);
}

function partsOf(responses: readonly GenerateResponse[]): { text: string; calls: object[] } {
  const parts = candidatesOf(responses).flatMap(({ content }) => content.parts ?? []);
  return {
    text: parts.map(({ text }) => text ?? '').join(''),
    calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
  };
}

const words = fc.oneof(
  fc.string({ maxLength: 60, unit: 'grapheme' }),
  fc.constantFrom(
    'lookup order A-1',
    'lookup_order {"order_id":"A-2"}',
    'greet',
    'word for word: "Yes. No."',
  ),
);
const bodies = fc
  .tuple(
    fc.array(words, { minLength: 1, maxLength: 6 }),
    fc.option(fc.integer({ min: 1, max: 40 })),
    fc.boolean(),
  )
  .map(([texts, maxOutputTokens, hasTools]) => ({
    contents: texts.flatMap((text, index) => (index === 0 ? [user(text)] : [model('Yes.'), user(text)])),
    generationConfig: { maxOutputTokens },
    tools: hasTools ? [{ functionDeclarations: [LOOKUP_ORDER] }] : [],
  }));

describe('an answer in chunks', () => {
  it('says what the whole answer says, ends once, and counts the same tokens', () => {
    fc.assert(
      fc.property(bodies, fc.integer(), (body, seed) => {
        const chunks = answerChunks(optionsFor(body, seed));
        const whole = wholeAnswer(optionsFor(body, seed));
        expect(partsOf(chunks)).toEqual(partsOf([whole]));
        const reasons = candidatesOf(chunks).map(({ finishReason }) => finishReason);
        expect(reasons.filter((reason) => reason !== undefined)).toHaveLength(1);
        expect(reasons.at(-1)).toBe(candidatesOf([whole])[0]?.finishReason);
        expect(chunks.at(-1)?.['usageMetadata']).toEqual(whole['usageMetadata']);
      }),
      RUNS,
    );
  });

  it('is never longer than the request allows, and never ends in half a character', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 80 }),
        fc.integer({ min: 1, max: 10 }),
        (text, most) => {
          const exact = `word for word: ${JSON.stringify(text)}`;
          const body = { contents: [user(exact)], generationConfig: { maxOutputTokens: most } };
          const answer = partsOf(answerChunks(optionsFor(body, 1))).text;
          expect(answer.length).toBeLessThanOrEqual(4 * most);
          expect(answer).not.toMatch(/[\ud800-\udbff]$/);
        },
      ),
      RUNS,
    );
  });

  it('has a bound where the request has none', () => {
    const text = 'word '.repeat(20_000);
    const chunks = answerChunks(optionsFor({ contents: [user(`word for word: "${text}"`)] }, 1));
    expect(partsOf(chunks).text).toHaveLength(4 * REHEARSAL_OUTPUT_TOKENS_MAX);
    expect(candidatesOf(chunks).at(-1)?.finishReason).toBe('MAX_TOKENS');
  });
});
