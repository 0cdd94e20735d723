/**
 * What an author's code hands us: returned, thrown or rejected with. It may be a Proxy whose every trap throws, so that nothing
 * of it is looked at but through these.
 */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError, errorText } from './errors.js';

/** `instanceof` that never throws: it asks for a prototype, which a Proxy may refuse to tell. */
export function isInstance<Type>(
  value: unknown,
  type: abstract new (...args: never[]) => Type,
): value is Type {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/** Whatever is no Error becomes one with its text. What is one is still the author's. */
export function asError(thrown: unknown): Error {
  return isInstance(thrown, Error) ? thrown : new Error(errorText(thrown));
}

/** A field of it that is text; undefined where it has none, or throws. Never throws. */
export function textOf(value: unknown, field: string): string | undefined {
  try {
    const text: unknown = (value as Record<string, unknown> | null | undefined)?.[field];
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a field of it is true. Never throws. */
export function isSet(value: object, field: string): boolean {
  try {
    return (value as Record<string, unknown>)[field] === true;
  } catch {
    return false;
  }
}

/** For what should be no promise: one that fails, with nobody there to hear it, would be a stray error. Never throws. */
export function ignoreRejection(value: unknown): void {
  (async () => value)().catch(() => {});
}

/** A promise for an author, who may not wait for it: its failure is then nobody's, and no stray error. */
export function handedOut<Value>(work: () => Value | Promise<Value>): Promise<Value> {
  const promise = (async () => work())();
  ignoreRejection(promise);
  return promise;
}

/** What it was thrown for; undefined where there is none, or where it throws. Never throws. */
export function causeOf(error: unknown): unknown {
  try {
    return (error as { readonly cause?: unknown } | null | undefined)?.cause;
  } catch {
    return undefined;
  }
}

/** A line of a stack as V8 writes it: a place in a file or in Node, or one without a file. */
const FILE = String.raw`((?:file://|node:|/|[A-Za-z]:[\\/])[^\n]{1,500}:\d+:\d+)`;
const PLACE = `(?:${FILE}|<anonymous>|index \\d+)`;
const FRAME = new RegExp(String.raw`^ {4}at (?:[^\n]{1,200} \(${PLACE}\)|(?:async )?${PLACE})$`);

/** The lines of its stack without the message, which may have lines of its own. Never throws. */
export function framesOf(error: unknown): readonly string[] {
  const stack = textOf(error, 'stack') ?? '';
  const message = textOf(error, 'message') ?? '';
  const lines = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split('\n');
  return lines.slice(lines.findLastIndex((line) => !FRAME.test(line)) + 1);
}

/** The server's own modules; an agent's lie elsewhere, those of `agents/` too. */
const OWN_FOLDER = `${dirname(fileURLToPath(import.meta.url))}/`;
const PACKAGES = '/node_modules/';

/** Whether the first file that its stack names, Node's own apart, is one of the server's. */
export function isOurs(error: unknown): boolean {
  return filesOf(error)[0]?.startsWith(OWN_FOLDER) === true;
}

/** Where in an author's code it was thrown, as `file:line:column`; undefined where the stack does not tell. */
export function placeOf(error: unknown): string | undefined {
  return filesOf(error).find((file) => !file.startsWith(OWN_FOLDER) && !file.includes(PACKAGES));
}

function filesOf(error: unknown): readonly string[] {
  return framesOf(error).flatMap((frame) => {
    const [, inBrackets, alone] = FRAME.exec(frame) ?? [];
    const file = inBrackets ?? alone;
    if (file === undefined || file.startsWith('node:')) return [];
    return [file.startsWith('file:') ? fileURLToPath(file) : file];
  });
}

/** For the log, of what failed because of an author's code: our words and the place in plain, the author's words under `pii`. */
export function faultFields(error: unknown): object {
  const cause = causeOf(error);
  const isKnown = isInstance(error, AppError);
  return {
    ...(isKnown && { cause: error.message }),
    at: placeOf(isKnown ? cause : error),
    pii: { cause: errorText(isKnown ? cause : error) },
  };
}
