/**
 * Time as one call sees it. It begins at 0 with the call and stands still while an event is handled, so that everything
 * which follows from one message or one timer happens at the same moment. It moves only when something comes in from
 * outside (`enter`) or a timer is due, and a timer finds it at its own deadline. So a call depends on what reached it
 * and when, never on how busy the machine was, and a recorded one replays to the byte. Where the process stood still
 * for longer than CLOCK_LATE_MAX_MS the truth wins: a timer then finds the time that it is, and the tap is told.
 */
import type { CallTime, Clock, Timer } from '../clock.js';
import { CLOCK_LATE_MAX_MS } from '../limits.js';

interface PendingTimer {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class CallClock implements CallTime {
  readonly #base: Clock;
  readonly #startMs: number;
  /** Called when a timer due at `dueMs` could run only at `nowMs`. */
  onStall: ((dueMs: number, nowMs: number) => void) | undefined;
  #nowMs = 0;
  /** In the order of firing. */
  readonly #timers: PendingTimer[] = [];
  #armed: Timer | undefined;
  #armedForMs = Number.POSITIVE_INFINITY;

  constructor(base: Clock) {
    this.#base = base;
    this.#startMs = base.nowMs();
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#base.wallMs();
  }

  realMs(): number {
    return this.#base.nowMs() - this.#startMs;
  }

  /** Timers that are due come first, so that they never see what they should not know yet. */
  enter(): void {
    const realMs = this.#readMs();
    if ((this.#timers[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= realMs) this.#fireUntil(realMs);
    if (realMs > this.#nowMs) this.#nowMs = realMs;
  }

  setTimer(delayMs: number, fire: () => void): Timer {
    const timer = { dueMs: this.#dueMs(delayMs), fire };
    let index = this.#timers.length;
    while (index > 0 && (this.#timers[index - 1]?.dueMs ?? 0) > timer.dueMs) index -= 1;
    this.#timers.splice(index, 0, timer);
    if (index === 0) this.#arm();
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at !== -1) this.#timers.splice(at, 1);
        if (this.#timers.length === 0) this.#disarm();
      },
    };
  }

  /** Behind the present for every delay, however small: who waits for a moment that rounding puts a hair behind it, and
   * finds it not yet reached, would be woken at the same moment for ever. */
  #dueMs(delayMs: number): number {
    if (delayMs <= 0) return this.#nowMs;
    const dueMs = wholeMicroseconds(this.#nowMs + delayMs);
    return dueMs > this.#nowMs ? dueMs : wholeMicroseconds(this.#nowMs + 0.001);
  }

  /** To the microsecond, which is what a recording keeps. */
  #readMs(): number {
    return wholeMicroseconds(this.realMs());
  }

  /** A timer that is set later than the one it replaces moves the machine's timer along: the playout's is replaced with
   * every batch, and a wake-up that finds nothing due costs several times what it costs to arm anew. */
  #arm(): void {
    const next = this.#timers[0];
    if (next === undefined || this.#armedForMs === next.dueMs) return;
    this.#armed?.cancel();
    this.#armedForMs = next.dueMs;
    this.#armed = this.#base.setTimer(next.dueMs - this.realMs(), () => {
      // Node's timers may fire up to a millisecond early by the fractional clock.
      const untilMs = Math.max(this.#armedForMs, this.#readMs());
      this.#armed = undefined;
      this.#armedForMs = Number.POSITIVE_INFINITY;
      this.#fireUntil(untilMs);
    });
  }

  #disarm(): void {
    this.#armed?.cancel();
    this.#armed = undefined;
    this.#armedForMs = Number.POSITIVE_INFINITY;
  }

  #fireUntil(realMs: number): void {
    try {
      for (let timer = this.#timers[0]; timer !== undefined; timer = this.#timers[0]) {
        if (timer.dueMs > realMs) break;
        this.#timers.shift();
        this.#moveTo(timer.dueMs, realMs);
        timer.fire();
      }
    } finally {
      this.#arm();
    }
  }

  #moveTo(dueMs: number, realMs: number): void {
    const isLate = realMs - dueMs > CLOCK_LATE_MAX_MS;
    if (isLate && this.#nowMs < realMs) this.onStall?.(dueMs, realMs);
    this.#nowMs = Math.max(this.#nowMs, isLate ? realMs : dueMs);
  }
}

/** What a recording keeps. Deadlines too: what comes right behind a timer that the machine fired early is recorded at that
 * deadline, and has to find it reached in a replay. */
function wholeMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
