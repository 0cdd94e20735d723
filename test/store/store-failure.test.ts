import { describe, expect, test } from 'vitest';
import { SqliteFailure } from '../../src/store/sqlite-thread-client.js';
import { isConflict, storeFailure } from '../../src/store/store-failure.js';

function coded(code: string, message = 'secret words'): Error {
  return Object.assign(new Error(message), { code });
}

describe('what a database says', () => {
  test.each([
    ['SQLITE_FULL', 'store_failed', 'disk of the database is full'],
    ['SQLITE_BUSY_SNAPSHOT', 'store_failed', 'locked'],
    ['SQLITE_READONLY_DBMOVED', 'store_failed', 'read-only'],
    ['SQLITE_IOERR_FSYNC', 'store_failed', 'disk of the database fails'],
    ['SQLITE_CORRUPT_VTAB', 'store_unusable', 'damaged'],
    // A read-only folder, a shared-memory file that cannot be mapped, a full disk, a locked file.
    ['UNKNOWN_SQLITE_ERROR_1544', 'store_failed', 'read-only'],
    ['UNKNOWN_SQLITE_ERROR_5386', 'store_failed', 'disk of the database fails'],
    ['UNKNOWN_SQLITE_ERROR_13', 'store_failed', 'disk of the database is full'],
    ['UNKNOWN_SQLITE_ERROR_517', 'store_failed', 'locked'],
    ['UNKNOWN_SQLITE_ERROR_1038', 'store_unusable', 'cannot be opened'],
    ['UNKNOWN_SQLITE_ERROR_99', 'store_failed', 'the database failed'],
    ['53100', 'store_failed', 'disk of the database is full'],
    ['53300', 'store_failed', 'no more connections'],
    ['57P01', 'store_failed', 'starting or stopping'],
    ['57014', 'store_failed', 'took too long'],
    ['28P01', 'store_unusable', 'refused the login'],
    ['3D000', 'store_unusable', 'no database of that name'],
    ['42501', 'store_unusable', 'does not let this user'],
    ['40P01', 'store_failed', 'changed by others'],
    ['ECONNREFUSED', 'store_failed', 'cannot be reached'],
    ['EAI_AGAIN', 'store_failed', 'is not known'],
    ['12345', 'store_failed', 'the database failed'],
  ])('as %s becomes %s: %s', (said, code, words) => {
    const error = said.includes('SQLITE') ? new SqliteFailure(said, 'secret words') : coded(said);
    const failure = storeFailure(error, (text) => text.replaceAll('secret', '***'));
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(words);
    expect(failure.message).not.toContain('secret');
    expect(String(failure.cause)).toContain('*** words');
    expect(String(failure.cause)).not.toContain('secret');
  });

  test.each([
    ['40001', true],
    ['40P01', true],
    ['23505', true],
    ['SQLITE_CONSTRAINT_PRIMARYKEY', true],
    ['SQLITE_CONSTRAINT_UNIQUE', true],
    ['SQLITE_CONSTRAINT_NOTNULL', false],
    ['SQLITE_BUSY', false],
    ['ECONNRESET', false],
    ['23502', false],
  ])('as %s is worth another try at once: %s', (said, isWorth) => {
    expect(isConflict(coded(said))).toBe(isWorth);
  });

  test('that is nothing at all is a failure, too', () => {
    for (const odd of [undefined, null, 'text', 7, { code: 5 }])
      expect(storeFailure(odd, (text) => text)).toMatchObject({ code: 'store_failed' });
  });
});
