/**
 * Writes an answer at the pace at which a model makes it: a pause, then a chunk at a time on the clock that was passed
 * in, as server-sent events or as one JSON array. Stops at once when the client is gone, and waits for one that reads
 * slowly, but not for ever.
 */
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../clock.js';
import { REHEARSAL_UNREAD_MAX_MS } from './rehearsal-limits.js';
import type { SeededRandom } from './seeded-random.js';
import type { GenerateResponse } from './text-generation-chunks.js';
import { INTERNAL, refusalBody } from './text-generation-refusal.js';

/** From the request to the first words; a small text model takes 300 to 800 ms. */
const THINK_MIN_MS = 250;
const THINK_MAX_MS = 500;
/** Between chunks of some four words: about 150 tokens a second. */
const GAP_MIN_MS = 15;
const GAP_MAX_MS = 50;

export type StreamForm = 'sse' | 'array' | 'whole';

export interface TextStreamOptions {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly response: ServerResponse;
  /** `whole` writes one object when everything is made. */
  readonly form: StreamForm;
  readonly chunks: readonly GenerateResponse[];
  /** Before the first chunk, on top of the usual pause. */
  readonly delayMs: number;
  /** After the last chunk. */
  readonly end: 'finished' | 'error' | 'cut';
}

export class TextStream {
  readonly #options: TextStreamOptions;
  #next = 0;
  #timer: Timer | undefined;
  #stopped = false;

  /** `options.response` has no header written yet; it is ended here, whatever happens. */
  constructor(options: TextStreamOptions) {
    this.#options = options;
    options.response.on('close', () => this.stop());
    const { random, chunks } = options;
    let waitMs = options.delayMs + random.between(THINK_MIN_MS, THINK_MAX_MS);
    if (options.form === 'whole')
      for (const _ of chunks.slice(1)) waitMs += random.between(GAP_MIN_MS, GAP_MAX_MS);
    this.#after(waitMs);
  }

  /** Cuts the connection if the answer is not finished; no timer is left. Idempotent. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    if (!this.#options.response.writableEnded) this.#options.response.destroy();
  }

  #after(delayMs: number): void {
    this.#timer = this.#options.clock.setTimer(delayMs, () => this.#write());
  }

  #write(): void {
    const { response, form, chunks } = this.#options;
    if (form === 'whole') return this.#writeWhole();
    if (!response.headersSent) {
      const type = form === 'sse' ? 'text/event-stream' : 'application/json; charset=UTF-8';
      response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' });
    }
    const chunk = chunks[this.#next];
    if (chunk === undefined) return this.#end();
    const isRead = response.write(this.#framed(chunk));
    this.#next += 1;
    if (isRead) return this.#goOn();
    const unread = this.#options.clock.setTimer(REHEARSAL_UNREAD_MAX_MS, () => this.stop());
    this.#timer = unread;
    response.once('drain', () => {
      unread.cancel();
      if (!this.#stopped) this.#goOn();
    });
  }

  #goOn(): void {
    const { chunks, end, random } = this.#options;
    if (this.#next >= chunks.length && end === 'finished') this.#end();
    else this.#after(random.between(GAP_MIN_MS, GAP_MAX_MS));
  }

  #writeWhole(): void {
    const { response, chunks, end } = this.#options;
    if (end === 'error') return this.#refuseWhole();
    const body = Buffer.from(JSON.stringify(chunks[0] ?? {}));
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': body.length,
    });
    if (end === 'finished') {
      response.end(body);
      return;
    }
    // Half of what the header announces, so that the client cannot take it for the answer.
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => this.stop());
  }

  #refuseWhole(): void {
    const { response } = this.#options;
    response.writeHead(INTERNAL.code, { 'Content-Type': 'application/json; charset=UTF-8' });
    response.end(JSON.stringify(refusalBody(INTERNAL)));
  }

  #end(): void {
    const { response, form, end } = this.#options;
    if (end === 'cut') return this.stop();
    if (end === 'error') response.write(this.#framed(refusalBody(INTERNAL)));
    response.end(form === 'array' ? ']' : '');
  }

  #framed(value: object): string {
    const json = JSON.stringify(value);
    if (this.#options.form === 'sse') return `data: ${json}\r\n\r\n`;
    return this.#next === 0 ? `[${json}\n` : `,\r\n${json}\n`;
  }
}
