/**
 * One run in text: a user's message and all that follows from it, until the agent has said its word. Told as events like
 * a call; whoever listens to the stream stores and shows them. Stopping it (the client is gone, the time is over) is not
 * an interruption: nothing more is asked of the model, and what was half-said is not kept.
 */
import type { Event } from '../event/event.js';
import type { RunEvents } from '../event/run-events.js';
import type { StreamOutcome } from '../event/run-stream.js';
import type { CostLimits } from '../agent/agent.js';
import { AppError } from '../errors.js';
import { FUNCTION_ROUNDS_MAX } from '../limits.js';
import type { FunctionCall, FunctionDeclaration, FunctionResponse } from '../model/live-connection.js';
import type { GenerateText, TextContent, TextPart } from '../model/text-model.js';
import { historyOf } from './text-history.js';

export interface TextRunOptions {
  readonly instruction: string;
  /** The session's committed events before this run. */
  readonly history: readonly Event[];
  readonly message: string;
  readonly functionDeclarations: readonly FunctionDeclaration[];
  /**
   * Tells the calls, carries them out, tells what they came to, and returns it in order; `parts` as the model wrote them. Nothing is
   * returned where the model is not to be answered; `isOver`: a tool has ended the conversation. Does not throw.
   */
  readonly answer: (
    functionCalls: readonly FunctionCall[],
    parts: readonly TextPart[],
  ) => Promise<{ readonly responses: readonly FunctionResponse[]; readonly isOver: boolean }>;
  /** Nothing is carried out any more: what was begun is told as it is. Does not throw. */
  readonly close: () => Promise<void>;
  readonly limits?: CostLimits | undefined;
  readonly generate: GenerateText;
  readonly events: RunEvents;
}

export type TextOutcome = 'done' | 'error' | 'stopped';

/** The reason of a signal that stops a run which took too long; any other means that nobody waits for the answer. */
export const OVERDUE = 'overdue';

/** The reason of a signal that stops a run which has had the minutes that its agent grants. */
export const COSTLY = 'costly';

/** The model's own words on why an answer is no answer, which end the turn (ADK documentation, streaming guide part 3). */
const FAILED_FINISHES = new Set([
  'SAFETY',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'MALFORMED_FUNCTION_CALL',
  'RECITATION',
  'SPII',
  'OTHER',
]);

/** The messages of a run: the user's, then the agent's one answer, however many rounds of tools are in it. */
const USER_MSG = 'm1';
export const AGENT_MSG = 'm2';

/** Runs to its end; the stream's last item is `over`. Never rejects. */
export async function runText(options: TextRunOptions, signal: AbortSignal): Promise<TextOutcome> {
  const { events, message } = options;
  events.opened(USER_MSG, 'user');
  events.sealed(USER_MSG, 'user', message, false);
  const answer = new TextAnswer(options);
  const ended = await answer.complete(signal).catch((error: unknown): TextOutcome => {
    if (signal.aborted) return 'stopped';
    const code = error instanceof AppError ? error.code : 'internal_error';
    const text = error instanceof AppError ? error.message : 'The run failed.';
    answer.fail(code, text);
    return 'error';
  });
  const outcome = ended === 'stopped' && signal.reason === COSTLY ? answer.stopForCost() : ended;
  await options.close();
  events.over(streamOutcome(outcome, signal));
  return outcome;
}

/** Whoever left, or stopped the server, has disconnected it; nothing interrupts an answer that is read. */
function streamOutcome(outcome: TextOutcome, signal: AbortSignal): StreamOutcome {
  if (outcome !== 'stopped') return outcome;
  return signal.reason === OVERDUE ? 'error' : 'disconnected';
}

class TextAnswer {
  readonly #options: TextRunOptions;
  readonly #contents: TextContent[];
  #text = '';
  #tokens = 0;
  /** Watchers have seen the message by a function on it. */
  #hasCalled = false;
  #isOpen = false;

  constructor(options: TextRunOptions) {
    this.#options = options;
    this.#contents = [...historyOf(options.history), { role: 'user', parts: [{ text: options.message }] }];
  }

