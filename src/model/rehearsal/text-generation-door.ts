/**
 * The text side of the rehearsal model: `generateContent` and `streamGenerateContent` over HTTP, by the paths, errors
 * and streams of the Gemini API, so that `@google/genai` runs against it as against the real one. Decides who is let
 * in and what is answered; the answer itself and its pace are made elsewhere.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../clock.js';
import { errorText } from '../../errors.js';
import { REHEARSAL_PAYLOAD_MAX_BYTES, REHEARSAL_TEXT_REQUESTS_MAX } from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';
import { type Dialogue, readDialogue } from './dialogue.js';
import { SeededRandom } from './seeded-random.js';
import { textAnswer } from './text-generation-answer.js';
import { readTextBody } from './text-generation-body.js';
import { answerChunks, type ChunkOptions, promptTokens, wholeAnswer } from './text-generation-chunks.js';
import { readTextFaults, type TextFault, type TextFaultRule, TextFaults } from './text-generation-fault.js';
import {
  bodyTooLarge,
  INTERNAL,
  NO_SUCH_PATH,
  OVERLOADED,
  QUOTA_EXCEEDED,
  refusalBody,
  type TextRefusal,
  UNREGISTERED,
  WRONG_METHOD,
} from './text-generation-refusal.js';
import { readGenerateRequest } from './text-generation-request.js';
import { type StreamForm, TextStream } from './text-generation-stream.js';

/** `/v1beta/models/NAME:METHOD`, also with a project and a publisher in front, as on Vertex. */
const PATH =
  /^\/v1(?:alpha|beta1?)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?(?:publishers\/[^/]+\/)?(?:models|tunedModels|endpoints)\/([\w.@-]{1,200}):(generateContent|streamGenerateContent)$/;
const NO_ADDRESS = 'http://rehearsal.invalid';

const REFUSAL_OF_FAULT: Partial<Record<TextFault, TextRefusal>> = {
  quota: QUOTA_EXCEEDED,
  internal: INTERNAL,
  unavailable: OVERLOADED,
};

export interface TextGenerationOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Of everything that looks like chance: chunk sizes, gaps, the form of the end. */
  readonly seed?: number | undefined;
  /** Without it the shipped one for text. */
  readonly dialogue?: Dialogue | undefined;
  /** Of one model's conversations, by the name in the path. */
  readonly dialogueOf?: (model: string) => Dialogue | undefined;
  /** Without them the shipped ones, each at words that nobody writes by chance. */
  readonly faults?: readonly TextFaultRule[] | undefined;
}

interface Target {
  readonly model: string;
  readonly form: StreamForm;
}

export class TextGenerationDoor {
  readonly #options: TextGenerationOptions;
  readonly #dialogue: Dialogue;
  readonly #faults: TextFaults;
  /** Requests that are not answered yet, each with what ends it. */
  readonly #open = new Map<ServerResponse, () => void>();
  #answered = 0;

  /** Throws ConfigError when a shipped file is broken. */
  constructor(options: TextGenerationOptions) {
    this.#options = options;
    this.#dialogue =
      options.dialogue ?? readDialogue(new URL('./text-generation-dialogue.json', import.meta.url));
    this.#faults = new TextFaults(options.faults ?? readTextFaults());
  }

  /** Requests that are being read or answered. */
  get requests(): number {
    return this.#open.size;
  }

  /** Answers any HTTP request, whatever its path. */
  receive(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => response.destroy());
    const entry = enter(request);
    if ('refusal' in entry) return refuse(response, entry.refusal, entry.form);
    if (this.#open.size >= REHEARSAL_TEXT_REQUESTS_MAX) return refuse(response, OVERLOADED, entry.form);
    const giveUp = readTextBody(request, this.#options.clock, (body) => {
      if ('refusal' in body) refuse(response, body.refusal, entry.form);
      else this.#answer(entry, body.text, response);
    });
    this.#open.set(response, giveUp);
    response.on('close', () => this.#end(response));
  }

  /** Cuts off every answer that is not finished; no timer is left. */
  close(): void {
    for (const response of this.#open.keys()) {
      this.#end(response);
      response.destroy();
    }
  }

