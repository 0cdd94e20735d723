/** Whether there can be files in `DATA_DIR`, found out without making anything. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorText } from './errors.js';

export interface DataFolder {
  readonly path: string;
  readonly isThere: boolean;
  /** Why nothing can be written there; undefined where it can. */
  readonly fault: string | undefined;
}

/** A folder that is not there can be made where the nearest one above it can be written. */
export function lookAtDataFolder(dataDir: string): DataFolder {
  const path = resolve(dataDir);
  const standing = nearestExisting(path);
  return { path, isThere: standing === path, fault: writeFault(standing) };
}

function writeFault(folder: string): string | undefined {
  try {
    if (!statSync(folder).isDirectory()) return `${folder} is no folder`;
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function nearestExisting(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? path : nearestExisting(parent);
}
