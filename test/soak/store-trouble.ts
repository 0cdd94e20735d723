/**
 * A store that fails under servers that run: its database locked by another writer, and its disk full. The disk is a small one of its own
 * (tmpfs), which only root can mount; without it the servers' largest file is limited instead (`prlimit` of util-linux), which SQLite sees as
 * a disk that fails.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { pause } from '../support/wait-until.js';

const DISK_MB = 96;
const BALLAST_STEP_BYTES = 64 * 1024;
const LOCK_TRIES_MAX = 200;

export class SoakDisk {
  readonly folder: string;
  /** Whether the folder is a disk of its own. */
  readonly isMounted: boolean;

  private constructor(folder: string, isMounted: boolean) {
    this.folder = folder;
    this.isMounted = isMounted;
  }

  /** `folder` is there and empty. */
  static open(folder: string): SoakDisk {
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'earshot-soak', folder]);
    return new SoakDisk(folder, mounted.status === 0);
  }

  get database(): string {
    return join(this.folder, 'earshot.db');
  }

  close(): void {
    if (this.isMounted) spawnSync('umount', ['-l', this.folder]);
  }

  /** Nobody else writes for so long. */
  async lock(ms: number): Promise<void> {
    const database = new Database(this.database);
    try {
      await begun(database);
      await pause(ms);
      database.exec('ROLLBACK');
    } finally {
      database.close();
    }
  }

  /** No byte more for so long, for any of the processes. Returns false where that cannot be done here. */
  async fill(ms: number, pids: readonly number[]): Promise<boolean> {
    if (this.isMounted) {
      const ballast = join(this.folder, 'ballast');
      fillUp(ballast);
      await pause(ms);
      rmSync(ballast);
      return true;
    }
    const largest = Math.max(sizeOf(this.database), sizeOf(`${this.database}-wal`));
    const limited = pids.map((pid) => limitFiles(pid, String(largest)));
    await pause(ms);
    for (const pid of pids) limitFiles(pid, 'unlimited');
    return limited.every(Boolean);
  }
}

/** A busy database is tried again, without keeping this process waiting. */
async function begun(database: Database.Database): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      database.exec('BEGIN IMMEDIATE');
      return;
    } catch (error) {
      if (tries === LOCK_TRIES_MAX) throw error;
      await pause(10);
    }
  }
}

function fillUp(file: string): void {
  const handle = openSync(file, 'w');
  try {
    for (let step = BALLAST_STEP_BYTES; step >= 1;) {
      try {
        writeSync(handle, Buffer.alloc(step));
      } catch {
        step = Math.floor(step / 16);
      }
    }
  } finally {
    closeSync(handle);
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function limitFiles(pid: number, bytes: string): boolean {
  return spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]).status === 0;
}
