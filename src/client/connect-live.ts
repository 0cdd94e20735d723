/**
 * A live conversation over the socket of `/run_live`: text, sound and pictures up, frames and sound down. Each connection
 * begins with `start`, and the server answers with what is stored, so that a lost connection goes on with whole messages.
 * What was sent before a loss is not sent again: it may have been acted on.
 */
import {
  FrameIntake,
  SilenceWatch,
  linkedAbort,
  type Connection,
  type ConnectionEnd,
  type ConnectionOptions,
} from './connection.js';
import { base64Of, bytesOf } from './base64.js';
import { EVENT_MAX_CHARS, UNSENT_MAX_BYTES, WAITING_TEXTS_MAX } from './bounds.js';
import { Retry } from './retry.js';

/** What this module uses of a WebSocket: the browser's, Node's from 22 on, and that of the package `ws` all have it. */
export interface LiveSocket {
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: object) => void): void;
}

export type LiveSocketClass = new (url: string, protocols?: string[]) => LiveSocket;

export interface LiveOptions extends ConnectionOptions {
  /** `ws://…/run_live` or `wss://…/run_live`. */
  readonly url: string | URL;
  readonly userId: string;
  readonly sessionId: string;
  /** The server's token, where it wants one. It travels as a subprotocol, for a page cannot set a socket's headers. */
  readonly token?: string;
  /** The format of the sound in both directions, as the server names it; without it there is none. */
  readonly audio?: unknown;
  /** Sound of the agent, in the order in which it is to be played. */
  readonly onAudio?: (sound: Uint8Array) => void;
  /** Drop at once what came by `onAudio` and is not played: the agent was cut off. What comes afterwards is to be played. */
  readonly onClear?: () => void;
  /** Node 20 has no WebSocket of its own. */
  readonly WebSocket?: LiveSocketClass;
}

export interface LiveConnection extends Connection {
  /** False if too much is waiting already, or everything has ended. */
  sendText(text: string): boolean;
  /** False if it was dropped: there is no connection, or it is behind. */
  sendAudio(sound: Uint8Array): boolean;
  /** As `sendAudio`. */
  sendImage(mimeType: string, image: Uint8Array): boolean;
  /** Says that no more input comes. The connection ends when the server ends it. */
  end(): void;
}

/** What is no frame, for no page shows it: sound, or that sound is to be dropped. */
function soundOf(text: string): Uint8Array | 'clear' | undefined {
  if (!text.includes('"audio"') && !text.includes('"clear"')) return undefined;
  try {
    const value = JSON.parse(text) as { type?: unknown; data?: unknown } | null;
    if (value?.type === 'clear') return 'clear';
    return value?.type === 'audio' && typeof value.data === 'string' ? bytesOf(value.data) : undefined;
  } catch {
    return undefined;
  }
}

const NORMAL_CLOSURE = 1000;

function subprotocols(token: string): string[] {
  const encoded = base64Of(new TextEncoder().encode(token));
  return ['earshot', `bearer.${encoded.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`];
}

function socketClass(options: LiveOptions): LiveSocketClass {
  const found = options.WebSocket ?? (globalThis as { WebSocket?: LiveSocketClass }).WebSocket;
  if (found === undefined)
    throw new TypeError('there is no WebSocket here: pass one, as that of the package ws');
  return found;
}

