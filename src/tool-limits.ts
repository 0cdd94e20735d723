/**
 * The bounds of tools, guards and what they tell the model. As in `limits.ts`: each with its unit and its reason.
 */
import assert from 'node:assert/strict';
import { EVENT_MAX_BYTES, LAG_FULL_MS } from './limits.js';

/** Of one agent. A model that is offered more chooses badly. */
export const TOOLS_MAX = 128;
export const PLUGINS_MAX = 32;

/** Handlers of one run at once: given by the specification. */
export const TOOLS_CONCURRENT = 4;
export const TOOLS_CONCURRENT_MAX = 64;

/** Of one run of a handler, where its author says nothing. A caller who hears nothing for longer has hung up. */
export const TOOL_TIMEOUT_MS = 20_000;
export const TOOL_TIMEOUT_MAX_MS = 600_000;

/** A handler that was given up and goes on all the same keeps others waiting for so long at most: it may be about to end. Beyond,
 * a call would be without tools for the rest of it. Shorter than any patience of those that wait. */
export const PERMIT_KEPT_MAX_MS = 3_000;

/** Of a tool, a guard or a rule, until it first waits for something: the sound of every call waits meanwhile. As long as the
 * lag that makes a server full, and nearly as long as the lead of what is played. */
export const BLOCKING_TOLD_MS = LAG_FULL_MS;

/** For each plugin and callback: longer than a look into a database, shorter than a caller's patience. */
export const GUARD_TIMEOUT_MS = 3_000;
export const GUARD_TIMEOUT_MAX_MS = 60_000;

/** Calls of one run that are not answered yet; a model that asks for more is answered with an error. */
export const TOOL_CALLS_OPEN_MAX = 64;

/** Calls that one message of the model may bring: as many as an agent has tools. What it asks for beyond them is no event and
 * is not run; all of it is answered with an error, in one frame. */
export const TOOL_CALLS_PER_MESSAGE_MAX = TOOLS_MAX;

/** Ids of one run's calls that are remembered, so that none is answered twice. */
export const TOOL_CALL_IDS_MAX = 4_096;

/** Calls of one turn without a result that are remembered, so that a model that asks again and again is told off. */
export const TOOL_CALLS_EMPTY_MAX = 64;

/** Of a result, as JSON: the model reads all of it before it says a word. */
export const TOOL_RESULT_MAX_CHARS = 64_000;

/** Of what is wrong with a call's arguments. */
export const TOOL_ARGUMENT_ERROR_MAX_CHARS = 1_000;

/** What a thrown error tells the model. */
export const TOOL_ERROR_MAX_CHARS = 500;

/** A shorter secret is not looked for in what a run tells: it would be found in words and numbers that are none. */
export const SECRET_MASKED_MIN_CHARS = 4;
/** Secrets of one run that are looked for, each a few times in each text. More than an agent has; of one that gets a new token
 * each minute, those of the last hour. The one that was handed out longest ago goes. */
export const SECRETS_KEPT_MAX = 64;
/** Of a secret's name, where it stands in the secret's place. */
export const SECRET_NAME_TOLD_MAX_CHARS = 64;

/** How long a streaming tool may take to end once it was stopped; ADK gives it the same second. */
export const STREAMING_STOP_MAX_MS = 1_000;

/** Of one value of a streaming tool, or of a follow-up, as text. */
export const UPDATE_MAX_CHARS = 4_000;

/** Values that are asked of a streaming tool in one second; it goes on in the next. Each may be an event, and a line of a recording. */
export const STREAMING_VALUES_PER_S_MAX = 20;

/** Of the caller's sound that a model could not take during a call: what it gets afterwards. */
export const HELD_SOUND_MAX_MS = 1_000;

/** Texts that wait while a model must get nothing. */
export const HELD_TEXTS_MAX = 64;

/** A farewell before a transfer begins within this, or none is waited for. */
export const TRANSFER_START_MAX_MS = 3_000;

/** How long the human's telephone rings. Twilio's own default is 30 s; a voicemail usually answers after 25. */
export const HANDOFF_RING_SECONDS = 20;

