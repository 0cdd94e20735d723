/**
 * Watches a stream of frames over server-sent events, by `fetch`, so that a request can carry a token in a header. A lost
 * connection is taken up again with `Last-Event-ID`. A request with a body runs something on the server, and is
 * therefore sent once and never again.
 */
import {
  FrameIntake,
  SilenceWatch,
  linkedAbort,
  type Connection,
  type ConnectionEnd,
  type ConnectionOptions,
} from './connection.js';
import { EventStreamParser } from './event-stream-parser.js';
import { Retry } from './retry.js';

export interface EventsOptions extends ConnectionOptions {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON with POST, once: a lost connection then ends everything. */
  readonly body?: unknown;
  /** Another `fetch`, of the same kind. */
  readonly fetch?: typeof fetch;
}

type Outcome = 'lost' | ConnectionEnd;

function refusal(response: Response): Outcome | undefined {
  const { status } = response;
  if (status === 204) return { reason: 'finished', detail: 'the server has nothing more' };
  const type = response.headers.get('content-type') ?? '';
  if (status === 200 && /^text\/event-stream\b/i.test(type)) return undefined;
  if (status >= 500 || status === 408 || status === 429) return 'lost';
  return { reason: 'refused', detail: status === 200 ? `the server sent ${type}` : `status ${status}` };
}

class EventsConnection implements Connection {
  readonly ended: Promise<ConnectionEnd>;
  readonly #options: EventsOptions;
  readonly #intake: FrameIntake;
  readonly #retry: Retry;
  readonly #closing: { controller: AbortController; release: () => void };
  #lastEventId = '';

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#intake = new FrameIntake(options.onChange);
    this.#retry = new Retry(options);
    this.#closing = linkedAbort(options.signal ?? new AbortController().signal);
    this.ended = this.#run();
  }

  get state() {
    return this.#intake.state;
  }

  close(): void {
    this.#closing.controller.abort();
  }

  async #run(): Promise<ConnectionEnd> {
    const { signal } = this.#closing.controller;
    try {
      for (;;) {
        this.#options.onStatus?.('connecting');
        const outcome = await this.#attempt();
        if (signal.aborted) return { reason: 'closed', detail: 'closed by the application' };
        if (outcome !== 'lost') return outcome;
        if (this.state.isOver) return { reason: 'finished', detail: 'a fatal error ended the run' };
        if (this.#options.body !== undefined) return { reason: 'lost', detail: 'a run is not sent twice' };
        this.#options.onStatus?.('waiting');
        if (!(await this.#retry.wait(signal))) {
          if (signal.aborted) return { reason: 'closed', detail: 'closed by the application' };
          return { reason: 'lost', detail: 'too many attempts in vain' };
        }
      }
    } finally {
      this.#closing.release();
      this.#closing.controller.abort();
      this.#options.onStatus?.('ended');
    }
  }

  #request(signal: AbortSignal): Promise<Response> {
    const { body, headers, url } = this.#options;
    const send = this.#options.fetch ?? fetch;
    return send(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        Accept: 'text/event-stream',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(this.#lastEventId === '' ? {} : { 'Last-Event-ID': this.#lastEventId }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
  }

  /** One request to its end. Throws only what a callback of the application threw. */
  async #attempt(): Promise<Outcome> {
    const { controller, release } = linkedAbort(this.#closing.controller.signal);
    const silence = new SilenceWatch(this.#options, () => controller.abort());
    try {
      const response = await this.#request(controller.signal).catch(() => undefined);
      if (response === undefined) return 'lost';
      const refused = refusal(response);
      if (refused !== undefined) return refused;
      this.#intake.begin(false);
      this.#options.onStatus?.('open');
      return await this.#readAll(response, silence);
    } finally {
      silence.stop();
      release();
      controller.abort();
    }
  }

  async #readAll(response: Response, silence: SilenceWatch): Promise<Outcome> {
    const reader = response.body?.getReader();
    if (reader === undefined) return 'lost';
    const parser = new EventStreamParser({
      event: ({ data, id }) => {
        this.#lastEventId = id;
        if (this.#intake.take(data)) this.#retry.succeeded();
      },
      retry: (delayMs) => (this.#retry.firstMs = delayMs),
    });
    for (;;) {
      const chunk = await reader.read().catch(() => undefined);
      if (chunk === undefined) return 'lost';
      silence.heard();
      if (chunk.done) return this.#atEnd();
      if (!parser.push(chunk.value)) return 'lost';
    }
  }

  /** A stream that was ended in order: a run is complete then; a call that is watched may go on behind another server. */
  #atEnd(): Outcome {
    const isComplete = this.state.isOver || this.#options.body !== undefined;
    return isComplete ? { reason: 'finished', detail: 'the stream ended' } : 'lost';
  }
}

/** Connects to `GET /calls/:callSid/stream`, or with a `body` to `POST /run_sse`, and keeps `state` up to date. */
export function connectEvents(options: EventsOptions): Connection {
  return new EventsConnection(options);
}
