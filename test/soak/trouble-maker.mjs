/**
 * Makes trouble for a store as a process of its own, so that whoever measures need not wait for it: `lock DATABASE MS` keeps SQLite's one write
 * lock, `fill FILE MS` takes all room that the disk has left.
 */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'libsql';

const BALLAST_STEP_BYTES = 64 * 1024;
const TRIES_MAX = 500;

async function lock(path, ms) {
  const database = new Database(path);
  for (let tries = 1; ; tries += 1) {
    try {
      database.exec('BEGIN IMMEDIATE');
      break;
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
      await pause(10);
    }
  }
  await pause(ms);
  database.exec('ROLLBACK');
  database.close();
}

async function fill(path, ms) {
  const file = openSync(path, 'w');
  for (let step = BALLAST_STEP_BYTES; step >= 1;) {
    try {
      writeSync(file, Buffer.alloc(step));
    } catch {
      step = Math.floor(step / 16);
    }
  }
  closeSync(file);
  await pause(ms);
  rmSync(path);
}

const [what, path, ms] = process.argv.slice(2);
await (what === 'lock' ? lock : fill)(path, Number(ms));
