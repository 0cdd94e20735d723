/**
 * What stands in front of a server in the public: a real reverse proxy on loopback, whose address can be known before
 * the server behind it has started, and which can be as wrong as proxies are.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export class PublicFront {
  /** Where requests go, as `http://host:port`; nobody is there until it is set. */
  target: string | undefined;
  /** Upgrades are passed on; else answered with 404, as by a plain HTTP proxy. */
  passesUpgrades = true;
  /** What becomes of the path. */
  rewrite: (path: string) => string = (path) => path;
  /** What becomes of the headers of requests and upgrades. */
  rewriteHeaders: (headers: IncomingHttpHeaders) => IncomingHttpHeaders = (headers) => headers;
  /** Answers instead of the server where it gives a status. */
  intercept: (request: IncomingMessage) => number | undefined = () => undefined;
  readonly #http: Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  private constructor() {
    this.#http = createServer((request, response) => this.#pass(request, response));
    this.#http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#http.on('upgrade', (request: IncomingMessage, socket: Duplex) => this.#upgrade(request, socket));
  }

  static async start(): Promise<PublicFront> {
    const front = new PublicFront();
    await new Promise<void>((resolve) => {
      front.#http.listen(0, '127.0.0.1', resolve);
    });
    front.#port = (front.#http.address() as AddressInfo).port;
    return front;
  }

  /** Its address, which stays the same when it is closed. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async close(): Promise<void> {
    // Upgraded ones are not among those that it closes itself, and it waits for them.
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const status = this.target === undefined ? 502 : this.intercept(request);
    if (status !== undefined) {
      request.resume();
      response.writeHead(status, { Location: '/elsewhere' }).end();
      return;
    }
    const { method, headers, url = '/' } = request;
    const onward = httpRequest(
      new URL(this.rewrite(url), this.target),
      { method, headers: { ...this.rewriteHeaders(headers), host: headers.host } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => socket.destroy());
    const status = this.passesUpgrades ? this.intercept(request) : 404;
    if (status !== undefined || this.target === undefined) {
      socket.end(`HTTP/1.1 ${status ?? 502} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(this.target);
    const onward = connect(Number(port), hostname, () => {
      const lines = Object.entries(this.rewriteHeaders(request.headers)).map(
        ([name, value]) => `${name}: ${String(value)}`,
      );
      onward.write(
        `${request.method} ${this.rewrite(request.url ?? '/')} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`,
      );
      onward.pipe(socket);
      socket.pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    onward.on('close', () => socket.end());
    socket.on('close', () => onward.destroy());
  }
}
