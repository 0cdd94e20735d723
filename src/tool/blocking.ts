/**
 * An author's code shares one thread with the sound of every call. What it does before it first waits for something is
 * measured, and told in the log when it has held the others up; what it does later cannot be told from anybody else's.
 */
import type { Clock } from '../clock.js';
import type { Log } from '../observe/log.js';
import { BLOCKING_TOLD_MS } from '../tool-limits.js';

export interface BlockingDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** Runs `begin` and gives back what it does, a throw too. `who`: fields that name it in the log. */
export function timed<Value>({ clock, log }: BlockingDeps, who: object, begin: () => Value): Value {
  const beganAtMs = clock.nowMs();
  try {
    return begin();
  } finally {
    const heldUpMs = clock.nowMs() - beganAtMs;
    if (heldUpMs >= BLOCKING_TOLD_MS)
      log.warn(
        { ...who, heldUpMs: Math.round(heldUpMs) },
        'an agent’s code held up the sound of every call: work that computes belongs into a tool with worker: true',
      );
  }
}
