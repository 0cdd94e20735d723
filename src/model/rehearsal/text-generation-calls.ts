/**
 * Which declared functions a text names, and with what: `lookup_order` itself, or its words in order ("look up my
 * order A-10293"), each with the JSON that follows it or with arguments found in the words. Names only; no
 * understanding.
 */
import { REHEARSAL_CALLS_MAX, REHEARSAL_TEXT_MAX_CHARS } from './rehearsal-limits.js';
import { argumentsFrom } from './text-generation-arguments.js';
import type { DeclaredFunction } from './text-generation-request.js';

export interface ChosenCall {
  readonly name: string;
  readonly args: Record<string, unknown>;
}

interface Mention {
  readonly declared: DeclaredFunction;
  readonly start: number;
  readonly end: number;
}

/** In the order of the text, one call a mention. Only the first part of a very long text is looked at. */
export function namedCalls(functions: readonly DeclaredFunction[], fullText: string): ChosenCall[] {
  const text = fullText.slice(0, REHEARSAL_TEXT_MAX_CHARS);
  const mentions = mentionsIn(functions, text);
  const calls: ChosenCall[] = [];
  let readTo = 0;
  for (const [index, { declared, start, end }] of mentions.entries()) {
    // A name inside the JSON of the call before is no call.
    if (start < readTo || calls.length >= REHEARSAL_CALLS_MAX) continue;
    const after = text.slice(end, mentions[index + 1]?.start ?? text.length);
    const json = after.includes('{') ? jsonObjectIn(text.slice(end)) : undefined;
    // Of one function alone, what stands before its name is meant for it too.
    const before = mentions.length === 1 ? text.slice(0, start) : '';
    const args = json?.value ?? argumentsFrom(declared.schema, `${after} ${before}`.trim());
    calls.push({ name: declared.name, args });
    readTo = end + (json?.length ?? 0);
  }
  return calls;
}

/** Mentions that do not overlap: where two names match at one place, the longer is meant. */
function mentionsIn(functions: readonly DeclaredFunction[], text: string): Mention[] {
  const found = functions.flatMap((declared) =>
    [...text.matchAll(mentionOf(declared.name))].map((match): Mention => {
      return { declared, start: match.index, end: match.index + match[0].length };
    }),
  );
  const longestFirst = found.toSorted((a, b) => b.end - b.start - (a.end - a.start) || a.start - b.start);
  const kept: Mention[] = [];
  for (const mention of longestFirst) {
    if (kept.every(({ start, end }) => mention.end <= start || mention.start >= end)) kept.push(mention);
  }
  return kept.toSorted((a, b) => a.start - b.start);
}

/** The name as it is, or its words with at most two others between each two; `lookup` is also `look up`. */
function mentionOf(name: string): RegExp {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .split(/[_.:-]+/)
    .filter((word) => word !== '')
    .map((word) => word.split('').join('[ -]?'));
  const exact = name.replaceAll(/[^\w]/g, String.raw`\$&`);
  const spoken = words.join(String.raw`[\s,_-]+(?:\w+[\s,]+){0,2}`);
  return new RegExp(String.raw`(?<!\w)(?:${exact}|${spoken})(?!\w)`, 'gi');
}

/** Nothing but calls that are written out, `lookup_order {"order_id":"A-10293"}`, one or several: what is typed to a voice. Where the
 * JSON is missing, the arguments are the caller's business. Undefined for a text with anything else in it. */
export function writtenCalls(
  isDeclared: (name: string) => boolean,
  text: string,
): { readonly name: string; readonly args: Record<string, unknown> | undefined }[] | undefined {
  const calls: { name: string; args: Record<string, unknown> | undefined }[] = [];
  let left = text.trim();
  while (left !== '') {
    const name = /^[A-Za-z_][\w.:-]{0,127}(?=[\s{]|$)/.exec(left)?.[0];
    if (name === undefined || !isDeclared(name) || calls.length >= REHEARSAL_CALLS_MAX) return undefined;
    left = left.slice(name.length).trimStart();
    const json = left.startsWith('{') ? jsonObjectIn(left) : undefined;
    calls.push({ name, args: json?.value });
    left = left.slice(json?.length ?? 0).trimStart();
  }
  return calls.length === 0 ? undefined : calls;
}

/** The first JSON object of a text, if it holds one that is whole, and the length of the text to its end. */
function jsonObjectIn(text: string): { value: Record<string, unknown>; length: number } | undefined {
  const start = text.indexOf('{');
  if (start < 0) return undefined;
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '\\' && quoted) at += 1;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === '{') depth += 1;
    else if (!quoted && character === '}') {
      depth -= 1;
      if (depth > 0) continue;
      const value = parsedObject(text.slice(start, at + 1));
      return value === undefined ? undefined : { value, length: at + 1 };
    }
  }
  return undefined;
}

function parsedObject(json: string): Record<string, unknown> | undefined {
  try {
    // It begins with a brace, so what parses is an object.
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
