/** How a soak is asked for; `scripts/soak.mjs` makes these variables of its options. */

export interface SoakOptions {
  readonly seed: number;
  readonly calls: number;
  readonly atOnce: number;
  /** Words of faults and events; empty: all of them. */
  readonly only: string;
  /** One call of that draw alone, without what happens to servers and store. */
  readonly onlyCall: number | undefined;
  /** A folder into which the servers' logs are written. */
  readonly logs: string | undefined;
}

const DEFAULTS = { SOAK_SEED: 20_260_101, SOAK_CALLS: 200, SOAK_AT_ONCE: 60 } as const;

/**
 * What happens to the servers and the store in the middle of a soak, and after what share of the calls; one after the other. A server that
 * dies while nothing can be stored takes with it what it knows, and no other could go on: the store is well again by then.
 */
export const SOAK_EVENTS = [
  { name: 'store-locked', after: 0.08 },
  { name: 'store-full', after: 0.2 },
  { name: 'sigterm', after: 0.4 },
  { name: 'sigkill', after: 0.6 },
  { name: 'store-locked-again', after: 0.85 },
] as const;
export type SoakEventName = (typeof SOAK_EVENTS)[number]['name'];

/** Fewer calls are over before anything could happen in their middle. */
const CALLS_WITH_EVENTS_MIN = 5;

function wholeNumber(
  name: keyof typeof DEFAULTS | 'SOAK_ONLY_CALL',
  text: string | undefined,
): number | undefined {
  if (text === undefined || text === '') return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} is a whole number`);
  return Number(text);
}

export function readSoakOptions(env: Readonly<Record<string, string | undefined>>): SoakOptions {
  const number = (name: keyof typeof DEFAULTS): number => wholeNumber(name, env[name]) ?? DEFAULTS[name];
  return {
    seed: number('SOAK_SEED'),
    calls: number('SOAK_CALLS'),
    atOnce: Math.max(1, number('SOAK_AT_ONCE')),
    only: env['SOAK_ONLY'] ?? '',
    onlyCall: wholeNumber('SOAK_ONLY_CALL', env['SOAK_ONLY_CALL']),
    logs: env['SOAK_LOGS'] || undefined,
  };
}

/** The events of a soak, each with the number of calls that have begun by then. */
export function eventsOf({
  only,
  calls,
  onlyCall,
}: SoakOptions): { name: SoakEventName; afterCalls: number }[] {
  if (onlyCall !== undefined || calls < CALLS_WITH_EVENTS_MIN) return [];
  const words = wordsOf(only);
  return SOAK_EVENTS.filter(
    ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
  ).map(({ name, after }) => ({ name, afterCalls: Math.floor(after * calls) }));
}

/** `only` without the words that name events; where nothing is left, calls without a fault. */
export function faultWords(only: string): string {
  const words = wordsOf(only);
  const left = words.filter((word) => !SOAK_EVENTS.some(({ name }) => name.includes(word)));
  return words.length > 0 && left.length === 0 ? 'none' : left.join(',');
}

function wordsOf(only: string): string[] {
  return only
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}
