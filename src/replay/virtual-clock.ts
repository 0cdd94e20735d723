/**
 * Time that stands still until it is moved, by a replay or a test. Timers fire in the order of their deadlines, equal ones in the order
 * they were set, each with the clock standing at its deadline.
 */
import assert from 'node:assert/strict';
import type { Clock, Timer } from '../clock.js';

/** 2026-01-01T00:00:00Z: what `wallMs` begins with. */
const WALL_START_MS = 1_767_225_600_000;

interface PendingTimer {
  readonly atMs: number;
  readonly fire: () => void;
}

export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  /** In the order of firing. */
  readonly #timers: PendingTimer[] = [];
  #isAdvancing = false;

  constructor(startMs = 0) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  /** Timers that are set and have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** When the next timer fires; undefined if there is none. */
  get nextTimerAtMs(): number | undefined {
    return this.#timers[0]?.atMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return WALL_START_MS + Math.round(this.#nowMs - this.#startMs);
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    assert(Number.isFinite(delayMs), 'a delay is a finite number');
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), fire };
    let index = this.#timers.length;
    while (index > 0 && (this.#timers[index - 1]?.atMs ?? 0) > timer.atMs) index -= 1;
    this.#timers.splice(index, 0, timer);
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at !== -1) this.#timers.splice(at, 1);
      },
    };
  }

  /** Moves time on by `ms` without firing anything, as for a process that stands still; overdue timers fire at the
   * next advance, with the clock where it then stands. */
  stall(ms: number): void {
    assert(ms >= 0, 'time does not run backwards');
    this.#nowMs += ms;
  }

  /** Moves time on by `ms` and fires what falls due on the way, timers set by fired ones included. */
  advance(ms: number): void {
    assert(ms >= 0, 'time does not run backwards');
    assert(!this.#isAdvancing, 'a timer may not move the clock');
    const endMs = this.#nowMs + ms;
    this.#isAdvancing = true;
    try {
      for (let next = this.#timers[0]; next !== undefined && next.atMs <= endMs; next = this.#timers[0]) {
        this.#timers.shift();
        this.#nowMs = Math.max(this.#nowMs, next.atMs);
        next.fire();
      }
      this.#nowMs = endMs;
    } finally {
      this.#isAdvancing = false;
    }
  }
}
