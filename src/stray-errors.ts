/**
 * Errors for which nobody waits: what is thrown in a timer, and promises that reject with nobody there to hear it. Node's usual
 * answer is to end the process, and its documentation warns of going on, since what was under way was left as it stood
 * (https://nodejs.org/api/process.html#warning-using-uncaughtexception-correctly).
 *
 * Going on is right here. Agents run in the server's process, and a tool that forgets an `await` is an everyday mistake: to end
 * the process for it would hang up on every caller of every agent. Nor is the server's own state left half-changed: what a
 * call's sockets, timers and promises do runs inside the call's guard, which ends that call alone; a request's runs inside its
 * handler; files, sockets and connections to the database belong to objects that report their failures themselves. What comes
 * to here is nearly always an author's, whose state is the author's too.
 *
 * It does not go on for ever: a broken invariant of the server's own code, or of Node's, and more errors in a minute than mistakes
 * explain, make it stop as a signal does, with 1, so that whatever watches it starts it anew.
 */
import type { Clock } from './clock.js';
import { errorText } from './errors.js';
import { causeOf, framesOf, isOurs, textOf } from './foreign.js';
import { STRAY_ERROR_FRAMES_MAX, STRAY_ERRORS_MAX, STRAY_ERRORS_WINDOW_MS } from './limits.js';
import type { Log } from './observe/log.js';

export type StrayKind = 'exception' | 'rejection';

export interface StrayErrorsOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Asked once: the server has to stop. */
  readonly onGivenUp: () => void;
}

/** Where Node tells of them: the process, or what stands for it in a test. */
export interface StrayErrorSource {
  on(event: 'uncaughtException' | 'unhandledRejection', hear: (error: unknown) => void): unknown;
}

/** Codes of Node's own broken invariants, and of `node:assert`. */
const NODE_BROKEN = 'ERR_INTERNAL_ASSERTION';
const BROKEN = 'ERR_ASSERTION';

export class StrayErrors {
  readonly #options: StrayErrorsOptions;
  readonly #counts: Record<StrayKind, number> = { exception: 0, rejection: 0 };
  /** When the newest ones came; the oldest first. */
  #timesMs: number[] = [];
  #isGivenUp = false;

  constructor(options: StrayErrorsOptions) {
    this.#options = options;
  }

  /** Since the start. */
  get counts(): Readonly<Record<StrayKind, number>> {
    return this.#counts;
  }

  watch(source: StrayErrorSource): void {
    source.on('uncaughtException', (error) => this.#hear('exception', error));
    source.on('unhandledRejection', (error) => this.#hear('rejection', error));
  }

  /** Never throws: an error of its own would come to here again, or end the process. Once it was given up they are only counted, so
   * that a loop cannot fill the log while the last calls end. */
  #hear(kind: StrayKind, error: unknown): void {
    this.#counts[kind] += 1;
    if (this.#isGivenUp) return;
    const { log } = this.#options;
    const frames = framesOf(error)
      .slice(0, STRAY_ERROR_FRAMES_MAX)
      .map((frame) => frame.trim());
    try {
      log.error(
        { kind, class: classOf(error), code: codeOf(error), frames, pii: { cause: errorText(error) } },
        'a stray error: nobody waits for what failed; the server goes on',
      );
    } catch {
      // A log that fails is no reason to end a call.
    }
    if (isBroken(error)) this.#giveUp('an invariant is broken');
    else if (this.#isTooMuch()) this.#giveUp(`more than ${STRAY_ERRORS_MAX} stray errors within a minute`);
  }

  #isTooMuch(): boolean {
    const nowMs = this.#options.clock.nowMs();
    this.#timesMs = [...this.#timesMs, nowMs].slice(-STRAY_ERRORS_MAX - 1);
    const [firstMs = nowMs] = this.#timesMs;
    return this.#timesMs.length > STRAY_ERRORS_MAX && nowMs - firstMs < STRAY_ERRORS_WINDOW_MS;
  }

  #giveUp(why: string): void {
    this.#isGivenUp = true;
    try {
      this.#options.log.error({ why }, 'the server stops because of stray errors, once its calls are over');
    } finally {
      this.#options.onGivenUp();
    }
  }
}

/** Its class; `code` and frames tell an author where to look. What may hold somebody's words is not among them. */
function classOf(error: unknown): string {
  try {
    const name: unknown = (error as { readonly constructor?: { readonly name?: unknown } }).constructor?.name;
    return typeof name === 'string' && /^[\w$]{1,64}$/.test(name) ? name : typeof error;
  } catch {
    return typeof error;
  }
}

/** Its own, or that of its cause, as of a connection that `fetch` could not make. */
function codeOf(error: unknown): string | undefined {
  const code = textOf(error, 'code') ?? textOf(causeOf(error), 'code');
  return code !== undefined && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : undefined;
}

/** Of Node, or of the server's own modules: nothing is certain any more. */
function isBroken(error: unknown): boolean {
  const code = codeOf(error);
  return code === NODE_BROKEN || (code === BROKEN && isOurs(error));
}
