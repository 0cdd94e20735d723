/**
 * Control of the line itself, outside the media socket: Twilio's REST API.
 */
import type { RestScope } from '../call-tap.js';
import type { CallSid } from '../ids.js';

export type HangUpOutcome =
  | { readonly kind: 'done' }
  /** Twilio says the call has already ended (404, code 20404). */
  | { readonly kind: 'alreadyEnded' }
  /** No REST credentials: closing the media socket ends the line through `/twilio/after`. */
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'failed'; readonly cause: string };

export interface CallControl {
  /** Ends the call at the carrier. Never throws; bounded by HANG_UP_MAX_MS, retries included. */
  hangUp(callSid: CallSid, scope: RestScope): Promise<HangUpOutcome>;
  /** Why no call can be connected with a human, for the model; undefined where one can. */
  readonly whyNoTransfer: string | undefined;
  /** Has the carrier dial a human in the stream's place. Never throws; bounded by HANG_UP_MAX_MS, retries included. */
  transfer(callSid: CallSid, scope: RestScope): Promise<HangUpOutcome>;
}
