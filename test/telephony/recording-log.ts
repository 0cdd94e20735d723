/** A log that keeps what it was told. */
import type { Log } from '../../src/observe/log.js';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export class RecordingLog implements Log {
  readonly lines: LogLine[] = [];

  debug(fields: object, message: string): void {
    this.#keep('debug', fields, message);
  }

  info(fields: object, message: string): void {
    this.#keep('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#keep('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#keep('error', fields, message);
  }

  /** Everything outside `pii`, as one text to search. */
  get publicText(): string {
    return this.lines
      .map(({ fields, message }) => JSON.stringify({ ...fields, pii: undefined, message }))
      .join('\n');
  }

  #keep(level: LogLine['level'], fields: object, message: string): void {
    this.lines.push({ level, fields: fields as Record<string, unknown>, message });
  }
}
