/**
 * The form of a dialogue: one small JSON file that the author of an agent writes, `agents/NAME.rehearsal.json` beside
 * the agent or the one that ships. It is checked whole before the first call; `docs/rehearsal.md` explains it.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { ConfigError, errorText } from '../../errors.js';
import { REHEARSAL_DIALOGUE_MAX_CHARS } from './rehearsal-limits.js';
import { extraMessagesSchema } from './extra-message.js';
import {
  chaosSchema,
  misbehaveSchema,
  resumptionMisbehaveSchema,
  setupMisbehaveSchema,
} from './misbehaviour.js';
import { profileChoiceSchema } from './model-profile.js';

/** WebSocket frames; the real service was seen to send both kinds. */
export const FRAME_KINDS = ['binary', 'text', 'mixed'] as const;
export type FrameKind = (typeof FRAME_KINDS)[number];

const sayText = z.string().trim().min(1).max(2_000);
const seconds = z.number().min(0.1).max(3_600);

const callSchema = z.strictObject({
  name: z.string().min(1).max(128),
  /** What is missing of the required ones is made from the declaration's schema. */
  args: z.record(z.string(), z.unknown()).default({}),
  /** Before the speech, in the middle of it, or behind it. */
  at: z.enum(['start', 'middle', 'end']).default('end'),
  /** Spoken after the function's response; without it the turn ends silently. */
  thenSay: sayText.optional(),
  /** Spoken instead when the response is an error. */
  ifError: sayText.optional(),
});
export type DialogueCall = z.infer<typeof callSchema> & {
  /** The arguments stand as they are, also where required ones are missing. */
  readonly isVerbatim?: true;
};

const replyShape = {
  /** Empty when nothing is said. */
  say: sayText.default(''),
  /** Sent as text that is no speech, marked as a thought. */
  thought: sayText.optional(),
  call: callSchema.optional(),
  /** Several in one `toolCall`. */
  calls: z.array(callSchema).min(1).max(8).optional(),
  misbehave: misbehaveSchema.optional(),
  /** Sent as they stand when the answer comes to where they belong. */
  messages: extraMessagesSchema.optional(),
};
type ReplyShape = { say: string; call?: unknown; calls?: unknown; misbehave?: unknown; messages?: unknown };

function doesSomething({ say, call, calls, misbehave, messages }: ReplyShape): boolean {
  return say !== '' || [call, calls, misbehave, messages].some((part) => part !== undefined);
}
const NOTHING = { message: 'needs one of say, call, calls, misbehave, messages' };

const replySchema = z.strictObject(replyShape).refine(doesSomething, NOTHING);
export type DialogueReply = z.infer<typeof replySchema>;

const turnSchema = z
  .strictObject({
    ...replyShape,
    /** What the transcription of the caller says in front of this turn, whatever the caller said. */
    hears: z.string().trim().min(1).max(2_000).optional(),
  })
  .refine(doesSomething, NOTHING);

const keyRuleSchema = z
  .strictObject({
    ...replyShape,
    keys: z.string().regex(/^[0-9*#A-D]+$/, 'needs keys out of 0-9 * # A-D'),
    collect: z.boolean().optional(),
    clear: z.boolean().optional(),
    /** The number is whole: the next digit begins another one. */
    whole: z.boolean().optional(),
    sayWithoutDigits: sayText.optional(),
    callWithoutDigits: callSchema.optional(),
  })
  .refine(doesSomething, NOTHING);

const expression = z
  .string()
  .min(1)
  .max(500)
  .refine(isExpression, { message: 'is not a regular expression' });
const textRuleSchema = z
  .strictObject({
    ...replyShape,
    contains: z.string().min(1).optional(),
    /** A regular expression, of any case; its named groups can be spoken. */
    matches: expression.optional(),
  })
  .refine(doesSomething, NOTHING)
  .refine(({ contains, matches }) => (contains === undefined) !== (matches === undefined), {
    message: 'needs either contains or matches',
  });

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const resultRuleSchema = z
  .strictObject({
    ...replyShape,
    /** The function's name. */
    of: z.string().min(1).max(128),
    /** Fields of the result, `a.b` for a field inside, and what each must be. */
    where: z.record(z.string().regex(/^[\w.]+$/), scalar).default({}),
    /** For results that say that more will come; other rules do not see those. */
    partial: z.boolean().default(false),
  })
  .refine(doesSomething, NOTHING);

const silenceSchema = z.strictObject({ ...replyShape, afterSeconds: seconds }).refine(doesSomething, NOTHING);

const dialogueSchema = z.strictObject({
  profile: profileChoiceSchema.optional(),
  /** How the JSON is sent, `mixed` now so and now so; without it as the service was started. */
  frames: z.enum(FRAME_KINDS).optional(),
  /** What a caller must know before anything else that is not said word for word. */
  disclosure: sayText,
  turns: z.array(turnSchema).min(1).max(100),
  interruptions: z.array(replySchema).min(1).max(100),
  keys: z.array(keyRuleSchema).max(16).default([]),
  texts: z.array(textRuleSchema).max(100).default([]),
  otherText: replySchema,
  results: z.array(resultRuleSchema).max(100).default([]),
  /** Said when a function fails and nothing else was written for it. */
  otherError: replySchema.optional(),
  /** In order, each after so long without a word of either side; a caller who speaks starts them again. */
  silences: z.array(silenceSchema).max(20).default([]),
  setup: setupMisbehaveSchema.optional(),
  resumption: resumptionMisbehaveSchema.optional(),
  chaos: chaosSchema.optional(),
  /** The connection ends after so long, as the real one does after about 600 s, with `goAway` before. */
  life: z.strictObject({ seconds, warningSeconds: z.number().min(0).max(3_600).default(60) }).optional(),
});

/** A checked dialogue. */
export type Dialogue = z.output<typeof dialogueSchema>;

/** Checks dialogue data; throws a ConfigError `config_invalid` that names every fault and its place. */
export function parseDialogue(data: unknown, name: string): Dialogue {
  const parsed = dialogueSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the file'}: ${message}`,
  );
  throw new ConfigError('config_invalid', `${name} is not a dialogue: ${faults.join('; ')}`);
}

/** Reads the shipped dialogue, or another file of its form. Throws a ConfigError that names the file and the fault. */
export function readDialogue(file: URL | string = new URL('./dialogue.json', import.meta.url)): Dialogue {
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  const name = basename(path);
  let data: unknown;
  try {
    const text = readFileSync(path, 'utf8');
    if (text.length > REHEARSAL_DIALOGUE_MAX_CHARS) {
      throw new Error(`it is longer than ${REHEARSAL_DIALOGUE_MAX_CHARS} characters`);
    }
    data = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new ConfigError('config_invalid', `${name} cannot be read: ${errorText(error)}`, { cause: error });
  }
  return parseDialogue(data, name);
}

function isExpression(source: string): boolean {
  try {
    return new RegExp(source, 'iu') instanceof RegExp;
  } catch {
    return false;
  }
}
