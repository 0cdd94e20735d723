/**
 * Every bound on a queue, wait, retry and payload, in one place: the unit is in the name, the reason beside it,
 * and how it relates to its neighbours is asserted when the module loads. Those of the stand-in model are beside it, in
 * `model/rehearsal/rehearsal-limits.ts`.
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

// --- Call fixtures ------------------------------------------------------------------------------------------

/** The largest fixture, written or read: 58 minutes of a call in which the agent speaks half of the time. */
export const FIXTURE_MAX_BYTES = 200 * 2 ** 20;
/** What the disk may be behind: 46 s of a call in which the agent speaks. */
export const FIXTURE_UNWRITTEN_MAX_BYTES = 4 * 2 ** 20;
/** A draining server keeps its doors open for this long after the last call: the carrier still asks what follows the stream,
 * and reports the call's end. */
export const DRAIN_LINGER_MS = 3_000;
/** After a call has ended its last webhooks are still recorded: the carrier sends them within a second or two. */
export const FIXTURE_LINGER_MS = 10_000;

/** Calls at once in a replay that does not say otherwise: enough, so that the load of the machine decides nothing. */
export const REPLAY_CALLS_MAX = 1_000;
/** A replayed call that was written by hand ends by itself within this, or is left as it is. */
export const REPLAY_TAIL_MAX_MS = 60_000;
/** Sound files that stay decoded between replays; those of the shipped calls are fewer. */
export const REPLAY_SOUNDS_MAX = 16;
/** Turns of the event loop in which what happened at one moment comes to rest: some twenty for a webhook. */
export const REPLAY_SETTLE_TURNS_MAX = 1_000;

// --- Text ------------------------------------------------------------------------------------------------

/** The wait for the next piece of a text model's answer: a model that thinks may take many seconds to its first. */
export const TEXT_PIECE_TIMEOUT_MS = 60_000;
/** One message of a user's. */
export const MESSAGE_MAX_CHARS = 20_000;
/** Runs of the text modes at once. */
export const TEXT_RUNS_MAX = 200;
/** One run in text, functions and all. */
export const TEXT_RUN_MAX_MS = 5 * 60_000;
/** After a call has ended it can still be watched for a while: a watcher may come late, or back. */
export const RUN_KEPT_AFTER_END_MS = 60_000;
/** Calls of functions in one answer, each behind the results of the ones before: a model that wants more goes round in circles. In
 * text the run fails; a call ends with a goodbye. */
export const FUNCTION_ROUNDS_MAX = 12;
/** Once an agent has used up its turns or tokens, the answer that it is giving is heard for so long at most: longer than anything that
 * is said well on a telephone. */
export const COST_ANSWER_MAX_MS = 30_000;
/** What of a session's history goes to the text model, as JSON: some 30,000 tokens. */
export const TEXT_HISTORY_MAX_CHARS = 120_000;

// --- Time ---------------------------------------------------------------------------------------------------

/** A call's timer that runs at most this late finds the time at which it was due; beyond it, the time that it is. Lag
 * of this size is Node's own rounding and other calls' work, and no listener can tell. */
export const CLOCK_LATE_MAX_MS = 5;

// --- Model to caller ----------------------------------------------------------------------------------------

/** How far ahead of the caller's ear we send at most. Enough to ride out a late timer, little enough to clear at once. */
export const PLAYOUT_LEAD_MS = 200;
/** Sound in one carrier message. At 60 ms the calls cost the same, because marks come oftener then (bench/calls.mjs). */
export const PLAYOUT_MESSAGE_MS = 40;
/** Sound written at once: two messages a system call, which is most of what a message costs. */
export const PLAYOUT_BATCH_MS = 2 * PLAYOUT_MESSAGE_MS;
/** A batch may go this much early, on the caller's own frame, so that pacing needs no wake-up of its own. */
export const PLAYOUT_EARLY_MS = 20;
/** A mark at least this often tells what the caller has heard. */
export const MARK_INTERVAL_MS = 160;
/** Speech waiting to be played, as mu-law (8 kB a second). Twilio itself drops beyond 10 minutes (31931). */
export const PLAYOUT_QUEUE_MAX_MS = 5 * 60_000;
/** Sound in hand when speech starts. A model's first chunk can be as short as 2 or 2 400 bytes (50 ms), and the second
 * as long in coming: it is waited for. The usual chunk, 160 ms and more, starts at once. */
