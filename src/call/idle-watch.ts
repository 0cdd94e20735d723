/**
 * Notices that nobody has said anything for a while: the first time the agent asks again, the second time the call ends,
 * unless the caller is silent because they wait for something; then it has been said once that it goes on.
 * Looks again only when the silence could be long enough, so that it costs a few timers a minute.
 */
import type { Clock, Timer } from '../clock.js';

export interface IdleWatchOptions {
  readonly clock: Clock;
  /** Silence of both sides, in milliseconds; 0 switches the watch off. */
  readonly repromptMs: number;
  /** When the caller last did something (spoke, pressed a key), by the clock. */
  readonly callerActiveAtMs: () => number;
  /** When either side last did something; now, while the agent can be heard. */
  readonly activeAtMs: () => number;
  /** Something that was begun for the caller goes on. */
  readonly isWaiting: () => boolean;
  readonly onReprompt: () => void;
  readonly onIdle: () => void;
}

export class IdleWatch {
  readonly #options: IdleWatchOptions;
  #timer: Timer | undefined;
  #repromptedAtMs: number | undefined;
  #toldOfWaitAtMs: number | undefined;
  readonly #look = (): void => this.#check();

  constructor(options: IdleWatchOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.repromptMs <= 0 || this.#timer !== undefined) return;
    this.#timer = this.#options.clock.setTimer(this.#options.repromptMs, this.#look);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#repromptedAtMs = undefined;
    this.#toldOfWaitAtMs = undefined;
  }

  #check(): void {
    const { clock, repromptMs, callerActiveAtMs, activeAtMs, isWaiting, onReprompt, onIdle } = this.#options;
    const nowMs = clock.nowMs();
    if (this.#repromptedAtMs !== undefined && callerActiveAtMs() > this.#repromptedAtMs) {
      this.#repromptedAtMs = undefined;
    }
    const silentMs = nowMs - Math.max(activeAtMs(), this.#repromptedAtMs ?? 0);
    if (silentMs < repromptMs) {
      this.#timer = clock.setTimer(Math.max(20, repromptMs - silentMs), this.#look);
      return;
    }
    this.#timer = clock.setTimer(repromptMs, this.#look);
    if (isWaiting()) return this.#tellOfWait(nowMs);
    this.#toldOfWaitAtMs = undefined;
    if (this.#repromptedAtMs === undefined) {
      this.#repromptedAtMs = nowMs;
      onReprompt();
    } else {
      this.#repromptedAtMs = undefined;
      onIdle();
    }
  }

  /** Once, until the caller does something: then it is their wait, and not a reason to end the call. */
  #tellOfWait(nowMs: number): void {
    const { callerActiveAtMs, onReprompt } = this.#options;
    this.#repromptedAtMs = undefined;
    const isTold = this.#toldOfWaitAtMs !== undefined && callerActiveAtMs() <= this.#toldOfWaitAtMs;
    if (isTold) return;
    this.#toldOfWaitAtMs = nowMs;
    onReprompt();
  }
}
