import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  REHEARSAL_BODY_MAX_MS,
  REHEARSAL_PAYLOAD_MAX_BYTES,
  REHEARSAL_TEXT_REQUESTS_MAX,
} from '../../../src/model/rehearsal/rehearsal-limits.js';
import { parseDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { TextGenerationDoor } from '../../../src/model/rehearsal/text-generation-door.js';
import { startRehearsalService } from '../../../src/model/rehearsal/rehearsal-service.js';
import { silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { settle } from './rehearsal-client.js';
import { type PlainAnswer, post, soon, TEXT_MODEL } from './text-generation-client.js';
import { serveText, type TextServer } from './text-generation-server.js';

const HELLO = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] };
const PATH = `/v1beta/models/${TEXT_MODEL}:generateContent`;
const STREAM_PATH = `/v1beta/models/${TEXT_MODEL}:streamGenerateContent`;

let clock: VirtualClock;
let server: TextServer;
beforeEach(async () => {
  clock = new VirtualClock();
  server = await serveText(new TextGenerationDoor({ clock, log: silentLog, seed: 3 }));
});
afterEach(async () => {
  await server.close();
  if (clock.pendingTimers > 0)
    throw new Error(`${clock.pendingTimers} timers are left after the service closed`);
});

function ask(path: string, body: unknown = HELLO, init: RequestInit = {}): Promise<PlainAnswer> {
  return soon(clock, post(server.url + path, body, init));
}

function errorIn(answer: PlainAnswer): { code: number; status: string; message: string; details?: unknown } {
  expect(answer.headers.get('content-type')).toBe('application/json; charset=UTF-8');
  const { error } = JSON.parse(answer.body) as { error: ReturnType<typeof errorIn> };
  expect(error.code).toBe(answer.status);
  return error;
}

