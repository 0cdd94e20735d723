import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { ModelError } from '../../src/errors.js';
import { TEXT_PIECE_TIMEOUT_MS } from '../../src/limits.js';
import { createGeminiText } from '../../src/model/gemini-text.js';
import { type RehearsalService, startRehearsalService } from '../../src/model/rehearsal/rehearsal-service.js';
import type { GenerateText, TextContent, TextPiece } from '../../src/model/text-model.js';
import { silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

const API_KEY = 'a-key-of-many-characters';
const user = (text: string): TextContent => ({ role: 'user', parts: [{ text }] });

function textModel(baseUrl: string, clock = systemClock): GenerateText {
  return createGeminiText({ apiKey: API_KEY, modelName: 'rehearsal', baseUrl, clock, log: silentLog });
}

async function ask(
  generate: GenerateText,
  contents: readonly TextContent[],
  more: { functions?: boolean; signal?: AbortSignal } = {},
): Promise<TextPiece[]> {
  const pieces: TextPiece[] = [];
  const functionDeclarations = [
    {
      name: 'lookup_order',
      description: 'Finds an order.',
      parametersJsonSchema: {
        type: 'object',
        properties: { order_id: { type: 'string' } },
        required: ['order_id'],
      },
    },
  ];
  const request = {
    instruction: 'Be brief.',
    contents,
    functionDeclarations: more.functions === true ? functionDeclarations : [],
  };
  for await (const piece of generate(request, more.signal ?? new AbortController().signal))
    pieces.push(piece);
  return pieces;
}

const textOf = (pieces: readonly TextPiece[]): string =>
  pieces.map((piece) => (piece.type === 'text' ? piece.text : '')).join('');

describe('the text model, against the rehearsal service', () => {
  let service: RehearsalService;

  beforeEach(async () => {
    service = await startRehearsalService({ clock: systemClock, log: silentLog });
  });
  afterEach(() => service.close());

  it('answers in pieces, which together are the part that belongs in the history', async () => {
    const pieces = await ask(textModel(service.url), [user('Hello')]);
    expect(pieces.filter(({ type }) => type === 'text').length).toBeGreaterThan(1);
    const end = pieces.at(-1);
    expect(end).toMatchObject({ type: 'end', finishReason: 'STOP' });
    expect(end?.type === 'end' && end.parts).toEqual([{ text: textOf(pieces) }]);
    expect(pieces.find(({ type }) => type === 'usageMetadata')).toBeDefined();
  });

  it('calls a function, and speaks about its response when the answer goes back as it was', async () => {
    const generate = textModel(service.url);
    const asked = user('Please lookup order A-10293');
    const pieces = await ask(generate, [asked], { functions: true });
    const calls = pieces.flatMap((piece) => (piece.type === 'functionCalls' ? piece.functionCalls : []));
    expect(calls).toMatchObject([{ name: 'lookup_order', args: { order_id: 'A-10293' } }]);
    const end = pieces.at(-1);
    const parts = end?.type === 'end' ? end.parts : [];
    const [call] = calls;
    const response = {
      id: call?.id,
      name: 'lookup_order',
      response: { message: 'It was delivered on Monday.' },
    };
    const answered: TextContent[] = [
      asked,
      { role: 'model', parts },
      { role: 'user', parts: [{ functionResponse: response }] },
    ];
    expect(textOf(await ask(generate, answered, { functions: true }))).toContain(
      'It was delivered on Monday.',
    );
  });

  it('says what kind of failure it was', async () => {
    const failures: [string, string][] = [
      ['rehearse 503', 'model_unreachable'],
      ['rehearse 429', 'model_unreachable'],
    ];
    for (const [text, code] of failures) {
      const error = await ask(textModel(service.url), [user(text)]).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelError);
      expect((error as ModelError).code).toBe(code);
    }
  });

  it('ends without an error when it is called off in the middle', async () => {
    const controller = new AbortController();
    const pieces: TextPiece[] = [];
    const request = { instruction: 'Be brief.', contents: [user('Hello')], functionDeclarations: [] };
    for await (const piece of textModel(service.url)(request, controller.signal)) {
      pieces.push(piece);
      controller.abort();
    }
    expect(pieces.map(({ type }) => type)).toEqual(['text']);
  });
});

describe('the text model, against a server that misbehaves', () => {
  let server: Server;
  let answer: (response: ServerResponse) => void;

  beforeEach(async () => {
    server = createServer((request, response) => {
      request.resume();
      answer(response);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  it.each([
    [400, 'model_setup_refused'],
    [403, 'model_setup_refused'],
    [500, 'model_unreachable'],
  ])('tells HTTP %d as %s, without the key', async (status, code) => {
    answer = (response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(
        JSON.stringify({ error: { code: status, message: `key ${API_KEY} is wrong`, status: 'X' } }),
      );
    };
    const error = (await ask(textModel(url()), [user('Hi')]).catch(
      (thrown: unknown) => thrown,
    )) as ModelError;
    expect(error.code).toBe(code);
    expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toContain(API_KEY);
  });

  it('takes a function call without a name for malformed, and gives one without an id its own', async () => {
    const answered = async (functionCall: object): Promise<TextPiece[]> => {
      answer = (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const content = { role: 'model', parts: [{ functionCall }] };
        response.end(`data: ${JSON.stringify({ candidates: [{ content, finishReason: 'STOP' }] })}\n\n`);
      };
      return ask(textModel(url()), [user('Hi')]);
    };
    expect(await answered({ id: 'f1', name: '', args: {} })).toEqual([
      { type: 'end', finishReason: 'MALFORMED_FUNCTION_CALL', parts: [] },
    ]);
    for (const id of [undefined, '']) {
      const [called] = await answered({ id, name: 'lookup_order' });
      expect(called).toMatchObject({ type: 'functionCalls', functionCalls: [{ name: 'lookup_order' }] });
      expect(called?.type === 'functionCalls' && called.functionCalls[0]?.id).toMatch(/./u);
    }
  });

  it('gives up after a silence, in the middle of an answer too', async () => {
    for (const begins of [false, true]) {
      const clock = new VirtualClock();
      const arrived = new Promise<void>((resolve) => {
        answer = (response) => {
          if (begins) {
            response.writeHead(200, { 'Content-Type': 'text/event-stream' });
            const piece = { candidates: [{ content: { role: 'model', parts: [{ text: 'Well' }] } }] };
            response.write(`data: ${JSON.stringify(piece)}\n\n`);
          }
          resolve();
        };
      });
      const pieces: TextPiece[] = [];
      const request = { instruction: 'x', contents: [user('Hi')], functionDeclarations: [] };
      const asked = (async () => {
        for await (const piece of textModel(url(), clock)(request, new AbortController().signal))
          pieces.push(piece);
      })();
      const failed = asked.catch((error: unknown) => error);
      await arrived;
      if (begins) while (pieces.length === 0) await new Promise((resolve) => setImmediate(resolve));
      clock.advance(TEXT_PIECE_TIMEOUT_MS);
      expect(await failed).toMatchObject({ code: 'model_connect_timeout' });
      expect(clock.pendingTimers).toBe(0);
    }
  });
});
