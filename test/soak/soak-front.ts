/**
 * What the soak's carrier knows as its server: one address in front of several servers. Webhooks go to the server that takes calls at the
 * moment, whoever had the call before; a media socket goes straight to the server that asked for it, so that no sound passes through here.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export class SoakFront {
  /** The server that takes webhooks now, as `http://host:port`. */
  target = '';
  readonly #http: Server;

  private constructor() {
    this.#http = createServer((request, response) => {
      this.#pass(request, response).catch(() => {
        if (!response.headersSent) response.writeHead(502);
        response.end();
      });
    });
  }

  static async start(): Promise<SoakFront> {
    const front = new SoakFront();
    await new Promise<void>((resolve) => {
      front.#http.listen(0, '127.0.0.1', resolve);
    });
    return front;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = 'GET', headers, url = '/' } = request;
    const type = headers['content-type'];
    const ask = async (target: string) => ({
      target,
      answer: await fetch(new URL(url, target), {
        method,
        redirect: 'manual',
        ...(type !== undefined && { headers: { 'content-type': type } }),
        ...(method === 'POST' && { body: Buffer.concat(parts) }),
      }),
    });
    // A server that is gone before it has answered: the next one is asked, as a balancer does.
    const { target, answer } = await ask(this.target).catch(() => ask(this.target));
    // Addresses of further documents lead back here; `ws://` ones stay the server's own.
    const body = (await answer.text()).replaceAll(target, this.url);
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    response.end(body);
  }
}