describe('the door', () => {
  it.each([
    PATH,
    `/${PATH}`,
    PATH.replace('v1beta', 'v1'),
    PATH.replace('v1beta', 'v1beta1'),
    `//v1beta1/projects/p/locations/global/publishers/google/models/${TEXT_MODEL}:generateContent`,
    `/v1beta1/publishers/google/models/${TEXT_MODEL}:generateContent`,
  ])('opens at %s', async (path) => {
    const answer = await ask(path);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ modelVersion: TEXT_MODEL });
  });

  it.each([
    '/',
    '/v1beta/models',
    '/v2/models/a:generateContent',
    `/v1beta/models/${TEXT_MODEL}:countTokens`,
    '/v1beta/models/:generateContent',
    '/v1beta/models/a%00b:generateContent',
    '/x/v1beta/models/a:generateContent',
  ])('is not at %s', async (path) => {
    expect(errorIn(await ask(path))).toMatchObject({ code: 404, status: 'NOT_FOUND' });
  });

  it('takes POST alone', async () => {
    const answer = await soon(
      clock,
      fetch(server.url + PATH, { method: 'PUT', body: '{}', headers: { 'x-goog-api-key': 'k' } }).then(
        async (response) => ({
          status: response.status,
          headers: response.headers,
          body: await response.text(),
        }),
      ),
    );
    expect(errorIn(answer).code).toBe(405);
    expect(answer.headers.get('allow')).toBe('POST');
  });

  it('takes a key by header, by parameter or as a token, and none is refused', async () => {
    expect((await ask(`${PATH}?key=k`, HELLO, { headers: {} })).status).toBe(200);
    expect((await ask(PATH, HELLO, { headers: { Authorization: 'Bearer t' } })).status).toBe(200);
    for (const init of [{ headers: {} }, { headers: { 'x-goog-api-key': '' } }]) {
      expect(errorIn(await ask(PATH, HELLO, init))).toMatchObject({ code: 403, status: 'PERMISSION_DENIED' });
    }
  });

  it('refuses a body that is too large, announced or not', async () => {
    const large = JSON.stringify({
      contents: [{ parts: [{ text: 'x'.repeat(REHEARSAL_PAYLOAD_MAX_BYTES) }] }],
    });
    expect(errorIn(await ask(PATH, large)).code).toBe(413);
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.on('error', () => {});
    let received = '';
    socket.on('data', (data) => (received += data.toString()));
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nHost: a\r\nx-goog-api-key: k\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const chunk = 'x'.repeat(64 * 1024);
    for (let sent = 0; sent <= REHEARSAL_PAYLOAD_MAX_BYTES; sent += chunk.length) {
      socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    }
    while (!received.includes('exceeds the limit')) await settle();
    expect(received).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
    while (server.door.requests > 0) await settle();
  });

  it('does not wait for a body that does not come', async () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (data) => (received += data.toString()));
    socket.write(`POST ${PATH} HTTP/1.1\r\nHost: a\r\nx-goog-api-key: k\r\nContent-Length: 9\r\n\r\n{`);
    while (server.door.requests === 0) await settle();
    clock.advance(REHEARSAL_BODY_MAX_MS);
    await once(socket, 'close');
    expect(received).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('forgets a request whose client goes away before it was whole', async () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.write(`POST ${PATH} HTTP/1.1\r\nHost: a\r\nx-goog-api-key: k\r\nContent-Length: 9\r\n\r\n{`);
    while (server.door.requests === 0) await settle();
    socket.destroy();
    while (server.door.requests > 0) await settle();
    expect(clock.pendingTimers).toBe(0);
  });

  it('answers only so many requests at once', async () => {
    const body = JSON.stringify(HELLO);
    const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nx-goog-api-key: k\r\nContent-Length: ${body.length}\r\n\r\n`;
    const sockets = Array.from({ length: REHEARSAL_TEXT_REQUESTS_MAX }, () => {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.write(head + body);
      return socket;
    });
    while (server.door.requests < REHEARSAL_TEXT_REQUESTS_MAX) await settle();
    const refused = await post(server.url + PATH, HELLO);
    expect(errorIn(refused)).toMatchObject({ code: 503, status: 'UNAVAILABLE' });
    for (const socket of sockets) socket.destroy();
    while (server.door.requests > 0) await settle();
  });
});

describe('a request', () => {
  it('may be written in snake_case, with a single content and role left out, as in examples for curl', async () => {
    const answer = await ask(PATH, {
      system_instruction: { parts: { text: 'Be brief.' } },
      contents: { parts: { text: 'lookup order A-1' } },
      tools: { function_declarations: [{ name: 'lookup_order', parameters: { type: 'object' } }] },
      generation_config: { max_output_tokens: '100', temperature: null },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toContain('"functionCall"');
  });

  it.each([
    ['not JSON', '{', 'Invalid JSON payload received.'],
    ['no object', [], 'Invalid JSON payload received.'],
    ['an unknown field', { contents: [], colour: 1 }, 'Unknown name "colour": Cannot find field.'],
    [
      'an unknown field far inside',
      { contents: [{ parts: [{ text: 'a', sound: 1 }] }] },
      `Unknown name "sound" at 'contents[0].parts[0]': Cannot find field.`,
    ],
    [
      'a number for a text',
      { contents: [{ parts: [{ text: 7 }] }] },
      `Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 7`,
    ],
    [
      'a text for a number',
      { ...HELLO, generationConfig: { maxOutputTokens: 'many' } },
      `Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), "many"`,
    ],
    [
      'a list for one',
      { ...HELLO, systemInstruction: [] },
      `Unknown name "system_instruction": Proto field is not repeating, cannot start list.`,
    ],
    [
      'an unknown word in a schema',
      {
        ...HELLO,
        tools: [
          { functionDeclarations: [{ name: 'f', parameters: { properties: { a: {}, b: { const: 1 } } } }] },
        ],
      },
      `Unknown name "const" at 'tools[0].function_declarations[0].parameters.properties[1].value'`,
    ],
    [
      'an unknown type in a schema',
      { ...HELLO, tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'text' } }] }] },
      `Invalid value at 'tools[0].function_declarations[0].parameters.type'`,
    ],
    ['no contents', {}, 'contents is not specified'],
    ['no parts', { contents: [{ role: 'user' }] }, 'contents[0].parts'],
    ['an empty part', { contents: [{ parts: [{}] }] }, `contents[0].parts[0].data`],
    ['an unknown role', { contents: [{ role: 'system', parts: [{ text: 'a' }] }] }, 'valid role'],
    ['the model in the last place', { contents: [{ role: 'model', parts: [{ text: 'a' }] }] }, 'model turn'],
    [
      'a response to nothing',
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: {} } }] }] },
      'immediately after a function call turn',
    ],
    [
      'a call without its response',
      {
        contents: [
          ...HELLO.contents,
          { role: 'model', parts: [{ functionCall: { name: 'f' } }] },
          ...HELLO.contents,
        ],
      },
      'number of function response parts',
    ],
    [
      'ANY without functions',
      { ...HELLO, toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
      'without function_declarations',
    ],
    [
      'a function twice',
      { ...HELLO, tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'f' }] }] },
      'Duplicate function declaration',
    ],
    ['no tokens', { ...HELLO, generationConfig: { maxOutputTokens: 0 } }, 'max_output_tokens'],
    ['two candidates', { ...HELLO, generationConfig: { candidateCount: 2 } }, 'one candidate'],
    [
      'an unknown form',
      { ...HELLO, generationConfig: { responseMimeType: 'text/html' } },
      'response_mime_type',
    ],
  ])('with %s is refused by name', async (_, body, message) => {
    const error = errorIn(await ask(PATH, body));
    expect(error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' });
    expect(error.message).toContain(message);
  });

  it('that is nested without end is refused and not run into the ground', async () => {
    const depth = 200_000;
    const parameters = `${'{"items":'.repeat(depth)}{}${'}'.repeat(depth)}`;
    const body = `{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":${parameters}}]}]}`;
    expect(errorIn(await ask(PATH, body)).message).toContain('too deep');
  });

  it('with several faults is told all of them, each with its field', async () => {
    const error = errorIn(await ask(PATH, { contents: [{ parts: [{ text: 7, a: 1 }] }] }));
    expect(error.message.split('\n')).toHaveLength(2);
    expect(error.details).toMatchObject([
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'contents[0].parts[0].text' }, { field: 'contents[0].parts[0]' }],
      },
    ]);
  });
});