export const START_BUFFER_MIN_MS = 60;
/** The adaptive start buffer grows by this much after an underrun, up to the maximum, and decays by turns. */
export const START_BUFFER_STEP_MS = 60;
export const START_BUFFER_MAX_MS = 300;
/** Bytes unsent on the carrier's socket above which pacing pauses: about four seconds of base64 mu-law. */
export const CARRIER_BUFFERED_MAX_BYTES = 64 * 1024;
/** A start buffer that does not fill is given up after this many times its length: a model at half of real time
 * fills it. */
export const START_BUFFER_WAIT_FACTOR = 2;
/** The longest such wait: a model at real time needs START_BUFFER_MAX_MS. */
export const START_BUFFER_WAIT_MAX_MS = 400;
/** Each clean utterance takes this much off the start buffer: three make up for one underrun. */
export const START_BUFFER_DECAY_MS = 20;
/** Messages of the agent that are queued or not yet heard; one more is refused whole. */
export const UTTERANCES_MAX = 64;
/** Unreturned marks whose place is remembered: 80 s of sound at a carrier that returns none. */
export const MARKS_UNRETURNED_MAX = 512;

/** After `interrupted`, sound is late until `turnComplete`, but no longer than this: a new answer takes longer. */
export const LATE_TURN_MAX_MS = 1_000;
/** A stray chunk may follow the cut turn's `turnComplete` by this much, unless the caller's next turn comes first. */
export const LATE_TURN_GRACE_MS = 250;
/** Words of a message may follow its `turnComplete` by this much. */
export const LATE_WORDS_MAX_MS = 500;
/** `turnComplete` may be missing: a turn whose sound ended and was heard this long ago is over when the next begins. */
export const TURN_OVERDUE_MS = 1_000;
/** The same, where nothing follows. */
export const TURN_STUCK_MS = 3_000;
/** A new turn of the model clears what is unplayed of the one before only above this: a last bit is played out. */
export const NEW_TURN_UNPLAYED_MIN_MS = 500;
/** Agent messages waiting to be heard; the oldest is closed beyond. */
export const AGENT_MESSAGES_MAX = 32;

// --- Caller to model ----------------------------------------------------------------------------------------

/** Longest jump in Twilio's timestamps that is filled with silence; a longer one is filled to this bound. */
export const CALLER_GAP_FILL_MAX_MS = 3_000;
/** Caller audio kept while the model is not ready, newest wins. */
export const CALLER_BACKLOG_MAX_MS = 5_000;
/** Caller audio older than this is dropped rather than sent late to a model that reads slowly. */
export const CALLER_BACKLOG_AGE_MAX_MS = 5_000;
/** Bytes unsent on the model's socket above which caller audio is held back (about 1.4 s of realtimeInput). */
export const MODEL_BUFFERED_MAX_BYTES = 64 * 1024;
/** Bytes unsent on the model's socket above which one that is to take text or a tool response is cut: the model reads nothing
 * any more, and what it asks for must not pile up. */
