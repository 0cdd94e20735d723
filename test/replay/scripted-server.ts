/** A server that answers with what a test wrote: webhooks over HTTP, media sockets over ws, on real loopback sockets. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly params: Record<string, string>;
}

export interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly body?: string | Uint8Array;
}

export type CarrierMessage = Record<string, unknown> & { event: string };

/** One media socket as the server sees it. */
export class SeenStream {
  readonly messages: CarrierMessage[] = [];
  closed: { code: number } | undefined;

  constructor(
    readonly socket: WebSocket,
    readonly request: IncomingMessage,
  ) {
    socket.on('message', (data: Buffer) =>
      this.messages.push(JSON.parse(data.toString('utf8')) as CarrierMessage),
    );
    socket.on('close', (code) => (this.closed = { code }));
  }

  of(event: string): CarrierMessage[] {
    return this.messages.filter((message) => message.event === event);
  }

  get streamSid(): string {
    return String(this.of('start')[0]?.['streamSid']);
  }

  media(mulaw: Uint8Array): void {
    const payload = Buffer.from(mulaw).toString('base64');
    this.socket.send(JSON.stringify({ event: 'media', streamSid: this.streamSid, media: { payload } }));
  }

  mark(name: string): void {
    this.socket.send(JSON.stringify({ event: 'mark', streamSid: this.streamSid, mark: { name } }));
  }

  clear(): void {
    this.socket.send(JSON.stringify({ event: 'clear', streamSid: this.streamSid }));
  }
}

export class ScriptedServer {
  readonly requests: SeenRequest[] = [];
  readonly streams: SeenStream[] = [];
  readonly #http: Server;
  readonly #ws = new WebSocketServer({ noServer: true });
  /** Answers by path; a function sees the request. Unknown paths are 404. */
  readonly answers = new Map<string, Answer | ((request: SeenRequest) => Answer)>();
  /** When set, upgrades are refused with this status; 0 cuts the connection. */
  refuseUpgrade: number | undefined;

  constructor() {
    this.answers.set('/twilio/status', { status: 204 });
    this.answers.set('/readyz', {});
    this.#http = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const url = new URL(request.url ?? '/', 'http://host');
        const params = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString('utf8')));
        const seen = {
          method: request.method ?? '',
          path: url.pathname + url.search,
          headers: request.headers,
          params,
        };
        this.requests.push(seen);
        const found = this.answers.get(url.pathname) ?? { status: 404 };
        const {
          status = 200,
          type = 'text/xml',
          body = '',
        } = typeof found === 'function' ? found(seen) : found;
        response.writeHead(status, { 'content-type': type, connection: 'close' }).end(body);
      });
    });
    this.#http.on('upgrade', (request, socket, head) => {
      if (this.refuseUpgrade !== undefined) {
        const line = `HTTP/1.1 ${this.refuseUpgrade} No\r\nConnection: close\r\n\r\n`;
        socket.end(this.refuseUpgrade === 0 ? '' : line);
        return;
      }
      this.#ws.handleUpgrade(request, socket, head, (opened) =>
        this.streams.push(new SeenStream(opened, request)),
      );
    });
  }

  async start(): Promise<this> {
    this.#http.listen(0, '127.0.0.1');
    await once(this.#http, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** `<Connect><Stream>` to this server and what follows it. */
  connectTwiml(
    after = '',
    { parameters = '', streamUrl = `${this.url.replace('http', 'ws')}/twilio/media`, extra = '' } = {},
  ): string {
    return `<Response><Connect><Stream url="${streamUrl}"${extra}>${parameters}</Stream></Connect>${after}</Response>`;
  }

  asked(path: string): SeenRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  async stop(): Promise<void> {
    for (const stream of this.streams) stream.socket.terminate();
    this.#ws.close();
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, 'close');
  }
}

/** Waits until `condition` holds, while sockets work; the test's own timeout is the bound. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}
