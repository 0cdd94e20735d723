/**
 * Turns that the model refused: told as an error that ends nothing, and never left as silence. Where the caller heard nothing of
 * the turn, the model is asked to say so; once in a row, because that may be refused as well. Then the idle reprompt has
 * its turn, as with every other silence.
 */
import type { RunEvents } from '../event/run-events.js';
import { refusalOf } from '../model/turn-refusal.js';

export interface RefusedTurnsOptions {
  readonly run: Pick<RunEvents, 'failed'>;
  /** Has the model say that it cannot answer. */
  readonly explain: () => void;
}

export class RefusedTurns {
  readonly #options: RefusedTurnsOptions;
  #hasAsked = false;

  constructor(options: RefusedTurnsOptions) {
    this.#options = options;
  }

  /** A turn is over. `mayExplain`: the caller is there, and heard nothing of it. */
  onTurnComplete(reason: string | undefined, mayExplain: boolean): void {
    const refusal = refusalOf(reason);
    if (refusal === undefined) {
      this.#hasAsked = false;
      return;
    }
    this.#options.run.failed(refusal, 'The model refused to answer; the conversation goes on.');
    if (!mayExplain || this.#hasAsked) return;
    this.#hasAsked = true;
    this.#options.explain();
  }
}
