/**
 * This side of SQLite's thread: requests go over in order and are answered in order. A thread that dies or does not answer in
 * time fails everything it was asked, and another takes its place with the next request; a transaction that the old
 * one had begun is lost with it, which `generation` tells.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../clock.js';
import { SQLITE_BUSY_MAX_MS, SQLITE_STATEMENT_MAX_MS, SQLITE_STATEMENTS_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';

/** What SQLite, or the thread, said. `code` is SQLite's (`SQLITE_FULL`), or empty. */
export class SqliteFailure extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'SqliteFailure';
    this.code = primaryCode(code);
  }
}

/** SQLite's primary result codes by number, those that a store can meet (https://www.sqlite.org/rescode.html). */
const PRIMARY_CODES: Readonly<Record<number, string>> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  15: 'SQLITE_PROTOCOL',
  19: 'SQLITE_CONSTRAINT',
  23: 'SQLITE_AUTH',
  26: 'SQLITE_NOTADB',
};

/** libsql has no names for some extended codes, such as that of a read-only folder; their last 8 bits are the primary code. */
function primaryCode(code: string): string {
  const unnamed = /^UNKNOWN_SQLITE_ERROR_(\d+)$/.exec(code)?.[1];
  return unnamed === undefined ? code : (PRIMARY_CODES[Number(unnamed) & 0xff] ?? code);
}

export interface SqliteAnswer {
  readonly rows?: Record<string, unknown>[];
  readonly changes?: number;
}

interface Waiting {
  readonly resolve: (answer: SqliteAnswer) => void;
  readonly reject: (error: SqliteFailure) => void;
}

export interface SqliteThreadOptions {
  /** Absolute. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The thread's file; another one is for tests of a thread that dies. */
  readonly threadUrl?: URL;
}

export class SqliteThread {
  readonly #options: SqliteThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #generation = 0;
  #nextId = 1;
  #watch: Timer | undefined;
  /** Answers so far; the watch sees from it whether there was any. */
  #answers = 0;
  #closed = false;

  constructor(options: SqliteThreadOptions) {
    this.#options = options;
  }

  /** Rises when a thread is lost. */
  get generation(): number {
    return this.#generation;
  }

  /** Runs a statement, after `begin` where it is given. Rejects with SqliteFailure. */
  ask(sql: string, parameters: readonly unknown[] = [], begin?: string): Promise<SqliteAnswer> {
    if (this.#closed) return Promise.reject(new SqliteFailure('', 'the database is closed'));
    const worker = (this.#worker ??= this.#start());
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, sql, parameters, begin }, []);
      this.#watch ??= this.#startWatch(this.#answers);
    });
  }

  /** Closes the file after what was asked before. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const closing = this.#worker === undefined ? undefined : this.ask('close');
    this.#closed = true;
    // A thread that fails now has nothing open any more.
    await closing?.catch(() => undefined);
    this.#watch?.cancel();
    const worker = this.#worker;
    // It ends because we say so: nothing has failed, and nothing is replaced.
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): Worker {
    const { path, threadUrl } = this.#options;
    const url = threadUrl ?? new URL('./sqlite-thread.mjs', import.meta.url);
    const worker = new Worker(url, {
      execArgv: [],
      workerData: { path, busyMaxMs: SQLITE_BUSY_MAX_MS, statementsMax: SQLITE_STATEMENTS_MAX },
    });
    const failed = (why: string) => {
      if (this.#worker === worker) this.#fail(why);
    };
    worker.on(
      'message',
      (answer: { id: number; error?: { code: string; message: string } } & SqliteAnswer) => {
        if (this.#worker === worker) this.#answered(answer);
      },
    );
    worker.on('error', (error) => failed(`the database thread failed: ${String(error)}`));
    worker.on('messageerror', () => failed('the database thread sent what cannot be read'));
    worker.on('exit', (code) => failed(`the database thread ended with code ${code}`));
    return worker;
  }

  #answered({
    id,
    error,
    ...answer
  }: { id: number; error?: { code: string; message: string } } & SqliteAnswer) {
    this.#answers += 1;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#rest();
    if (error === undefined) waiting?.resolve(answer);
    else waiting?.reject(new SqliteFailure(error.code, error.message));
  }

  /** One timer for all: requests are answered in order, so that any answer shows a thread that works. */
  #startWatch(answers: number): Timer {
    return this.#options.clock.setTimer(SQLITE_STATEMENT_MAX_MS, () => {
      this.#watch = undefined;
      if (this.#waiting.size === 0) return;
      if (this.#answers === answers) this.#fail('the database did not answer in time');
      else this.#watch = this.#startWatch(this.#answers);
    });
  }

  #rest(): void {
    this.#watch?.cancel();
    this.#watch = undefined;
    // An idle thread does not keep a finished command alive.
    this.#worker?.unref();
  }

  #fail(why: string): void {
    this.#options.log.warn({ why }, "SQLite's thread is replaced");
    const worker = this.#worker;
    this.#worker = undefined;
    this.#generation += 1;
    const failed = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#watch?.cancel();
    this.#watch = undefined;
    for (const { reject } of failed) reject(new SqliteFailure('', why));
    // Not waited for: a thread that hangs in a system call ends when that returns.
    void worker?.terminate();
  }
}
