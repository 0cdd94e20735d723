/**
 * Bounds of a call's link to its model: when another connection follows, how often one is tried, and how long a caller is
 * left with silence. Each is policy, with the reason beside it.
 */
import assert from 'node:assert/strict';
import { FAREWELL_START_MAX_MS, TICK_MS, UTTERANCES_MAX } from './limits.js';

/** Pauses in front of the tries of one outage: the first is at once, the last leaves the backend a while. A resumed session is
 * refused with 1011 while its former socket is open, so that the second is soon (github.com/aicc2025/sip-to-ai/pull/14). */
export const RECONNECT_DELAYS_MS: readonly number[] = [0, 500, 1_000, 2_000, 4_000];
/** Tries for a call's first connection, after the same pauses; a caller who has not been spoken to is not kept longer. */
export const FIRST_TRIES_MAX = 3;
/** An outage that lasts longer is given up: nobody holds the line for a machine much longer than this. */
export const RECONNECT_MAX_MS = 15_000;
/** A handle that was refused so often in one outage is given up for a fresh session. */
export const HANDLE_TRIES_MAX = 2;
/** A connection that lives no longer than this has died quickly. */
export const QUICK_DEATH_MS = 10_000;
/** So many quick deaths in a row, and what is resumed is taken to be what kills it (discuss.ai.google.dev/t/178035). */
export const QUICK_DEATHS_POISON = 2;
/** So many in a row, fresh ones among them, and the model is taken to be lost. */
export const QUICK_DEATHS_MAX = 4;
/** Messages and function calls that a handle may be behind; what is further back is better told to a fresh session whole. */
export const HANDLE_BEHIND_MAX = 6;
/** A handle is good for two hours after its session ended (ai.google.dev/gemini-api/docs/live-session); well inside that. */
export const HANDLE_AGE_MAX_MS = 110 * 60_000;
/** The former socket's close handshake is waited for so long before the next one is opened. */
export const FORMER_CLOSE_MAX_MS = 150;
/** A connection lives about ten minutes, and `goAway` comes a minute before its end; one whose model says nothing of it is
 * left by this age, at a pause. */
export const CONNECTION_AGE_MAX_MS = 9 * 60_000;
/** How long a pause is looked for then. */
export const CONNECTION_AGE_GRACE_MS = 45_000;
/** How long before the end that `goAway` announces the connection is left at the latest. */
export const GO_AWAY_MARGIN_MS = 2_000;
/** How long a pause is looked for where `goAway` does not say when: leaving in the middle of a sentence would be worse than being
 * dropped, which the call outlives as well. */
export const GO_AWAY_UNTOLD_MS = 10_000;

/** With no model, the caller hears the hold clip after so much silence. */
export const HOLD_AFTER_MS = 1_500;
/** And again after so much more. */
export const HOLD_AGAIN_MS = 4_000;

/** The model that is back is asked to go on once the caller has been silent so long: who is speaking will be answered anyway. */
export const RETURN_PAUSE_MS = 600;
/** The same where the caller has spoken since it was lost: what they said into the gap is carried over, so that the model may be
 * about to answer it by itself, and would be cut off by being asked. */
export const RETURN_ANSWER_MS = 2_000;

/** A caller who waits for an answer hears the hold clip after so much silence: later than nearly all answers come. */
export const ANSWER_HOLD_MS = 2_400;
export const ANSWER_HOLD_AGAIN_MS = 4_500;
/** How often is looked while somebody waits. */
export const WAIT_LOOK_MS = 100;
/** While a function is being carried out, which may take its time. */
export const TOOL_HOLD_AGAIN_MS = 8_000;
/** A model that has not answered by then is asked once more: slower than all but the slowest answers that were seen. */
export const ANSWER_NUDGE_MS = 5_000;
/** The same where it has ended its turn without a word: nothing more will come by itself. */
export const EMPTY_TURN_NUDGE_MS = 1_000;
/** A model that has not said its greeting is asked for it so often in all; what it is told then is that the caller waits. Another
 * connection is asked anew. */
export const GREETING_ASKS_MAX = 2;
/** One that does not answer that either is left for another connection. */
export const ANSWER_RECONNECT_MS = 5_000;
/** A caller who waits so long has been kept waiting, whatever was heard on the line meanwhile; what is done about it waits for a
 * pause of the other length. */
export const WAIT_MAX_MS = 15_000;
export const WAIT_BREATH_MS = 1_000;
/** So many connections left in a row without a word of the model's, and it is taken to be lost. */
export const MUTE_CONNECTIONS_MAX = 2;
/** Voiced sound that counts as the caller's having said something, with no longer pause in it than the other. */
export const VOICED_MIN_MS = 300;
export const VOICED_PAUSE_MAX_MS = 1_500;
/** The same where the caller is to hear the hold clip on the strength of the sound alone: a cough is no question. */
export const VOICED_HOLD_MIN_MS = 700;

/** Messages, function calls and results that are kept for another session; of them it is given what its instruction holds. */
export const HEARD_EVENTS_MAX = 200;

assert(
  HOLD_AFTER_MS < ANSWER_HOLD_MS && RETURN_ANSWER_MS < ANSWER_HOLD_MS && ANSWER_HOLD_MS + TICK_MS < 3_000,
  'nobody waits three seconds in silence',
);
assert(
  EMPTY_TURN_NUDGE_MS < ANSWER_HOLD_MS && ANSWER_HOLD_MS < ANSWER_NUDGE_MS,
  'the caller hears something before the model is asked again',
);
assert(FORMER_CLOSE_MAX_MS < 300, 'moving to another connection costs the caller less than 300 ms');
assert(QUICK_DEATHS_POISON < QUICK_DEATHS_MAX, 'a fresh session is tried before the model is given up');
assert(
  CONNECTION_AGE_MAX_MS + CONNECTION_AGE_GRACE_MS < 10 * 60_000,
  'a connection is left before it is dropped',
);
assert(
  RECONNECT_MAX_MS > FAREWELL_START_MAX_MS && UTTERANCES_MAX > 8,
  'hold clips of an outage fit into the playout',
);
