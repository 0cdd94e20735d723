/**
 * The text model through `@google/genai`: `generateContentStream`, piece by piece. The SDK has no time limit of its own;
 * here the wait for each piece is bounded.
 */
import { ApiError, type GenerateContentResponse, type GenerateContentParameters } from '@google/genai';
import type { Clock } from '../clock.js';
import { ModelError } from '../errors.js';
import { newId } from '../ids.js';
import { TEXT_PIECE_TIMEOUT_MS } from '../limits.js';
import { createGeminiSdk, type GeminiConnectOptions } from './gemini-connect.js';
import { maskedCause, maskSecrets, type MaskSecrets } from './gemini-connect-error.js';
import type { FunctionCall, UsageMetadata } from './live-connection.js';
import type { GenerateText, TextPart, TextPiece, TextRequest } from './text-model.js';

export type GeminiTextOptions = GeminiConnectOptions & { readonly clock: Clock };

/** Makes the function that asks one text model. */
export function createGeminiText(options: GeminiTextOptions): GenerateText {
  const { models } = createGeminiSdk(options);
  const secret = 'apiKey' in options ? options.apiKey : undefined;
  const mask = maskSecrets(secret === undefined ? [] : [secret]);
  return async function* generate(request, signal) {
    const guard = new PieceGuard(options.clock, signal);
    try {
      const asked = models.generateContentStream(parametersOf(options.modelName, request, guard.signal));
      const responses = (await guard.within(asked))[Symbol.asyncIterator]();
      const answer = new Answer();
      for (;;) {
        const next = await guard.within(responses.next());
        if (next.done === true) break;
        yield* answer.read(next.value);
      }
      yield answer.end();
    } catch (error) {
      if (signal.aborted) return;
      throw guard.timedOut ? timeoutError() : errorFor(error, mask);
    } finally {
      guard.close();
    }
  };
}

function parametersOf(model: string, request: TextRequest, signal: AbortSignal): GenerateContentParameters {
  const { instruction, contents, functionDeclarations } = request;
  return {
    model,
    contents: contents.map(({ role, parts }) => ({ role, parts: parts.map((part) => ({ ...part })) })),
    config: {
      abortSignal: signal,
      systemInstruction: { role: 'user', parts: [{ text: instruction }] },
      ...(functionDeclarations.length > 0 && {
        tools: [
          {
            functionDeclarations: functionDeclarations.map(({ name, description, parametersJsonSchema }) => ({
              name,
              description,
              parametersJsonSchema: structuredClone(parametersJsonSchema),
            })),
          },
        ],
      }),
    },
  };
}

/** One answer as it arrives. */
class Answer {
  readonly #parts: TextPart[] = [];
  #finishReason = '';
  #isMalformed = false;
  #usage: UsageMetadata | undefined;

  *read(response: GenerateContentResponse): Generator<TextPiece> {
    const [candidate] = response.candidates ?? [];
    const calls: FunctionCall[] = [];
    for (const part of candidate?.content?.parts ?? []) {
      const kept: TextPart = { ...part };
      if (part.functionCall?.name !== undefined) {
        const { name, args = {} } = part.functionCall;
        // Nobody can answer it; the answer fails as one that the API itself finds malformed.
        if (name === '') {
          this.#isMalformed = true;
          continue;
        }
        // The Developer API gives ids, Vertex may not.
        const id = part.functionCall.id || newId();
        calls.push({ id, name, args });
        this.#parts.push({ ...kept, functionCall: { ...part.functionCall, id } });
        continue;
      }
      this.#keep(kept);
      if (part.text !== undefined && part.text !== '' && part.thought !== true)
        yield { type: 'text', text: part.text };
    }
    if (calls.length > 0) yield { type: 'functionCalls', functionCalls: calls };
    if (candidate?.finishReason !== undefined) this.#finishReason = candidate.finishReason;
    const blocked = response.promptFeedback?.blockReason;
    if (blocked !== undefined) this.#finishReason = blocked;
    // Each response tells the usage so far: the last one is the whole.
    if (response.usageMetadata !== undefined) this.#usage = usageOf(response.usageMetadata);
    if (candidate?.finishReason !== undefined && this.#usage !== undefined) {
      yield { type: 'usageMetadata', usage: this.#usage };
      this.#usage = undefined;
    }
  }

  end(): TextPiece {
    const finishReason = this.#isMalformed ? 'MALFORMED_FUNCTION_CALL' : this.#finishReason;
    return { type: 'end', finishReason, parts: this.#parts };
  }

  /** Pieces of one text become one part; anything that comes with a signature stays as it is. */
  #keep(part: TextPart): void {
    const last = this.#parts.at(-1);
    const joins = [last, part].every(
      (one) => one !== undefined && Object.keys(one).length === 1 && typeof one['text'] === 'string',
    );
    if (joins && last !== undefined) {
      this.#parts[this.#parts.length - 1] = { text: `${String(last['text'])}${String(part['text'])}` };
    } else this.#parts.push(part);
  }
}

function usageOf(usage: NonNullable<GenerateContentResponse['usageMetadata']>): UsageMetadata {
  return {
    promptTokens: { TEXT: usage.promptTokenCount ?? 0 },
    responseTokens: { TEXT: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0) },
    totalTokenCount: usage.totalTokenCount ?? 0,
  };
}

/** Bounds the wait for each piece, and passes an abort on to the request. */
class PieceGuard {
  timedOut = false;
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onAbort = (): void => this.#controller.abort();

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock;
    this.#outer = outer;
    if (outer.aborted) this.#controller.abort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  async within<T>(waiting: Promise<T>): Promise<T> {
    let abort: (() => void) | undefined;
    const over = new Promise<never>((_, reject) => {
      abort = () => reject(new Error('the request was called off'));
      if (this.signal.aborted) abort();
      else this.signal.addEventListener('abort', abort, { once: true });
    });
    const timer = this.#clock.setTimer(TEXT_PIECE_TIMEOUT_MS, () => {
      this.timedOut = true;
      this.#controller.abort();
    });
    try {
      return await Promise.race([waiting, over]);
    } finally {
      timer.cancel();
      if (abort !== undefined) this.signal.removeEventListener('abort', abort);
      // Whichever lost must not end the process.
      waiting.catch(() => {});
    }
  }

  close(): void {
    this.#outer.removeEventListener('abort', this.#onAbort);
    this.#controller.abort();
  }
}

function timeoutError(): ModelError {
  return new ModelError(
    'model_connect_timeout',
    `The text model said nothing for ${TEXT_PIECE_TIMEOUT_MS} ms`,
  );
}

function errorFor(thrown: unknown, mask: MaskSecrets): ModelError {
  const status = thrown instanceof ApiError ? thrown.status : undefined;
  const cause = maskedCause(thrown, mask);
  if (status === undefined)
    return new ModelError('model_unreachable', 'The text model could not be reached', { cause });
  const passing = status >= 500 || status === 408 || status === 429;
  const code = passing ? 'model_unreachable' : 'model_setup_refused';
  return new ModelError(code, `The text model answered HTTP ${status}`, { cause });
}
