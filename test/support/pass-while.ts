import { FRAME_MS } from '../../src/limits.js';
import type { VirtualClock } from '../../src/replay/virtual-clock.js';
import { pause } from './wait-until.js';

/** Time that stands still otherwise goes on, a frame at a time, until `work` is done: it may wait for the clock as well as for sockets. */
export async function passWhile<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const progress = { isDone: false };
  const done = work.finally(() => (progress.isDone = true));
  // Whoever it rejects for is told at the end, and not before.
  done.catch(() => {});
  while (!progress.isDone) {
    clock.advance(FRAME_MS);
    await pause(1);
  }
  return done;
}
