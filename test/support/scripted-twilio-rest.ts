/**
 * Twilio's REST for tests: a real HTTP server that knows one account, its credentials and its numbers, and answers as
 * the test sets them.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedNumber {
  phone_number: string;
  voice_url: string;
  voice_method: string;
  voice_fallback_url: string;
  status_callback: string;
  status_callback_method: string;
  voice_application_sid?: string;
  trunk_sid?: string;
}

export class ScriptedTwilioRest {
  status = 'active';
  numbers: ScriptedNumber[] = [];
  /** User and password that are let in. */
  readonly credentials = new Map<string, string>();
  /** Users (API keys) that may not read the account itself. */
  readonly restricted = new Set<string>();
  /** Method and path of every request. */
  readonly requests: string[] = [];
  readonly #http: Server;

  private constructor() {
    this.#http = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<ScriptedTwilioRest> {
    const rest = new ScriptedTwilioRest();
    await new Promise<void>((resolve) => {
      rest.#http.listen(0, '127.0.0.1', resolve);
    });
    return rest;
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

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    this.requests.push(`${request.method} ${url.pathname}`);
    const [user = '', password] = Buffer.from((request.headers.authorization ?? '').slice(6), 'base64')
      .toString()
      .split(':');
    const isAccount = /^\/2010-04-01\/Accounts\/\w+\.json$/.test(url.pathname);
    if (this.credentials.get(user) !== password || (isAccount && this.restricted.has(user))) {
      send(response, 401, { code: 20003, message: 'Authenticate', status: 401 });
    } else if (isAccount) {
      send(response, 200, { sid: 'AC1', status: this.status, type: 'Full' });
    } else if (url.pathname.endsWith('/IncomingPhoneNumbers.json')) {
      const wanted = url.searchParams.get('PhoneNumber') ?? '';
      const found = this.numbers.filter((number) => number.phone_number.includes(wanted));
      send(response, 200, { incoming_phone_numbers: found, page: 0, page_size: 20, next_page_uri: null });
    } else {
      send(response, 404, { code: 20404, message: 'Not found', status: 404 });
    }
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(body));
}
