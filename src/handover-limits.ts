/**
 * The bounds of handing a call from one server to another, beside those of the call in `limits.ts`.
 */
import assert from 'node:assert/strict';
import { CARRIER_CLOSE_MAX_MS, DRAIN_LINGER_MS } from './limits.js';

/** A call that another server had is looked up and taken over within this time, or the caller hears an apology: the carrier waits 15 s for
 * an answer, and the caller hears nothing meanwhile. */
export const CALL_TAKE_UP_MAX_MS = 2_000;
/** Of it, so long at most for the other server to have stored what was said, and how often that is looked for. */
export const CALL_SETTLE_MAX_MS = 700;
export const CALL_SETTLE_LOOK_MS = 100;
/** How often a record of a call is tried to be written, and the pause between: a database that fails over is back by then. */
export const CALL_RECORD_TRIES_MAX = 5;
export const CALL_RECORD_RETRY_MS = 2_000;
/** How often a caller who is left on the line is asked for patience, with this pause of silence behind the words: some ten seconds in
 * all, in which a server that stops is replaced. */
export const HOLDS_MAX = 3;
export const HOLD_PAUSE_SECONDS = 2;

assert(
  CALL_SETTLE_LOOK_MS < CALL_SETTLE_MAX_MS && 2 * CALL_SETTLE_MAX_MS < CALL_TAKE_UP_MAX_MS,
  'a call is taken over in time, also when its server has died',
);
assert(
  CARRIER_CLOSE_MAX_MS < DRAIN_LINGER_MS,
  'a server that hands over still answers what follows the stream',
);