export const MODEL_UNSENT_MAX_BYTES = 1024 * 1024;
/** Largest message accepted from the model: a minute of its sound as base64, which it sends in chunks of 160 to 320 ms. */
export const MODEL_PAYLOAD_MAX_BYTES = 4 * 1024 * 1024;
/** A model's close handshake may take this long before the socket is cut; well under a second after the hang-up. */
export const MODEL_CLOSE_MAX_MS = 500;
/** Messages kept while the model is being connected; a server says next to nothing before `setupComplete`. */
export const MODEL_EARLY_MESSAGES_MAX = 2_000;
/** Characters of these messages; the largest message may be among them. */
export const MODEL_EARLY_MAX_CHARS = 2 * MODEL_PAYLOAD_MAX_BYTES;
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
/** Messages beyond the allowed rate, media dropped, after which a media socket is closed: ten seconds' worth. */
export const CARRIER_RATE_DEBT_MAX = 10 * CARRIER_MESSAGES_PER_SECOND_MAX;
/** Bytes unsent on the carrier's socket above which sound is dropped: the pacing pauses long before. */
export const CARRIER_UNSENT_MAX_BYTES = 4 * CARRIER_BUFFERED_MAX_BYTES;
/** The same for marks and clears, which sound leaves room for; the socket is cut then, for nobody reads it any more. */
export const CARRIER_CONTROL_UNSENT_MAX_BYTES = 2 * CARRIER_UNSENT_MAX_BYTES;
/** A WebSocket close handshake with the carrier; then the socket is cut. */
export const CARRIER_CLOSE_MAX_MS = 2_000;
/** Parameters of a webhook. Twilio's have about 30; each is hashed several times before it is trusted. */
export const WEBHOOK_PARAMETERS_MAX = 500;

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
/** A recorded clip waits this long for what is being said; more is cut short: an explanation does not wait. */
export const PROMPT_WAIT_MAX_MS = 10_000;
/** Words of the caller this long after an answer's first sound are new speech, not late words of the question. */
export const TRANSCRIBED_BARGE_IN_MIN_MS = 1_500;
/** After the line was to be cut, the carrier's socket may take this long to close. */
export const CUT_MAX_MS = 12_000;
/** Keys pressed before the model is ready that are kept for it; more are not. */
export const EARLY_KEYS_MAX = 32;
/** Typed texts that wait for the model; the client module keeps as many before its socket is open. One more is refused. */
export const EARLY_TEXTS_MAX = 32;
/** What the model is to learn with the next text: the newest of it, so long at most. */
export const NOTE_MAX_CHARS = 2_000;
/** How often a call looks whether the carrier went quiet. */
export const TICK_MS = 500;
/** Streams that one call may open: each lost one may come back, but not for ever. */
export const STREAMS_PER_CALL_MAX = 8;
/** The whole REST attempt to cut the line, retries included. */
export const HANG_UP_MAX_MS = 8_000;
/** Control events waiting in a call's mailbox. */
export const MAILBOX_MAX = 1_000;
/** Ended calls kept in memory for `GET /calls/:callSid` and `/twilio/after`, and of which it is known what was counted. */
export const ENDED_CALLS_MAX = 500;
/** What was said in them goes after a day, or when it is deleted: a deletion by another process is not told to this one. */
export const ENDED_WORDS_KEPT_MS = 24 * 60 * 60_000;
/** Text kept of one call's transcript: two hours of talk. Kept ended calls hold at most 60 MB. */
export const TRANSCRIPT_MAX_CHARS = 60_000;
/** A draining server lets running calls and text runs go on for this long. */
export const DRAIN_MAX_MS = 5 * 60_000;
/** One REST request to cut the line, and how often it is tried: a lost one leaves time for the next. */
export const HANG_UP_ATTEMPT_MAX_MS = 3_000;
export const HANG_UP_ATTEMPTS_MAX = 4;

// --- Frames for clients -------------------------------------------------------------------------------------

/** A stream of frames without anything to say sends a heartbeat this often: proxies cut idle connections after 60 s. */
export const WIRE_HEARTBEAT_MS = 15_000;
/** What `retry:` asks of a client that lost its connection. */
export const WIRE_RETRY_MS = 2_000;
/** Frames and characters that a stream keeps for watchers that are behind and for those that come back: minutes of
 * deltas, or hours of complete messages. Who is further behind is hung up, or told everything anew. */
