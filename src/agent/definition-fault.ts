/** What is wrong with what an author declared, in one line of plain words: each field by its path, and what it must be. */
import type { z } from 'zod';

/** `definition` is what was checked. */
export function definitionFault(error: z.ZodError, definition: unknown): string {
  const faults = error.issues.flatMap((issue) => faultsOf(issue, definition));
  return faults.length === 0 ? 'is not valid' : faults.join('; ');
}

function faultsOf(issue: z.core.$ZodIssue, definition: unknown): string[] {
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `${[...path, key].join('.')} is no field that there is`);
  if (path.length === 0) return [wordsOf(issue)];
  const isMissing = valueAt(definition, path) === undefined;
  return [`${path.join('.')} ${isMissing ? 'is missing' : wordsOf(issue)}`];
}

function valueAt(whole: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined),
    whole,
  );
}

function wordsOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${NAMES[issue.expected] ?? issue.expected}`;
    case 'too_small': {
      if (COUNTED[issue.origin] !== undefined && issue.minimum === 1) return 'is empty';
      return issue.inclusive === true ? `must be ${issue.minimum} or more` : `must be above ${issue.minimum}`;
    }
    case 'too_big': {
      const counted = COUNTED[issue.origin];
      if (counted !== undefined) return `has more than ${issue.maximum} ${counted}`;
      return `must be ${issue.maximum} or less`;
    }
    default:
      // Of the schema's own, written to stand behind a path.
      return issue.message;
  }
}

const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};
const COUNTED: Readonly<Record<string, string>> = { string: 'characters', array: 'entries' };
