/**
 * What the rehearsal answers to a text conversation, as a pure function of it: the lines of a dialogue in order, its
 * answers to texts, calls of functions that the dialogue or the user names, and after a function's response a sentence
 * out of it. It understands nothing, and its first words in a conversation say so.
 */
import type { Dialogue } from './dialogue.js';
import { DIALOGUE_START, dialogueStep, type SpokenReply } from './dialogue-step.js';
import { rememberedFacts } from './remembered-facts.js';
import { responseSentence } from './response-sentence.js';
import { argumentsFrom, exampleOf } from './text-generation-arguments.js';
import { type ChosenCall, namedCalls } from './text-generation-calls.js';
import { callsIn, isModel, responsesIn, textOf } from './text-generation-history.js';
import {
  callingMode,
  type DeclaredFunction,
  declaredFunctions,
  type GenerateRequest,
  type TextContent,
} from './text-generation-request.js';

export interface TextAnswer {
  /** Empty when it only calls functions. */
  readonly text: string;
  readonly calls: readonly ChosenCall[];
}

export function textAnswer(dialogue: Dialogue, request: GenerateRequest): TextAnswer {
  const turn = currentTurn(dialogue, request);
  const answer = answerTo(dialogue, turn, request);
  const text = isValueWanted(request) ? valueText(request, turn, answer.text) : answer.text;
  if (text === '' || turn.isDisclosed || turn.isExact || isValueWanted(request)) return { ...answer, text };
  return { ...answer, text: `${dialogue.disclosure} ${text}` };
}

/** The words with which the user's current turn began. */
export function userText(contents: readonly TextContent[]): string {
  return userTurns(contents).at(-1) ?? '';
}

interface CurrentTurn {
  readonly text: string;
  /** What the dialogue says to it; undefined when it has nothing to say. */
  readonly reply: SpokenReply | undefined;
  /** The reply is for these words, not the next line in order. */
  readonly isMeant: boolean;
  /** Asked for word for word. */
  readonly isExact: boolean;
  readonly isDisclosed: boolean;
  /** Of the functions that were called last; empty while the user's words stand unanswered. */
  readonly responses: ReturnType<typeof responsesIn>;
  /** Called in this turn already. */
  readonly called: readonly string[];
}

/** Contents of the user's with no answer between them are one turn. */
function userTurns(contents: readonly TextContent[]): string[] {
  const turns: string[] = [];
  let isOpen = false;
  for (const content of contents) {
    if (isModel(content)) isOpen = false;
    else if (responsesIn(content).length === 0) {
      const text = textOf(content);
      if (isOpen) turns.push([turns.pop(), text].join('\n'));
      else turns.push(text);
      isOpen = true;
    }
  }
  return turns;
}

function currentTurn(dialogue: Dialogue, { contents, systemInstruction }: GenerateRequest): CurrentTurn {
  const isDisclosed = contents.some(
    (content) => isModel(content) && textOf(content).includes(dialogue.disclosure),
  );
  const remembered = systemInstruction === undefined ? '' : rememberedFacts(textOf(systemInstruction));
  let state = { ...DIALOGUE_START, remembered, disclosed: isDisclosed };
  let turn = { text: '', isMeant: false, isExact: false, reply: undefined as SpokenReply | undefined };
  for (const text of userTurns(contents)) {
    const typed = dialogueStep(dialogue, { ...state, disclosed: false }, { type: 'text', text });
    const isMeant = typed.reply !== undefined && !typed.isOther;
    // A text that no rule of the dialogue is for gets the next line, as speech does that nothing here understands.
    const step = isMeant ? typed : dialogueStep(dialogue, state, { type: 'caller_finished', cutIn: false });
    state = { ...step.state, disclosed: isDisclosed };
    turn = { text, isMeant, reply: step.reply, isExact: isMeant && typed.disclosure === undefined };
  }
  const start = contents.findLastIndex((content) => !isModel(content) && responsesIn(content).length === 0);
  const called = contents.slice(start + 1).flatMap((content) => callsIn(content).map(({ name }) => name));
  const last = contents.at(-1);
  return { ...turn, isDisclosed, called, responses: last === undefined ? [] : responsesIn(last) };
}

function answerTo(dialogue: Dialogue, turn: CurrentTurn, request: GenerateRequest): TextAnswer {
  const functions = callable(request);
  const isForced = callingMode(request) === 'ANY';
  if (turn.responses.length > 0) {
    if (isForced) return { text: '', calls: forcedCall(functions, turn) };
    return { text: resultText(dialogue, turn), calls: [] };
  }
  const scripted = (turn.reply?.calls ?? []).filter((call) =>
    functions.some(({ name }) => name === call.name),
  );
  const named = turn.isMeant ? [] : namedCalls(functions, turn.text);
  if (named.length > 0) return { text: '', calls: named };
  if (scripted.length > 0) {
    const text = isForced ? '' : (turn.reply?.say ?? '');
    return { text, calls: scripted.map(({ name, args }) => ({ name, args })) };
  }
  if (isForced) return { text: '', calls: forcedCall(functions, turn) };
  return { text: turn.reply?.say ?? '', calls: [] };
}

/** The functions that the request lets the model call. */
function callable(request: GenerateRequest): DeclaredFunction[] {
  const allowed = request.toolConfig?.functionCallingConfig?.allowedFunctionNames ?? [];
  if (callingMode(request) === 'NONE') return [];
  return declaredFunctions(request).filter(({ name }) => allowed.length === 0 || allowed.includes(name));
}

/** A model that must call something does so for ever; the functions not called yet in this turn come first. */
function forcedCall(functions: readonly DeclaredFunction[], turn: CurrentTurn): ChosenCall[] {
  const next = functions.find(({ name }) => !turn.called.includes(name)) ?? functions[0];
  return next === undefined ? [] : [{ name: next.name, args: argumentsFrom(next.schema, turn.text) }];
}

/** The dialogue's own words for it, else a sentence for each response. An error is never talked over. */
function resultText(dialogue: Dialogue, turn: CurrentTurn): string {
  const scripted = turn.reply?.calls ?? [];
  const sentences = turn.responses.map(({ name, response = {} }) => {
    const call = scripted.find((candidate) => candidate.name === name);
    if (call === undefined) return responseSentence(name, response);
    const result = { call, response, partial: false };
    const said = dialogueStep(dialogue, DIALOGUE_START, { type: 'result', result }).reply?.say;
    return said === undefined || said === '' ? responseSentence(name, response) : said;
  });
  return sentences.join(' ');
}

/** Not words but a value, by `responseMimeType`. */
function isValueWanted(request: GenerateRequest): boolean {
  const type = request.generationConfig?.responseMimeType ?? '';
  return type !== '' && type !== 'text/plain';
}

/** A value of the form asked for; where none was, an object with the answer. */
function valueText(request: GenerateRequest, turn: CurrentTurn, text: string): string {
  if (text === '') return '';
  const schema = request.generationConfig?.responseJsonSchema ?? request.generationConfig?.responseSchema;
  const value = schema === undefined ? { message: text } : exampleOf(schema, turn.text);
  // `text/x.enum` is the bare name of one of the values.
  const isBare = request.generationConfig?.responseMimeType === 'text/x.enum' && typeof value === 'string';
  return isBare ? value : JSON.stringify(value);
}
