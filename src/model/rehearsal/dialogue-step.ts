/**
 * What the rehearsal model says next, as a pure machine over a dialogue file: turns in order as the caller finishes
 * speaking, answers to keys, typed text, results of functions and silence. It depends on turn-taking, keys, text and
 * results alone, because nothing here understands speech; the first answer that the dialogue finds itself has a
 * sentence in front that says so.
 */
import type { Dialogue, DialogueCall, DialogueReply } from './dialogue.js';
import type { ExtraMessage } from './extra-message.js';
import type { Misbehaviour } from './misbehaviour.js';
import { reportIn, withoutNote } from './server-words.js';
import { fieldOf, fillArgs, fillSpoken, type TemplateValues } from './spoken-template.js';

/** Digits collected from the keypad; more are forgotten from the front. */
const DIGITS_MAX = 32;

export interface DialogueState {
  readonly nextTurn: number;
  readonly nextInterruption: number;
  readonly nextSilence: number;
  /** Collected from the keypad. */
  readonly digits: string;
  /** A key said that they are a whole number: the next digit begins another one. */
  readonly digitsAreWhole: boolean;
  /** Of the caller, by the instruction; empty where it says nothing. */
  readonly remembered: string;
  /** The caller has heard the disclosure. Whoever plays the sound knows, and sets it. */
  readonly disclosed: boolean;
}

/** The result of a function that the dialogue called. */
export interface FunctionResult {
  readonly call: DialogueCall;
  readonly response: Readonly<Record<string, unknown>>;
  /** More results of the same call will come. */
  readonly partial: boolean;
}

/** `caller_finished`: a turn of the caller's is over; `cutIn` when it began by interrupting us. */
export type DialogueEvent =
  | { readonly type: 'caller_finished'; readonly cutIn: boolean }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'result'; readonly result: FunctionResult }
  | { readonly type: 'silence' };

/** A reply with every place in it filled. */
export interface SpokenReply {
  /** Empty when nothing is said. */
  readonly say: string;
  readonly thought: string | undefined;
  readonly calls: readonly DialogueCall[];
  readonly misbehave: readonly Misbehaviour[];
  readonly messages: readonly ExtraMessage[];
}

export interface DialogueStep {
  readonly state: DialogueState;
  /** Undefined when there is nothing to answer. */
  readonly reply: SpokenReply | undefined;
  /** Said in front of the reply, which then is no reply word for word; undefined once it was heard. */
  readonly disclosure: string | undefined;
  /** No rule was for this text or key: it got the answer that any other text gets. */
  readonly isOther: boolean;
}

interface Answer {
  readonly state: DialogueState;
  readonly reply: DialogueReply | undefined;
  readonly values?: TemplateValues;
}

export const DIALOGUE_START: DialogueState = {
  nextTurn: 0,
  nextInterruption: 0,
  nextSilence: 0,
  digits: '',
  digitsAreWhole: false,
  remembered: '',
  disclosed: false,
};

/** The next reply and the state after it; the state given is not changed. */
export function dialogueStep(dialogue: Dialogue, state: DialogueState, event: DialogueEvent): DialogueStep {
  const exact = event.type === 'text' ? wordForWord(event.text.trim()) : undefined;
  if (exact !== undefined) {
    const reply = exact.trim() === '' ? undefined : spoken({ say: exact }, undefined);
    return { state: { ...state, nextSilence: 0 }, reply, disclosure: undefined, isOther: false };
  }
  const answer = answerTo(dialogue, state, event);
  const isOther = answer.reply === dialogue.otherText;
  if (answer.reply === undefined) {
    return { state: answer.state, reply: undefined, disclosure: undefined, isOther };
  }
  const reply = spoken(answer.reply, {
    digits: answer.state.digits,
    remembered: answer.state.remembered,
    ...answer.values,
  });
  return {
    state: answer.state,
    reply,
    disclosure: state.disclosed ? undefined : dialogue.disclosure,
    isOther,
  };
}

/** The transcription that is written for the caller's coming turn; undefined when none is. */
export function heardWords(dialogue: Dialogue, state: DialogueState): string | undefined {
  return dialogue.turns[Math.min(state.nextTurn, dialogue.turns.length - 1)]?.hears;
}

