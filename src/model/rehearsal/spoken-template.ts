/**
 * Places in a dialogue's text that are filled when it is spoken: `{key}`, `{digits}`, `{remembered}`, `{result.status}`, `{result}` for
 * what of a result can be said, and the named groups of a text rule's expression. The same places may stand in the arguments of a function call.
 */

import { responseSentence } from './response-sentence.js';
import { isRecord } from './text-generation-arguments.js';

/** What can be filled in, by the name that stands in the braces. */
export interface TemplateValues {
  readonly key?: string;
  readonly digits?: string;
  /** What the instruction says is remembered of the caller; may be empty. */
  readonly remembered?: string;
  readonly result?: unknown;
  /** The function whose result it is. */
  readonly resultOf?: string;
  /** Named groups of the typed text that matched. */
  readonly groups?: Readonly<Record<string, string | undefined>>;
}

const PLACE = /\{([a-z_][\w.]{0,100})\}/gi;
/** Said where the function's result has no such field. */
const MISSING = 'unknown';
/** Said where nothing is remembered. */
const NOTHING = 'nothing';

/** For the ear: digits one by one ("one zero two", not "a hundred and two"), keys by their names. */
export function fillSpoken(text: string, values: TemplateValues): string {
  return text.replaceAll(PLACE, (place, name: string) => {
    if (name === 'key') return values.key === undefined ? place : spokenKey(values.key);
    if (name === 'digits') return values.digits === undefined ? place : values.digits.split('').join(' ');
    if (name === 'remembered') return values.remembered || NOTHING;
    return plainValue(name, values) ?? place;
  });
}

/** For a function: as it stands. A text that is one place alone becomes the value itself, a number say. */
export function fillArgs(args: unknown, values: TemplateValues): unknown {
  if (Array.isArray(args)) return args.map((one: unknown) => fillArgs(one, values));
  if (typeof args === 'object' && args !== null) {
    return Object.fromEntries(Object.entries(args).map(([name, one]) => [name, fillArgs(one, values)]));
  }
  if (typeof args !== 'string') return args;
  const whole = /^\{result\.([\w.]+)\}$/.exec(args)?.[1];
  if (whole !== undefined) return fieldOf(values.result, whole) ?? args;
  return args.replaceAll(PLACE, (place, name: string) => {
    if (name === 'key') return values.key ?? place;
    if (name === 'digits') return values.digits ?? place;
    return plainValue(name, values) ?? place;
  });
}

function plainValue(name: string, { result, resultOf, groups }: TemplateValues): string | undefined {
  if (name === 'result' || name.startsWith('result.')) {
    if (result === undefined) return undefined;
    if (name === 'result') return isRecord(result) ? responseSentence(resultOf ?? 'it', result) : MISSING;
    return spokenValue(fieldOf(result, name.slice('result.'.length)));
  }
  return groups?.[name];
}

/** `a.0.b` of the result; own fields only. */
export function fieldOf(result: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (at, step) =>
        typeof at === 'object' && at !== null && Object.hasOwn(at, step) ? Reflect.get(at, step) : undefined,
      result,
    );
}

function spokenValue(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? MISSING : value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value) && value.length > 0) return value.map(spokenValue).join(', ');
  return MISSING;
}

function spokenKey(key: string): string {
  if (key === '#') return 'pound';
  return key === '*' ? 'star' : key;
}
