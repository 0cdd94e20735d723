/**
 * Twilio's REST for tests: a real HTTP server that knows one account, its credentials, its numbers and its calls, and answers
 * as the test sets them.
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
  /** What calls were told, in order: the CallSid and the form. */
  readonly updates: { readonly callSid: string; readonly form: Readonly<Record<string, string>> }[] = [];
  /** What an update of a call is answered. */
  updateStatus = 200;
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

  /** Takes an update of a call; the account's own credentials have been checked. */
  async #update(callSid: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = Object.fromEntries(new URLSearchParams(await textOf(request)));
    this.updates.push({ callSid, form });
    if (this.updateStatus === 200) return send(response, 200, { sid: callSid, status: 'in-progress' });
    return send(response, this.updateStatus, { code: 20001, message: 'refused', status: this.updateStatus });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    this.requests.push(`${request.method} ${url.pathname}`);
    const [user = '', password] = Buffer.from((request.headers.authorization ?? '').slice(6), 'base64')
      .toString()
      .split(':');
    const updated = /\/Calls\/(\w+)\.json$/.exec(url.pathname)?.[1];
    const isAccount = /^\/2010-04-01\/Accounts\/\w+\.json$/.test(url.pathname);
    if (this.credentials.get(user) !== password || (isAccount && this.restricted.has(user))) {
      send(response, 401, { code: 20003, message: 'Authenticate', status: 401 });
    } else if (isAccount) {
      send(response, 200, { sid: 'AC1', status: this.status, type: 'Full' });
    } else if (url.pathname.endsWith('/IncomingPhoneNumbers.json')) {
      const wanted = url.searchParams.get('PhoneNumber') ?? '';
      const found = this.numbers.filter((number) => number.phone_number.includes(wanted));
      send(response, 200, { incoming_phone_numbers: found, page: 0, page_size: 20, next_page_uri: null });
    } else if (updated !== undefined && request.method === 'POST') {
      void this.#update(updated, request, response);
    } else {
      send(response, 404, { code: 20404, message: 'Not found', status: 404 });
    }
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  request.setEncoding('utf8');
  for await (const piece of request) text += String(piece);
  return text;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(body));
}
