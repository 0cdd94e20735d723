import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallClock } from '../../src/call/call-clock.js';
import { CLOCK_LATE_MAX_MS } from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

function begin(): {
  base: VirtualClock;
  clock: CallClock;
  seen: [string, number][];
  note: (what: string) => void;
} {
  const base = new VirtualClock(123_456.789);
  const clock = new CallClock(base);
  const seen: [string, number][] = [];
  return { base, clock, seen, note: (what) => seen.push([what, clock.nowMs()]) };
}

describe('a call’s time', () => {
  it('begins at 0 and stands still between events, whatever the machine’s clock does', () => {
    const { base, clock } = begin();
    base.advance(10);
    expect(clock.nowMs()).toBe(0);
    expect(clock.realMs()).toBe(10);
    clock.enter();
    expect(clock.nowMs()).toBe(10);
  });

  it('is kept to the microsecond', () => {
    const { base, clock } = begin();
    base.advance(1 / 3);
    clock.enter();
    expect(clock.nowMs()).toBe(0.333);
  });

  it.each([20 / 3, 0.1 + 0.2, 1 / 3])('has deadlines of whole microseconds: %f ms', (delayMs) => {
    const { base, clock, seen, note } = begin();
    clock.setTimer(delayMs, () => note('timer'));
    const recordedMs = Math.round(delayMs * 1000) / 1000;
    base.advance(recordedMs);
    clock.enter();
    expect(seen).toEqual([['timer', recordedMs]]);
  });

  // A web client's mark, due a hair behind a whole microsecond, once held the whole process in such a loop.
  it('moves on for whoever waits for a moment, whatever the moment', () => {
    const moment = fc.double({ min: 0, max: 86_400_000, noNaN: true });
    fc.assert(
      fc.property(moment, moment, fc.double({ min: 0, max: 1e-3, noNaN: true }), (startMs, nowMs, restMs) => {
        const base = new VirtualClock(startMs);
        const clock = new CallClock(base);
        base.advance(nowMs);
        clock.enter();
        const atMs = clock.nowMs() + restMs;
        let wakeUps = 0;
        const wait = (): void => {
          wakeUps += 1;
          if (clock.nowMs() < atMs && wakeUps < 10) clock.setTimer(atMs - clock.nowMs(), wait);
        };
        wait();
        base.advance(1);
        clock.enter();
        expect(wakeUps).toBeLessThanOrEqual(3);
        expect(clock.pendingTimers).toBe(0);
      }),
      { numRuns: 2_000 },
    );
  });

  it('finds a timer at its own deadline, though the process was a little late', () => {
    const { base, clock, seen, note } = begin();
    clock.setTimer(20, () => note('timer'));
    base.stall(20 + CLOCK_LATE_MAX_MS - 1);
    base.advance(0);
    expect(seen).toEqual([['timer', 20]]);
  });

  it('finds a timer at the present where the process stood still for long, and says so', () => {
    const { base, clock, seen, note } = begin();
    const stalls: number[][] = [];
    clock.onStall = (...stall) => stalls.push(stall);
    clock.setTimer(20, () => note('first'));
    clock.setTimer(40, () => note('second'));
    base.stall(300);
    base.advance(0);
    expect(seen).toEqual([
      ['first', 300],
      ['second', 300],
    ]);
    expect(stalls).toEqual([[20, 300]]);
  });

  it('fires what is due before an event that comes after it, in the order of deadlines', () => {
    const { base, clock, seen, note } = begin();
    clock.setTimer(21, () => note('b'));
    clock.setTimer(20, () => note('a'));
    clock.setTimer(30, () => note('not yet'));
    base.stall(22);
    clock.enter();
    note('event');
    expect(seen).toEqual([
      ['a', 20],
      ['b', 21],
      ['event', 22],
    ]);
  });

  it('never runs backwards, when timers fire early by the fractional clock too', () => {
    const early = new VirtualClock();
    const clock = new CallClock({
      nowMs: () => early.nowMs(),
      wallMs: () => 0,
      setTimer: (delayMs, fire) => early.setTimer(delayMs - 0.8, fire),
    });
    let firedAtMs = 0;
    clock.setTimer(20, () => (firedAtMs = clock.nowMs()));
    early.advance(19.3);
    expect(firedAtMs).toBe(20);
    clock.enter();
    expect(clock.nowMs()).toBe(20);
  });

  it('needs one timer of the machine for all of its own, and none when they are gone', () => {
    const { base, clock, seen, note } = begin();
    const timers = [50, 30, 40].map((delayMs) => clock.setTimer(delayMs, () => note(String(delayMs))));
    expect(base.pendingTimers).toBe(1);
    timers[1]?.cancel();
    base.advance(60);
    expect(seen).toEqual([
      ['40', 40],
      ['50', 50],
    ]);
    expect(base.pendingTimers).toBe(0);
    clock.setTimer(5, () => {}).cancel();
    expect(base.pendingTimers).toBe(0);
  });

  it('goes on after a timer that throws', () => {
    const { base, clock, seen, note } = begin();
    clock.setTimer(10, () => {
      throw new Error('broken');
    });
    clock.setTimer(10, () => note('next'));
    expect(() => base.advance(10)).toThrow('broken');
    base.advance(1);
    expect(seen).toHaveLength(1);
  });
});
