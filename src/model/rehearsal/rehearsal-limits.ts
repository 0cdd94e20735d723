/**
 * Every bound of the rehearsal model, as in `limits.ts`: the unit is in the name, the reason beside it.
 */

/** Utterances waiting for the one synthesizer; each takes about 0.1 s. More than these are refused. */
export const SPEECH_QUEUE_MAX = 256;
/** Text of one utterance: about two minutes of speech. */
export const SPEECH_TEXT_MAX_CHARS = 2_000;
/** A synthesizer that is busy with one utterance for this long has hung; the longest takes about 3 s. */
export const SPEECH_SYNTHESIS_TIMEOUT_MS = 20_000;
/** Spoken utterances kept, 48 kB a second: about eleven minutes of speech, the longest unused forgotten first. */
export const SPEECH_CACHE_MAX_BYTES = 32 * 1024 * 1024;
/** Connections to the rehearsal service; Gemini's own default is 1,000 a project. */
export const REHEARSAL_CONNECTIONS_MAX = 1_000;
/** Largest message to the rehearsal service; a setup with a long instruction is some 100 kB. */
export const REHEARSAL_PAYLOAD_MAX_BYTES = 4 * 1024 * 1024;
/** A connection without `setup` for this long is closed. */
export const REHEARSAL_SETUP_TIMEOUT_MS = 30_000;
/** Frames that come before a delayed `setupComplete`, a caller's 20 s; the oldest is forgotten beyond. */
export const REHEARSAL_EARLY_FRAMES_MAX = 1_000;
/** Bytes unsent to a client above which the rehearsal stops speaking until it has read some: 16 s of speech. */
export const REHEARSAL_BUFFERED_MAX_BYTES = 1024 * 1024;
/** A function's response is waited for this long, then the turn goes on without it. */
export const REHEARSAL_TOOL_WAIT_MAX_MS = 30_000;
/** Typed text that waits for a `turnComplete`; more is forgotten from the front. */
export const REHEARSAL_TEXT_MAX_CHARS = 20_000;
/** Dialogues that can be resumed by a handle, the oldest forgotten first. */
export const REHEARSAL_HANDLES_MAX = 1_000;
/** A handle is good for this long after its connection ended, as Google documents for the Developer API. */
export const REHEARSAL_HANDLE_LIFE_MS = 2 * 60 * 60_000;
/** A client has this long to answer the closing handshake before its socket is cut. */
export const REHEARSAL_CLOSE_MAX_MS = 1_000;
/** A dialogue's file. The shipped one has about 2,500 characters. */
export const REHEARSAL_DIALOGUE_MAX_CHARS = 256 * 1024;
/** Function calls of one conversation that are not answered; the oldest is forgotten beyond. */
export const REHEARSAL_OPEN_CALLS_MAX = 64;
/** Calls in a row of which each was made because of the result before: a dialogue may lead in a circle. */
export const REHEARSAL_CALL_CHAIN_MAX = 8;
/** Results and input that wait until the rehearsal has finished speaking; the oldest is forgotten beyond. */
export const REHEARSAL_WAITING_MAX = 32;
/** Levels of a declaration's schema that arguments are made for; a schema may refer to itself. */
export const REHEARSAL_SCHEMA_DEPTH_MAX = 8;

/** Text requests being answered at once; more are told that the model is overloaded. */
export const REHEARSAL_TEXT_REQUESTS_MAX = 256;
/** The body of a text request must have come within this time. */
export const REHEARSAL_BODY_MAX_MS = 15_000;
/** A client that does not read its answer for this long is cut off. */
export const REHEARSAL_UNREAD_MAX_MS = 30_000;
/** Tokens of one text answer, four characters each; a longer one ends with MAX_TOKENS. */
export const REHEARSAL_OUTPUT_TOKENS_MAX = 8_192;
/** Functions that one text request may declare: each is looked for in what the user wrote. */
export const REHEARSAL_DECLARATIONS_MAX = 512;
/** Functions that one text answer calls. */
export const REHEARSAL_CALLS_MAX = 16;
