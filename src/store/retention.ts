/**
 * How long conversations are kept: the command and the route mean the same by it.
 */
import type { Clock } from '../clock.js';
import { StoreError } from '../errors.js';
import type { DeletedCounts, Store } from './store.js';

const DAY_MS = 24 * 60 * 60_000;

/**
 * Deletes what has had no activity for so many days; a part of a day counts.
 * @throws StoreError `store_refused` for what is no number above 0.
 */
export async function prune(
  store: Pick<Store, 'deleteOlderThan'>,
  clock: Pick<Clock, 'wallMs'>,
  days: unknown,
): Promise<DeletedCounts> {
  if (typeof days !== 'number' || !Number.isFinite(days) || days <= 0)
    throw new StoreError('store_refused', 'days must be a number above 0');
  return store.deleteOlderThan(Math.floor(clock.wallMs() - days * DAY_MS));
}
