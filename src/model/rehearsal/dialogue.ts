/**
 * What the rehearsal model says next, as a pure machine over a small data file: turns in order as the caller
 * finishes speaking, answers to keys and typed text, and a last turn that calls a function. It depends on
 * turn-taking, keys and typed text alone, because nothing here understands speech; the first answer that the dialogue
 * finds itself has a sentence in front that says so.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError, errorText } from '../../errors.js';

/** Digits collected from the keypad; more are forgotten from the front. */
const DIGITS_MAX = 32;

const sayText = z.string().trim().min(1).max(2_000);
const replySchema = z.strictObject({
  say: sayText,
  call: z
    .strictObject({
      name: z.string().min(1),
      args: z.record(z.string(), z.unknown()),
      /** Spoken after the function's response; without it the turn ends silently. */
      thenSay: sayText.optional(),
    })
    .optional(),
});
const keyRuleSchema = z.strictObject({
  keys: z.string().regex(/^[0-9*#A-D]+$/),
  collect: z.boolean().optional(),
  clear: z.boolean().optional(),
  say: sayText,
  sayWithoutDigits: sayText.optional(),
});
const dialogueSchema = z.strictObject({
  /** What a caller must know before anything else that is not said word for word. */
  disclosure: sayText,
  turns: z.array(replySchema).min(1).max(100),
  interruptions: z.array(replySchema).min(1).max(100),
  keys: z.array(keyRuleSchema).max(16),
  texts: z.array(replySchema.extend({ contains: z.string().min(1) })).max(100),
  otherText: replySchema,
});

export type Dialogue = z.infer<typeof dialogueSchema>;
export type DialogueReply = z.infer<typeof replySchema>;

export interface DialogueState {
  readonly nextTurn: number;
  readonly nextInterruption: number;
  /** Collected from the keypad. */
  readonly digits: string;
  /** The caller has heard the disclosure. Whoever plays the sound knows, and sets it. */
  readonly disclosed: boolean;
}

/** `caller_finished`: a turn of the caller's is over; `cutIn` when it began by interrupting us. */
export type DialogueEvent =
  | { readonly type: 'caller_finished'; readonly cutIn: boolean }
  | { readonly type: 'text'; readonly text: string };

export interface DialogueStep {
  readonly state: DialogueState;
  /** Undefined when there is nothing to answer. */
  readonly reply: DialogueReply | undefined;
  /** Said in front of the reply, which then is no reply word for word; undefined once it was heard. */
  readonly disclosure: string | undefined;
}

type Answer = Pick<DialogueStep, 'state' | 'reply'>;

export const DIALOGUE_START: DialogueState = {
  nextTurn: 0,
  nextInterruption: 0,
  digits: '',
  disclosed: false,
};

/** Checks dialogue data; throws a ConfigError that names every fault and its place. */
export function parseDialogue(data: unknown, name: string): Dialogue {
  const parsed = dialogueSchema.safeParse(data);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the file'}: ${message}`,
  );
  throw new ConfigError('config_invalid', `${name} is not a dialogue: ${faults.join('; ')}`);
}

/** Reads the shipped dialogue, or another one of its form. */
export function readDialogue(file = new URL('./dialogue.json', import.meta.url)): Dialogue {
  const name = file.pathname.split('/').at(-1) ?? 'dialogue';
  let data: unknown;
  try {
    data = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigError('config_invalid', `${name} cannot be read: ${errorText(error)}`, { cause: error });
  }
  return parseDialogue(data, name);
}

/** The next reply and the state after it; the state given is not changed. */
export function dialogueStep(dialogue: Dialogue, state: DialogueState, event: DialogueEvent): DialogueStep {
  const exact = event.type === 'text' ? wordForWord(event.text.trim()) : undefined;
  if (exact !== undefined) {
    return { state, reply: exact.trim() === '' ? undefined : { say: exact }, disclosure: undefined };
  }
  const answer =
    event.type === 'text'
      ? textAnswer(dialogue, state, event.text.trim())
      : speechAnswer(dialogue, state, event.cutIn);
  const isDue = answer.reply !== undefined && !state.disclosed;
  return { ...answer, disclosure: isDue ? dialogue.disclosure : undefined };
}

function speechAnswer(dialogue: Dialogue, state: DialogueState, cutIn: boolean): Answer {
  if (cutIn) {
    const reply = dialogue.interruptions[state.nextInterruption % dialogue.interruptions.length];
    return { state: { ...state, nextInterruption: state.nextInterruption + 1 }, reply };
  }
  // After the last turn there is nothing new to say: it is said again.
  const turn = Math.min(state.nextTurn, dialogue.turns.length - 1);
  return { state: { ...state, nextTurn: turn + 1 }, reply: dialogue.turns[turn] };
}

function textAnswer(dialogue: Dialogue, state: DialogueState, text: string): Answer {
  if (text === '') return { state, reply: undefined };
  const key = pressedKey(text);
  if (key !== undefined) return keyAnswer(dialogue, state, key);
  const lowerCase = text.toLowerCase();
  const rule = dialogue.texts.find(({ contains }) => lowerCase.includes(contains.toLowerCase()));
  return { state, reply: rule ?? dialogue.otherText };
}

/** The TEXT of `… word for word: "TEXT"`, a JSON string; also when the quotes are missing or the string is broken. */
function wordForWord(text: string): string | undefined {
  const phrase = /word for word:\s*/i.exec(text);
  if (phrase === null) return undefined;
  const rest = text.slice(phrase.index + phrase[0].length);
  const quoted = /^"(?:[^"\\]|\\.)*"/s.exec(rest)?.[0];
  try {
    const exact: unknown = JSON.parse(quoted ?? '');
    if (typeof exact === 'string') return exact;
  } catch {
    // Said as it stands, below.
  }
  return rest.replaceAll('"', ' ').trim();
}

/** The key in `The caller pressed the key "5" on the phone.` and in `[The caller pressed 5]`. */
function pressedKey(text: string): string | undefined {
  return /\bpressed (?:the )?(?:key )?["']?([0-9*#A-D])(?![\w*#])/i.exec(text)?.[1]?.toUpperCase();
}

function keyAnswer(dialogue: Dialogue, state: DialogueState, key: string): Answer {
  const rule = dialogue.keys.find(({ keys }) => keys.includes(key));
  if (rule === undefined) return { state, reply: dialogue.otherText };
  const digits = rule.collect === true ? (state.digits + key).slice(-DIGITS_MAX) : state.digits;
  const form = digits === '' ? (rule.sayWithoutDigits ?? rule.say) : rule.say;
  // Digits one by one: "one zero two", not "a hundred and two".
  const say = form.replaceAll('{key}', spokenKey(key)).replaceAll('{digits}', digits.split('').join(' '));
  return { state: { ...state, digits: rule.clear === true ? '' : digits }, reply: { say } };
}

function spokenKey(key: string): string {
  if (key === '#') return 'pound';
  return key === '*' ? 'star' : key;
}
