/**
 * Waits for somebody else's code, but not for ever: what is waited for may never come, and must not be relied on then.
 */
import type { Clock } from '../clock.js';
import { asError } from '../foreign.js';

/** Told apart by class from whatever that code throws itself. */
export class TimeUp extends Error {
  override readonly name = 'TimeUp';
}

/** Rejects with TimeUp after `delayMs`, and with the signal's reason when it aborts; `undefined` for no limit. */
export function withinTime<Value>(
  work: Promise<Value>,
  options: { readonly clock: Clock; readonly delayMs: number | undefined; readonly signal?: AbortSignal },
): Promise<Value> {
  const { clock, delayMs, signal } = options;
  return new Promise((resolve, reject) => {
    const timer =
      delayMs === undefined
        ? undefined
        : clock.setTimer(delayMs, () =>
            end(() => reject(new TimeUp(`it took more than ${delayMs / 1000} s`))),
          );
    const aborted = (): void => end(() => reject(asError(signal?.reason)));
    const end = (settle: () => void): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', aborted);
      settle();
    };
    signal?.addEventListener('abort', aborted, { once: true });
    if (signal?.aborted === true) aborted();
    // Listened to in any case: what nobody waits for any more may still fail.
    work.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(asError(error))),
    );
  });
}
