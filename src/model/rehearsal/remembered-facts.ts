/**
 * The one thing that the rehearsal reads in an instruction: what the server says is remembered of the caller, so that a
 * dialogue can show that it arrived.
 */

const REMEMBERED = /what you remember of this caller[^\n]*\n((?:- [^\n]*(?:\n|$))+)/i;

/** As it can be spoken; empty where nothing is remembered. */
export function rememberedFacts(instruction: string): string {
  const [, lines = ''] = REMEMBERED.exec(instruction) ?? [];
  const facts = lines.split('\n').filter((line) => line.startsWith('- '));
  return facts.map((line) => line.slice(2).replaceAll('"', '').trim()).join(', ');
}
