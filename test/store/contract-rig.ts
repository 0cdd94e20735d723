/**
 * The stores of one test of the contract: opened on one database, closed when the test is over.
 */
import { silentLog } from '../../src/observe/log.js';
import { openStore } from '../../src/store/open-store.js';
import type { SessionKey, Store } from '../../src/store/store.js';
import { WallClock } from './store-fixture.js';

export interface Backend {
  /** Address of a new, empty database. */
  fresh(): Promise<string>;
  /** Runs a statement beside the store, on the database of this address. */
  query(url: string, statement: string): Promise<void>;
}

export class ContractRig {
  readonly #backend: () => Backend;
  readonly #opened: Store[] = [];
  readonly clock = new WallClock();
  url = '';

  constructor(backend: () => Backend) {
    this.#backend = backend;
  }

  get backend(): Backend {
    return this.#backend();
  }

  /** Another store on the same database. */
  async open(address = this.url): Promise<Store> {
    const store = await openStore(address, { clock: this.clock, log: silentLog });
    this.#opened.push(store);
    return store;
  }

  async openFresh(): Promise<Store> {
    this.url = await this.backend.fresh();
    return this.open();
  }

  /** A fresh store that has this session. */
  async withSession(key: SessionKey): Promise<Store> {
    const store = await this.openFresh();
    await store.createSession(key);
    return store;
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((store) => store.close()));
  }
}
