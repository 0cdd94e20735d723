/**
 * From a wish to talk to an open Gemini Live connection, through `@google/genai`. The SDK builds and sends the setup
 * and converts what we send later; the socket is ours, handed to it through its WebSocket factory, because the SDK
 * (2.32) waits for ever when a server closes before setup, has no timer, ignores the abort signal, leaks the socket
 * when a conversion fails, and lets a bad frame end the process as an unhandled rejection. Here each of these is an
 * error or a skipped frame, and a failed connect leaves nothing open.
 */
import type { Duplex } from 'node:stream';
import {
  GoogleGenAI,
  type Live,
  type LiveConnectConfig,
  type Session,
  setDefaultBaseUrls,
} from '@google/genai';
import type { SocketScope } from '../call-tap.js';
import type { Timer } from '../clock.js';
import { ModelError } from '../errors.js';
import { MODEL_CONNECT_TIMEOUT_MS, MODEL_EARLY_MAX_CHARS, MODEL_EARLY_MESSAGES_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';
import { GeminiAudioDecoder } from './gemini-audio-decoder.js';
import {
  ModelConnectError,
  connectErrorFor,
  maskSecrets,
  maskedCause,
  type MaskSecrets,
} from './gemini-connect-error.js';
import { GeminiLiveConnection } from './gemini-live-connection.js';
import type { GeminiOddity } from './gemini-message-reader.js';
import { buildLiveConnectConfig } from './gemini-setup.js';
import { GeminiSocket, type SocketEnd, type SocketListener } from './gemini-socket.js';
import type { ConnectLive, LiveConnection, LiveListener, LiveSetup } from './live-connection.js';
import { bareModelName, modelCapabilities, type ModelCapabilities } from './model-capabilities.js';

/** Google Cloud's door: a project, with application default credentials, or a key alone (express mode). */
export type VertexOptions =
  { readonly project: string; readonly location: string } | { readonly apiKey: string };

export type GeminiConnectOptions = {
  readonly modelName: string;
  /** Another host, e.g. the rehearsal model's; `http:` means an unencrypted socket. */
  readonly baseUrl?: string;
  /** The connection under each WebSocket; default: TCP, or TLS, to the URL's host. */
  readonly openConnection?: () => Duplex;
  readonly log: Log;
  /** Told of everything that was not as documented, as often as it happens. */
  readonly observe?: (oddity: GeminiOddity) => void;
} & ({ readonly apiKey: string } | { readonly vertex: VertexOptions });

/** What the SDK calls when it wants a socket; its own types are not exported. */
interface SdkSocketCallbacks {
  onopen(): void;
  onmessage(event: { data: string }): void;
}
interface SdkSocket {
  connect(): void;
  send(text: string): void;
  close(): void;
}
interface SdkSocketFactory {
  create(url: string, headers: Record<string, string>, callbacks: SdkSocketCallbacks): SdkSocket;
}

/** @throws ModelError when this version of the SDK keeps its socket factory elsewhere. */
export function assertSocketFactory(live: object): void {
  const factory: unknown = Reflect.get(live, 'webSocketFactory');
  if (
    typeof factory === 'object' &&
    factory !== null &&
    typeof Reflect.get(factory, 'create') === 'function'
  ) {
    return;
  }
  throw new ModelError(
    'config_invalid',
    'This version of @google/genai has no live.webSocketFactory; Earshot is built for 2.32.0',
  );
}

/** A view of the SDK's `live` that opens its sockets through `factory`. The original is not touched, so that one
 * client, and with it one cache of credentials, serves all connects, each with a factory of its own. */
function withSocketFactory(live: Live, factory: SdkSocketFactory): Live {
  return Object.create(live, { webSocketFactory: { value: factory } }) as Live;
}

/** What all connects of one process share. */
interface GeminiClient {
  readonly live: Live;
  readonly modelName: string;
  readonly capabilities: ModelCapabilities;
  readonly openConnection: (() => Duplex) | undefined;
  readonly log: Log;
  readonly mask: MaskSecrets;
  readonly audioDecoder: GeminiAudioDecoder;
  readonly observe: (oddity: GeminiOddity) => void;
}

/** Messages of the SDK's own callback; everything after setup is read from the socket instead. */
function ignoreMessage(): void {}

class ConnectAttempt implements SocketListener {
  readonly #client: GeminiClient;
  readonly #listener: LiveListener;
  readonly #signal: AbortSignal;
  readonly #scope: SocketScope;
  readonly #resolve: (connection: LiveConnection) => void;
  readonly #reject: (error: ModelConnectError) => void;
  readonly #timer: Timer;
  readonly #earlyMessages: unknown[] = [];
  #earlyChars = 0;
  readonly #onAbort = (): void => {
    this.#fail(new ModelConnectError('model_connect_aborted', 'Connecting to the model was called off'));
  };
  #socket: GeminiSocket | undefined;
  #sdk: SdkSocketCallbacks | undefined;
  /** The SDK trips over a `setupComplete` that comes before it has sent the setup. */
  #setupSent = false;
  #settled = false;

  constructor(
    client: GeminiClient,
    options: {
      listener: LiveListener;
      signal: AbortSignal;
      scope: SocketScope;
      resolve: (connection: LiveConnection) => void;
      reject: (error: ModelConnectError) => void;
    },
  ) {
    this.#client = client;
    this.#listener = options.listener;
    this.#signal = options.signal;
    this.#scope = options.scope;
    this.#resolve = options.resolve;
    this.#reject = options.reject;
    this.#timer = options.scope.clock.setTimer(MODEL_CONNECT_TIMEOUT_MS, () => {
      const message = `The model was not ready within ${MODEL_CONNECT_TIMEOUT_MS} ms`;
      this.#fail(new ModelConnectError('model_connect_timeout', message));
    });
    this.#signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  begin(setup: LiveSetup): void {
    const live = withSocketFactory(this.#client.live, {
      create: (url, headers, callbacks) => this.#createSocket(url, headers, callbacks),
    });
    const { modelName: model, capabilities } = this.#client;
    let config: LiveConnectConfig;
    try {
      config = buildLiveConnectConfig(setup, capabilities);
    } catch (error) {
      this.#refuseSetup(error);
      return;
    }
    // A pending promise is all that the SDK leaves of a connect whose socket ended before setup.
    live.connect({ model, config, callbacks: { onmessage: ignoreMessage } }).then(
      (session) => this.#succeed(session),
      (error: unknown) => this.#failFromSdk(error),
    );
  }

  onOpen(): void {
    this.#sdk?.onopen();
  }

  onText(text: string): void {
    if (this.#settled) return;
    this.#earlyChars += text.length;
    if (this.#earlyMessages.length >= MODEL_EARLY_MESSAGES_MAX || this.#earlyChars > MODEL_EARLY_MAX_CHARS) {
      this.#fail(new ModelConnectError('model_unreachable', 'The model sent too much before it was ready'));
      return;
    }
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      this.#client.observe('frame_not_json');
      this.#fail(new ModelConnectError('model_unreachable', "The model's server does not speak JSON"));
      return;
    }
    this.#earlyMessages.push(message);
    if (typeof message !== 'object' || message === null || !('setupComplete' in message)) return;
    if (this.#setupSent) this.#sdk?.onmessage({ data: text });
    else this.#fail(new ModelConnectError('model_unreachable', 'The model was ready before it was asked'));
  }

  onEnd(end: SocketEnd): void {
    this.#fail(connectErrorFor(end, this.#client.mask));
  }

  #createSocket(url: string, headers: Record<string, string>, callbacks: SdkSocketCallbacks): SdkSocket {
    // The SDK may have been waiting for credentials while the attempt was given up.
    if (this.#settled) throw new Error('the connect attempt is over');
    const socket = new GeminiSocket({
      url,
      headers,
      scope: this.#scope,
      listener: this,
      openConnection: this.#client.openConnection,
    });
    this.#sdk = callbacks;
    this.#socket = socket;
    return {
      connect: () => socket.connect(),
      send: (text) => {
        this.#setupSent = true;
        socket.send(text);
      },
      close: () => socket.close(),
    };
  }

  /** True once; from then on the attempt has neither timer nor abort listener. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#timer.cancel();
    this.#signal.removeEventListener('abort', this.#onAbort);
    return true;
  }

  #fail(error: ModelConnectError): void {
    if (!this.#settle()) return;
    this.#socket?.terminate();
    this.#reject(error);
  }

  /** The SDK threw: before it asked for a socket (credentials), or after it (a setup that it cannot convert). */
  #failFromSdk(thrown: unknown): void {
    if (this.#socket !== undefined) {
      this.#refuseSetup(thrown);
      return;
    }
    const cause = maskedCause(thrown, this.#client.mask);
    this.#fail(
      new ModelConnectError('model_unreachable', 'The model could not be asked for a connection', { cause }),
    );
  }

  #refuseSetup(thrown: unknown): void {
    const cause = maskedCause(thrown, this.#client.mask);
    this.#fail(new ModelConnectError('model_setup_refused', 'The setup cannot be put into words', { cause }));
  }

  #succeed(session: Session): void {
    if (this.#socket === undefined || !this.#settle()) return;
    const connection = new GeminiLiveConnection({
      ...this.#client,
      modelName: bareModelName(this.#client.modelName),
      session,
      socket: this.#socket,
      listener: this.#listener,
      earlyMessages: this.#earlyMessages,
    });
    this.#resolve(connection);
    // The listener must hear nothing before the caller holds the connection. A tick queued from a microtask runs when
    // all microtasks are done, so however many async functions pass the connection on, they have done so by then.
    queueMicrotask(() => process.nextTick(() => connection.start()));
  }
}

