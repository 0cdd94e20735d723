import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { scopeOn } from '../support/scopes.js';
import { ModelError } from '../../src/errors.js';
import {
  MODEL_CONNECT_TIMEOUT_MS,
  MODEL_EARLY_MAX_CHARS,
  MODEL_EARLY_MESSAGES_MAX,
} from '../../src/limits.js';
import { ModelConnectError, maskSecrets, maskedCause } from '../../src/model/gemini-connect-error.js';
import {
  assertSocketFactory,
  createGeminiConnectLive,
  createGeminiSdk,
} from '../../src/model/gemini-connect.js';
import type { LiveConnection, LiveSetup } from '../../src/model/live-connection.js';
import { RecordingLiveListener } from '../support/recording-live-listener.js';
import type { GeminiScript } from '../support/scripted-gemini.js';
import { API_KEY, GeminiFixture, PLAIN_SETUP } from './gemini-fixture.js';

let fixture: GeminiFixture;

beforeEach(async () => {
  fixture = await GeminiFixture.start();
});
afterEach(() => fixture.stop());

async function failureOf(promise: Promise<LiveConnection>): Promise<ModelConnectError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelError);
  expect(error).toBeInstanceOf(ModelConnectError);
  return error as ModelConnectError;
}

function connect(
  options: { setup?: Partial<LiveSetup>; signal?: AbortSignal; modelName?: string; baseUrl?: string } = {},
): { promise: Promise<LiveConnection>; listener: RecordingLiveListener } {
  const listener = new RecordingLiveListener();
  const connectLive = fixture.connectLive(
    options.modelName,
    options.baseUrl === undefined ? {} : { baseUrl: options.baseUrl },
  );
  const signal = options.signal ?? new AbortController().signal;
  return {
    promise: connectLive({ ...PLAIN_SETUP, ...options.setup }, listener, signal, scopeOn(fixture.clock)),
    listener,
  };
}

/** Every way in which a server, the network or a setup can fail a connect. */
const FAILURES: readonly {
  name: string;
  script?: Partial<GeminiScript>;
  setup?: Partial<LiveSetup>;
  modelName?: string;
  baseUrl?: string;
  code: string;
}[] = [
  {
    name: 'a setup refused with 1007',
    script: { setup: { close: 1007, reason: 'Unknown field' } },
    code: 'model_setup_refused',
  },
  {
    name: 'a model refused with 1008',
    script: { setup: { close: 1008, reason: 'model not found' } },
    code: 'model_setup_refused',
  },
  {
    name: 'an overloaded service closing with 1011',
    script: { setup: { close: 1011, reason: 'service unavailable' } },
    code: 'model_unreachable',
  },
  { name: 'a close without a reason', script: { setup: { close: 1000 } }, code: 'model_unreachable' },
  {
    name: 'a socket cut after setup',
    script: { setup: (peer) => peer.terminate() },
    code: 'model_unreachable',
  },
  {
    name: 'a socket cut before setup',
    script: { onOpen: (peer) => peer.terminate() },
    code: 'model_unreachable',
  },
  {
    name: 'a close before setup was sent',
    script: { onOpen: (peer) => peer.close(1008, 'unregistered caller') },
    code: 'model_setup_refused',
  },
  {
    name: 'a frame that is not JSON',
    script: { setup: (peer) => peer.sendRaw('<html>hello</html>') },
    code: 'model_unreachable',
  },
  {
    name: 'a setupComplete before setup',
    script: { onOpen: (peer) => peer.setupComplete() },
    code: 'model_unreachable',
  },
  {
    name: 'a flood before setupComplete',
    script: { setup: (peer) => peer.sendRaw(...Array.from({ length: 2_001 }, () => '{"goAway":{}}')) },
    code: 'model_unreachable',
  },
  { name: 'HTTP 401', script: { handshake: { httpStatus: 401 } }, code: 'model_setup_refused' },
  { name: 'HTTP 404', script: { handshake: { httpStatus: 404 } }, code: 'model_setup_refused' },
  { name: 'HTTP 429', script: { handshake: { httpStatus: 429 } }, code: 'model_unreachable' },
  { name: 'HTTP 503', script: { handshake: { httpStatus: 503 } }, code: 'model_unreachable' },
  {
    name: 'a schema that the SDK cannot convert',
    modelName: 'gemini-3.8-live-extended-thinking',
    setup: {
      functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: { type: 'null' } }],
    },
    code: 'model_setup_refused',
  },
  {
    name: 'a schema that cannot be copied',
    setup: {
      functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: { type: () => 'object' } }],
    },
    code: 'model_setup_refused',
  },
  { name: 'a base URL that is none', baseUrl: 'http://[not a host', code: 'model_unreachable' },
];

