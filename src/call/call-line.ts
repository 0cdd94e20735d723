/**
 * A call's line to its caller: at most one media stream at a time. A lost one may come back, each with a one-time token of its
 * own where the carrier opens it, and only so often. What the stream carries is the conversation's business.
 */
import { STREAMS_PER_CALL_MAX } from '../limits.js';
import type { MediaStream } from '../telephony/media-stream.js';
import { StreamTicket } from './stream-ticket.js';

export class CallLine {
  readonly #ticket = new StreamTicket();
  #stream: MediaStream | undefined;
  #opened = 0;
  #afters = 0;
  #firstOpenedAtMs: number | undefined;

  /** The one-time token of the next media stream; another one after it was used. */
  get token(): string {
    return this.#ticket.token;
  }

  get stream(): MediaStream | undefined {
    return this.#stream;
  }

  get firstOpenedAtMs(): number | undefined {
    return this.#firstOpenedAtMs;
  }

  /** Whether another stream may follow those that there were. */
  get mayOpen(): boolean {
    return this.#opened < STREAMS_PER_CALL_MAX;
  }

  /** Whether `token` is that of the next stream; then it is used up. */
  redeem(token: string | undefined): boolean {
    return this.#ticket.redeem(token);
  }

  /** Whether a carrier that asks what follows the stream is given another one. */
  mayReturn(): boolean {
    this.#afters += 1;
    return this.#afters <= STREAMS_PER_CALL_MAX;
  }

  open(stream: MediaStream, nowMs: number): void {
    this.#stream = stream;
    this.#opened += 1;
    this.#afters = Math.max(this.#afters, this.#opened - 1);
    this.#firstOpenedAtMs ??= nowMs;
  }

  /** The stream is the line no more; it is not closed by this. */
  drop(): MediaStream | undefined {
    const stream = this.#stream;
    this.#stream = undefined;
    return stream;
  }
}
