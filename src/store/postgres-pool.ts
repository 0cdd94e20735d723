/**
 * Connections to PostgreSQL for kysely: a bounded pool with a bound on every wait, in which a connection that broke or did not
 * answer is thrown away instead of being handed to the next one.
 */
import { Pool, types, type PoolClient, type PoolConfig, type QueryResult } from 'pg';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import {
  POSTGRES_ANSWER_MAX_MS,
  POSTGRES_CONNECT_MAX_MS,
  POSTGRES_CONNECTIONS_MAX,
  POSTGRES_IDLE_TRANSACTION_MAX_MS,
  POSTGRES_STATEMENT_MAX_MS,
} from '../limits.js';
import type { Log } from '../observe/log.js';

type TypeId = (typeof types.builtins)[keyof typeof types.builtins];

function settings(url: string): PoolConfig {
  return {
    connectionString: url,
    max: POSTGRES_CONNECTIONS_MAX,
    connectionTimeoutMillis: POSTGRES_CONNECT_MAX_MS,
    statement_timeout: POSTGRES_STATEMENT_MAX_MS,
    query_timeout: POSTGRES_ANSWER_MAX_MS,
    idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MAX_MS,
    application_name: 'earshot',
    keepAlive: true,
    // pg gives a 64-bit integer as text; ours are milliseconds and counts, which a number holds.
    types: {
      getTypeParser: (oid: TypeId, format?: 'text' | 'binary') =>
        oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
    },
  };
}

export function createPostgresPool({
  url,
  log,
  mask,
}: {
  readonly url: string;
  readonly log: Log;
  readonly mask: (text: string) => string;
}): PostgresPool {
  const pool = new Pool(settings(url));
  // An idle connection that breaks would end the process if nobody listened; the pool replaces it by itself.
  pool.on('error', (error) => log.warn({ why: mask(error.message) }, 'an idle database connection broke'));
  return {
    connect: async () => new CarefulClient(await pool.connect()) as unknown as PostgresPoolClient,
    end: () => pool.end(),
  };
}

/** One connection while it is lent out. Without cursors, which the store does not use. */
class CarefulClient {
  readonly #client: PoolClient;
  #broken: Error | undefined;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  async query(text: string, parameters: readonly unknown[]): Promise<QueryResult> {
    if (this.#broken !== undefined) throw this.#broken;
    try {
      return await this.#client.query(text, [...parameters]);
    } catch (error) {
      // Only PostgreSQL's own answers carry a severity; anything else means that there was no answer.
      if (error instanceof Error && !('severity' in error)) this.#broken = error;
      throw error;
    }
  }

  release(): void {
    this.#client.release(this.#broken !== undefined);
  }
}
