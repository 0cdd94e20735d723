/**
 * Deeds that are done once, however often they are asked for: claimed in the ledger before the handler runs and settled
 * behind it. Where the ledger breaks nothing is done. One of these serves all runs of a server, so that a repeat that
 * comes while the first is under way waits for its result.
 */
import type { ToolContext } from '../agent/tool-context.js';
import type { SideEffect } from '../agent/tool.js';
import { type Clock, sleep } from '../clock.js';
import { errorText } from '../errors.js';
import { ignoreRejection, isInstance, textOf } from '../foreign.js';
import { LEDGER_SETTLE_PAUSE_MS, LEDGER_SETTLE_TRIES, SIDE_EFFECT_KEY_MAX_CHARS } from '../tool-limits.js';
import type { Log } from '../observe/log.js';
import type { DeedLedger, LedgerAmount, LedgerClaim } from '../store/ledger.js';
import type { SessionKey } from '../store/store.js';
import type { RunSecrets } from './run-secrets.js';
import { errorResponse, type Response, responseOf } from './tool-result.js';

export interface Deed {
  readonly session: SessionKey;
  readonly tool: string;
  readonly sideEffect: SideEffect<unknown>;
  readonly args: unknown;
  readonly ctx: ToolContext;
  readonly callId: string;
  readonly guards: readonly string[];
  readonly approvedBy: string | undefined;
  /** Of the run that asks: the ledger keeps none of them. */
  readonly secrets: RunSecrets;
}

export interface SideEffectsOptions {
  /** Without one nothing that is done once can be done. */
  readonly ledger: DeedLedger | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Thrown by `run`: who asked has left before the handler was begun. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

interface Doing {
  readonly run: () => Promise<unknown>;
  readonly secrets: RunSecrets;
}

interface Done {
  readonly response: Response;
  /** Nobody has tried: who waits for it tries himself. */
  readonly isUntried?: boolean;
  /** It is settled: a repeat has this answer. */
  readonly isSettled?: boolean;
}

/** One that others may ask for meanwhile. */
interface UnderWay {
  readonly claim: LedgerClaim;
  readonly done: Promise<Done>;
}

export class SideEffects {
  readonly #options: SideEffectsOptions;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(options: SideEffectsOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /** On this server, by whichever call. */
  isUnderWay(appName: string, key: string): boolean {
    return this.#underWay.has(nameOf(appName, key));
  }

  /** Never rejects. `run` is called at most once, and only if nobody has done it before. `onWaiting`: it is under way by another
   * call, whose result is waited for. */
  async once(deed: Deed, run: () => Promise<unknown>, onWaiting: () => void = () => {}): Promise<Response> {
    const { ledger } = this.#options;
    if (ledger === undefined) return refused(deed.tool, 'there is no store to keep it in');
    let claim: LedgerClaim;
    try {
      claim = claimOf(deed);
    } catch (error) {
      return refused(deed.tool, deed.secrets.errorText(error));
    }
    const name = nameOf(claim.session.appName, claim.key);
    for (let before = this.#underWay.get(name); before !== undefined; before = this.#underWay.get(name)) {
      onWaiting();
      const { response, isUntried, isSettled } = await before.done;
      if (isSettled === true) return repeated(claim, before.claim.amount, response);
      if (isUntried !== true) return response;
    }
    const done = this.#do(ledger, claim, { run, secrets: deed.secrets }).finally(() =>
      this.#underWay.delete(name),
    );
    this.#underWay.set(name, { claim, done });
    return (await done).response;
  }