export const WIRE_LOG_FRAMES_MAX = 2_048;
export const WIRE_LOG_MAX_CHARS = 2 * 1024 * 1024;
/** Text of complete messages that a stream can tell a new watcher; the oldest is forgotten first. */
export const WIRE_HISTORY_MAX_CHARS = 200_000;
/** Messages and tool calls of one stream that are remembered, so that what comes late for them is dropped. */
export const WIRE_MESSAGES_MAX = 10_000;
export const WIRE_TOOLS_MAX = 1_000;
/** Watchers of one stream. */
export const WIRE_WATCHERS_MAX = 256;
/** Watchers served in one turn of the event loop, some 20 µs each: sound goes before those that watch. */
export const WIRE_WATCHERS_PER_TURN = 16;
/** What one watcher is given in one write. */
export const WIRE_BATCH_FRAMES_MAX = 128;
export const WIRE_BATCH_MAX_CHARS = 64 * 1024;
/** A watcher that takes nothing for this long is cut. */
export const WIRE_UNREAD_MAX_MS = 60_000;
/** After the end of a stream, watchers that are behind have this long to take the rest. */
export const WIRE_FINISH_MAX_MS = 10_000;
/** Unsent bytes above which a live socket is behind. */
export const WIRE_SOCKET_UNSENT_MAX_BYTES = 64 * 1024;
/** What an error tells a client, and the length of names and ids. */
export const WIRE_NAME_MAX_CHARS = 500;

// --- Web clients of a live conversation -------------------------------------------------------------------

/** The largest message of a web client: a picture as base64, with room. A larger one closes the socket (1009). */
export const WEB_PAYLOAD_MAX_BYTES = 1024 * 1024;
/** A picture: a full-HD JPEG is about half of it. */
export const WEB_IMAGE_MAX_BYTES = 512 * 1024;
/** Live models look at one picture a second (ai.google.dev/gemini-api/docs/live-guide); one more may come early. */
export const WEB_IMAGES_PER_SECOND = 1;
export const WEB_IMAGES_BURST = 2;
/** Typed texts: what waited in a client comes at once, then no faster than anybody types. */
export const WEB_TEXTS_PER_SECOND = 2;
export const WEB_TEXTS_BURST = 32;
/** Messages: sound in pieces of 10 ms, twice over. Above it sound and pictures are dropped, and far above the client is hung up. */
export const WEB_MESSAGES_PER_SECOND = 200;
export const WEB_MESSAGES_BURST = 400;
export const WEB_MESSAGES_DEBT_MAX = 10 * WEB_MESSAGES_PER_SECOND;
/** How far a client's sound may be ahead of real time: what a network gives back after a stall. More is dropped. */
export const WEB_SOUND_AHEAD_MAX_MS = 5_000;
/** How often a client is told that its sound comes too fast. */
export const WEB_TOLD_AGAIN_MS = 5_000;
/** Messages that make no sense: each is answered with an error, so many at once and so many a second; then it is hung up. */
export const WEB_FAULTS_BURST = 20;
export const WEB_FAULTS_PER_SECOND = 1;
/** Unsent bytes above which no more sound is sent to a client: half a second of PCM16 at 24 kHz. Half of what frames may
 * come to, so that sound never keeps frames waiting. */
export const WEB_SOUND_UNSENT_MAX_BYTES = 32 * 1024;
/** Sockets that have not yet shown a valid `start`, or whose history is being read. */
export const WEB_UNSTARTED_MAX = 100;
/** What a client sends while its conversation is opened and its socket no longer read: the end of a message of which most had come, and what the
 * same reading brought. More, and it is hung up. */
