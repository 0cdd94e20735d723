/**
 * What a database said, as one of the store's errors: whether it is worth trying again, and in words for the operator. The
 * driver's own message stays as the cause, without the password.
 */
import { StoreError } from '../errors.js';

type FailureCode = 'store_failed' | 'store_unusable';

/** SQLSTATE classes and codes (https://www.postgresql.org/docs/current/errcodes-appendix.html), SQLite's result codes
 * (https://www.sqlite.org/rescode.html) and Node's own, the first that fits. */
const BY_CODE: readonly (readonly [pattern: RegExp, code: FailureCode, text: string])[] = [
  [/^(SQLITE_FULL|53100)$/, 'store_failed', 'the disk of the database is full'],
  [/^SQLITE_(BUSY|LOCKED)/, 'store_failed', 'the database is locked by another process'],
  [/^(SQLITE_READONLY|25006$)/, 'store_failed', 'the database is read-only'],
  [/^SQLITE_(IOERR|PROTOCOL|NOMEM)/, 'store_failed', 'the disk of the database fails'],
  [/^SQLITE_(CORRUPT|NOTADB|FORMAT)/, 'store_unusable', 'the database file is damaged, or is no database'],
  [/^SQLITE_(CANTOPEN|PERM|AUTH)/, 'store_unusable', 'the database file cannot be opened'],
  [/^(57014|55P03|25P03)$/, 'store_failed', 'the database took too long'],
  [
    /^(40001|40P01|23505|SQLITE_CONSTRAINT)/,
    'store_failed',
    'the same thing was changed by others at every try',
  ],
  [/^53300$/, 'store_failed', 'the database takes no more connections'],
  [/^53/, 'store_failed', 'the database is short of memory or space'],
  [/^(57P0[1-5]|08)/, 'store_failed', 'the connection to the database broke, or it is starting or stopping'],
  [/^28/, 'store_unusable', 'the database refused the login'],
  [/^3D/, 'store_unusable', 'there is no database of that name'],
  [/^(42501|3F)/, 'store_unusable', 'the database does not let this user do that'],
  [/^58/, 'store_failed', 'the disk of the database fails'],
  [/^XX/, 'store_failed', 'the database reports damage or a fault of its own'],
  [/^(ENOTFOUND|EAI_)/, 'store_failed', 'the name of the database server is not known'],
  [/^E[A-Z]+$/, 'store_failed', 'the database server cannot be reached'],
];

/** pg's own errors carry no code. */
const BY_TEXT: readonly (readonly [pattern: RegExp, code: FailureCode, text: string])[] = [
  [/does not support SSL/, 'store_unusable', 'the database server speaks no TLS, which its address asks for'],
  [/timeout|did not answer in time/i, 'store_failed', 'the database did not answer in time'],
  [/Unable to open connection to local database/, 'store_unusable', 'the database file cannot be opened'],
  [/connection|not queryable|pool/i, 'store_failed', 'the connection to the database broke'],
  [/password|SASL|SCRAM/, 'store_unusable', 'the database refused the login'],
  [/database is closed|driver has already been destroyed/, 'store_failed', 'the store is closed'],
];

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** Whether the same change, made again, may pass: another one came in between. */
export function isConflict(error: unknown): boolean {
  return /^(40001|40P01|23505|SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE))$/.test(codeOf(error));
}

/** `mask` takes secrets out of the driver's text. */
export function storeFailure(error: unknown, mask: (text: string) => string): StoreError {
  if (error instanceof StoreError) return error;
  const driverText = mask(error instanceof Error ? error.message : String(error));
  const driverCode = codeOf(error);
  const found =
    BY_CODE.find(([pattern]) => pattern.test(driverCode)) ??
    BY_TEXT.find(([pattern]) => pattern.test(driverText)) ??
    ([undefined, 'store_failed', 'the database failed'] as const);
  const [, code, text] = found;
  const message = driverCode === '' ? text : `${text} (${driverCode})`;
  // A new error: the driver's own has details, which may hold what was stored.
  return new StoreError(code, message, { cause: new Error(driverText) });
}