/**
 * The SDK reads variables of the process wherever an option is missing. Here none is: the door, the key or the project
 * and location are given, and empty default addresses keep it from asking for an address too.
 */
export function createGeminiSdk(options: GeminiConnectOptions): GoogleGenAI {
  setDefaultBaseUrls({ geminiUrl: '', vertexUrl: '' });
  const httpOptions = options.baseUrl === undefined ? {} : { httpOptions: { baseUrl: options.baseUrl } };
  if ('vertex' in options) return new GoogleGenAI({ vertexai: true, ...options.vertex, ...httpOptions });
  // Live is documented and reported on with v1beta only; later SDKs default to v1.
  return new GoogleGenAI({
    vertexai: false,
    apiKey: options.apiKey,
    apiVersion: 'v1beta',
    ...httpOptions,
  });
}

function secretOf(options: GeminiConnectOptions): string | undefined {
  const holder = 'vertex' in options ? options.vertex : options;
  return 'apiKey' in holder ? holder.apiKey : undefined;
}

/**
 * Makes the function that opens connections to one model. Warns once when the model is not in the capability table.
 * @throws ModelError when the installed SDK is not one this adapter can be fitted to.
 */
export function createGeminiConnectLive(options: GeminiConnectOptions): ConnectLive {
  const secret = secretOf(options);
  const capabilities = modelCapabilities(options.modelName, 'vertex' in options ? 'vertex' : 'developer');
  const client: GeminiClient = {
    live: createGeminiSdk(options).live,
    modelName: options.modelName,
    capabilities,
    openConnection: options.openConnection,
    log: options.log,
    mask: maskSecrets(secret === undefined ? [] : [secret]),
    audioDecoder: new GeminiAudioDecoder(),
    observe: (oddity) => {
      try {
        options.observe?.(oddity);
      } catch (error) {
        options.log.error({ err: error }, 'an observer of the model failed; the call goes on');
      }
    },
  };
  assertSocketFactory(client.live);
  if (capabilities.family === 'unknown') {
    const { modelName } = options;
    options.log.warn({ modelName }, 'this live model is not known; it gets the setup that every model takes');
  }
  return (setup, listener, signal, scope) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(new ModelConnectError('model_connect_aborted', 'Connecting to the model was called off'));
        return;
      }
      new ConnectAttempt(client, { listener, signal, scope, resolve, reject }).begin(setup);
    });
}