export const WEB_EARLY_MAX_BYTES = 2 * WEB_PAYLOAD_MAX_BYTES;
/** What was said before is read within this time, or the conversation begins without it. */
export const WEB_HISTORY_WAIT_MS = 3_000;
/** What of it a live model is given: some 3,000 tokens. */
export const LIVE_HISTORY_MAX_CHARS = 12_000;
/** What of one function's arguments, and of its result: enough to know what was done, and of several of them. */
export const LIVE_HISTORY_VALUE_MAX_CHARS = 1_000;

// --- The store ----------------------------------------------------------------------------------------------

/** A stored event as JSON. A turn's text is some hundred bytes; a tool's result may be a document. */
export const EVENT_MAX_BYTES = 1024 * 1024;
/** UTF-8 bytes of an app's, user's, session's or event's name and of a state key. Five of them must fit into one entry of a
 * PostgreSQL index, 2,704 bytes. */
export const STORE_NAME_MAX_BYTES = 256;
/** An artifact: some two minutes of 24 kHz sound, or a large picture. It passes through memory several times. */
export const ARTIFACT_MAX_BYTES = 16 * 1024 * 1024;
/** What reading a session gives of its events, the newest: more than hours of talk. Older ones are read by pages. */
export const SESSION_EVENTS_MAX = 10_000;
export const SESSION_EVENTS_MAX_BYTES = 32 * 1024 * 1024;
/** What of a session is read for a model or a page that is told what was said before: the newest, with room for all that either is given,
 * however few words an event has. */
export const HISTORY_READ = { events: 2_000, bytes: 1024 * 1024 } as const;
/** Events that are read and parsed in one turn of the event loop: some 3 ms. */
export const EVENT_READ_SLICE = 200;
export const EVENT_READ_SLICE_BYTES = 256 * 1024;
/** One page of events, and of sessions or artifacts. */
export const EVENT_PAGE_MAX = 500;
export const EVENT_PAGE_MAX_BYTES = 8 * 1024 * 1024;
export const SESSION_PAGE_MAX = 200;
export const ARTIFACT_LIST_MAX = 1_000;
/** Sessions deleted in one transaction, so that nothing else waits long for it. */
export const DELETE_BATCH_SESSIONS = 50;
/** State keys written by one statement: SQLite binds at most 32,766 values. */
export const STATE_BATCH_KEYS = 500;
/** Another process may hold SQLite's one write lock for this long. */
export const SQLITE_BUSY_MAX_MS = 5_000;
/** One statement of SQLite; then its thread is given up, as on a disk that hangs. */
export const SQLITE_STATEMENT_MAX_MS = 20_000;
/** Prepared statements kept by SQLite's thread; the store has some forty. */
export const SQLITE_STATEMENTS_MAX = 200;
/** Connections to PostgreSQL of one server; most databases allow 100 in all. */
export const POSTGRES_CONNECTIONS_MAX = 8;
/** Waiting for a connection to PostgreSQL, a free one included. */
export const POSTGRES_CONNECT_MAX_MS = 5_000;
/** One statement, by PostgreSQL's own watch, and by ours if no answer comes at all. */
export const POSTGRES_STATEMENT_MAX_MS = 10_000;
export const POSTGRES_ANSWER_MAX_MS = 15_000;
/** A transaction in which nothing is asked is ended by PostgreSQL: its server has died or hangs. */
export const POSTGRES_IDLE_TRANSACTION_MAX_MS = 30_000;
/** Tries of one change that two servers make at the same moment. */
export const STORE_TRIES_MAX = 8;
/** Events waiting to be stored, of all calls: minutes of a full server whose database is away. One more is refused. */
export const STORE_QUEUE_MAX_EVENTS = 20_000;
export const STORE_QUEUE_MAX_BYTES = 64 * 1024 * 1024;
/** Events in one transaction. */
export const STORE_BATCH_MAX_EVENTS = 200;
export const STORE_BATCH_MAX_BYTES = 4 * 1024 * 1024;
/** Pauses between tries while the database fails: doubled each time. */
export const STORE_RETRY_FIRST_MS = 100;
export const STORE_RETRY_MAX_MS = 2_000;
/** An event that could not be stored for this long is given up; a database's restart takes less. */
export const STORE_PATIENCE_MS = 60_000;
/** What follows on a message that nobody has seen waits this long for the store: longer than a disk takes to write, too short
 * for a reader to see an answer begin late. */
