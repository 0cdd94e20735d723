/**
 * Ends and redirects calls through Twilio's REST API. Doing either twice is harmless, so that everything which may have been
 * lost on the way is tried again: network failures, 429 and 5xx. The whole attempt is bounded on the clock, whatever the
 * other side does.
 */
import type { RestScope } from '../call-tap.js';
import { sleep } from '../clock.js';
import type { CallSid } from '../ids.js';
import { HANG_UP_ATTEMPT_MAX_MS, HANG_UP_ATTEMPTS_MAX, HANG_UP_MAX_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { CallControl, HangUpOutcome } from './call-control.js';
import { dialTwiml } from './twiml.js';
import {
  createRestClient,
  readRestFailure,
  type RestFailure,
  type TwilioRestOptions,
} from './twilio-rest.js';

const BACKOFF_FIRST_MS = 200;

/** Twilio's codes for a call that is no longer there, and for one that is not in progress any more. */
const NOT_FOUND = 20404;
const CALL_NOT_IN_PROGRESS = 21220;

/** What a recorded call, and its replay, has in place of chance. */
export const RECORDED_JITTER = 0.5;

/** What the carrier is told to do with a line. */
type LineUpdate = { readonly status: 'completed' } | { readonly twiml: string };

export interface TwilioCallControlOptions extends TwilioRestOptions {
  /** Whom a caller is connected with; E.164. */
  readonly handoffNumber: string | undefined;
  /** Where the carrier tells what came of it. */
  readonly publicOrigin: () => string;
  /** Uniform in [0, 1): spreads the retries of many calls. */
  readonly random: () => number;
  readonly log: Log;
}

type RestClient = NonNullable<ReturnType<typeof createRestClient>>;

function hasEnded(failure: RestFailure): boolean {
  return failure.status === 404 || failure.code === NOT_FOUND || failure.code === CALL_NOT_IN_PROGRESS;
}

function isWorthRetrying(failure: RestFailure): boolean {
  return failure.status === undefined || failure.status === 429 || failure.status >= 500;
}

export class TwilioCallControl implements CallControl {
  readonly #options: TwilioCallControlOptions;

  /** Throws what the twilio library throws for an account sid that is not one. */
  constructor(options: TwilioCallControlOptions) {
    this.#options = options;
    // Each call makes a client of its own, which is heard by its recorder; this one only shows early whether it can be made.
    createRestClient(options, HANG_UP_ATTEMPT_MAX_MS);
  }

  hangUp(callSid: CallSid, scope: RestScope): Promise<HangUpOutcome> {
    return this.#update(callSid, scope, { status: 'completed' });
  }

  get whyNoTransfer(): string | undefined {
    const { handoffNumber } = this.#options;
    if (handoffNumber === undefined) return 'No number of a human is configured here.';
    if (createRestClient(this.#options, HANG_UP_ATTEMPT_MAX_MS) === undefined)
      return 'This server cannot redirect calls.';
    return undefined;
  }

  /** Asking twice is harmless, too: the second instructions take the place of the first, and say the same. */
  async transfer(callSid: CallSid, scope: RestScope): Promise<HangUpOutcome> {
    const { handoffNumber, publicOrigin } = this.#options;
    if (handoffNumber === undefined) return { kind: 'unavailable' };
    return this.#update(callSid, scope, { twiml: dialTwiml(handoffNumber, publicOrigin()) });
  }

  async #update(callSid: CallSid, scope: RestScope, update: LineUpdate): Promise<HangUpOutcome> {
    const client = createRestClient(this.#options, HANG_UP_ATTEMPT_MAX_MS, scope);
    if (client === undefined) return { kind: 'unavailable' };
    const { log } = this.#options;
    const { clock } = scope;
    const limit = new AbortController();
    let timeUp: (() => void) | undefined;
    const timedOut = new Promise<HangUpOutcome>((resolve) => {
      timeUp = () => resolve({ kind: 'failed', cause: `no answer within ${HANG_UP_MAX_MS} ms` });
    });
    const timer = clock.setTimer(HANG_UP_MAX_MS, () => {
      limit.abort();
      timeUp?.();
    });
    const outcome = await Promise.race([
      this.#tryToUpdate({ client, callSid, update }, scope, limit.signal),
      timedOut,
    ]);
    timer.cancel();
    if (outcome.kind === 'failed')
      log.error({ callSid, cause: outcome.cause }, 'the carrier could not be told what to do with a call');
    return outcome;
  }

  async #tryToUpdate(
    { client, callSid, update }: { client: RestClient; callSid: CallSid; update: LineUpdate },
    { clock, tap }: RestScope,
    limit: AbortSignal,
  ): Promise<HangUpOutcome> {
    const { random, log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.calls(callSid).update(update);
        return { kind: 'done' };
      } catch (error) {
        const failure = readRestFailure(error);
        if (hasEnded(failure)) return { kind: 'alreadyEnded' };
        const { cause } = failure;
        if (limit.aborted || attempt === HANG_UP_ATTEMPTS_MAX || !isWorthRetrying(failure)) {
          return { kind: 'failed', cause };
        }
        log.warn({ callSid, cause, attempt }, 'the carrier is told again');
      }
      // Half of the doubling delay is fixed, the other half is jitter; a recorded call must go the same way again.
      const jitter = tap === undefined ? random() : RECORDED_JITTER;
      await sleep(clock, BACKOFF_FIRST_MS * 2 ** (attempt - 1) * (0.5 + jitter / 2));
      if (limit.aborted) return { kind: 'failed', cause: 'out of time' };
    }
  }
}