class SocketLiveConnection implements LiveConnection {
  readonly ended: Promise<ConnectionEnd>;
  readonly #options: LiveOptions;
  readonly #socketClass: LiveSocketClass;
  readonly #intake: FrameIntake;
  readonly #retry: Retry;
  readonly #closing: { controller: AbortController; release: () => void };
  #socket: LiveSocket | undefined;
  #waiting: string[] = [];
  #hasEnded = false;
  #mayRetry = true;

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#socketClass = socketClass(options);
    this.#intake = new FrameIntake(options.onChange);
    this.#retry = new Retry(options);
    this.#closing = linkedAbort(options.signal ?? new AbortController().signal);
    this.ended = this.#run();
  }

  get state() {
    return this.#intake.state;
  }

  close(): void {
    this.#closing.controller.abort();
  }

  sendText(text: string): boolean {
    if (this.#hasEnded || !this.#mayRetry) return false;
    const message = JSON.stringify({ type: 'text', text });
    if (this.#socket !== undefined) this.#socket.send(message);
    else if (this.#waiting.length < WAITING_TEXTS_MAX) this.#waiting.push(message);
    else return false;
    return true;
  }

  sendAudio(sound: Uint8Array): boolean {
    return this.#sendBulk(() => ({ type: 'audio', data: base64Of(sound) }));
  }

  sendImage(mimeType: string, image: Uint8Array): boolean {
    return this.#sendBulk(() => ({ type: 'image', mimeType, data: base64Of(image) }));
  }

  end(): void {
    this.#mayRetry = false;
    this.#socket?.send(JSON.stringify({ type: 'end' }));
    if (this.#socket === undefined) this.close();
  }

  #sendBulk(message: () => object): boolean {
    if (this.#socket === undefined || !this.#mayRetry) return false;
    if (this.#socket.bufferedAmount > UNSENT_MAX_BYTES) return false;
    this.#socket.send(JSON.stringify(message()));
    return true;
  }

  async #run(): Promise<ConnectionEnd> {
    const { signal } = this.#closing.controller;
    try {
      for (;;) {
        this.#options.onStatus?.('connecting');
        await this.#attempt();
        if (signal.aborted) return { reason: 'closed', detail: 'closed by the application' };
        if (!this.#mayRetry || this.state.isOver) return { reason: 'finished', detail: 'the server closed' };
        this.#options.onStatus?.('waiting');
        if (!(await this.#retry.wait(signal)) && !signal.aborted) {
          return { reason: 'lost', detail: 'too many attempts in vain' };
        }
      }
    } finally {
      this.#hasEnded = true;
      this.#closing.release();
      this.#options.onStatus?.('ended');
    }
  }

  /** One socket to its end. Rejects with what a callback of the application threw, or for an address that is none. */
  #attempt(): Promise<void> {
    const { controller, release } = linkedAbort(this.#closing.controller.signal);
    return new Promise<void>((resolve, reject) => {
      if (controller.signal.aborted) {
        resolve();
        return;
      }
      const Socket = this.#socketClass;
      const { url, token } = this.#options;
      const socket =
        token === undefined ? new Socket(String(url)) : new Socket(String(url), subprotocols(token));
      let hasLeft = false;
      // What a socket says after it was left is the past: by then another one may be open.
      const leave = (settle: () => void): void => {
        if (hasLeft) return;
        hasLeft = true;
        silence.stop();
        this.#socket = undefined;
        settle();
      };
      // A dead socket may take minutes to close; nobody waits for it.
      const cut = (): void => {
        leave(resolve);
        socket.close();
      };
      const silence = new SilenceWatch(this.#options, cut);
      controller.signal.addEventListener('abort', cut, { once: true });
      const guarded = (take: () => void): void => {
        if (hasLeft) return;
        try {
          take();
        } catch (error) {
          leave(() => reject(error instanceof Error ? error : new Error(String(error))));
          socket.close();
        }
      };
      socket.addEventListener('open', () => guarded(() => this.#open(socket)));
      socket.addEventListener('message', (event) => guarded(() => this.#read(event, silence, cut)));
      socket.addEventListener('close', (event) => {
        // The conversation is over: a new socket would begin another one.
        if (!hasLeft && Reflect.get(event, 'code') === NORMAL_CLOSURE) this.#mayRetry = false;
        leave(resolve);
      });
      socket.addEventListener('error', () => leave(resolve));
    }).finally(() => {
      release();
      controller.abort();
    });
  }

  #open(socket: LiveSocket): void {
    const { userId, sessionId, audio } = this.#options;
    this.#intake.begin(true);
    socket.send(
      JSON.stringify({ type: 'start', userId, sessionId, ...(audio === undefined ? {} : { audio }) }),
    );
    for (const message of this.#waiting) socket.send(message);
    this.#waiting = [];
    this.#socket = socket;
    this.#options.onStatus?.('open');
  }

  #read(event: object, silence: SilenceWatch, cut: () => void): void {
    const text: unknown = Reflect.get(event, 'data');
    if (typeof text !== 'string') return;
    if (text.length > EVENT_MAX_CHARS) {
      cut();
      return;
    }
    silence.heard();
    const sound = soundOf(text);
    if (sound === 'clear') this.#options.onClear?.();
    else if (sound !== undefined) this.#options.onAudio?.(sound);
    else if (this.#intake.take(text)) this.#retry.succeeded();
  }
}

/** Opens a live conversation. Throws a TypeError where there is no WebSocket. */
export function connectLive(options: LiveOptions): LiveConnection {
  return new SocketLiveConnection(options);
}
