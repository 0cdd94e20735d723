/**
 * An answer as the responses that carry it: words in uneven chunks, each function call in a chunk of its own, the
 * finishReason in the last one and the tokens so far in each. The whole answer in one response is the same without the
 * cuts. Everything here follows from the answer and the seed.
 */
import { REHEARSAL_OUTPUT_TOKENS_MAX } from './rehearsal-limits.js';
import type { SeededRandom } from './seeded-random.js';
import type { TextAnswer } from './text-generation-answer.js';
import type { TextFault } from './text-generation-fault.js';
import { callSignature, callsIn, signsCalls, textOf } from './text-generation-history.js';
import type { GenerateRequest } from './text-generation-request.js';

/** Google's figures: English text is about four characters a token, a picture 258 tokens. */
const CHARS_PER_TOKEN = 4;
const TOKENS_OF_MEDIA = 258;
const FIRST_WORDS_MAX = 2;
const WORDS_MIN = 2;
const WORDS_MAX = 6;

/** Written on the wire as it is; a type alias, because its fields are Google's. */
export type GenerateResponse = Readonly<Record<string, unknown>>;

export interface ChunkOptions {
  readonly request: GenerateRequest;
  /** The name in the path. */
  readonly model: string;
  readonly responseId: string;
  readonly answer: TextAnswer;
  readonly promptTokenCount: number;
  readonly random: SeededRandom;
  readonly fault?: TextFault | undefined;
}

interface Piece {
  readonly part?: object;
  readonly finishReason?: string;
  /** Of all pieces to this one. */
  readonly tokens: number;
}

/** The answer as a stream of responses. A fault that cuts it leaves its first half. */
export function answerChunks(options: ChunkOptions): GenerateResponse[] {
  const { fault } = options;
  const ended = emptyEnd(options);
  if (ended !== undefined) return [ended];
  const pieces = piecesOf(options);
  const whole = pieces.map((piece) => responseOf(options, piece));
  if (fault === 'cut_off' || fault === 'unfinished' || fault === 'error_in_stream') {
    return whole.slice(0, Math.max(1, Math.floor(whole.length / 2)));
  }
  if (fault !== 'safety') return whole;
  const half = pieces.slice(0, Math.max(1, Math.floor(pieces.length / 2)));
  const tokens = half.at(-1)?.tokens ?? 0;
  const end = responseOf(options, { finishReason: 'SAFETY', tokens });
  return [...whole.slice(0, half.length), end];
}

/** The answer as one response: everything that the chunks say. */
export function wholeAnswer(options: ChunkOptions): GenerateResponse {
  const ended = emptyEnd(options);
  if (ended !== undefined) return ended;
  const { text, finishReason } = boundedText(options);
  const isCut = options.fault === 'safety';
  const said = isCut ? text.slice(0, Math.floor(text.length / 2)) : text;
  const parts = [...(said === '' ? [] : [{ text: said }]), ...(isCut ? [] : callParts(options))];
  const content = parts.length === 0 ? { role: 'model' } : { role: 'model', parts };
  const candidate = { content, finishReason: isCut ? 'SAFETY' : finishReason, index: 0 };
  const chars = parts.reduce((sum, part) => sum + charsOf(part), 0);
  return envelope(options, { candidates: [candidate] }, tokensOf(chars));
}

/** Responses that end before anything was said. */
function emptyEnd(options: ChunkOptions): GenerateResponse | undefined {
  switch (options.fault) {
    case 'no_candidates':
      return envelope(options, {}, 0);
    case 'blocked':
      return envelope(options, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 0);
    case 'no_content':
      return responseOf(options, { finishReason: 'STOP', tokens: 0 });
    case 'malformed_function_call': {
      const candidate = { content: {}, finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 };
      const finishMessage = 'Malformed function call: rehearsal(';
      return envelope(options, { candidates: [{ ...candidate, finishMessage }] }, 0);
    }
    default:
      return undefined;
  }
}

function piecesOf(options: ChunkOptions): Piece[] {
  const { text, finishReason } = boundedText(options);
  const words = cutIntoChunks(text, options.random).map((chunk): object => ({ text: chunk }));
  let chars = 0;
  const pieces = [...words, ...callParts(options)].map((part): Piece => {
    chars += charsOf(part);
    return { part, tokens: tokensOf(chars) };
  });
  const last = pieces.at(-1);
  // The service ends either with the last words or with a chunk that has none, and so do we, by the seed.
  const endsWithWords = options.answer.calls.length === 0 && options.random.chance(0.5);
  if (last !== undefined && endsWithWords) return [...pieces.slice(0, -1), { ...last, finishReason }];
  return [...pieces, { finishReason, tokens: last?.tokens ?? 0 }];
}

