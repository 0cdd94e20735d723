/**
 * What the server itself puts into a text: the note of what was heard, in front of any text, and what an agent's tool reports, as
 * "Your tool NAME reports: …", a pending call's outcome or a follow-up. The sentences are those of `src/call/line-texts.ts`.
 */
import { responseSentence } from './response-sentence.js';
import { isRecord } from './text-generation-arguments.js';

const NOTE = /^(?:The caller cut in and heard|You were cut short, and|The line was lost and)[^\n]*\n/;
const REPORT = /^Your tool (.+)$/s;
/** What it reports stands behind a colon, as text or as JSON. */
const REPORTED = /^(\w[\w.-]*)[^:{"]*: (.+)$/s;

/** The text that the note stands in front of. */
export function withoutNote(text: string): string {
  return text.replace(NOTE, '').trim();
}

/** What can be said of a tool's report; undefined for any other text. */
export function reportIn(text: string): string | undefined {
  const told = REPORT.exec(text)?.[1]?.trim();
  if (told === undefined) return undefined;
  const [, name = '', value] = REPORTED.exec(told) ?? [];
  if (value === undefined) return told;
  try {
    const json: unknown = JSON.parse(value);
    if (isRecord(json)) return responseSentence(name, json);
  } catch {
    // It is text.
  }
  return value;
}