/** When a tool ends the conversation, what is being said is heard for this long at most. */
export const FAREWELL_CAP_MS = 3_000;

/** What waits for a pause: one of each streaming tool, and follow-ups of others. The oldest value of a streaming tool goes
 * first, since a newer one follows; then the oldest. */
export const UPDATES_WAITING_MAX = 32;

/** After the model was given results it speaks to them: for so long its message stays open, so that the words on both sides of
 * a function are one. */
export const TOOL_FOLLOW_UP_MAX_MS = 4_000;

/** Silence of both sides before the model is told something nobody asked for. */
export const UPDATE_PAUSE_MS = 400;

/** Between two updates that interrupt: the caller has to hear something of the first. */
export const UPDATE_INTERRUPTS_MIN_MS = 1_000;

/** After an update was told the next one waits for its answer, and this long at most. */
export const UPDATE_ANSWER_MAX_MS = 8_000;

/** Frames of 20 ms of a tool's private copy of the caller's sound: five seconds. */
export const INPUT_STREAM_MAX_FRAMES = 250;

/** Pictures of such a copy, of up to 512 KiB each: a tool that looks at them wants the newest. */
export const INPUT_STREAM_MAX_IMAGES = 8;

/** What names a side effect. */
export const SIDE_EFFECT_KEY_MAX_CHARS = 500;

/** The result of a side effect is written until it is kept: five tries within about seven seconds. */
export const LEDGER_SETTLE_TRIES = 5;
export const LEDGER_SETTLE_PAUSE_MS = 500;

/** Why a person closed an open entry: a sentence and a reference of the provider's. */
export const LEDGER_REASON_MAX_CHARS = 1_000;

/** A server says so often which handlers of slow work are at work on it; one that has not for the longer time is gone, and its work
 * told as lost. Above any stop of a process that lives, and what the clocks of two servers may differ by. */
export const WORK_KEPT_EVERY_MS = 10_000;
export const WORK_LOST_MS = 45_000;
/** Told to the store at once, which takes a bounded number of values in a statement. */
export const WORK_KEPT_AT_ONCE = 500;

/** Keys of what all tools of a run share. */
export const SHARED_KEY_MAX_BYTES = 256;
export const SHARED_KEYS_MAX = 1_024;
export const SHARED_WAIT_MS = 30_000;
export const SHARED_WAIT_MAX_MS = 300_000;

/** What one call changes of state, keys and values as JSON, and names of artifacts: it stands in the event of the call's
 * result, which must fit into the store. A document is an artifact. */
export const CHANGES_MAX_BYTES = 512 * 1024;

/** So long behind the end of its run a handler that is not told to stop in another way may still change state. A minute
 * later nobody expects it, and the user's next call may have begun. */
export const LATE_CHANGES_MAX_MS = 20_000;

/** A server that stops waits so long for generators that are being stopped, and for what they changed to be handed to the store. */
export const TOOLS_LEAVE_MAX_MS = 2_000;

/** Pending calls on which nobody may decide in this process any more, although the store could not be told. */
export const SHUT_CALLS_MAX = 4_096;

/** Events that a tool sees: those of the run and the newest before it. */
export const CONTEXT_EVENTS_MAX = 1_000;

/** Worker threads of one server for tools that ask for one; calls beyond it wait. */
export const TOOL_WORKERS_MAX = 4;
/** Calls that wait for one of them, of all runs; the next one is refused. A call that waits longer than its tool's
 * `timeoutMs` is over before it began, and a longer queue would only hold more of those. */
export const TOOL_WORKER_CALLS_WAITING_MAX = 64;
/** JavaScript heap of each: a report over some hundred thousand rows, and four of them beside a server of 200 MB. Buffers
 * are outside of it. */
export const TOOL_WORKER_HEAP_MAX_MB = 256;
/** On Linux, where it is a thread's own. With four of them busy on two cores, the loop that sends sound then waits a fifth as
 * long for a core: `docs/performance.md`. */
