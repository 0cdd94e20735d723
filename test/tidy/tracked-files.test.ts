/** What is kept in the repository is source: nothing that a run of the server, or of its tests, leaves behind. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const LEFT_BEHIND =
  /\.(db|db-wal|db-shm|sqlite3?|log|heapsnapshot|cpuprofile|tsbuildinfo|env)$|(^|\/)(data|dist|coverage|heard[^/]*\.wav)(\/|$)/;

test('no file that a run leaves behind is tracked', () => {
  const tracked = execFileSync('git', ['ls-files'], { encoding: 'utf8' }).split('\n');
  expect(tracked.length).toBeGreaterThan(100);
  expect(tracked.filter((file) => LEFT_BEHIND.test(file))).toEqual([]);
});
