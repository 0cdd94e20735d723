/**
 * Every bound on a queue, wait, retry and payload, in one place: the unit is in the name, the reason beside it,
 * and how it relates to its neighbours is asserted when the module loads.
 */
import assert from 'node:assert/strict';

// --- The shape of sound -------------------------------------------------------------------------------------

/** One frame of telephone sound. Twilio sends 20 ms frames in practice; sizes are taken from decoded length. */
export const FRAME_MS = 20;
/** 8 kHz mu-law: 8 bytes a millisecond. */
export const MULAW_BYTES_PER_MS = 8;
export const MULAW_FRAME_BYTES = FRAME_MS * MULAW_BYTES_PER_MS;
/** mu-law code of digital silence (positive zero). */
export const MULAW_SILENCE = 0xff;

// --- Model to caller ----------------------------------------------------------------------------------------

/** How far ahead of the caller's ear we send. Enough to ride out a late timer, little enough to clear at once. */
export const PLAYOUT_LEAD_MS = 160;
/** Sound in one carrier message: fewer messages cost less CPU, longer ones make `heard` coarser. */
export const PLAYOUT_MESSAGE_MS = 40;
/** A mark at least this often tells what the caller has heard. */
export const MARK_INTERVAL_MS = 160;
/** Speech waiting to be played, as mu-law (8 kB a second). Twilio itself drops beyond 10 minutes (31931). */
export const PLAYOUT_QUEUE_MAX_MS = 5 * 60_000;
/** The adaptive start buffer grows by this much after an underrun, up to the maximum, and decays by turns. */
export const START_BUFFER_STEP_MS = 60;
export const START_BUFFER_MAX_MS = 300;
/** Bytes unsent on the carrier's socket above which pacing pauses: about four seconds of base64 mu-law. */
export const CARRIER_BUFFERED_MAX_BYTES = 64 * 1024;

// --- Caller to model ----------------------------------------------------------------------------------------

/** Longest jump in Twilio's timestamps that is filled with silence; a longer one is filled to this bound. */
export const CALLER_GAP_FILL_MAX_MS = 3_000;
/** Caller audio kept while the model is not ready, newest wins. */
export const CALLER_BACKLOG_MAX_MS = 5_000;
/** Caller audio older than this is dropped rather than sent late to a model that reads slowly. */
export const CALLER_BACKLOG_AGE_MAX_MS = 5_000;
/** Bytes unsent on the model's socket above which caller audio is held back (about 1.4 s of realtimeInput). */
export const MODEL_BUFFERED_MAX_BYTES = 64 * 1024;
/** When nothing has come from the carrier for this long, silence is fed, so that the model notices a pause. */
export const CALLER_IDLE_FILL_AFTER_MS = 750;

// --- The carrier's doors ------------------------------------------------------------------------------------

/** A media socket must send a valid `start` within this time. */
export const STREAM_START_TIMEOUT_MS = 5_000;
/** Largest WebSocket message accepted from the carrier; a 20 ms frame is about 400 bytes. */
export const CARRIER_PAYLOAD_MAX_BYTES = 64 * 1024;
/** Bytes accepted before `start`. */
export const PRE_START_MAX_BYTES = 64 * 1024;
/** Messages a second from one media socket; Twilio sends 50 and catches up in bursts after a gap. */
export const CARRIER_MESSAGES_PER_SECOND_MAX = 500;
/** Media sockets that have not yet shown a valid `start`. */
export const UNSTARTED_SOCKETS_MAX = 200;
/** Body of a webhook. Twilio's are about 1 kB. */
export const WEBHOOK_BODY_MAX_BYTES = 64 * 1024;
/** A carrier socket on which nothing arrived for this long, not even a pong, is dead. */
export const CARRIER_SILENCE_MAX_MS = 15_000;
/** How often the carrier's socket is pinged; three pings fit into the watchdog's patience. */
export const CARRIER_PING_INTERVAL_MS = 5_000;

// --- The call -----------------------------------------------------------------------------------------------

/** An announced call whose stream does not open within this time is over. */
export const NO_STREAM_TIMEOUT_MS = 10_000;
/** A carrier socket lost without `stop` may come back for the same CallSid within this time. */
export const STREAM_RETURN_TIMEOUT_MS = 10_000;
/** Models connected for calls whose stream has not opened yet. */
export const PREWARMS_MAX = 32;
/** From `live.connect` to `setupComplete`. */
export const MODEL_CONNECT_TIMEOUT_MS = 5_000;
/** A goodbye may take this long from the decision to its last mark. */
export const FAREWELL_MAX_MS = 15_000;
/** A farewell that was asked of the model must begin within this time, else a recorded one is played. */
export const FAREWELL_START_MAX_MS = 4_000;
/** After the last sound was sent, its mark is waited for this long beyond its play time. */
export const LAST_MARK_GRACE_MS = 1_500;
/** The whole REST attempt to cut the line, retries included. */
export const HANG_UP_MAX_MS = 8_000;
/** Control events waiting in a call's mailbox. */
export const MAILBOX_MAX = 1_000;
/** Ended calls kept in memory for `GET /calls/:callSid` and `/twilio/after`. */
export const ENDED_CALLS_MAX = 500;
/** Text kept of one call's transcript. */
export const TRANSCRIPT_MAX_CHARS = 200_000;
/** A draining server lets running calls go on for this long. */
export const DRAIN_MAX_MS = 5 * 60_000;

assert(PLAYOUT_LEAD_MS % PLAYOUT_MESSAGE_MS === 0, 'the lead is a whole number of messages');
assert(MARK_INTERVAL_MS % PLAYOUT_MESSAGE_MS === 0, 'a mark follows a whole number of messages');
assert(PLAYOUT_MESSAGE_MS % FRAME_MS === 0, 'a message is a whole number of frames');
assert(PLAYOUT_LEAD_MS >= 100 && PLAYOUT_LEAD_MS <= 200, 'the lead rides out timers and clears at once');
assert(3 * CARRIER_PING_INTERVAL_MS <= CARRIER_SILENCE_MAX_MS, 'three pings before the watchdog bites');
assert(FAREWELL_START_MAX_MS < FAREWELL_MAX_MS, 'a farewell begins before it must end');
