/** What is kept in the repository is source: nothing that a run of the server, or of its tests, leaves behind. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from './project-files.js';

const LEFT_BEHIND =
  /:memory:|\.(db|db-wal|db-shm|sqlite3?|log|heapsnapshot|cpuprofile|tsbuildinfo|env)$|^(data|dist|coverage|heard[^/]*\.wav)(\/|$)/;

/** A copy without its history has nothing to look at. */
const hasHistory = existsSync(join(projectRoot, '.git'));

test.skipIf(!hasHistory)('no file that a run leaves behind is tracked', () => {
  const tracked = execFileSync('git', ['ls-files'], { cwd: projectRoot, encoding: 'utf8' }).split('\n');
  expect(tracked.length).toBeGreaterThan(100);
  expect(tracked.filter((file) => LEFT_BEHIND.test(file))).toEqual([]);
});
