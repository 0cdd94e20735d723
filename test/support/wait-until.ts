import { systemClock } from '../../src/clock.js';

/** Far beyond anything that is waited for, and below the time of a test, so that a failure names what it waited for. */
const PATIENCE_MS = 15_000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(ms, resolve);
  });
}

/** Waits for something to become true; how long it takes decides nothing. */
export async function waitUntil(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = systemClock.nowMs() + PATIENCE_MS;
  while (!(await isTrue())) {
    if (systemClock.nowMs() > deadlineMs) throw new Error(`waited in vain for ${what}`);
    await pause(10);
  }
}