describe('connecting to Gemini Live', () => {
  it('resolves after setupComplete, and reaches a strict path with the key in the query', async () => {
    const { connection, peer } = await fixture.open();
    expect(connection.modelName).toBe('gemini-3.8-live');
    expect(connection.capabilities.family).toBe('gemini-3.8-live');
    expect(peer.path.split('?')[0]).toBe(
      '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
    );
    expect(peer.path).toContain('?key=');
    expect(peer.setup?.['model']).toBe('models/gemini-3.8-live');
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it('keeps the path of a base URL that has one', async () => {
    await fixture.connectLive('gemini-3.8-live', { baseUrl: `${fixture.server.url}/pre/` })(
      PLAIN_SETUP,
      new RecordingLiveListener(),
      new AbortController().signal,
      scopeOn(fixture.clock),
    );
    expect((await fixture.server.connection()).path).toMatch(/^\/pre\/ws\/google\.ai\./);
  });

  it('accepts setupComplete as a text frame and as a binary one', async () => {
    fixture.server.script.frames = 'text';
    await fixture.open();
    fixture.server.script.frames = 'binary';
    await fixture.open();
    expect(fixture.server.connections).toHaveLength(2);
  });

  it('reaches Vertex with its own path, the key in a header and the model as a publisher model', async () => {
    const connectLive = createGeminiConnectLive({
      vertex: { apiKey: API_KEY },
      modelName: 'gemini-live-2.5-flash-native-audio',
      baseUrl: fixture.server.url,
      log: fixture.log,
    });
    const listener = new RecordingLiveListener();
    const connection = await connectLive(
      PLAIN_SETUP,
      listener,
      new AbortController().signal,
      scopeOn(fixture.clock),
    );
    const peer = await fixture.server.connection();
    expect(peer.path).toBe('/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent');
    expect(peer.headers['x-goog-api-key']).toBe(API_KEY);
    expect(peer.setup?.['model']).toBe('publishers/google/models/gemini-live-2.5-flash-native-audio');
    connection.close();
  });

  it.each(FAILURES)('rejects at once and leaves nothing open after $name', async (failure) => {
    Object.assign(fixture.server.script, failure.script);
    const { promise, listener } = connect(failure);
    const error = await failureOf(promise);
    expect(error.code).toBe(failure.code);
    await fixture.server.waitForNoSockets();
    expect(listener.events).toEqual([]);
    expect(fixture.clock.pendingTimers).toBe(0);
    expect(fixture.clock.nowMs()).toBe(0);
  });

  it('keeps the provider reason as data, out of the message and out of what a log prints of the error', async () => {
    fixture.server.script.setup = { close: 1007, reason: 'voice Xyz of +15550100 is unknown' };
    const error = await failureOf(connect().promise);
    expect(error).toMatchObject({ code: 'model_setup_refused', closeCode: 1007 });
    expect(error.providerReason).toBe('voice Xyz of +15550100 is unknown');
    expect(inspect(error, { showHidden: true, depth: 10 })).not.toContain('15550100');
    expect(JSON.stringify(error)).not.toContain('15550100');
  });

  it('tells the HTTP status of a refused handshake', async () => {
    fixture.server.script.handshake = { httpStatus: 403 };
    expect(await failureOf(connect().promise)).toMatchObject({
      code: 'model_setup_refused',
      httpStatus: 403,
    });
  });

  it('is model_unreachable where nobody listens', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => {
      closed.listen(0, '127.0.0.1', resolve);
    });
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => {
      closed.close(resolve);
    });
    const error = await failureOf(connect({ baseUrl: `http://127.0.0.1:${port}` }).promise);
    expect(error.code).toBe('model_unreachable');
    expect(error.message).toContain('ECONNREFUSED');
    expect(error.retryable).toBe(true);
  });

  it.each([
    ['never answers the handshake', { handshake: 'silent' }],
    ['never answers setup', { setup: 'silent' }],
    ['sends other things but never setupComplete', { setup: (peer) => peer.goAway() }],
    ['sends a setupComplete that is null', { setup: (peer) => peer.send({ setupComplete: null }) }],
  ] satisfies [string, Partial<GeminiScript>][])('times out on a server that %s', async (_name, script) => {
    Object.assign(fixture.server.script, script);
    const { promise, listener } = connect();
    await fixture.server.waitForHandshakes(1);
    if (fixture.server.script.handshake === 'accept')
      await (await fixture.server.connection()).waitForSetup();
    fixture.clock.advance(MODEL_CONNECT_TIMEOUT_MS - 1);
    expect(fixture.clock.pendingTimers).toBe(1);
    fixture.clock.advance(1);
    expect((await failureOf(promise)).code).toBe('model_connect_timeout');
    await fixture.server.waitForNoSockets();
    expect(listener.events).toEqual([]);
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it.each([
    ['many messages', 2 * MODEL_EARLY_MESSAGES_MAX, 10],
    ['much', 10, MODEL_EARLY_MAX_CHARS / 5],
  ])('keeps no server that says %s before it is ready', async (_name, messages, chars) => {
    fixture.server.script.setup = (peer) => {
      for (let sent = 0; sent < messages; sent += 1) peer.sendOutputTranscription('x'.repeat(chars));
    };
    const { promise, listener } = connect();
    const error = await failureOf(promise);
    expect(error.code).toBe('model_unreachable');
    expect(error.message).toContain('too much');
    await fixture.server.waitForNoSockets();
    expect(listener.events).toEqual([]);
  });

  it('opens no socket for a signal that is aborted already', async () => {
    expect((await failureOf(connect({ signal: AbortSignal.abort() }).promise)).code).toBe(
      'model_connect_aborted',
    );
    expect(fixture.server.handshakes).toBe(0);
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it.each(['at once', 'during the handshake', 'while setup is answered'])(
    'gives up when aborted %s',
    async (when) => {
      const abort = new AbortController();
      if (when === 'during the handshake') fixture.server.script.handshake = 'silent';
      fixture.server.script.setup = 'silent';
      const { promise, listener } = connect({ signal: abort.signal });
      if (when === 'during the handshake') await fixture.server.waitForHandshakes(1);
      if (when === 'while setup is answered') await (await fixture.server.connection()).waitForSetup();
      abort.abort();
      expect((await failureOf(promise)).code).toBe('model_connect_aborted');
      await fixture.server.waitForNoSockets();
      expect(listener.events).toEqual([]);
      expect(fixture.clock.pendingTimers).toBe(0);
    },
  );

  it('does not heed the signal once connected', async () => {
    const abort = new AbortController();
    const { promise, listener } = connect({ signal: abort.signal });
    const connection = await promise;
    abort.abort();
    connection.sendText('still here');
    const peer = await fixture.server.connection();
    await peer.waitFor((frame) => 'clientContent' in frame);
    expect(listener.events).toEqual([]);
    connection.close();
  });

  it('leaves no socket, timer or handle after 100 connects that fail in every way', async () => {
    const handles = (): number =>
      process.getActiveResourcesInfo().filter((name) => /TCP|TLS|GetAddrInfo/.test(name)).length;
    const before = handles();
    const outcomes: Promise<ModelConnectError>[] = [];
    for (let index = 0; index < 100; index += 1) {
      const failure = FAILURES[index % (FAILURES.length + 2)];
      Object.assign(
        fixture.server.script,
        { handshake: 'accept', setup: 'silent', onOpen: undefined },
        failure?.script,
      );
      const abort = new AbortController();
      const { promise } = connect({ ...failure, signal: abort.signal });
      outcomes.push(failureOf(promise));
      if (failure === undefined) {
        await fixture.server.waitForHandshakes(fixture.server.handshakes + 1);
        if (index % 2 === 0) abort.abort();
        else fixture.clock.advance(MODEL_CONNECT_TIMEOUT_MS);
      }
      await outcomes.at(-1);
    }
    const codes = new Set((await Promise.all(outcomes)).map(({ code }) => code));
    expect([...codes].toSorted()).toEqual([
      'model_connect_aborted',
      'model_connect_timeout',
      'model_setup_refused',
      'model_unreachable',
    ]);
    await fixture.server.waitForNoSockets();
    expect(fixture.clock.pendingTimers).toBe(0);
    await expect.poll(handles).toBeLessThanOrEqual(before);
  });
});

describe('the API key', () => {
  const spellings = [
    API_KEY,
    encodeURIComponent(API_KEY),
    new URL(`http://h/?key=${API_KEY}`).search.slice(5),
  ];

  function keysIn(text: string): string[] {
    return [...spellings, 'AIza'].filter((spelling) => text.includes(spelling));
  }

  it.each(FAILURES)('is in no error and no log line after $name', async (failure) => {
    Object.assign(fixture.server.script, failure.script);
    const { setup } = fixture.server.script;
    if (typeof setup === 'object')
      fixture.server.script.setup = { ...setup, reason: `key ${API_KEY} is bad` };
    const error = await failureOf(connect(failure).promise);
    expect(keysIn(inspect(error, { showHidden: true, depth: 10 }))).toEqual([]);
    expect(
      keysIn(`${error.message} ${error.stack ?? ''} ${error.providerReason} ${String(error.cause)}`),
    ).toEqual([]);
    expect(keysIn(inspect(fixture.logLines, { depth: 10 }))).toEqual([]);
  });

  it('is masked in the message and the stack of whatever the socket or the SDK throws', () => {
    const thrown = new SyntaxError(`Invalid URL: ws://host/ws?key=${API_KEY}`);
    thrown.cause = new Error(API_KEY);
    const cause = maskedCause(thrown, maskSecrets([API_KEY]));
    expect(cause.name).toBe('SyntaxError');
    expect(keysIn(inspect(cause, { showHidden: true, depth: 10 }))).toEqual([]);
    expect(keysIn(maskedCause(API_KEY, maskSecrets([API_KEY])).message)).toEqual([]);
  });

  it('is masked in whatever text holds it or a URL with a key', () => {
    const mask = maskSecrets([API_KEY]);
    expect(
      keysIn(mask(`Invalid URL: ws://host/ws?key=${API_KEY} and ${encodeURIComponent(API_KEY)}`)),
    ).toEqual([]);
    expect(mask('wss://host/ws?key=another-key&alt=1')).toBe('wss://host/ws?key=***&alt=1');
    expect(mask('wss://host/ws?access_token=auth_tokens/abc')).toBe('wss://host/ws?access_token=***');
    expect(maskSecrets(['', 'x'])('an exact text')).toBe('an exact text');
  });
});

describe('fitting the adapter to the SDK', () => {
  it.each([{}, { webSocketFactory: undefined }, { webSocketFactory: {} }])(
    'says clearly that a socket factory is missing: %j',
    (live) => {
      expect(() => assertSocketFactory(live)).toThrow(ModelError);
      expect(() => assertSocketFactory(live)).toThrow(/@google\/genai/);
    },
  );

  it('warns once about a model that is not in the table, and then connects', async () => {
    const connectLive = fixture.connectLive('gemini-9-live');
    for (let time = 0; time < 2; time += 1) {
      const connection = await connectLive(
        PLAIN_SETUP,
        new RecordingLiveListener(),
        new AbortController().signal,
        scopeOn(fixture.clock),
      );
      expect(connection.capabilities.family).toBe('unknown');
      connection.close();
    }
    expect(fixture.logLines).toHaveLength(1);
    expect(fixture.logLines[0]).toMatchObject({ level: 'warn', fields: { modelName: 'gemini-9-live' } });
  });

  it('warns about no model that is in the table, the embedded stand-in among them', () => {
    for (const modelName of ['gemini-3.8-live', 'rehearsal']) fixture.connectLive(modelName);
    expect(fixture.logLines).toEqual([]);
  });
});

describe('the SDK', () => {
  const HOSTILE = {
    GOOGLE_GENAI_USE_ENTERPRISE: 'true',
    GOOGLE_GENAI_USE_VERTEXAI: 'false',
    GOOGLE_API_KEY: 'key-of-the-process',
    GEMINI_API_KEY: 'key-of-the-process',
    GOOGLE_CLOUD_PROJECT: 'project-of-the-process',
    GOOGLE_CLOUD_LOCATION: 'location-of-the-process',
    GOOGLE_GEMINI_BASE_URL: 'http://process.example.com',
    GOOGLE_VERTEX_BASE_URL: 'http://process.example.com',
    GOOGLE_GENAI_API_VERSION: 'v9',
  };

  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  it.each([
    ['the Developer API', { apiKey: API_KEY }, 'https://generativelanguage.googleapis.com/'],
    ['Vertex AI by key', { vertex: { apiKey: API_KEY } }, 'https://aiplatform.googleapis.com/'],
    [
      'Vertex AI by project',
      { vertex: { project: 'shop', location: 'europe-west4' } },
      'https://europe-west4-aiplatform.googleapis.com/',
    ],
    ['another host', { apiKey: API_KEY, baseUrl: 'http://127.0.0.1:9' }, 'http://127.0.0.1:9'],
  ])('opens %s by what it is given, whatever the variables of the process say', (_name, access, baseUrl) => {
    for (const level of ['warn', 'debug'] as const) vi.spyOn(console, level).mockReturnValue(undefined);
    for (const [name, value] of Object.entries(HOSTILE)) vi.stubEnv(name, value);
    const sdk = createGeminiSdk({ ...access, modelName: 'm', log: fixture.log });
    const client = Reflect.get(sdk, 'apiClient') as Record<string, () => unknown>;
    expect(client['getBaseUrl']?.()).toBe(baseUrl);
    expect(client['isVertexAI']?.()).toBe('vertex' in access);
    expect(client['getApiVersion']?.()).toBe('vertex' in access ? 'v1beta1' : 'v1beta');
    if (!('vertex' in access)) return;
    const { apiKey, project, location } = { ...access.vertex } as Record<string, string>;
    expect(client['getApiKey']?.()).toBe(apiKey);
    expect(client['getProject']?.()).toBe(project);
    expect(client['getLocation']?.()).toBe(location);
  });
});
