/**
 * The numbers of a run, in every mode: read from its stream and from nothing else. Keeps no words. On a line an answer is a
 * message that is opened with a turn, and its first event is the sound or word that opens it, which goes out at once. A
 * run in text is one answer, asked for when its message came; its first event is told when watchers are told of it.
 */
import { type Event, functionCalls, functionResponses, tellsError } from '../event/event.js';
import type { RunItem, RunStream, TokenUse } from '../event/run-stream.js';
import type { RunObserver } from '../observe/run-observer.js';

export interface RunMetricsOptions {
  /** Only its clock is read here: whoever makes this listens to it. */
  readonly run: Pick<RunStream, 'nowMs'>;
  readonly observer: RunObserver;
}

export class RunMetrics {
  readonly #options: RunMetricsOptions;
  /** Of an answer in text of which nothing was told. */
  #askedAtMs: number | undefined;
  #lastDelta: { readonly msg: string; readonly atMs: number } | undefined;
  #toolSinceDelta = false;
  /** Of calls without a response. */
  readonly #calledAtMs = new Map<string, number>();
  readonly #cancelled = new Set<string>();

  constructor(options: RunMetricsOptions) {
    this.#options = options;
  }

  /** Every item of the run, as it happens. */
  hear(item: RunItem): void {
    switch (item.type) {
      case 'asked':
        this.#askedAtMs = item.atMs;
        return this.#options.observer.onStreamStarted();
      case 'opened':
        return this.#onOpened(item);
      case 'delta':
        return item.role === 'model' ? this.#onDelta(item.msg) : undefined;
      case 'event':
        return item.isLate === true ? undefined : this.#onEvent(item.event);
      case 'used':
        return this.#onUsed(item.usage);
      case 'withdrawn':
        for (const { id, name, hasResult } of item.calls) {
          // Counted by what it came to.
          if (hasResult) continue;
          this.#cancelled.add(id);
          this.#options.observer.onToolCall(name, 'cancelled');
        }
        return;
      case 'sealed':
      case 'over':
        if (item.outcome !== undefined) this.#options.observer.onStreamEnded(item.outcome);
        return;
      case 'ready':
        return;
    }
  }

  /** In text: watchers were told of this item. Of what a model used, or that it failed, nobody waits to hear. */
  told(item: RunItem): void {
    if (this.#askedAtMs === undefined) return;
    const isAnswer =
      (item.type === 'delta' && item.role === 'model') ||
      (item.type === 'event' && functionCalls(item.event).length > 0);
    if (!isAnswer) return;
    this.#options.observer.onFirstEvent('reply', this.#options.run.nowMs() - this.#askedAtMs);
    this.#askedAtMs = undefined;
  }

  #onOpened({ turn }: Extract<RunItem, { type: 'opened' }>): void {
    if (turn === undefined) return;
    const { run, observer } = this.#options;
    observer.onStreamStarted();
    if (turn.startedAtMs !== undefined) observer.onFirstEvent(turn.kind, run.nowMs() - turn.startedAtMs);
  }

  #onDelta(msg: string): void {
    const { run, observer } = this.#options;
    const atMs = run.nowMs();
    const last = this.#lastDelta;
    if (last?.msg === msg) observer.onDeltaGap(this.#toolSinceDelta ? 'tool' : 'model', atMs - last.atMs);
    this.#lastDelta = { msg, atMs };
    this.#toolSinceDelta = false;
  }

  #onEvent(event: Event): void {
    const { run, observer } = this.#options;
    for (const { id = '' } of functionCalls(event)) {
      this.#toolSinceDelta = true;
      this.#calledAtMs.set(id, run.nowMs());
    }
    const later = new Set(event.longRunningToolIds);
    for (const answer of functionResponses(event)) {
      const { id = '', name } = answer;
      const calledAtMs = this.#calledAtMs.get(id);
      this.#calledAtMs.delete(id);
      if (later.has(id)) observer.onToolCall(name, 'pending');
      else if (this.#cancelled.delete(id)) continue;
      else observer.onToolCall(name, tellsError(answer) ? 'error' : 'done');
      if (calledAtMs !== undefined && !later.has(id)) observer.onToolDuration(name, run.nowMs() - calledAtMs);
    }
  }

  #onUsed({ promptTokens, responseTokens }: TokenUse): void {
    const { observer } = this.#options;
    for (const [modality, tokens] of Object.entries(promptTokens))
      observer.onTokens('input', modality, tokens);
    for (const [modality, tokens] of Object.entries(responseTokens))
      observer.onTokens('output', modality, tokens);
  }
}
