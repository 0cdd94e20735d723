import { afterAll, beforeAll } from 'vitest';
import { PostgresServer } from './postgres-server.js';
import { storeContract } from './store-contract.js';

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
});

afterAll(() => server.stop());

storeContract('PostgreSQL', () => ({
  fresh: () => server.createDatabase(),
  query: async (url, statement) => {
    await server.query(new URL(url).pathname.slice(1), statement);
  },
}));
