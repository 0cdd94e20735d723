/**
 * What the server itself tells the model in words, apart from the author's instruction. The rehearsal model's dialogue
 * knows these sentences too.
 */
import type { JsonObject } from '../event/event.js';
import { LIVE_HISTORY_VALUE_MAX_CHARS } from '../limits.js';

/** Said behind every instruction: what the line brings that an author need not know about. */
export const LINE_RULES = [
  'You are on a telephone call. What you say is heard, never read.',
  'Messages that begin with "The caller pressed the key" or "The caller has said nothing" come from the telephone line, not from the caller: act on them, never read them out.',
  'When the conversation is over, say goodbye first and then call end_call. The line is cut when your goodbye has been heard.',
].join('\n');

/** The same for a web client, who hears or reads, speaks or types. */
export const WEB_RULES = [
  'You are in a live conversation with somebody at a web page. Keep what you say short.',
  'Messages that begin with "The caller has said nothing" come from the line, not from the user: act on them, never read them out.',
  'When the conversation is over, say goodbye first and then call end_call. The connection ends when your goodbye has been heard.',
].join('\n');

export const SAID_BEFORE = 'This is what was said in this conversation before:';

/** In front of what a session that is resumed may lack. */
export const SAID_LAST = 'This is what was said and done last in this conversation:';

/** One line of what was said before; quoted, so that nothing in it passes for an instruction's own line. */
export function said(author: string, text: string): string {
  return `${author === 'user' ? 'User' : 'You'}: ${JSON.stringify(text)}`;
}

/** What a function came to; undefined: it is still to come (`isUnderWay`), or nobody knows. What is too long is cut: it is for the
 * model to know, not to read out. */
export function called(
  name: string,
  args: JsonObject,
  response: JsonObject | undefined,
  isUnderWay = false,
): string {
  const call = `You called ${name}(${short(args)})`;
  if (response === undefined && isUnderWay)
    return `${call}; it is still being carried out, and you will be told the result. Do not call it again.`;
  if (response === undefined) return `${call}; what came of it is not known.`;
  return `${call}, and the result was ${short(response)}`;
}

function short(value: JsonObject): string {
  const json = JSON.stringify(value);
  return json.length <= LIVE_HISTORY_VALUE_MAX_CHARS
    ? json
    : `${json.slice(0, LIVE_HISTORY_VALUE_MAX_CHARS)}…`;
}

export function askGreeting(greeting: string | undefined): string {
  if (greeting === undefined) return 'The call has begun. Greet the caller in one or two short sentences.';
  return `The call has begun. Say this greeting now, word for word: ${JSON.stringify(greeting)}`;
}

/** Said behind the instruction of an agent with tools. */
export const TOOL_RULES = [
  'Messages that begin with "Your tool" come from your tools, not from the caller: tell the caller what matters of them in a few words, and never read them out as they are.',
  'Never invent the result of a tool, and never read out its fields or its JSON.',
].join('\n');

/** What a tool reports by itself. */
export function toldByTool(text: string): string {
  return `Your tool ${text}`;
}

export const TRANSFER_FAILED =
  'The caller could not be connected with a human and is still with you. Say so, and offer what you can do yourself.';

export function keyPressed(digit: string): string {
  return `The caller pressed the key "${digit}" on the phone.`;
}

export function callerSilent(seconds: number): string {
  return `The caller has said nothing for ${Math.round(seconds)} seconds. Ask whether they are still there.`;
}

/** Something that a tool has begun goes on, such as an approval that nobody has given yet. */
export function callerWaits(seconds: number): string {
  return `The caller has said nothing for ${Math.round(seconds)} seconds, and what you have begun for them goes on. Say in one short sentence that it does.`;
}

export const ANSWER_REFUSED =
  'Your last answer could not be given, and the caller heard nothing. Say in one short sentence that you cannot answer that, and ask how else you can help.';

export const CALL_MUST_END = 'The call must end now. Say goodbye in one short sentence.';

export const CALLER_IS_BACK =
  'The line was interrupted for a moment and the caller is back. Say so in a few words and go on where you were.';

/** Of what the model was saying when its connection was lost. */
export function brokeOff(heardText: string): string {
  if (heardText === '') return 'Your last answer broke off, and the caller heard nothing of it.';
  return `Your last answer broke off; the caller heard this of it: ${JSON.stringify(heardText)}`;
}

/** What the model is asked when it is back behind a lost connection, and the caller waits for it. */
export function modelIsBack({
  saidLast,
  isUnheard,
}: {
  saidLast: string | undefined;
  isUnheard: boolean;
}): string {
  return [
    'Your connection to the caller was lost for a moment and is back.',
    ...(saidLast === undefined ? [] : [brokeOff(saidLast)]),
    ...(isUnheard
      ? ['What the caller said meanwhile may not have reached you: ask them to say it again if you need it.']
      : []),
    'Go on where you were, without a greeting.',
  ].join(' ');
}

/** To a model that was to say something and did not. */
export const ANSWER_IS_DUE =
  'The caller has finished speaking and hears nothing. Answer them now, or tell them the result that you were given; if you did not understand them, ask them to say it again.';

/** To a model that fell silent in the middle of what it was saying. */
export const SENTENCE_BROKE_OFF =
  'Your last sentence broke off, and the caller hears nothing. Go on with it now.';

/** Who or what cut a message of the model's short. */
export type CutBy = 'caller' | 'tool' | 'line';

const CUT: Readonly<Record<CutBy, string>> = {
  caller: 'The caller cut in and',
  tool: 'You were cut short, and the caller',
  line: 'The line was lost and the caller',
};

/** Put in front of a text that is sent anyway, so that it neither makes the model speak nor stops it. */
export function heardOnly(heardText: string, by: CutBy): string {
  if (heardText === '') return `${CUT[by]} heard nothing of your last message.`;
  return `${CUT[by]} heard only this of your last message: ${JSON.stringify(heardText)}`;
}