/** The wait in milliseconds after which a silence is answered; undefined when it is not. */
export function silenceWaitMs(dialogue: Dialogue, state: DialogueState): number | undefined {
  const seconds = dialogue.silences[state.nextSilence]?.afterSeconds;
  return seconds === undefined ? undefined : seconds * 1_000;
}

function answerTo(dialogue: Dialogue, state: DialogueState, event: DialogueEvent): Answer {
  switch (event.type) {
    case 'caller_finished':
      return speechAnswer(dialogue, { ...state, nextSilence: 0 }, event.cutIn);
    case 'text':
      return textAnswer(dialogue, { ...state, nextSilence: 0 }, withoutNote(event.text.trim()));
    case 'result':
      return resultAnswer(dialogue, state, event.result);
    case 'silence':
      return {
        state: { ...state, nextSilence: state.nextSilence + 1 },
        reply: dialogue.silences[state.nextSilence],
      };
  }
}

/** `values` is undefined for text that stands as it is. */
function spoken(reply: DialogueReply, values: TemplateValues | undefined): SpokenReply {
  const fill = (text: string) => (values === undefined ? text : fillSpoken(text, values));
  const calls = [...(reply.call === undefined ? [] : [reply.call]), ...(reply.calls ?? [])];
  return {
    say: fill(reply.say),
    thought: reply.thought,
    calls: calls.map((call) => ({
      ...call,
      args: fillArgs(call.args, values ?? {}) as DialogueCall['args'],
    })),
    misbehave: reply.misbehave ?? [],
    messages: reply.messages ?? [],
  };
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
  const report = reportIn(text);
  for (const rule of dialogue.texts) {
    // A call would lead to the next report, and that to the next call.
    if (report !== undefined && doesCall(rule)) continue;
    if (rule.contains !== undefined && lowerCase.includes(rule.contains.toLowerCase())) {
      return { state, reply: rule };
    }
    const match = rule.matches === undefined ? null : new RegExp(rule.matches, 'iu').exec(text);
    if (match !== null) return { state, reply: rule, values: { groups: { ...match.groups } } };
  }
  return { state, reply: report === undefined ? dialogue.otherText : { say: report } };
}

function doesCall({ call, calls }: DialogueReply): boolean {
  return call !== undefined || calls !== undefined;
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
  const before = state.digitsAreWhole && rule.collect === true ? '' : state.digits;
  const digits = rule.collect === true ? (before + key).slice(-DIGITS_MAX) : before;
  const { sayWithoutDigits, callWithoutDigits, call, calls, ...rest } = rule;
  const lacksDigits = digits === '' && (sayWithoutDigits ?? callWithoutDigits) !== undefined;
  const kept = rule.clear === true ? '' : digits;
  return {
    state: { ...state, digits: kept, digitsAreWhole: rule.whole === true },
    reply: lacksDigits
      ? { ...rest, say: sayWithoutDigits ?? '', call: callWithoutDigits }
      : { ...rest, call, calls },
    values: { key, digits },
  };
}

/** By the first rule that fits, else by what stands with the call itself. */
function resultAnswer(
  dialogue: Dialogue,
  state: DialogueState,
  { call, response, partial }: FunctionResult,
): Answer {
  const values = { result: response, resultOf: call.name };
  const rule = dialogue.results.find(
    (one) =>
      one.of === call.name &&
      one.partial === partial &&
      Object.entries(one.where).every(([path, value]) => (fieldOf(response, path) ?? null) === value),
  );
  if (rule !== undefined) return { state, reply: rule, values };
  if (partial) return { state, reply: undefined };
  if (isError(response)) {
    const reply = call.ifError === undefined ? dialogue.otherError : { say: call.ifError };
    return { state, reply, values };
  }
  return { state, reply: call.thenSay === undefined ? undefined : { say: call.thenSay }, values };
}

/** By custom an error is told in a field of that name. */
function isError(response: Readonly<Record<string, unknown>>): boolean {
  return response['error'] !== undefined && response['error'] !== null;
}
