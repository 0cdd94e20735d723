/**
 * What the store's tests have in common: events, keys, a wall clock that tests can set, and a log that keeps its lines.
 */
import { systemClock, type Clock } from '../../src/clock.js';
import { STORE_NAME_MAX_BYTES } from '../../src/limits.js';
import { NO_ACTIONS, type Event, type JsonObject } from '../../src/event/event.js';
import type { Log } from '../../src/observe/log.js';
import type { SessionKey } from '../../src/store/store.js';

/** Names that have met their match in some database or other. */
export const ODD_NAMES = [
  `'; drop table event; --`,
  `" or 1=1 --`,
  '%',
  '_',
  '$1',
  '?',
  '\\',
  '\\x00',
  'a\nb\tc',
  ' leading and trailing ',
  'naïve', // composed
  'nai\u0308ve', // decomposed: another name
  'NAÏVE',
  '日本語',
  '🧑‍🚀📞',
  '\u202eright to left',
  '\ufeffmark',
  '__proto__',
  'constructor',
  'null',
  'undefined',
  '0',
  '00',
  '1e3',
  'x'.repeat(STORE_NAME_MAX_BYTES),
  '😀'.repeat(STORE_NAME_MAX_BYTES / 4),
];

export function sessionKey(id: string, change: Partial<SessionKey> = {}): SessionKey {
  return { appName: 'support', userId: '+12025550123', id, ...change };
}

export function userEvent(id: string, text = `text of ${id}`): Event {
  return {
    id,
    invocationId: 'run-1',
    author: 'user',
    timestamp: 1_764_530_000.25,
    content: { role: 'user', parts: [{ text }] },
    actions: NO_ACTIONS,
  };
}

export function changeEvent(id: string, stateDelta: JsonObject): Event {
  return { ...userEvent(id), actions: { stateDelta, artifactDelta: {} } };
}

/** The machine's timers with a wall clock of its own. */
export class WallClock implements Clock {
  wall = 1_764_530_000_000;

  nowMs(): number {
    return systemClock.nowMs();
  }

  wallMs(): number {
    return this.wall;
  }

  setTimer(delayMs: number, fire: () => void) {
    return systemClock.setTimer(delayMs, fire);
  }
}

export class KeptLog implements Log {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[] = [];

  debug(fields: object, message: string): void {
    this.lines.push({ level: 'debug', fields, message });
  }

  info(fields: object, message: string): void {
    this.lines.push({ level: 'info', fields, message });
  }

  warn(fields: object, message: string): void {
    this.lines.push({ level: 'warn', fields, message });
  }

  error(fields: object, message: string): void {
    this.lines.push({ level: 'error', fields, message });
  }
}

export async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** A promise's error, as one text with all causes. */
export async function errorOf(promise: Promise<unknown>): Promise<{ code: string; text: string }> {
  try {
    await promise;
  } catch (error) {
    const parts: string[] = [];
    for (let one: unknown = error; one instanceof Error; one = one.cause)
      parts.push(one.stack ?? one.message);
    return {
      code: error instanceof Error && 'code' in error ? String(error.code) : '',
      text: parts.join('\n'),
    };
  }
  return { code: 'none', text: '' };
}