export const STORE_PLACE_WAIT_MS = 200;
/** Items of one run that wait so; more do not wait. */
export const PLACE_HELD_MAX = 64;
/** While the store has been silent for this long, whoever watches is told: longer than a busy disk, shorter than a caller's turn. */
export const STORE_SILENCE_TOLD_MS = 2_000;
/** A server that starts waits this long for a database that is not up yet; a container's is within seconds. */
export const STORE_START_MAX_MS = 30_000;
/** Closing waits this long for events that are not stored yet. */
export const STORE_CLOSE_MAX_MS = 10_000;

// --- The process and its HTTP side ---------------------------------------------------------------------------------------------

/** An agent module may take this long to load, and is named as slow before that. */
export const AGENT_LOAD_MAX_MS = 20_000;
export const AGENT_LOAD_SLOW_MS = 2_000;
/** Errors for which nobody waits, before the server stops for them, and the time in which they come. One tool of a busy server
 * that forgets an `await` throws some in a minute; a hundred are a loop, or a fault that goes deeper. */
export const STRAY_ERRORS_MAX = 100;
export const STRAY_ERRORS_WINDOW_MS = 60_000;
/** Frames of its stack in the log: Node's own come first, and the author's must be among them. */
export const STRAY_ERROR_FRAMES_MAX = 12;
/** Of an object that was thrown: values that are told, and the length of a text among them. */
export const THROWN_VALUES_TOLD_MAX = 50;
export const THROWN_TEXT_TOLD_MAX_CHARS = 500;
/** At the closing, what is stored is told within this time: a commit takes milliseconds, and a database may be away. */
export const CLOSE_TOLD_MAX_MS = 3_000;
/** Of a run in text: what is told in its place must still be sent. */
export const RUN_CLOSE_TOLD_MAX_MS = 2_000;
/** What was told then has this long to be read; whoever reads slower is cut. */
export const CLOSE_SENT_MAX_MS = 2_000;
/** A second signal leaves this much for cutting, telling and writing; then the process ends. */
export const HURRIED_CLOSE_MAX_MS = 8_000;
/** Headers of a request, and the whole request, must have come within these; half-sent ones are closed. */
export const HTTP_HEADERS_MAX_MS = 10_000;
export const HTTP_REQUEST_MAX_MS = 15_000;
/** The body of a request, unpacked: MESSAGE_MAX_CHARS of any script, three bytes each, with room. */
export const HTTP_BODY_MAX_BYTES = 64 * 1024;
/** One page of calls, and the usual one. */
export const CALL_PAGE_MAX = 200;
export const CALL_PAGE_USUAL = 50;
/** How often half-sent requests are looked for. */
export const HTTP_CHECK_INTERVAL_MS = 5_000;

// --- Admission ------------------------------------------------------------------------------------------------

/** How often event-loop lag is looked at. */
export const LAG_SAMPLE_MS = 1_000;
/** 99th percentile of lag above which no further call is taken: the playout's lead is nearly used up by then. */
export const LAG_FULL_MS = 100;
/** Samples in a row above it that make the server full. */
export const LAG_FULL_SAMPLES = 3;
/** Lag below which there is room again, after so many samples in a row. */
export const LAG_ROOM_MS = 40;
export const LAG_CALM_SAMPLES = 3;

// --- The caller's phone (replay) ----------------------------------------------------------------------------

