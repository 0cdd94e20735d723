/**
 * The WebSocket under one Gemini Live connection, between `ws` and the SDK, which asks for a socket by its own small
 * interface. It promises that the socket ends within MODEL_CLOSE_MAX_MS of the wish to end it, that one `onEnd`
 * follows whatever happened, and that nothing it calls back can throw into the SDK. It knows no Gemini message.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, type ClientOptions, type RawData } from 'ws';
import type { SocketScope } from '../call-tap.js';
import type { Timer } from '../clock.js';
import { MODEL_CLOSE_MAX_MS, MODEL_PAYLOAD_MAX_BYTES, MODEL_UNSENT_MAX_BYTES } from '../limits.js';

/** How the socket ended. `error` is as thrown: it may hold the URL and with it the API key. */
export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
  readonly httpStatus: number | undefined;
  readonly error: Error | undefined;
}

export interface SocketListener {
  onOpen(): void;
  /** A message's bytes, before they are made text of; true if it was read, and is not to come as text. */
  onBytes?(data: Buffer): boolean;
  /** One message, text or binary: Gemini sends JSON either way. `data` is what it was made of, where that is one piece. */
  onText(text: string, data?: Buffer): void;
  /** Exactly once, last. */
  onEnd(end: SocketEnd): void;
}

/** `closeTimeout` is in ws 8.19 and later, not yet in its types: how long `ws` waits for the peer's end of a close. */
type SocketOptions = ClientOptions & { readonly closeTimeout: number };

/** The SDK's base URL ends with a slash and its path begins with one: `//ws/google…` reaches no strict server. */
function withoutDoubleSlash(url: string): string {
  return url.replace(/(?<!:)\/+(?=\/ws\/google\.)/, '');
}

function textOf(data: RawData): string {
  if (Buffer.isBuffer(data)) return data.toString('utf8');
  return Array.isArray(data) ? Buffer.concat(data).toString('utf8') : Buffer.from(data).toString('utf8');
}

export class GeminiSocket {
  /** Who hears of the socket; the connect attempt first, then the connection. */
  listener: SocketListener;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #scope: SocketScope;
  readonly #openConnection: (() => Duplex) | undefined;
  #socket: WebSocket | undefined;
  /** The connection under the WebSocket, from its upgrade on. */
  #raw: Socket | undefined;
  #closeTimer: Timer | undefined;
  #error: Error | undefined;
  #httpStatus: number | undefined;

  constructor(options: {
    url: string;
    headers: Record<string, string>;
    scope: SocketScope;
    listener: SocketListener;
    openConnection?: (() => Duplex) | undefined;
  }) {
    this.#url = withoutDoubleSlash(options.url);
    this.#headers = options.headers;
    this.#scope = options.scope;
    this.#openConnection = options.openConnection;
    this.listener = options.listener;
  }

  /** Bytes accepted but not yet given to the kernel. */
  get bufferedAmount(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** Opens the socket; throws on a URL that is none. */
  connect(): void {
    const options: SocketOptions = {
      headers: this.#headers,
      perMessageDeflate: false,
      maxPayload: MODEL_PAYLOAD_MAX_BYTES,
      closeTimeout: MODEL_CLOSE_MAX_MS,
      // http.request takes any Duplex; the published type says Socket.
      ...(this.#openConnection && { createConnection: this.#openConnection as () => Socket }),
    };
    const { clock, tap } = this.#scope;
    const socket = new WebSocket(this.#url, options);
    this.#socket = socket;
    socket.on('upgrade', (response) => (this.#raw = response.socket));
    socket.on('open', () => {
      clock.enter();
      tap?.opened();
      this.listener.onOpen();
    });
    socket.on('message', (data: RawData, isBinary) => {
      clock.enter();
      const bytes = Buffer.isBuffer(data) ? data : undefined;
      if (bytes !== undefined && tap === undefined && this.listener.onBytes?.(bytes) === true) return;
      const text = textOf(data);
      tap?.received(text, isBinary);
      this.listener.onText(text, bytes);
    });
    socket.on('unexpected-response', (_request, response) => {
      this.#httpStatus = response.statusCode;
      clock.enter();
      tap?.refused(response.statusCode ?? 0);
      socket.terminate();
    });
    socket.on('error', (error) => {
      this.#error ??= error;
      socket.terminate();
    });
    socket.on('close', (code, reason) => {
      clock.enter();
      this.#closeTimer?.cancel();
      tap?.ended(code, reason.toString('utf8'));
      this.listener.onEnd({
        code,
        reason: reason.toString('utf8'),
        httpStatus: this.#httpStatus,
        error: this.#error,
      });
    });
  }

  /** Sends a text frame; a no-op unless the socket is open. Cuts one that left more than MODEL_UNSENT_MAX_BYTES unread. */
  send(text: string): void {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MODEL_UNSENT_MAX_BYTES) {
      this.terminate();
      return;
    }
    this.#scope.tap?.sent(text);
    socket.send(text);
  }

  /** Whether somebody must be told the text of each frame. */
  get isTapped(): boolean {
    return this.#scope.tap !== undefined;
  }

  /** Sends a frame that is complete already, in one write; a no-op unless the socket is open. It takes the frame over. */
  sendFrame(frame: Buffer): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#raw?.write(frame);
  }

  /** Sends a close frame, and cuts the socket when the answer takes longer than MODEL_CLOSE_MAX_MS. Idempotent. */
  close(): void {
    const socket = this.#socket;
    if (socket === undefined || this.#closeTimer !== undefined) return;
    if (socket.readyState === WebSocket.CLOSED) return;
    this.#scope.tap?.closing(1000);
    this.#closeTimer = this.#scope.clock.setTimer(MODEL_CLOSE_MAX_MS, () => socket.terminate());
    socket.close(1000);
  }

  /** Cuts the socket at once. Idempotent. */
  terminate(): void {
    if (this.#socket === undefined || this.#socket.readyState === WebSocket.CLOSED) return;
    if (this.#closeTimer === undefined) this.#scope.tap?.closing(undefined);
    this.#socket.terminate();
  }
}
