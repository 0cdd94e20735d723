/**
 * What is wrong with something that came from outside, in words for whoever sent it: its place, and what may stand there. Never what
 * stood there, which may be what a caller said.
 */
import type { z } from 'zod';

const NOT_TEXT = /\0|\p{Surrogate}/u;

/** Whether a text is the same everywhere: half a surrogate pair has no UTF-8, and NUL no place in PostgreSQL. */
export function isWholeText(text: string): boolean {
  return !NOT_TEXT.test(text);
}

export const NO_WHOLE_TEXT = 'holds NUL or half of a surrogate pair';

/** The first thing that is wrong. `whole` names what is wrong as a whole, such as "the body". */
export function faultText(error: z.ZodError, whole: string): string {
  const [issue] = error.issues;
  if (issue === undefined) return `${whole} is not one that can be read`;
  const place = issue.path.length === 0 ? whole : issue.path.map(String).join('.');
  return `${place}: ${wordsOf(issue)}`;
}

function wordsOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'has a field that it cannot have';
    case 'invalid_type':
      return `must be ${article(issue.expected)}`;
    case 'too_small':
      return issue.minimum === 1 ? 'is empty' : `is below ${issue.minimum}`;
    case 'too_big':
      return issue.origin === 'string'
        ? `is longer than ${issue.maximum} characters`
        : `is above ${issue.maximum}`;
    case 'invalid_value':
      return `must be ${issue.values.map(String).join(' or ')}`;
    case 'custom':
    case 'invalid_format':
      return issue.message;
    default:
      return 'is not one that can be read';
  }
}

function nameOf(type: string): string {
  return type === 'array' ? 'list' : type;
}

function article(type: string): string {
  return `${/^[aeiou]/.test(nameOf(type)) ? 'an' : 'a'} ${nameOf(type)}`;
}
