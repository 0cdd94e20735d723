/**
 * What a part of the server needs of a log: pino's own calls, fields first. Personal data (numbers, transcripts,
 * digits, provider text) goes only into a nested `pii` field, which the real log leaves out unless it is told to.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For tests and commands that want quiet. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
