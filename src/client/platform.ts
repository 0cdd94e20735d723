/**
 * Time and chance as a browser and Node both have them. The connections get them passed in and fall back to these; this is
 * the only file of the client that may read them, so that a test decides both.
 */

export interface ClientTimer {
  /** Stops the timer; a no-op once it has fired. */
  cancel(): void;
}

export interface ClientClock {
  /** Calls `fire` once, `delayMs` milliseconds from now. */
  setTimer(delayMs: number, fire: () => void): ClientTimer;
}

/** Uniform in [0, 1). */
export type Chance = () => number;

export const platformClock: ClientClock = {
  setTimer(delayMs, fire) {
    const handle = setTimeout(fire, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

export const platformChance: Chance = () => Math.random();