/** The words up to a stop sequence or to the last token that the request allows. */
function boundedText({ answer, request }: ChunkOptions): { text: string; finishReason: string } {
  const config = request.generationConfig;
  const stops = (config?.stopSequences ?? []).filter((stop) => stop !== '');
  const ends = stops.map((stop) => answer.text.indexOf(stop)).filter((at) => at >= 0);
  const text = answer.text.slice(0, Math.min(answer.text.length, ...ends));
  const tokensMax = Math.min(config?.maxOutputTokens ?? Infinity, REHEARSAL_OUTPUT_TOKENS_MAX);
  const charsMax = tokensMax * CHARS_PER_TOKEN;
  if (text.length <= charsMax) return { text, finishReason: 'STOP' };
  // Never between the two halves of a surrogate pair.
  const cut = text.slice(0, charsMax).replace(/[\ud800-\udbff]$/, '');
  return { text: cut, finishReason: 'MAX_TOKENS' };
}

/** Runs of words, the first short as the service's are; joined they are the text. */
function cutIntoChunks(text: string, random: SeededRandom): string[] {
  const words = text.match(/\s*\S+\s*$|\s*\S+/g) ?? (text === '' ? [] : [text]);
  const chunks: string[] = [];
  for (let at = 0; at < words.length;) {
    const count = at === 0 ? random.between(1, FIRST_WORDS_MAX) : random.between(WORDS_MIN, WORDS_MAX);
    chunks.push(words.slice(at, at + count).join(''));
    at += count;
  }
  return chunks;
}

/** Calls are counted through the conversation, so that no two have one id. The first of an answer is signed. */
function callParts({ answer, request, model }: ChunkOptions): object[] {
  const before = request.contents.reduce((count, content) => count + callsIn(content).length, 0);
  return answer.calls.map(({ name, args }, index) => {
    const ordinal = before + index + 1;
    const functionCall = { id: `rehearsal-call-${ordinal}`, name, args };
    if (index > 0 || !signsCalls(model)) return { functionCall };
    return { functionCall, thoughtSignature: callSignature(ordinal) };
  });
}

function responseOf(options: ChunkOptions, { part, finishReason, tokens }: Piece): GenerateResponse {
  const content = part === undefined ? { role: 'model' } : { parts: [part], role: 'model' };
  const candidate = finishReason === undefined ? { content, index: 0 } : { content, finishReason, index: 0 };
  return envelope(options, { candidates: [candidate] }, tokens);
}

function envelope(
  { promptTokenCount, model, responseId }: ChunkOptions,
  body: object,
  candidatesTokenCount: number,
): GenerateResponse {
  const usageMetadata = {
    promptTokenCount,
    ...(candidatesTokenCount === 0 ? {} : { candidatesTokenCount }),
    totalTokenCount: promptTokenCount + candidatesTokenCount,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokenCount }],
  };
  return { ...body, usageMetadata, modelVersion: model, responseId };
}

/** Everything that was sent is paid for: instruction, conversation and declarations. */
export function promptTokens(request: GenerateRequest): number {
  const { systemInstruction, contents, tools } = request;
  const spoken = [...(systemInstruction === undefined ? [] : [systemInstruction]), ...contents];
  const media = spoken.flatMap(({ parts }) =>
    parts.filter((part) => part['inlineData'] !== undefined || part['fileData'] !== undefined),
  );
  const plain = spoken.reduce((sum, content) => sum + tokensOf(textOf(content).length), 0);
  const functions = spoken.flatMap(({ parts }) =>
    parts.flatMap(({ functionCall, functionResponse }) => functionCall ?? functionResponse ?? []),
  );
  const declared = tools.flatMap(({ functionDeclarations }) => functionDeclarations);
  const written = [...functions, ...declared].reduce(
    (sum, each) => sum + tokensOf(JSON.stringify(each).length),
    0,
  );
  return plain + written + media.length * TOKENS_OF_MEDIA;
}

function charsOf(part: object): number {
  return 'text' in part ? String(part.text).length : JSON.stringify(part).length;
}

function tokensOf(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}