  async complete(signal: AbortSignal): Promise<TextOutcome> {
    for (let round = 0; ; round += 1) {
      if (this.#tokens >= (this.#options.limits?.maxTokens ?? Infinity)) return this.stopForCost();
      const { calls, parts, finishReason } = await this.#ask(signal);
      if (signal.aborted) return 'stopped';
      if (calls.length === 0) return this.#finish(finishReason);
      if (round === FUNCTION_ROUNDS_MAX) return this.#goesInCircles();
      // The words around the calls are the message's; a signature that stands with a call must come back with it.
      const asked = parts.filter((part) => part['functionCall'] !== undefined);
      this.#hasCalled = true;
      const { responses, isOver } = await this.#options.answer(calls, asked);
      if (signal.aborted) return 'stopped';
      if (isOver || responses.length === 0) return this.#end();
      const answered = responses.map((functionResponse) => ({ functionResponse }));
      this.#contents.push({ role: 'model', parts }, { role: 'user', parts: answered });
    }
  }

  #goesInCircles(): TextOutcome {
    this.fail('too_many_rounds', `The agent called functions ${FUNCTION_ROUNDS_MAX} times in a row.`);
    return 'error';
  }

  /** What the author grants is used up. A run is one answer, so that `maxTurns`, which is 1 at least, never is. */
  stopForCost(): TextOutcome {
    this.fail('cost_limit', 'The agent has reached a limit that its author set.');
    return 'error';
  }

  /** Without another word of the model: what it has said stands. */
  #end(): TextOutcome {
    if (this.#isOpen || this.#hasCalled) this.#options.events.sealed(AGENT_MSG, 'model', this.#text, false);
    this.#isOpen = false;
    return 'done';
  }

  /** What was half-said is not kept. */
  fail(code: string, text: string): void {
    this.#options.events.failed(code, text, {
      endsMsg: this.#isOpen || this.#hasCalled ? AGENT_MSG : undefined,
      fatal: true,
    });
    this.#isOpen = false;
  }

  async #ask(
    signal: AbortSignal,
  ): Promise<{ calls: FunctionCall[]; parts: readonly TextPart[]; finishReason: string }> {
    const { generate, instruction, functionDeclarations, events } = this.#options;
    const calls: FunctionCall[] = [];
    let parts: readonly TextPart[] = [];
    let finishReason = '';
    const request = { instruction, contents: this.#contents, functionDeclarations };
    for await (const piece of generate(request, signal)) {
      if (signal.aborted) break;
      switch (piece.type) {
        case 'text':
          this.#say(piece.text);
          break;
        case 'functionCalls':
          calls.push(...piece.functionCalls);
          break;
        case 'usageMetadata':
          this.#tokens += sum(piece.usage.promptTokens) + sum(piece.usage.responseTokens);
          events.used(piece.usage);
          break;
        case 'end':
          ({ parts, finishReason } = piece);
      }
    }
    return { calls, parts, finishReason };
  }

  #say(text: string): void {
    const { events } = this.#options;
    if (!this.#isOpen) events.opened(AGENT_MSG, 'model');
    this.#isOpen = true;
    this.#text += text;
    events.delta(AGENT_MSG, 'model', text);
  }

  #finish(finishReason: string): TextOutcome {
    const { events } = this.#options;
    // The model always says why it stopped: an answer without a reason was cut on its way.
    const isFailed = FAILED_FINISHES.has(finishReason) || finishReason === '' || this.#text.trim() === '';
    if (!isFailed) {
      events.sealed(AGENT_MSG, 'model', this.#text, false);
      return 'done';
    }
    const code = FAILED_FINISHES.has(finishReason)
      ? finishReason
      : this.#text.trim() === ''
        ? 'empty_answer'
        : 'incomplete_answer';
    this.fail(code, 'The model gave no whole answer.');
    return 'error';
  }
}

function sum(tokens: Readonly<Record<string, number>>): number {
  return Object.values(tokens).reduce((total, count) => total + count, 0);
}