  async #do(ledger: DeedLedger, claim: LedgerClaim, doing: Doing): Promise<Done> {
    const response = await this.#answerOf(ledger, claim);
    // An answer without a deed is this call's own: another one may ask with another amount.
    return response === undefined ? this.#run(ledger, claim, doing) : { response, isUntried: true };
  }

  /** Undefined: it is claimed, and nobody has done it. */
  async #answerOf(ledger: DeedLedger, claim: LedgerClaim): Promise<Response | undefined> {
    const { tool } = claim;
    try {
      const outcome = await ledger.claim(claim);
      switch (outcome.kind) {
        case 'claimed':
          return undefined;
        case 'done':
          // An approved call that a crash cut off behind its deed is carried out again, and is no repeat.
          if (outcome.isSameCall && claim.approvedBy !== undefined) return outcome.response;
          return repeated(claim, outcome.amount, outcome.response);
        case 'refused':
          return refused(tool, outcome.why);
        case 'open':
          return refused(
            tool,
            'it was asked for before, and whether it was done is not known; a person has to look into it',
          );
      }
    } catch (error) {
      this.#options.log.error(
        { tool, cause: errorText(error) },
        'the ledger could not be asked: the call is refused',
      );
      return refused(tool, 'the ledger cannot be reached');
    }
  }

  async #run(ledger: DeedLedger, claim: LedgerClaim, { run, secrets }: Doing): Promise<Done> {
    const { log } = this.#options;
    const { tool, key, session } = claim;
    let response: Response;
    try {
      // An error that is returned is an answer as any other: it may have been paid, and not booked. Only NothingDone says no.
      response = secrets.json(responseOf(await run(), (error) => secrets.errorText(error)));
    } catch (error) {
      const cause = secrets.errorText(error);
      if (saysNothingDone(error)) {
        await this.#keep(tool, () => ledger.release(session.appName, key));
        return { response: errorResponse(cause), isUntried: isInstance(error, NotBegun) };
      }
      log.error({ tool, pii: { cause } }, 'a side effect has failed and stays open in the ledger');
      const why = `${cause} (whether it was done is not known; a person has to look into it)`;
      return { response: errorResponse(why) };
    }
    await this.#keep(tool, () => ledger.settle(session.appName, key, response));
    return { response, isSettled: true };
  }

  /** If it cannot be kept the entry stays open: a repeat is refused then, which is safe. */
  async #keep(tool: string, write: () => Promise<boolean>): Promise<void> {
    const { clock, log } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        await write();
        return;
      } catch (error) {
        if (tries === LEDGER_SETTLE_TRIES) {
          log.error({ tool, cause: errorText(error) }, 'an entry of the ledger stays open');
          return;
        }
      }
      await sleep(clock, LEDGER_SETTLE_PAUSE_MS * 2 ** (tries - 1));
    }
  }
}

function nameOf(appName: string, key: string): string {
  return JSON.stringify([appName, key]);
}

/** By name: it may be another copy of the package, or have come from a worker. */
function saysNothingDone(error: unknown): boolean {
  return isInstance(error, NotBegun) || (isInstance(error, Error) && textOf(error, 'name') === 'NothingDone');
}

function refused(tool: string, why: string): Response {
  return errorResponse(`${tool} was refused: ${why}.`);
}

/** What was answered then, marked as such; not where another amount is asked for now, for which it would be no answer. */
function repeated(
  { tool, amount: now }: LedgerClaim,
  then: LedgerAmount | undefined,
  earlier: Response,
): Response {
  if (now === undefined || then === undefined || isSameSum(now, then)) return { ...earlier, repeated: true };
  const why = `it was done before with ${sumOf(then)}, and is asked for with ${sumOf(now)} now; nothing more was done`;
  return { ...refused(tool, why), earlier };
}

function isSameSum(one: LedgerAmount, other: LedgerAmount): boolean {
  return one.amountMinor === other.amountMinor && one.currency === other.currency;
}

function sumOf({ amountMinor, currency }: LedgerAmount): string {
  return `${amountMinor} ${currency} (minor units)`;
}

/** Throws what the author's functions throw, and what is wrong with what they return. */
function claimOf({
  session,
  tool,
  sideEffect,
  args,
  ctx,
  callId,
  guards,
  approvedBy,
  secrets,
}: Deed): LedgerClaim {
  const key: unknown = sideEffect.key(args, ctx);
  ignoreRejection(key);
  if (typeof key !== 'string' || key === '' || key.length > SIDE_EFFECT_KEY_MAX_CHARS)
    throw new TypeError(`its sideEffect.key is not text of 1 to ${SIDE_EFFECT_KEY_MAX_CHARS} characters`);
  const amount = sideEffect.amount?.(args, ctx);
  ignoreRejection(amount);
  if (secrets.holds(key) || secrets.holds(String(amount?.account)))
    throw new TypeError('its key or account holds a secret, which the ledger does not keep');
  if (amount !== undefined && !(Number.isSafeInteger(amount.amountMinor) && amount.amountMinor > 0))
    throw new TypeError('its amount is not a whole number above 0');
  return {
    session,
    key,
    tool,
    callId,
    guards,
    ...(amount !== undefined && { amount }),
    ...(approvedBy !== undefined && { approvedBy }),
  };
}
