/**
 * Caller sound that waits for the model: bounded in length and age, the oldest is dropped first and counted. Used only
 * while a call begins or the model reads too slowly, so it copies.
 */
import type { Clock } from '../clock.js';
import { CALLER_BACKLOG_AGE_MAX_MS, CALLER_BACKLOG_MAX_MS, MULAW_BYTES_PER_MS } from '../limits.js';
import type { CallObserver, DropReason } from '../observe/call-observer.js';

interface Waiting {
  readonly mulaw: Uint8Array;
  readonly atMs: number;
}

export class CallerBacklog {
  readonly #clock: Clock;
  readonly #observer: CallObserver;
  #waiting: Waiting[] = [];
  #bytes = 0;

  constructor(options: { clock: Clock; observer: CallObserver }) {
    this.#clock = options.clock;
    this.#observer = options.observer;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Keeps a copy of `mulaw`. */
  add(mulaw: Uint8Array): void {
    this.#waiting.push({ mulaw: Uint8Array.from(mulaw), atMs: this.#clock.nowMs() });
    this.#bytes += mulaw.length;
    while (this.#bytes > CALLER_BACKLOG_MAX_MS * MULAW_BYTES_PER_MS) this.#dropOldest('backlog_full');
  }

  /** The oldest piece that is not too old, or undefined when nothing waits. */
  takeOldest(): Uint8Array | undefined {
    const oldestMs = this.#clock.nowMs() - CALLER_BACKLOG_AGE_MAX_MS;
    while (this.#waiting[0] !== undefined && this.#waiting[0].atMs < oldestMs)
      this.#dropOldest('backlog_age');
    const oldest = this.#waiting.shift();
    this.#bytes -= oldest?.mulaw.length ?? 0;
    return oldest?.mulaw;
  }

  /** Drops what is older. */
  keepNewest(ms: number): void {
    while (this.#bytes > ms * MULAW_BYTES_PER_MS) this.#dropOldest('backlog_age');
  }

  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #dropOldest(reason: DropReason): void {
    const dropped = this.#waiting.shift();
    if (dropped === undefined) return;
    this.#bytes -= dropped.mulaw.length;
    this.#observer.onAudioDropped('inbound', reason, dropped.mulaw.length / MULAW_BYTES_PER_MS);
  }
}
