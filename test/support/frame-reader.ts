/** One observer over real HTTP: every frame as it came over the wire, and the page that the client's reducer makes of them. */
import { connect, type Socket } from 'node:net';
import { type ClientState, type Frame, initialState, reduce } from '../../src/client/index.js';
import { waitUntil } from './wait-until.js';

export interface ReadFrame {
  readonly id: number;
  /** The frame's own text. */
  readonly json: string;
  readonly frame: Frame;
}

export interface FrameRequest {
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A socket of its own, so that it can stop reading and be cut like any client's. */
export class FrameReader {
  readonly read: ReadFrame[] = [];
  status: number | undefined;
  headers = '';
  isEnded = false;
  page: ClientState = initialState;
  readonly #socket: Socket;
  #head = '';
  #chunked = Buffer.alloc(0);
  #text = '';

  constructor(url: string, request: FrameRequest = {}) {
    const { hostname, port, pathname } = new URL(url);
    const body = request.body === undefined ? '' : JSON.stringify(request.body);
    const headers = {
      Host: `${hostname}:${port}`,
      Accept: 'text/event-stream',
      ...(body !== '' && {
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(body)),
      }),
      ...request.headers,
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#socket = connect(Number(port), hostname, () => {
      const method = request.method ?? (body === '' ? 'GET' : 'POST');
      this.#socket.write(`${method} ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
    });
    this.#socket.on('data', (bytes: Buffer) => this.#take(bytes));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => (this.isEnded = true));
  }

  get frames(): Frame[] {
    return this.read.map(({ frame }) => frame);
  }

  get lastId(): number {
    return this.read.at(-1)?.id ?? 0;
  }

  of<Type extends Frame['type']>(type: Type): Extract<Frame, { type: Type }>[] {
    return this.frames.filter((frame): frame is Extract<Frame, { type: Type }> => frame.type === type);
  }

  /** Sealed text by message. */
  get sealed(): string[] {
    return this.frames.flatMap((frame) =>
      frame.type === 'done' || frame.type === 'flush' ? [`${frame.type}: ${frame.text}`] : [],
    );
  }

  until(what: string, isTrue: (reader: this) => boolean): Promise<void> {
    return waitUntil(what, () => isTrue(this));
  }

  ended(): Promise<void> {
    return this.until('the end of the stream', () => this.isEnded);
  }

  /** Reads nothing more, as a client that hangs. */
  stall(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  cut(): void {
    this.#socket.destroy();
    this.isEnded = true;
  }

  #take(bytes: Buffer): void {
    let body = bytes;
    if (this.status === undefined) {
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.headers = this.#head.slice(0, end);
      this.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(this.headers)?.[1]);
      body = Buffer.from(this.#head.slice(end + 4), 'latin1');
      this.#head = '';
    }
    this.#chunked = Buffer.concat([this.#chunked, body]);
    this.#unchunk();
    this.#split();
  }

  #unchunk(): void {
    const parts: Buffer[] = [];
    let at = 0;
    for (;;) {
      const lineEnd = this.#chunked.indexOf('\r\n', at);
      if (lineEnd < 0) break;
      const size = Number.parseInt(this.#chunked.toString('latin1', at, lineEnd), 16);
      const end = lineEnd + 2 + size;
      if (Number.isNaN(size) || this.#chunked.length < end + 2) break;
      parts.push(this.#chunked.subarray(lineEnd + 2, end));
      at = end + 2;
      if (size === 0) {
        this.isEnded = true;
        this.#socket.end();
      }
    }
    this.#chunked = this.#chunked.subarray(at);
    this.#text += Buffer.concat(parts).toString('utf8');
  }

  #split(): void {
    const events = this.#text.split('\n\n');
    this.#text = events.pop() ?? '';
    for (const event of events) {
      const json = /^data: (.*)$/m.exec(event)?.[1];
      if (json === undefined) continue;
      const frame = JSON.parse(json) as Frame;
      this.read.push({ id: Number(/^id: (\d+)$/m.exec(event)?.[1]), json, frame });
      this.page = reduce(this.page, frame);
    }
  }
}
