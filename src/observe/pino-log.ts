/**
 * The server's log: pino, one JSON line an event worth reading. Personal data travels only in `pii`, which is
 * removed here; credentials are redacted wherever they might stand.
 */
import { pino } from 'pino';
import type { Log } from './log.js';

export interface PinoLogOptions {
  readonly level: string;
  readonly pretty: boolean;
}

/** Logs to standard output. */
export function createLog(options: PinoLogOptions): Log {
  const settings = {
    level: options.level,
    base: null,
    redact: { paths: ['pii', '*.pii', 'apiKey', 'authToken', '*.apiKey', '*.authToken'], remove: true },
  };
  if (!options.pretty) return pino(settings);
  return pino({
    ...settings,
    transport: {
      target: 'pino-pretty',
      options: { translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' },
    },
  });
}
