/**
 * Opens the store at the server's start, where the database may be a moment later than the server: everything that a retry can help
 * is tried again for a bounded time, with one line in the log. What has to be mended ends the start at once.
 */
import { type Clock, sleep } from '../clock.js';
import { StoreError } from '../errors.js';
import { STORE_RETRY_FIRST_MS, STORE_RETRY_MAX_MS, STORE_START_MAX_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { Store } from './store.js';

export interface AwaitStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws StoreError `store_unusable` at once, `store_failed` after STORE_START_MAX_MS; whatever else `open` throws, at once. */
export async function awaitStore(
  open: () => Promise<Store>,
  { clock, log }: AwaitStoreOptions,
): Promise<Store> {
  const startedAtMs = clock.nowMs();
  for (let failures = 0; ; failures += 1) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof StoreError && error.retryable)) throw error;
      const pauseMs = Math.min(STORE_RETRY_FIRST_MS * 2 ** failures, STORE_RETRY_MAX_MS);
      const waitedMs = clock.nowMs() - startedAtMs;
      if (waitedMs + pauseMs > STORE_START_MAX_MS) {
        const seconds = Math.round(waitedMs / 1000);
        throw new StoreError(error.code, `${error.message} (tried for ${seconds} s)`, { cause: error });
      }
      if (failures === 0) {
        log.warn(
          { errorCode: error.code, why: error.message, waitMaxMs: STORE_START_MAX_MS },
          'the store is not there yet; the start waits for it',
        );
      }
      await sleep(clock, pauseMs);
    }
  }
}
