/** Frames as text messages over a WebSocket, which tells of backpressure only by the bytes that it has not sent. */
import { WIRE_SOCKET_UNSENT_MAX_BYTES } from '../limits.js';
import type { FrameSink, FrameSinkListener } from './frame-sink.js';
import type { WireFrame } from './wire-frame.js';

/** What is used of a socket of the package `ws`. */
export interface ServerSocket {
  readonly bufferedAmount: number;
  /** 1 while it is open (https://websockets.spec.whatwg.org/#dom-websocket-readystate). */
  readonly readyState: number;
  send(text: string, written: (error?: Error | null) => void): void;
  close(code?: number): void;
  terminate(): void;
  on(event: 'close', listener: () => void): unknown;
}

const OPEN = 1;
const NORMAL_CLOSURE = 1000;

export class LiveSocketSink implements FrameSink {
  readonly #socket: ServerSocket;
  #listener: FrameSinkListener | undefined;
  #isBehind = false;

  constructor(socket: ServerSocket) {
    this.#socket = socket;
  }

  get isGone(): boolean {
    return this.#socket.readyState !== OPEN;
  }

  listen(listener: FrameSinkListener): void {
    this.#listener = listener;
    this.#socket.on('close', () => listener.gone());
  }

  write(frames: readonly WireFrame[]): boolean {
    for (const { json } of frames) this.#socket.send(json, this.#written);
    this.#isBehind = this.#socket.bufferedAmount > WIRE_SOCKET_UNSENT_MAX_BYTES;
    return !this.#isBehind;
  }

  end(): void {
    this.#socket.close(NORMAL_CLOSURE);
  }

  cut(): void {
    this.#socket.terminate();
  }

  readonly #written = (error?: Error | null): void => {
    if (error || !this.#isBehind || this.#socket.bufferedAmount > WIRE_SOCKET_UNSENT_MAX_BYTES) return;
    this.#isBehind = false;
    this.#listener?.drained();
  };
}
