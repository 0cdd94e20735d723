/**
 * Whether there can be a store at `DATABASE_URL`, without making anything: for the doctor.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../errors.js';
import type { Log } from '../observe/log.js';
import { maskOf } from './database-address.js';
import { createPostgresPool } from './postgres-pool.js';
import { storeFailure } from './store-failure.js';

/** Resolves with what was found, for people. @throws StoreError with what is wrong; no password is in it. */
export async function probeStore(databaseUrl: string, log: Log): Promise<string> {
  if (databaseUrl.startsWith('sqlite:')) return probeFile(resolve(databaseUrl.slice('sqlite:'.length)));
  const { address, mask } = maskOf(databaseUrl);
  const pool = createPostgresPool({ url: databaseUrl, log, mask });
  try {
    const client = await pool.connect();
    try {
      await client.query('select 1', []);
    } finally {
      client.release();
    }
    return `${address} answers`;
  } catch (error) {
    throw storeFailure(error, mask);
  } finally {
    await pool.end().catch(() => undefined);
  }
}

function probeFile(path: string): string {
  const standing = nearestExisting(path);
  const isFile = standing === path;
  if (isFile !== statSync(standing).isFile()) {
    throw new StoreError('store_unusable', `${standing} is no ${isFile ? 'file' : 'folder'}`);
  }
  try {
    accessSync(standing, isFile ? constants.R_OK | constants.W_OK : constants.W_OK | constants.X_OK);
  } catch {
    throw new StoreError('store_unusable', `${standing} cannot be written by this user`);
  }
  return isFile ? `${path} can be written` : `${path} can be made`;
}

function nearestExisting(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? path : nearestExisting(parent);
}