/** Length of a caller's sound file, and of what the phone says in one call. */
export const CALLER_SOUND_MAX_MS = 60 * 60_000;
/** Size of a caller's sound file; an hour of 16 kHz PCM16 mono is 115 MB, and decoding needs several times that. */
export const SOUND_FILE_MAX_BYTES = 128 * 1024 * 1024;
/** Twilio ends a call after four hours (32015), and so does the phone. */
export const PHONE_CALL_MAX_MS = 4 * 60 * 60_000;
/** Twilio waits this long for a webhook's answer, retries included. */
export const PHONE_WEBHOOK_TIMEOUT_MS = 15_000;
/** The phone waits this long for a media socket to open, and for a close handshake. */
export const PHONE_UPGRADE_TIMEOUT_MS = 10_000;
export const PHONE_CLOSE_TIMEOUT_MS = 2_000;
/** TwiML documents in one call; a server whose redirects lead in a circle is found out by it. */
export const PHONE_DOCUMENTS_MAX = 50;
/** Twilio refuses a longer TwiML document (11750). */
export const TWIML_MAX_BYTES = 64 * 1024;
/** A recording that the server names in `<Play>`. */
export const PHONE_PLAY_MAX_BYTES = 16 * 1024 * 1024;
/** Sound that waits at the carrier; Twilio drops what goes beyond ten minutes (31931). */
export const CARRIER_QUEUE_MAX_MS = 10 * 60_000;
/** A phone that is later than this skips frames instead of sending them in one burst. */
export const PHONE_CATCH_UP_MAX_MS = 1_000;
/** Warnings kept of one call; more are only counted. */
export const PHONE_WARNINGS_MAX = 100;
/** A call server that the command started must be ready, and later gone after SIGTERM, within these times. */
export const CALL_SERVER_READY_MAX_MS = 30_000;
export const CALL_SERVER_STOP_MAX_MS = 10_000;