export const TOOL_WORKER_NICENESS = 10;
/** The newest events that go with a call, as JSON. More would cost the loop that sends sound milliseconds a call. */
export const TOOL_WORKER_EVENTS_MAX_CHARS = 256_000;
/** What a call changed of the state, as JSON; read by the loop that sends sound. */
export const TOOL_WORKER_STATE_MAX_CHARS = 256_000;
/** What a thrown error tells the server, which takes secrets out of it before it cuts it to TOOL_ERROR_MAX_CHARS. */
export const TOOL_WORKER_ERROR_MAX_CHARS = 16_000;
/** Secrets that one call waits for at once. */
export const TOOL_WORKER_SECRETS_WAITING_MAX = 64;
/** What a call prints, as far as it goes to the log; the rest is read and dropped. */
export const TOOL_WORKER_PRINTED_MAX_CHARS = 4_000;
/** A worker that has carried out calls takes the next one within milliseconds. One that does not is held by what an earlier
 * call has left behind, and is replaced; long beside the waits of a busy machine. */
export const TOOL_WORKER_TAKE_MAX_MS = 5_000;
/** How long closing waits for threads to end: JavaScript ends at once, a system call when it returns. */
export const TOOL_WORKERS_CLOSE_MAX_MS = 1_000;

/** The model is asked for without memory when it takes longer: a caller waits. */
export const RECALL_MAX_MS = 500;

/** A run's tools wait for what its session holds no longer than this; what cannot be read is no empty state. */
export const SESSION_READ_MAX_MS = 5_000;

/** What an agent remembers of one caller, and what of it the next call begins with. */
export const MEMORY_FACTS_MAX = 200;
export const MEMORY_FACT_MAX_CHARS = 400;
export const MEMORY_RECALLED_MAX = 20;

/** One sentence of the probe to its answer, a real model's tools and speech among it. */
export const PROBE_TURN_MAX_MS = 60_000;
/** What a web client of the probe shows to a monitor: sound in pieces of so long, and a picture so often, below what is taken. */
export const PROBE_SOUND_EVERY_MS = 100;
export const PROBE_PICTURE_EVERY_MS = 2_000;

/** Calls of one session that wait for a person or a slow job. */
export const PENDING_CALLS_MAX = 100;

/** Rows of one page of what waits, and of the ledger; bounded in bytes as a page of events is. */
export const PENDING_PAGE_MAX = 100;
export const LEDGER_PAGE_MAX = 200;

assert(TOOL_CALLS_OPEN_MAX < TOOL_CALLS_PER_MESSAGE_MAX, 'a message may bring all calls that may be open');
assert(TOOL_CALLS_PER_MESSAGE_MAX < TOOL_CALL_IDS_MAX, 'a message does not make the ids before it forgotten');
assert(3 * WORK_KEPT_EVERY_MS < WORK_LOST_MS, 'work is not lost because its server missed a beat');
assert(GUARD_TIMEOUT_MS < TOOL_TIMEOUT_MS, 'a guard decides before a handler gives up');
assert(PERMIT_KEPT_MAX_MS < TOOL_TIMEOUT_MS, 'a permit is free again before who waits for it gives up');
assert(TOOL_WORKER_TAKE_MAX_MS < TOOL_TIMEOUT_MS, 'a held worker is replaced before its next call gives up');
assert(TOOL_FOLLOW_UP_MAX_MS < UPDATE_ANSWER_MAX_MS, 'an update never waits for a message that is over');
assert(
  CHANGES_MAX_BYTES + 4 * TOOL_RESULT_MAX_CHARS < EVENT_MAX_BYTES,
  'a result and its changes are one event',
);
assert(STREAMING_STOP_MAX_MS < TOOLS_LEAVE_MAX_MS, 'what a generator does when it is stopped is waited for');
assert(TOOL_ERROR_MAX_CHARS < TOOL_WORKER_ERROR_MAX_CHARS, 'an error is cut once its secrets are out of it');
assert(MEMORY_RECALLED_MAX <= MEMORY_FACTS_MAX, 'what is recalled was kept');
