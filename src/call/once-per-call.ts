/**
 * What is to be counted once for a call, though Twilio may send the webhook that tells it again
 * (https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides: one retry by default). Remembers so many calls, the
 * latest ones.
 */
import type { CallSid } from '../ids.js';
import { ENDED_CALLS_MAX } from '../limits.js';

export class OncePerCall {
  readonly #seen = new Set<CallSid>();

  /** True the first time. */
  first(callSid: CallSid): boolean {
    if (this.#seen.has(callSid)) return false;
    this.#seen.add(callSid);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= ENDED_CALLS_MAX) break;
      this.#seen.delete(oldest);
    }
    return true;
  }
}
