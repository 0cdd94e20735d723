import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

describe('VirtualClock', () => {
  it('stands still until it is advanced', () => {
    const clock = new VirtualClock(250);
    const wallMs = clock.wallMs();
    expect(clock.nowMs()).toBe(250);
    clock.advance(1_000.5);
    expect(clock.nowMs()).toBe(1_250.5);
    expect(clock.wallMs() - wallMs).toBe(1_001);
  });

  it('fires timers by deadline, equal ones in the order they were set', () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    for (const [name, delayMs] of [
      ['c', 30],
      ['a1', 10],
      ['b', 20],
      ['a2', 10],
      ['a3', 10],
    ] as const) {
      clock.setTimer(delayMs, () => fired.push(`${name}@${clock.nowMs()}`));
    }
    clock.advance(20);
    expect(fired).toEqual(['a1@10', 'a2@10', 'a3@10', 'b@20']);
    expect(clock.pendingTimers).toBe(1);
    expect(clock.nextTimerAtMs).toBe(30);
    clock.advance(9.9);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(0.1);
    expect(fired.at(-1)).toBe('c@30');
    expect(clock.pendingTimers).toBe(0);
    expect(clock.nextTimerAtMs).toBeUndefined();
  });

  it('fires timers that fired timers set, when they fall into the same stretch', () => {
    const clock = new VirtualClock();
    const firedAtMs: number[] = [];
    const tick = (): void => {
      firedAtMs.push(clock.nowMs());
      clock.setTimer(40, tick);
    };
    clock.setTimer(0, tick);
    clock.advance(100);
    expect(firedAtMs).toEqual([0, 40, 80]);
    expect(clock.nowMs()).toBe(100);
    expect(clock.pendingTimers).toBe(1);
  });

  it('counts a negative delay as none', () => {
    const clock = new VirtualClock(5);
    let fired = 0;
    clock.setTimer(-3, () => (fired += 1));
    clock.advance(0);
    expect(fired).toBe(1);
    expect(clock.nowMs()).toBe(5);
  });

  it('forgets a cancelled timer, also one cancelled by a timer of the same moment, and cancels twice in peace', () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    const early = clock.setTimer(5, () => fired.push('early'));
    clock.setTimer(10, () => victim.cancel());
    const victim = clock.setTimer(10, () => fired.push('victim'));
    const survivor = clock.setTimer(10, () => fired.push('survivor'));
    early.cancel();
    early.cancel();
    expect(clock.pendingTimers).toBe(3);
    clock.advance(10);
    survivor.cancel();
    expect(fired).toEqual(['survivor']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('fires overdue timers late after a stall, still in order', () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.setTimer(20, () => fired.push(`second@${clock.nowMs()}`));
    clock.setTimer(10, () => fired.push(`first@${clock.nowMs()}`));
    clock.stall(100);
    expect(fired).toEqual([]);
    clock.advance(0);
    expect(fired).toEqual(['first@100', 'second@100']);
  });

  it('can be moved again after a timer threw', () => {
    const clock = new VirtualClock();
    clock.setTimer(10, () => {
      throw new Error('a fault in a timer');
    });
    expect(() => clock.advance(20)).toThrow('a fault in a timer');
    expect(clock.nowMs()).toBe(10);
    clock.advance(5);
    expect(clock.nowMs()).toBe(15);
  });

  it('refuses to go back, and to be moved by a timer', () => {
    const clock = new VirtualClock();
    expect(() => clock.advance(-1)).toThrow('backwards');
    clock.setTimer(1, () => clock.advance(1));
    expect(() => clock.advance(2)).toThrow('may not move the clock');
    expect(() => clock.setTimer(Number.NaN, () => {})).toThrow('finite');
  });
});
