/**
 * One HTTP request of a replayed call on a connection of its own, and the server's answer to it.
 */
import { MemorySocket } from './memory-socket.js';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface ReplayedRequestOptions {
  readonly onAnswer: (answer: HttpAnswer) => void;
  readonly onActivity: () => void;
  readonly onFault: (error: unknown) => void;
}

export class ReplayedRequest {
  readonly socket: MemorySocket;
  readonly #onAnswer: (answer: HttpAnswer) => void;
  #written = '';
  #answered = false;

  constructor(options: ReplayedRequestOptions) {
    this.#onAnswer = options.onAnswer;
    this.socket = new MemorySocket({
      onWritten: (bytes) => {
        options.onActivity();
        this.#written += bytes.toString('latin1');
        this.#readAnswer();
      },
      onGone: () => options.onActivity(),
      onFault: options.onFault,
    });
  }

  send(method: 'GET' | 'POST', path: string, contentType = 'application/json', body = ''): void {
    this.socket.feed(
      Buffer.from(
        `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: ${contentType}\r\n` +
          `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      ),
    );
  }

  #readAnswer(): void {
    const headEnd = this.#written.indexOf('\r\n\r\n');
    if (this.#answered || headEnd === -1) return;
    const head = this.#written.slice(0, headEnd);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    const body = this.#written.slice(headEnd + 4);
    if (body.length < length) return;
    this.#answered = true;
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
    this.#onAnswer({ status, body: Buffer.from(body, 'latin1').toString('utf8') });
  }
}

/** A form as Twilio posts it. */
export function formOf(params: Readonly<Record<string, string | readonly string[]>>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of typeof value === 'string' ? [value] : value) form.append(name, one);
  }
  return form.toString();
}
