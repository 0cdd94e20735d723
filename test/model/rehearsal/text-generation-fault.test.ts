import { afterEach, describe, expect, it } from 'vitest';
import { type Content, type GenerateContentResponse, type GoogleGenAI } from '@google/genai';
import { TextGenerationDoor } from '../../../src/model/rehearsal/text-generation-door.js';
import {
  parseTextFaults,
  readTextFaults,
  TEXT_FAULTS,
  type TextFault,
} from '../../../src/model/rehearsal/text-generation-fault.js';
import { silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import {
  LOOKUP_ORDER,
  post,
  results,
  said,
  soon,
  TEXT_MODEL,
  textClient,
  user,
  withTools,
} from './text-generation-client.js';
import { serveText, type TextServer } from './text-generation-server.js';

let clock: VirtualClock;
let server: TextServer | undefined;
afterEach(async () => {
  await server?.close();
  if (clock.pendingTimers > 0)
    throw new Error(`${clock.pendingTimers} timers are left after the service closed`);
});

async function serve(rules?: unknown[]): Promise<GoogleGenAI> {
  clock = new VirtualClock();
  const faults = rules === undefined ? undefined : parseTextFaults({ faults: rules }, 'test');
  server = await serveText(new TextGenerationDoor({ clock, log: silentLog, faults, seed: 5 }));
  return textClient(server.url);
}

interface Streamed {
  readonly chunks: GenerateContentResponse[];
  readonly error: unknown;
}

/** What came, and what it ended with. */
async function stream(ai: GoogleGenAI, contents: string | Content[] = 'now fail'): Promise<Streamed> {
  const chunks: GenerateContentResponse[] = [];
  const collect = async () => {
    for await (const chunk of await ai.models.generateContentStream({ model: TEXT_MODEL, contents })) {
      chunks.push(chunk);
    }
  };
  try {
    await soon(clock, collect());
  } catch (error) {
    return { chunks, error };
  }
  return { chunks, error: undefined };
}

function whole(ai: GoogleGenAI): Promise<GenerateContentResponse> {
  return soon(clock, ai.models.generateContent({ model: TEXT_MODEL, contents: 'now fail' }));
}

const rule = (fault: TextFault, more: object = {}) => [{ contains: 'NOW fail', fault, ...more }];

describe('misbehaviour of the text model', () => {
  it.each([
    ['quota', 429, 'RESOURCE_EXHAUSTED'],
    ['internal', 500, 'INTERNAL'],
    ['unavailable', 503, 'UNAVAILABLE'],
  ] as const)('%s is HTTP %i for both methods', async (fault, status, name) => {
    const ai = await serve(rule(fault));
    await expect(whole(ai)).rejects.toMatchObject({ name: 'ApiError', status });
    const { error, chunks } = await stream(ai);
    expect(chunks).toEqual([]);
    expect(error).toMatchObject({ name: 'ApiError', status });
    expect(String(error)).toContain(name);
  });

  it('happens as often as the rule says, and at no other words', async () => {
    const ai = await serve(rule('unavailable', { times: 2 }));
    expect((await stream(ai, 'fail later')).error).toBeUndefined();
    for (const _ of [1, 2]) expect((await stream(ai)).error).toMatchObject({ status: 503 });
    expect((await stream(ai)).error).toBeUndefined();
  });

  it('can come after a function has answered, and not before', async () => {
    const ai = await serve([{ afterFunction: 'lookup_order', fault: 'quota' }]);
    const config = withTools([LOOKUP_ORDER]);
    const contents = [user('lookup order A-1')];
    const asked = await soon(clock, ai.models.generateContent({ model: TEXT_MODEL, contents, config }));
    contents.push(said(asked), results(['lookup_order', { status: 'sent' }]));
    const after = ai.models.generateContent({ model: TEXT_MODEL, contents, config });
    await expect(soon(clock, after)).rejects.toMatchObject({ status: 429 });
  });

  it('starts slowly by the time of the rule', async () => {
    const ai = await serve(rule('slow_start', { delayMs: 20_000 }));
    const { chunks, error } = await stream(ai);
    expect(error).toBeUndefined();
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe('STOP');
    expect(clock.nowMs()).toBeGreaterThan(20_000);
  });

  it('cuts the connection in the middle of an answer', async () => {
    const ai = await serve(rule('cut_off'));
    const { chunks, error } = await stream(ai);
    expect(chunks.length).toBeGreaterThan(1);
    expect(String(error)).toMatch(/terminated/);
    await expect(whole(ai)).rejects.toThrow(/terminated/);
  });

  it('ends a stream in good order, without saying that it is finished', async () => {
    const ai = await serve(rule('unfinished'));
    const { chunks, error } = await stream(ai);
    expect(error).toBeUndefined();
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.map((chunk) => chunk.candidates?.[0]?.finishReason).filter(Boolean)).toEqual([]);
  });

  it('puts an error into the stream, which then was a success so far', async () => {
    const ai = await serve(rule('error_in_stream'));
    const { chunks, error } = await stream(ai);
    expect(chunks.length).toBeGreaterThan(1);
    expect(error).toMatchObject({ name: 'ApiError', status: 500 });
    await expect(whole(ai)).rejects.toMatchObject({ status: 500 });
    const path = `/v1beta/models/${TEXT_MODEL}:streamGenerateContent`;
    const array = await soon(clock, post(`${server?.url}${path}`, { contents: [user('now fail')] }));
    expect((JSON.parse(array.body) as unknown[]).at(-1)).toMatchObject({ error: { code: 500 } });
  });

  it.each([
    ['no_candidates', undefined, undefined],
    ['blocked', undefined, 'PROHIBITED_CONTENT'],
    ['no_content', 'STOP', undefined],
    ['malformed_function_call', 'MALFORMED_FUNCTION_CALL', undefined],
  ] as const)('%s says nothing, and why', async (fault, finishReason, blockReason) => {
    const ai = await serve(rule(fault));
    const { chunks, error } = await stream(ai);
    expect(error).toBeUndefined();
    for (const answer of [await whole(ai), ...chunks]) {
      expect(answer.text).toBeUndefined();
      expect(answer.candidates?.[0]?.finishReason).toBe(finishReason);
      expect(answer.promptFeedback?.blockReason).toBe(blockReason);
      expect(answer.usageMetadata?.promptTokenCount).toBeGreaterThan(0);
    }
    expect(chunks).toHaveLength(1);
  });

  it('stops for safety in the middle', async () => {
    const ai = await serve(rule('safety'));
    const { chunks } = await stream(ai);
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.at(-1)?.candidates?.[0]?.finishReason).toBe('SAFETY');
    expect((await whole(ai)).candidates?.[0]).toMatchObject({ finishReason: 'SAFETY' });
  });

  it('is the same each time', async () => {
    for (const fault of TEXT_FAULTS) {
      const runs = await Promise.all(
        [1, 2].map(async () => {
          const one = new VirtualClock();
          const door = new TextGenerationDoor({
            clock: one,
            log: silentLog,
            faults: parseTextFaults({ faults: rule(fault) }, 'test'),
            seed: 5,
          });
          const each = await serveText(door);
          const path = `${each.url}/v1beta/models/${TEXT_MODEL}:streamGenerateContent?alt=sse`;
          const answer = post(path, { contents: [user('now fail')] }).then(
            ({ status, body }) => `${status} ${body}`,
            String,
          );
          await soon(one, answer, 100);
          await each.close();
          return answer;
        }),
      );
      expect(runs[0]).toBe(runs[1]);
    }
  });
});

describe('the rules', () => {
  it('that ship have one for each fault, and each is reached by its own words', async () => {
    const rules = readTextFaults();
    expect(new Set(rules.map(({ fault }) => fault))).toEqual(new Set(TEXT_FAULTS));
    for (const [index, { contains }] of rules.entries()) {
      const first = rules.findIndex((each) => contains?.includes(each.contains ?? ' '));
      expect(first).toBe(index);
    }
    await serve([]);
  });

  it.each([
    ['no trigger', { fault: 'quota' }],
    ['two triggers', { fault: 'quota', contains: 'a', afterFunction: 'b' }],
    ['an unknown fault', { fault: 'tired', contains: 'a' }],
    ['an unknown field', { fault: 'quota', contains: 'a', colour: 1 }],
  ])('with %s are refused, naming the place', async (_, broken) => {
    await serve([]);
    expect(() => parseTextFaults({ faults: [broken] }, 'my.json')).toThrow(/my\.json .*faults\.0/);
  });
});
