import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, describe, expect, test } from 'vitest';
import { storeContract } from './store-contract.js';

const folder = mkdtempSync(join(tmpdir(), 'earshot-sqlite-'));
let files = 0;

function freshPath(): string {
  files += 1;
  return join(folder, `${files}`, 'earshot.db');
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

storeContract('SQLite', () => ({
  fresh: async () => `sqlite:${freshPath()}`,
  query: async (url, statement) => {
    const database = new Database(url.slice('sqlite:'.length));
    database.exec(statement);
    database.close();
  },
}));
