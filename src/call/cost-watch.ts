/**
 * What a call has cost by the agent's own limits: answers of the model, tokens as it counts them, minutes on the line. Adds up
 * what the run tells; the call asks twice a second whether it is time to say goodbye.
 */
import type { CostLimits } from '../agent/agent.js';
import type { RunItem } from '../event/run-stream.js';

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

  constructor(options: CostWatchOptions) {
    this.#options = options;
  }

  /** Each item of the run. */
  hear(item: RunItem): void {
    if (item.type === 'opened' && item.turn !== undefined) {
      this.#turns += 1;
      this.#open.add(item.msg);
    } else if (item.type === 'sealed') this.#open.delete(item.msg);
    else if (item.type === 'event' && item.endsMsg !== undefined) this.#open.delete(item.endsMsg);
    else if (item.type === 'used')
      this.#tokens += sum(item.usage.promptTokens) + sum(item.usage.responseTokens);
  }

  /** Whether the goodbye is due. The last answer that an agent may give is heard to its end first; minutes wait for nobody. */
  get isDue(): boolean {
    const { maxTurns = Infinity, maxTokens = Infinity, maxMinutes = Infinity } = this.#options.limits ?? {};
    const { nowMs, openedAtMs } = this.#options;
    if (nowMs() - (openedAtMs() ?? Infinity) >= maxMinutes * 60_000) return true;
    return this.#open.size === 0 && (this.#turns >= maxTurns || this.#tokens >= maxTokens);
  }
}

function sum(tokens: Readonly<Record<string, number>>): number {
  return Object.values(tokens).reduce((total, count) => total + count, 0);
}
