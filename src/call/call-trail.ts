/**
 * The webhooks about a call, for its recorder: they come while it lives and a little after its end, when nothing else of
 * the call is left.
 */
import type { CallTap, WebhookRequest } from '../call-tap.js';
import type { CallTime } from '../clock.js';

export class CallTrail {
  readonly #clock: CallTime;
  readonly #tap: CallTap;

  constructor(clock: CallTime, tap: CallTap) {
    this.#clock = clock;
    this.#tap = tap;
  }

  /** A webhook has come in: what it leads to happens now. */
  enter(request: WebhookRequest): void {
    this.#clock.enter();
    this.#tap.webhook(request);
  }

  /** The answer to the last one. */
  answered(status: number, xml: string): void {
    this.#tap.webhookAnswered(status, xml);
  }
}
