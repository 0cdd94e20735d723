/**
 * The recorded clips that a caller hears when no model can speak: raw mu-law at 8 kHz, made by `npm run build:sounds`.
 */
import { readFileSync } from 'node:fs';

export const PROMPT_NAMES = ['apology', 'unavailable', 'goodbye', 'draining'] as const;
export type PromptName = (typeof PROMPT_NAMES)[number];

/** What each clip says, for the transcript. */
export const PROMPT_TEXTS: Readonly<Record<PromptName, string>> = {
  apology: '',
  unavailable: '',
  goodbye: '',
  draining: '',
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
