/**
 * Reads `text/event-stream` (https://html.spec.whatwg.org/multipage/server-sent-events.html): bytes in any cuts to events.
 * Keeps one unfinished event and no more, up to a bound.
 */
import { EVENT_MAX_CHARS } from './bounds.js';

export interface StreamEvent {
  readonly data: string;
  /** The last `id:` of the stream so far; empty without one. */
  readonly id: string;
}

export interface EventStreamListener {
  event(event: StreamEvent): void;
  /** `retry:`, in milliseconds. */
  retry(delayMs: number): void;
}

export class EventStreamParser {
  readonly #listener: EventStreamListener;
  readonly #maxChars: number;
  readonly #decoder = new TextDecoder();
  #line = '';
  #data: string[] = [];
  #dataChars = 0;
  #id = '';
  #endedWithReturn = false;

  constructor(listener: EventStreamListener, maxChars = EVENT_MAX_CHARS) {
    this.#listener = listener;
    this.#maxChars = maxChars;
  }

  /** Takes the next bytes; false if an event is longer than the bound, after which nothing more may be given. */
  push(bytes: Uint8Array): boolean {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return true;
    if (this.#endedWithReturn && text.startsWith('\n')) text = text.slice(1);
    this.#endedWithReturn = text.endsWith('\r');
    const lines = text.split(/\r\n|\r|\n/);
    lines[0] = this.#line + (lines[0] ?? '');
    this.#line = lines.pop() ?? '';
    for (const line of lines) {
      this.#takeLine(line);
      if (this.#dataChars > this.#maxChars) return false;
    }
    return this.#line.length + this.#dataChars <= this.#maxChars;
  }

  #takeLine(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const rest = colon < 0 ? '' : line.slice(colon + 1);
    const value = rest.startsWith(' ') ? rest.slice(1) : rest;
    if (field === 'data') {
      this.#data.push(value);
      this.#dataChars += value.length + 1;
    } else if (field === 'id' && !value.includes('\0')) {
      this.#id = value;
    } else if (field === 'retry' && /^\d{1,9}$/.test(value)) {
      this.#listener.retry(Number(value));
    }
  }

  #dispatch(): void {
    if (this.#data.length === 0) return;
    const data = this.#data.join('\n');
    this.#data = [];
    this.#dataChars = 0;
    this.#listener.event({ data, id: this.#id });
  }
}
