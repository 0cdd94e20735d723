/**
 * How the store reaches its database: every change in one transaction, tried again when another server changed the same thing at
 * the same moment; every read of several tables from one snapshot; every failure as a StoreError.
 */
import { sleep, type Clock } from '../clock.js';
import { StoreError } from '../errors.js';
import { uniformRandom } from '../ids.js';
import { STORE_TRIES_MAX } from '../limits.js';
import type { Connection, Database } from './schema.js';
import { isConflict, storeFailure } from './store-failure.js';

/** The first pause before another try; doubled each time, and spread. */
const CONFLICT_PAUSE_MS = 5;

export interface TransactionsOptions {
  readonly db: Database;
  readonly clock: Clock;
  /** Takes secrets out of a text. */
  readonly mask: (text: string) => string;
}

export class Transactions {
  readonly #options: TransactionsOptions;
  #closed = false;

  constructor(options: TransactionsOptions) {
    this.#options = options;
  }

  /** `tried` is how often it was tried before. Nothing is changed when it rejects, unless the connection broke at the commit. */
  async change<Result>(work: (trx: Connection, tried: number) => Promise<Result>): Promise<Result> {
    for (let tried = 0; ; tried += 1) {
      try {
        this.#assertOpen();
        return await this.#options.db.transaction().execute((trx) => work(trx, tried));
      } catch (error) {
        if (!isConflict(error) || tried + 1 >= STORE_TRIES_MAX) throw storeFailure(error, this.#options.mask);
        await sleep(this.#options.clock, CONFLICT_PAUSE_MS * 2 ** tried * (0.5 + uniformRandom()));
      }
    }
  }

  /** All that `work` reads is of one moment. */
  async snapshot<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    return this.direct((db) =>
      db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute((trx) => work(trx)),
    );
  }

  /** One statement, or what needs no transaction. */
  async direct<Result>(work: (db: Database) => Promise<Result>): Promise<Result> {
    try {
      this.#assertOpen();
      return await work(this.#options.db);
    } catch (error) {
      throw storeFailure(error, this.#options.mask);
    }
  }

  /** Lets what has begun finish. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#options.db.destroy();
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError('store_failed', 'the store is closed');
  }
}
