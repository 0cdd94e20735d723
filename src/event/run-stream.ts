/**
 * One run as a stream of items, in the order in which they happen: messages open, grow and are sealed; everything else is
 * an event. Whoever wants to know what happens in a run listens here and nowhere else: the store, the watchers, the
 * metrics. Beside the events, items say what no event holds: how long somebody waited, how an answer ended, what it used.
 * A listener cannot hold the run up or change it; one that throws is told apart and goes on hearing.
 */
import type { Clock } from '../clock.js';
import type { Event } from './event.js';

/** How an answer of the agent ended: whole, cut by the caller, by a failure, or because nobody was there any more. */
export const STREAM_OUTCOMES = ['done', 'interrupted', 'error', 'disconnected'] as const;
export type StreamOutcome = (typeof STREAM_OUTCOMES)[number];

/** What a message of the agent on a line answers. */
export interface AgentTurn {
  readonly kind: 'greeting' | 'reply';
  /** Since when it was waited for, by the run's clock; undefined where nobody did: the model began by itself. */
  readonly startedAtMs: number | undefined;
}

/** Tokens of one report of a model, by Gemini's modality names (TEXT, AUDIO, IMAGE, VIDEO, DOCUMENT). */
export interface TokenUse {
  readonly promptTokens: Readonly<Record<string, number>>;
  readonly responseTokens: Readonly<Record<string, number>>;
}

export type RunItem =
  /** The run is one answer, which was asked for at this time by the run's clock; told before anything else. On a line each
   * message of the agent is an answer of its own. */
  | { readonly type: 'asked'; readonly atMs: number }
  /** A message has its place: behind everything, or in front of the message `before`, which it caused. A message of the
   * model on a line has a `turn`; the user's, and recorded clips of ours, have none. */
  | {
      readonly type: 'opened';
      readonly msg: string;
      readonly role: Role;
      readonly before: string | undefined;
      readonly turn?: AgentTurn | undefined;
    }
  /** A piece of a message; `event` is partial. */
  | { readonly type: 'delta'; readonly msg: string; readonly role: Role; readonly event: Event }
  /** The whole of a message, which does not change any more; `event` is not partial. Without an event nothing of the
   * message was heard, and it never was. `outcome` of a message that was opened with a turn. */
  | {
      readonly type: 'sealed';
      readonly msg: string;
      readonly role: Role;
      readonly event: Event | undefined;
      readonly outcome?: StreamOutcome | undefined;
    }
  /** Function calls and responses, errors, control. `endsMsg`: the open message that is over with it and was never said to
   * its end. `fatal`: the run is over because of it. `isLate`: its calls were told before as given up, and are neither shown
   * nor counted again. */
  | {
      readonly type: 'event';
      readonly event: Event;
      readonly endsMsg?: string | undefined;
      readonly fatal?: boolean | undefined;
      readonly isLate?: boolean | undefined;
    }
  /** The model took function calls back; what they came to is told as an event when it is known. */
  | { readonly type: 'withdrawn'; readonly calls: readonly WithdrawnCall[] }
  /** A model says what it has used: counted, and neither stored nor shown. */
  | { readonly type: 'used'; readonly usage: TokenUse }
  /** Input is taken from now on. */
  | { readonly type: 'ready' }
  /** The last item; `outcome` of the answer that was asked for. */
  | { readonly type: 'over'; readonly outcome?: StreamOutcome | undefined };

export interface WithdrawnCall {
  readonly id: string;
  readonly name: string;
  /** It was told already what it has come to, and not yet to the model. */
  readonly hasResult: boolean;
}

export type Role = 'user' | 'model';
export type RunListener = (item: RunItem) => void;
/** `nowMs` is the machine's time, for what is measured; `wallMs` what events are dated by. */
export type RunClock = Pick<Clock, 'nowMs' | 'wallMs'>;

export class RunStream {
  readonly #listeners = new Set<RunListener>();
  readonly #clock: RunClock;
  readonly #onFault: (error: unknown) => void;
  #over = false;

  constructor(options: { clock: RunClock; onFault: (error: unknown) => void }) {
    this.#clock = options.clock;
    this.#onFault = options.onFault;
  }

  /** The present by the run's clock, by which all times in items are. */
  nowMs(): number {
    return this.#clock.nowMs();
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Returns how to stop listening. Nothing is heard of what was before. */
  listen(listener: RunListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(item: RunItem): void {
    if (this.#over) return;
    if (item.type === 'over') this.#over = true;
    for (const listener of this.#listeners) {
      try {
        listener(item);
      } catch (error) {
        this.#onFault(error);
      }
    }
    if (this.#over) this.#listeners.clear();
  }
}