describe('a stream over plain HTTP', () => {
  it('is one JSON array, errors too, unless server-sent events are asked for', async () => {
    const array = await ask(STREAM_PATH);
    const chunks = JSON.parse(array.body) as { candidates: { content: { parts?: { text: string }[] } }[] }[];
    const text = chunks.map(({ candidates: [first] }) => first?.content.parts?.[0]?.text ?? '').join('');
    expect(text).toContain('rehearsal');
    const events = await ask(`${STREAM_PATH}?alt=sse`);
    expect(events.headers.get('content-type')).toBe('text/event-stream');
    const frames = events.body.split('\r\n\r\n').slice(0, -1);
    expect(frames.every((frame) => frame.startsWith('data: {'))).toBe(true);
    expect(frames).toHaveLength(chunks.length);
    expect(JSON.parse((await ask(STREAM_PATH, {})).body)).toMatchObject([{ error: { code: 400 } }]);
    expect(JSON.parse((await ask(`${STREAM_PATH}?alt=sse`, {})).body)).toMatchObject({
      error: { code: 400 },
    });
  });
});

describe('the rehearsal service', () => {
  it('answers text on the port where it answers calls, and lets nothing stay behind', async () => {
    const service = await startRehearsalService({
      clock,
      log: silentLog,
      synthesizer: { speak: () => Promise.resolve(new Int16Array()), close: () => Promise.resolve() },
    });
    const answer = await soon(clock, post(service.url + PATH, HELLO));
    expect(answer.body).toContain('I am a rehearsal model');
    const cut = post(`${service.url}${STREAM_PATH}`, HELLO);
    const failed = cut.then(() => 'answered', String);
    while (clock.pendingTimers === 0) await settle();
    await service.close();
    expect(await failed).toMatch(/fetch failed|terminated/);
    expect(clock.pendingTimers).toBe(0);
  });

  it('answers each agent’s conversations from its own dialogue, with what is remembered', async () => {
    const turns = [{ say: 'This is the desk. I remember {remembered}.' }];
    const other = {
      disclosure: 'I rehearse.',
      interruptions: [{ say: 'Go on.' }],
      otherText: { say: 'What?' },
    };
    const service = await startRehearsalService({
      clock,
      log: silentLog,
      dialogues: new Map([['desk', parseDialogue({ ...other, turns }, 'desk.rehearsal.json')]]),
      synthesizer: { speak: () => Promise.resolve(new Int16Array()), close: () => Promise.resolve() },
    });
    const told = 'This is what you remember of this caller:\n- "caller" "drinks tea"';
    const asked = { ...HELLO, systemInstruction: { parts: [{ text: told }] } };
    const of = (model: string) => soon(clock, post(service.url + PATH.replace(TEXT_MODEL, model), asked));
    expect((await of('rehearsal-desk')).body).toContain('This is the desk. I remember caller drinks tea.');
    expect((await of('rehearsal-other')).body).toContain('I am a rehearsal model');
    await service.close();
  });
});
