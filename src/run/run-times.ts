/**
 * The times of one run in text, as the metrics define them: from the message's receipt to the first event of the answer, and
 * between the answer's deltas. Reads the run's stream and keeps no words.
 */
import { type Event, functionCalls } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import type { Clock } from '../clock.js';
import type { RunObserver, TextMode } from '../observe/run-observer.js';

export interface RunTimesOptions {
  readonly mode: TextMode;
  readonly receivedAtMs: number;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly observer: Pick<RunObserver, 'onRunFirstEvent' | 'onRunDeltaGap'>;
}

export class RunTimes {
  readonly #options: RunTimesOptions;
  #hasFirst = false;
  #lastDelta: { readonly msg: string; readonly atMs: number } | undefined;
  #toolSinceDelta = false;

  constructor(options: RunTimesOptions) {
    this.#options = options;
  }

  hear(item: RunItem): void {
    if (item.type === 'delta' && item.role === 'model') this.#onDelta(item.msg);
    else if (item.type === 'event') this.#onEvent(item.event);
  }

  #onDelta(msg: string): void {
    this.#onFirst();
    const { mode, clock, observer } = this.#options;
    const atMs = clock.nowMs();
    const last = this.#lastDelta;
    if (last?.msg === msg)
      observer.onRunDeltaGap(mode, this.#toolSinceDelta ? 'tool' : 'model', atMs - last.atMs);
    this.#lastDelta = { msg, atMs };
    this.#toolSinceDelta = false;
  }

  /** Clients are told of functions too; of what a model used, or that it failed, nobody waits to hear. */
  #onEvent(event: Event): void {
    if (functionCalls(event).length === 0) return;
    this.#toolSinceDelta = true;
    this.#onFirst();
  }

  #onFirst(): void {
    if (this.#hasFirst) return;
    this.#hasFirst = true;
    const { mode, receivedAtMs, clock, observer } = this.#options;
    observer.onRunFirstEvent(mode, clock.nowMs() - receivedAtMs);
  }
}
