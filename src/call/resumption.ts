/**
 * Which session the next connection goes on with: the newest handle that Gemini gave, or none. A handle is not trusted any
 * more where it was refused, where what it resumes has died twice, and where too much was said since.
 */
import {
  HANDLE_AGE_MAX_MS,
  HANDLE_BEHIND_MAX,
  HANDLE_TRIES_MAX,
  QUICK_DEATH_MS,
  QUICK_DEATHS_MAX,
  QUICK_DEATHS_POISON,
} from '../link-limits.js';

/** A session that can be gone on with. */
export interface Handle {
  readonly handle: string;
  /** How much had been said and done when it was given out (`HeardHistory.position`). */
  readonly position: number;
  readonly atMs: number;
}

export class Resumption {
  #newest: Handle | undefined;
  /** The model's last word was that it could be resumed. */
  #isResumable = false;
  #refusals = 0;
  #quickDeaths = 0;

  /** `sessionResumptionUpdate`. While the model speaks or a function runs, it cannot be resumed and there is no new handle: the one
   * before stays, and lacks what came since. */
  onUpdate(newHandle: string | undefined, resumable: boolean, position: number, nowMs: number): void {
    this.#isResumable = resumable;
    if (resumable && newHandle !== undefined && newHandle !== '')
      this.#newest = { handle: newHandle, position, atMs: nowMs };
  }

  /** Nothing would be lost by going on from the handle now. True also of a model that gives none: what was said is told anew. */
  isCurrent(position: number): boolean {
    return this.#newest === undefined || (this.#isResumable && this.#newest.position >= position);
  }

  /** What to go on with. */
  take(position: number, nowMs: number): Handle | undefined {
    const newest = this.#newest;
    if (newest === undefined) return undefined;
    const isStale = position - newest.position > HANDLE_BEHIND_MAX || nowMs - newest.atMs > HANDLE_AGE_MAX_MS;
    if (isStale || this.#refusals >= HANDLE_TRIES_MAX) this.drop();
    return this.#newest;
  }

  /** A connection is there: what comes of it now is counted anew. */
  onConnected(): void {
    this.#refusals = 0;
    this.#isResumable = false;
  }

  /** The handle was not taken; `isFinal`: the model's server said so, and will say so again. */
  onRefused(isFinal: boolean): void {
    this.#refusals += 1;
    if (isFinal) this.drop();
  }

  onLost(livedMs: number): void {
    this.#quickDeaths = livedMs < QUICK_DEATH_MS ? this.#quickDeaths + 1 : 0;
    if (this.#quickDeaths >= QUICK_DEATHS_POISON) this.drop();
  }

  /** A connection was left that had lived so long. */
  onLeft(livedMs: number): void {
    if (livedMs >= QUICK_DEATH_MS) this.#quickDeaths = 0;
  }

  get quickDeaths(): number {
    return this.#quickDeaths;
  }

  /** Every connection dies at once. */
  get isHopeless(): boolean {
    return this.#quickDeaths >= QUICK_DEATHS_MAX;
  }

  /** What is there to be resumed is not to be trusted. */
  drop(): void {
    this.#newest = undefined;
    this.#isResumable = false;
  }
}
