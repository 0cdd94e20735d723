/**
 * What the rehearsal reads in an instruction, and nothing else: what the server says is remembered of the caller, so that a
 * dialogue can show that it arrived, and whether a sentence was said in this conversation before, so that a caller who is
 * reconnected with a fresh session is not told the same twice. The server's words are those of `src/call/line-texts.ts`.
 */

const REMEMBERED = /what you remember of this caller[^\n]*\n((?:- [^\n]*(?:\n|$))+)/i;
const SAID_BEFORE = /this is what was said in this conversation before:(.*)$/is;

/** As it can be spoken; empty where nothing is remembered. */
export function rememberedFacts(instruction: string): string {
  const [, lines = ''] = REMEMBERED.exec(instruction) ?? [];
  const facts = lines.split('\n').filter((line) => line.startsWith('- '));
  return facts.map((line) => line.slice(2).replaceAll('"', '').trim()).join(', ');
}

/** The conversation began on another connection. */
export function hasPast(instruction: string): boolean {
  return SAID_BEFORE.test(instruction);
}

/** Whether the model has said the sentence before; one that was cut off does not count. */
export function wasSaidBefore(instruction: string, sentence: string): boolean {
  const [, lines = ''] = SAID_BEFORE.exec(instruction) ?? [];
  // The lines are JSON strings, so a quotation mark in them has a backslash in front.
  const quoted = JSON.stringify(sentence).slice(1, -1);
  return lines.split('\n').some((line) => line.startsWith('You: ') && line.includes(quoted));
}
