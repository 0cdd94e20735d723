/** Responses that are being given, so that a closing server does not cut an answer that is only a moment from being whole. */
import type { Server, ServerResponse } from 'node:http';

export class OpenResponses {
  readonly #open = new Set<ServerResponse>();
  #onNone: (() => void)[] = [];

  /** Counts every response of `http` from now on. */
  constructor(http: Server) {
    http.on('request', (_request, response) => {
      this.#open.add(response);
      response.on('close', () => {
        this.#open.delete(response);
        if (this.#open.size === 0) for (const resolve of this.#onNone.splice(0)) resolve();
      });
    });
  }

  /** Resolves when each has been handed to the network, or its client has gone. */
  sent(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onNone.push(resolve));
  }
}
