/**
 * What a call has cost by the agent's own limits: answers to the user, tokens as the model counts them, minutes on the line; and
 * whether it does nothing any more but call functions. Adds up what the run tells; the call asks twice a second whether it is
 * time to say goodbye.
 */
import type { CostLimits } from '../agent/agent.js';
import { functionCalls, functionResponses } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import { COST_ANSWER_MAX_MS, FUNCTION_ROUNDS_MAX } from '../limits.js';

export interface CostWatchOptions {
  readonly limits: CostLimits | undefined;
  readonly nowMs: () => number;
  /** When the line was first opened; undefined before. */
  readonly openedAtMs: () => number | undefined;
}

export class CostWatch {
  readonly #options: CostWatchOptions;
  #turns = 0;
  #tokens = 0;
  /** Answers that have begun and are not over. */
  readonly #open = new Set<string>();
  /** When turns or tokens were used up. */
  #usedUpAtMs: number | undefined;
  /** Calls of functions, each behind the results of the ones before, since a message began or something was asked. */
  #rounds = 0;
  #isAnswered = true;

  constructor(options: CostWatchOptions) {
    this.#options = options;
  }

  /** Each item of the run. */
  hear(item: RunItem): void {
    // A clip of ours neither asks nor answers.
    if (item.type === 'opened' && (item.role === 'user' || item.turn !== undefined)) this.onAsked();
    if (item.type === 'opened' && item.turn !== undefined) {
      this.#turns += 1;
      this.#open.add(item.msg);
    } else if (item.type === 'sealed') this.#open.delete(item.msg);
    else if (item.type === 'event') {
      if (item.endsMsg !== undefined) this.#open.delete(item.endsMsg);
      this.#countRound(item);
    } else if (item.type === 'used')
      this.#tokens += sum(item.usage.promptTokens) + sum(item.usage.responseTokens);
    const { maxTurns = Infinity, maxTokens = Infinity } = this.#options.limits ?? {};
    if (this.#turns >= maxTurns || this.#tokens >= maxTokens) this.#usedUpAtMs ??= this.#options.nowMs();
  }

  /** The model was asked for something new, by the caller or by a tool: what it calls now is no loop. */
  onAsked(): void {
    this.#rounds = 0;
    this.#isAnswered = true;
  }

  /** Whether the goodbye is due. The last answer that an agent may give is heard to its end first, for COST_ANSWER_MAX_MS: the end
   * may never be told, and an answer may never end. Minutes and loops wait for nobody. */
  get isDue(): boolean {
    const { nowMs, openedAtMs, limits } = this.#options;
    const { maxMinutes = Infinity } = limits ?? {};
    if (nowMs() - (openedAtMs() ?? Infinity) >= maxMinutes * 60_000) return true;
    if (this.#rounds > FUNCTION_ROUNDS_MAX) return true;
    if (this.#usedUpAtMs === undefined) return false;
    return this.#open.size === 0 || nowMs() - this.#usedUpAtMs >= COST_ANSWER_MAX_MS;
  }

  /** Several messages of the model with calls, none of which is answered yet, are one round. */
  #countRound({ event }: RunItem & { type: 'event' }): void {
    if (functionResponses(event).length > 0) this.#isAnswered = true;
    if (functionCalls(event).length === 0 || !this.#isAnswered) return;
    this.#rounds += 1;
    this.#isAnswered = false;
  }
}

function sum(tokens: Readonly<Record<string, number>>): number {
  return Object.values(tokens).reduce((total, count) => total + count, 0);
}