  #end(response: ServerResponse): void {
    this.#open.get(response)?.();
    this.#open.delete(response);
  }

  #answer(target: Target, body: string, response: ServerResponse): void {
    try {
      this.#generate(target, body, response);
    } catch (error) {
      this.#options.log.error({ why: errorText(error) }, 'the rehearsal model failed at a text request');
      refuse(response, INTERNAL, target.form);
    }
  }

  #generate({ model, form }: Target, body: string, response: ServerResponse): void {
    const read = readGenerateRequest(body, model);
    if ('refusal' in read) return refuse(response, read.refusal, form);
    const { request } = read;
    const rule = this.#faults.next(request.contents);
    const refusal = rule === undefined ? undefined : REFUSAL_OF_FAULT[rule.fault];
    if (refusal !== undefined) return refuse(response, refusal, form);
    this.#answered += 1;
    // By the place in the conversation, so that what else is answered at the same time changes nothing.
    const random = new SeededRandom((this.#options.seed ?? 1) + request.contents.length);
    const options: ChunkOptions = {
      request,
      model,
      responseId: `rehearsal-${this.#answered}`,
      answer: textAnswer(this.#options.dialogueOf?.(model) ?? this.#dialogue, request),
      promptTokenCount: promptTokens(request),
      random,
      fault: rule?.fault,
    };
    const stream = new TextStream({
      clock: this.#options.clock,
      random,
      response,
      form,
      chunks: form === 'whole' ? [wholeAnswer(options)] : answerChunks(options),
      delayMs: rule?.fault === 'slow_start' ? rule.delayMs : 0,
      end: endOf(rule?.fault),
    });
    this.#open.set(response, () => stream.stop());
  }
}

function endOf(fault: TextFault | undefined): 'finished' | 'error' | 'cut' {
  if (fault === 'cut_off') return 'cut';
  return fault === 'error_in_stream' ? 'error' : 'finished';
}

/** What is asked for, or why not; the form tells how to say it. */
function enter(request: IncomingMessage): Target | { refusal: TextRefusal; form: StreamForm } {
  // The SDK's base URL may end in a slash of its own, so the path can arrive with two.
  const path = (request.url ?? '').replaceAll(/\/{2,}/g, '/');
  const url = URL.canParse(path, NO_ADDRESS) ? new URL(path, NO_ADDRESS) : undefined;
  const [, model, method] = PATH.exec(url?.pathname ?? '') ?? [];
  if (url === undefined || model === undefined) return { refusal: NO_SUCH_PATH, form: 'whole' };
  const isStream = method === 'streamGenerateContent';
  const streamed = url.searchParams.get('alt') === 'sse' ? 'sse' : 'array';
  const form = isStream ? streamed : 'whole';
  if (request.method !== 'POST') return { refusal: WRONG_METHOD, form };
  const { headers } = request;
  const keys = [headers['x-goog-api-key'], headers.authorization, url.searchParams.get('key')];
  if (!keys.some((key) => typeof key === 'string' && key.trim() !== ''))
    return { refusal: UNREGISTERED, form };
  if (Number(headers['content-length']) > REHEARSAL_PAYLOAD_MAX_BYTES) {
    return { refusal: bodyTooLarge(REHEARSAL_PAYLOAD_MAX_BYTES), form };
  }
  return { model, form };
}

/** An error to a streaming request that is not for server-sent events stands in an array, as all its answers do. */
function refuse(response: ServerResponse, refusal: TextRefusal, form: StreamForm): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const error = refusalBody(refusal);
  const body = Buffer.from(JSON.stringify(form === 'array' ? [error] : error));
  const headers: Record<string, string | number> = {
    'Content-Type': 'application/json; charset=UTF-8',
    'Content-Length': body.length,
  };
  if (refusal === WRONG_METHOD) headers['Allow'] = 'POST';
  // What is left of the body is not waited for.
  if (!response.req.complete) headers['Connection'] = 'close';
  response.writeHead(refusal.code, headers);
  response.end(body);
}
