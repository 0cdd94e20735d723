/**
 * The server's log: pino, one JSON line an event worth reading. Personal data travels only in `pii`, credentials in
 * no field at all: both are left out here, however deep they stand and whatever carries them, errors too.
 */
import { type DestinationStream, type LoggerOptions, pino, stdSerializers } from 'pino';
import type { Log } from './log.js';

export interface PinoLogOptions {
  readonly level: string;
  readonly pretty: boolean;
}

/** Names of fields, in any case, whose values are personal or open a door. */
const LEFT_OUT = /^pii$|(authorization|cookie|password|secret|token|api[_-]?key|shared[_-]?key)$/i;
/** Deeper than anything that the server logs; what lies below is not written. */
const DEPTH_MAX = 6;

/** Logs to standard output; JSON lines to `destination`, where one is given. */
export function createLog(options: PinoLogOptions, destination?: DestinationStream): Log {
  const settings: LoggerOptions = {
    level: options.level,
    base: null,
    formatters: { log: (fields) => publicFields(fields, 1) },
  };
  if (options.pretty) {
    const pretty = { translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' };
    return pino({ ...settings, transport: { target: 'pino-pretty', options: pretty } });
  }
  return destination === undefined ? pino(settings) : pino(settings, destination);
}

function publicFields(fields: object, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!LEFT_OUT.test(name)) shown[name] = publicValue(value, depth + 1);
  }
  return shown;
}

function publicValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEPTH_MAX) return '…';
  if (Array.isArray(value)) return value.map((item) => publicValue(item, depth + 1));
  if (value instanceof Error) return publicFields(stdSerializers.err(value), depth);
  return 'toJSON' in value ? value : publicFields(value, depth);
}
