/**
 * The client's bounds, here and not among the server's, because this folder has to stand alone in a browser. Each is the
 * default of an option or fixed, with its reason beside it.
 */

/** Frames that are kept to put later ones in order before them. One connection delivers in order, so that this is for
 * frames that went through a queue of the application's own. */
export const REORDERED_FRAMES_MAX = 64;
/** Failures kept for showing; older ones have scrolled away. */
export const FAILURES_KEPT_MAX = 20;
/** Characters of one event: the longest `history` of a server is some 250,000. A longer event ends the connection. */
export const EVENT_MAX_CHARS = 4 * 1024 * 1024;
/** Nothing at all for so long: the connection is dead. The server sends a heartbeat every 15 s, so that one may be late. */
export const SILENCE_MAX_MS = 40_000;
/** The first wait before a new attempt, and what doubling it may come to. */
export const RETRY_FIRST_MS = 500;
export const RETRY_MAX_MS = 15_000;
/** Attempts in a row that brought nothing new, after which the connection is given up. */
export const ATTEMPTS_MAX = 10;
/** Typed messages that wait for a socket to open; more are refused. */
export const WAITING_TEXTS_MAX = 32;
/** Unsent bytes above which sound and pictures are dropped, never text: two seconds of PCM16 at 16 kHz, as base64. */
export const UNSENT_MAX_BYTES = 86_000;
