/**
 * The recorded clips that a caller hears when no model can speak: raw mu-law at 8 kHz, made by `npm run build:sounds`.
 */
import { readFileSync } from 'node:fs';

export const PROMPT_NAMES = ['apology', 'unavailable', 'goodbye', 'draining', 'hold'] as const;
export type PromptName = (typeof PROMPT_NAMES)[number];

/** What each clip says. */
export const PROMPT_TEXTS: Readonly<Record<PromptName, string>> = {
  apology:
    "I'm sorry, we have a technical problem and have to end this call. Please call again later. Goodbye.",
  unavailable: "I'm sorry, we cannot take your call at the moment. Please call again later. Goodbye.",
  goodbye: 'Thank you for calling. Goodbye.',
  draining: "I'm sorry, we are taking a short break. Please call again in a few minutes. Goodbye.",
  hold: 'One moment, please.',
};

export type Prompts = Readonly<Record<PromptName, Uint8Array>>;

/** Reads every clip at the start of the server, so that a missing one is found then. */
export function loadPrompts(): Prompts {
  const clips = PROMPT_NAMES.map((name) => [
    name,
    readFileSync(new URL(`./prompts/${name}.ulaw`, import.meta.url)),
  ]);
  return Object.fromEntries(clips) as Prompts;
}
