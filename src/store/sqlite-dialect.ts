/**
 * SQLite for kysely, over the database's thread: one connection, taken in turns. A transaction that may write takes the write
 * lock at its beginning; one that began by reading could not get it later, when another process has written.
 */
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';
import { SqliteFailure, type SqliteThread } from './sqlite-thread-client.js';

export class SqliteThreadDialect implements Dialect {
  readonly #thread: SqliteThread;

  constructor(thread: SqliteThread) {
    this.#thread = thread;
  }

  createDriver(): Driver {
    return new ThreadDriver(this.#thread);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): SqliteAdapter {
    return new TransactionalAdapter();
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- kysely's own signature
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new SqliteIntrospector(db);
  }
}

/** SQLite changes tables within transactions; kysely's own adapter does not rely on it. Its write lock is the migrations' lock. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class ThreadDriver implements Driver {
  readonly #thread: SqliteThread;
  /** Settled when the connection is free. */
  #free: Promise<void> = Promise.resolve();

  constructor(thread: SqliteThread) {
    this.#thread = thread;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#free;
    let release = () => {};
    this.#free = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return new ThreadConnection(this.#thread, release);
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof ThreadConnection) connection.release();
  }

  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    if (connection instanceof ThreadConnection)
      connection.begin(settings.accessMode === 'read only' ? 'begin' : 'begin immediate');
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    if (connection instanceof ThreadConnection && connection.hasBegun)
      await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (!(connection instanceof ThreadConnection) || !connection.hasBegun) return;
    // What made the transaction fail is what matters; a new thread has nothing to roll back.
    await connection.executeQuery(CompiledQuery.raw('rollback')).catch(() => undefined);
  }

  destroy(): Promise<void> {
    return this.#thread.close();
  }
}

class ThreadConnection implements DatabaseConnection {
  readonly #thread: SqliteThread;
  /** The thread in which this connection's first statement ran. */
  #generation: number | undefined;
  /** Goes over with the next statement: a message to the thread costs the event loop more than the statement costs the thread. */
  #begin: string | undefined;
  readonly release: () => void;

  constructor(thread: SqliteThread, release: () => void) {
    this.#thread = thread;
    this.release = release;
  }

  /** Whether anything was asked since `begin`. */
  get hasBegun(): boolean {
    return this.#begin === undefined;
  }

  begin(statement: string): void {
    this.#begin = statement;
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#generation !== undefined && this.#generation !== this.#thread.generation)
      throw new SqliteFailure('', 'the database thread was replaced during a transaction');
    const begin = this.#begin;
    this.#begin = undefined;
    const answered = this.#thread.ask(sql, parameters, begin);
    this.#generation = this.#thread.generation;
    const { rows, changes } = await answered;
    return {
      rows: (rows ?? []) as Row[],
      ...(changes !== undefined && { numAffectedRows: BigInt(changes) }),
    };
  }

  // oxlint-disable-next-line require-yield -- kysely's interface; the store reads by pages
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new SqliteFailure('', 'streaming is not supported');
  }
}
