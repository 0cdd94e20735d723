/**
 * One run as a stream of items, in the order in which they happen: messages open, grow and are sealed; everything else is
 * an event. Whoever wants to know what happens in a run listens here and nowhere else: the store, the watchers, the
 * metrics. A listener cannot hold the run up or change it; one that throws is told apart and goes on hearing.
 */
import type { Event } from './event.js';

export type RunItem =
  /** A message has its place: behind everything, or in front of the message `before`, which it caused. */
  | {
      readonly type: 'opened';
      readonly msg: string;
      readonly role: Role;
      readonly before: string | undefined;
    }
  /** A piece of a message; `event` is partial. */
  | { readonly type: 'delta'; readonly msg: string; readonly role: Role; readonly event: Event }
  /** The whole of a message, which does not change any more; `event` is not partial. Without an event nothing of the
   * message was heard, and it never was. */
  | { readonly type: 'sealed'; readonly msg: string; readonly role: Role; readonly event: Event | undefined }
  /** Function calls and responses, errors, control. `endsMsg`: the open message that is over with it and was never said to
   * its end. `fatal`: the run is over because of it. */
  | {
      readonly type: 'event';
      readonly event: Event;
      readonly endsMsg?: string | undefined;
      readonly fatal?: boolean | undefined;
    }
  /** Input is taken from now on. */
  | { readonly type: 'ready' }
  /** The last item. */
  | { readonly type: 'over' };

export type Role = 'user' | 'model';
export type RunListener = (item: RunItem) => void;

export class RunStream {
  readonly #listeners = new Set<RunListener>();
  readonly #onFault: (error: unknown) => void;
  #over = false;

  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
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
