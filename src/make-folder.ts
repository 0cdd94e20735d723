/**
 * Makes a folder and what is missing above it, step by step. Node's own `recursive` never returns where the file system says
 * that a folder is not there and cannot be made (`/proc/x`): it tries again and again, on the event loop.
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** For the server's user alone. Throws what the file system says. */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (
    let folder = resolve(path);
    statSync(folder, { throwIfNoEntry: false }) === undefined;
    folder = dirname(folder)
  )
    missing.unshift(folder);
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it meanwhile.
      if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
    }
  }
}
