/**
 * Frames as server-sent events over an HTTP response (https://html.spec.whatwg.org/multipage/server-sent-events.html). Node
 * keeps at most one batch beyond its high-water mark for a client that does not read.
 */
import type { ServerResponse } from 'node:http';
import { WIRE_RETRY_MS } from '../limits.js';
import type { FrameSink, FrameSinkListener } from './frame-sink.js';
import type { WireFrame } from './wire-frame.js';

const HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  // A cache would keep it, and a proxy that compresses would hold it back.
  'Cache-Control': 'no-store, no-transform',
  // https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering
  'X-Accel-Buffering': 'no',
};

export class SseWriter implements FrameSink {
  readonly #response: ServerResponse;

  /** Sends the headers; the response must not have any yet. */
  constructor(response: ServerResponse, retryMs = WIRE_RETRY_MS) {
    this.#response = response;
    response.writeHead(200, HEADERS);
    response.write(`retry: ${retryMs}\n\n`);
  }

  get isGone(): boolean {
    return this.#response.destroyed;
  }

  listen(listener: FrameSinkListener): void {
    this.#response.on('drain', () => listener.drained());
    this.#response.on('close', () => listener.gone());
    // A reset by the client is an ordinary end, and `close` follows it.
    this.#response.on('error', () => {});
  }

  write(frames: readonly WireFrame[]): boolean {
    const [only] = frames;
    if (only === undefined) return true;
    const bytes = frames.length === 1 ? only.event : Buffer.concat(frames.map(({ event }) => event));
    return this.#response.write(bytes);
  }

  end(): void {
    this.#response.end();
  }

  cut(): void {
    this.#response.destroy();
  }
}
