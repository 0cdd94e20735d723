/**
 * A store that fails under servers that run: its database locked by another writer, and its disk full. The disk is a small one of its own
 * (tmpfs), which only root can mount; without it the servers' largest file is limited instead (`prlimit` of util-linux), which SQLite sees as
 * a disk that fails.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pause } from '../support/wait-until.js';

const DISK_MB = 96;
const TROUBLE_MAKER = fileURLToPath(new URL('trouble-maker.mjs', import.meta.url));

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
  lock(ms: number): Promise<void> {
    return makeTrouble('lock', this.database, ms);
  }

  /** No byte more for so long, for any of the processes. Returns false where that cannot be done here. */
  async fill(ms: number, pids: readonly number[]): Promise<boolean> {
    if (this.isMounted) {
      await makeTrouble('fill', join(this.folder, 'ballast'), ms);
      return true;
    }
    const largest = Math.max(sizeOf(this.database), sizeOf(`${this.database}-wal`));
    const limited = pids.map((pid) => limitFiles(pid, String(largest)));
    await pause(ms);
    for (const pid of pids) limitFiles(pid, 'unlimited');
    return limited.every(Boolean);
  }
}

async function makeTrouble(what: 'lock' | 'fill', path: string, ms: number): Promise<void> {
  const child = spawn(process.execPath, [TROUBLE_MAKER, what, path, String(ms)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`no trouble could be made (${what}): exit ${code}`);
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function limitFiles(pid: number, bytes: string): boolean {
  return spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]).status === 0;
}