assert(PLAYOUT_LEAD_MS % PLAYOUT_MESSAGE_MS === 0, 'the lead is a whole number of messages');
assert(PLAYOUT_LEAD_MS - PLAYOUT_BATCH_MS - PLAYOUT_EARLY_MS >= 100, 'a timer may be late for a batch');
assert(MARK_INTERVAL_MS % PLAYOUT_MESSAGE_MS === 0, 'a mark follows a whole number of messages');
assert(PLAYOUT_MESSAGE_MS % FRAME_MS === 0, 'a message is a whole number of frames');
assert(PLAYOUT_LEAD_MS >= 100 && PLAYOUT_LEAD_MS <= 200, 'the lead rides out timers and clears at once');
assert(3 * CARRIER_PING_INTERVAL_MS <= CARRIER_SILENCE_MAX_MS, 'three pings before the watchdog bites');
assert(HANG_UP_ATTEMPT_MAX_MS < HANG_UP_MAX_MS, 'a lost hang-up request leaves time for another');
assert(AGENT_LOAD_SLOW_MS < AGENT_LOAD_MAX_MS, 'a slow module is named before it is given up');
assert(LAG_ROOM_MS < LAG_FULL_MS && LAG_FULL_MS < PLAYOUT_LEAD_MS, 'lag is noticed before it is heard');
assert(CUT_MAX_MS > HANG_UP_MAX_MS, 'REST has its time before the socket is cut');
assert(FAREWELL_START_MAX_MS < FAREWELL_MAX_MS, 'a farewell begins before it must end');
assert(
  START_BUFFER_MIN_MS % FRAME_MS === 0 && START_BUFFER_MIN_MS >= PLAYOUT_MESSAGE_MS,
  'speech starts with whole frames and at least a message',
);
assert(
  START_BUFFER_MIN_MS < START_BUFFER_MAX_MS && START_BUFFER_MIN_MS <= PLAYOUT_LEAD_MS,
  'the start buffer has room to grow, and as it is first it fits into the lead',
);
assert(
  START_BUFFER_WAIT_FACTOR >= 1 && START_BUFFER_WAIT_MAX_MS >= START_BUFFER_MAX_MS,
  'a model at real time can fill the start buffer',
);
assert(
  START_BUFFER_WAIT_FACTOR * START_BUFFER_MIN_MS < START_BUFFER_WAIT_MAX_MS,
  'a model that never stuttered waits less than one that did',
);
assert(MODEL_BUFFERED_MAX_BYTES < MODEL_UNSENT_MAX_BYTES, 'sound is held back long before the socket is cut');
assert(MARKS_UNRETURNED_MAX * MARK_INTERVAL_MS >= 60_000, 'a minute of sound keeps its marks');
assert(PHONE_CATCH_UP_MAX_MS / FRAME_MS < CARRIER_MESSAGES_PER_SECOND_MAX, 'catching up is no flood');
assert(2 * WEB_SOUND_UNSENT_MAX_BYTES <= WIRE_SOCKET_UNSENT_MAX_BYTES, 'sound keeps no frame waiting');
assert((4 / 3) * WEB_IMAGE_MAX_BYTES < WEB_PAYLOAD_MAX_BYTES, 'the largest picture fits into a message');
assert(2 * WIRE_HEARTBEAT_MS < WIRE_UNREAD_MAX_MS, 'a watcher that is cut has let several heartbeats pass');
assert(
  WIRE_HISTORY_MAX_CHARS < WIRE_LOG_MAX_CHARS && WIRE_BATCH_MAX_CHARS < WIRE_LOG_MAX_CHARS,
  'what one watcher is told fits into what is kept for all',
);
assert(
  EVENT_MAX_BYTES <= EVENT_PAGE_MAX_BYTES && EVENT_MAX_BYTES <= STORE_BATCH_MAX_BYTES,
  'the largest event fits into a page and into a batch',
);
assert(EVENT_PAGE_MAX_BYTES <= SESSION_EVENTS_MAX_BYTES, 'a page is no more than a session');
assert(RUN_CLOSE_TOLD_MAX_MS < CLOSE_TOLD_MAX_MS, 'a run that is cut is told so');
assert(CLOSE_TOLD_MAX_MS + CLOSE_SENT_MAX_MS < HURRIED_CLOSE_MAX_MS, 'a hurried closing still tells');
assert(TEXT_RUN_MAX_MS <= DRAIN_MAX_MS, 'a text run that had begun before a drain ends within it');
assert(
  4 * Math.max(TEXT_HISTORY_MAX_CHARS, LIVE_HISTORY_MAX_CHARS, WIRE_HISTORY_MAX_CHARS) <=
    HISTORY_READ.bytes &&
    HISTORY_READ.bytes < SESSION_EVENTS_MAX_BYTES &&
    HISTORY_READ.events < SESSION_EVENTS_MAX,
  'what is read of a session has all that a model or a page is given of it, and is far from all',
);
assert(
  EVENT_READ_SLICE < HISTORY_READ.events && EVENT_READ_SLICE_BYTES < HISTORY_READ.bytes,
  'a history is read in several slices',
);
assert(
  4 * LIVE_HISTORY_VALUE_MAX_CHARS < LIVE_HISTORY_MAX_CHARS,
  'several functions fit into what a live model is told of the past',
);
assert(5 * STORE_NAME_MAX_BYTES < 2_704, 'names fit into an index entry of PostgreSQL');
assert(SQLITE_BUSY_MAX_MS < SQLITE_STATEMENT_MAX_MS, 'a lock is reported before the thread is given up');
assert(
  POSTGRES_STATEMENT_MAX_MS < POSTGRES_ANSWER_MAX_MS,
  'PostgreSQL says itself that a statement took too long',
);
assert(STORE_PLACE_WAIT_MS < STORE_SILENCE_TOLD_MS, 'an answer goes on before the store is called silent');
assert(
  SQLITE_STATEMENT_MAX_MS < STORE_PATIENCE_MS && POSTGRES_ANSWER_MAX_MS < STORE_PATIENCE_MS,
  'an event outlives one failed try',
);
