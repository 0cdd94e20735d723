/**
 * Time as the server sees it. Everything that measures or waits gets a Clock passed in, so that a whole call
 * replays in milliseconds and the same way each time. This is the only file that may read the machine's clocks.
 */

export interface Timer {
  /** Stops the timer; a no-op once it has fired or was cancelled. */
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds (fractional); only differences mean anything. */
  nowMs(): number;
  /** Milliseconds since the Unix epoch, for what people and logs read. */
  wallMs(): number;
  /** Calls `fire` once, `delayMs` milliseconds from now (a negative delay counts as 0). */
  setTimer(delayMs: number, fire: () => void): Timer;
}

/** Time that stands still between the events of one call; `call/call-clock.ts` says why. */
export interface CallTime extends Clock {
  /** Something arrives from outside: time moves on to the present, and timers that are due fire first. Called where a
   * socket's message or a request is read, before anything about it is decided. */
  enter(): void;
  /** The present by the machine's clock, on the same scale as `nowMs`; for measuring how long our own work takes. */
  realMs(): number;
}

class SystemTimer implements Timer {
  readonly #handle: NodeJS.Timeout;

  constructor(delayMs: number, fire: () => void) {
    this.#handle = setTimeout(fire, delayMs);
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer: (delayMs, fire) => new SystemTimer(Math.max(0, delayMs), fire),
};

/** Resolves after `delayMs` on `clock`. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve);
  });
}

/** Resolves when `work` has settled, either way, or after `maxMs`: true if it was the work. */
export async function within(clock: Clock, maxMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: Timer | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = clock.setTimer(maxMs, () => resolve(false));
  });
  const done = work.then(
    () => true,
    () => true,
  );
  const isDone = await Promise.race([done, late]);
  timer?.cancel();
  return isDone;
}

/** Resolves in the event loop's next turn, when what was begun in this one has had its callbacks. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
