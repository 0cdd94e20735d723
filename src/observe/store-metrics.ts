/**
 * What waits for the store and what never came to it, as metrics. Calls do not notice a database that fails: whoever operates the
 * server has to.
 */
import { Counter, Gauge, type Registry } from 'prom-client';

/** What the writer of events says of itself. */
export interface StoreBacklog {
  readonly events: number;
  readonly bytes: number;
  readonly isFailing: boolean;
}

export interface StoreMetrics {
  /** By the error's code. */
  readonly eventsLost: Counter<'reason'>;
}

const LOSS_REASONS = [
  'store_failed',
  'store_unusable',
  'store_refused',
  'store_conflict',
  'store_no_session',
];

/** `backlog` is asked at each scrape. */
export function storeMetrics(registers: Registry[], backlog: () => StoreBacklog): StoreMetrics {
  const gauge = (name: string, help: string, read: (backlog: StoreBacklog) => number): Gauge =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(backlog()));
      },
    });
  gauge('earshot_store_waiting_events', 'Events that are not stored yet.', ({ events }) => events);
  gauge('earshot_store_waiting_bytes', 'Their size as JSON.', ({ bytes }) => bytes);
  gauge('earshot_store_failing', 'Whether the last try to store events failed.', ({ isFailing }) =>
    Number(isFailing),
  );
  const eventsLost = new Counter({
    name: 'earshot_events_lost_total',
    help: 'Events that will not be stored.',
    labelNames: ['reason'] as const,
    registers,
  });
  for (const reason of LOSS_REASONS) eventsLost.inc({ reason }, 0);
  return { eventsLost };
}
