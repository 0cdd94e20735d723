import { beforeEach, describe, expect, it } from 'vitest';
import { HeardPosition } from '../../src/audio/heard-position.js';
import { LAST_MARK_GRACE_MS, MARKS_UNRETURNED_MAX } from '../../src/limits.js';

describe('HeardPosition', () => {
  let position: HeardPosition;

  beforeEach(() => {
    position = new HeardPosition(1_000);
  });

  /** Sends `count` times 160 ms with a mark behind each, all at once. */
  function sendMarked(count: number, nowMs: number): string[] {
    return Array.from({ length: count }, () => {
      position.addSent(160, nowMs);
      return position.newMark();
    });
  }

  it('goes by time, up to what was sent, as long as no mark has ever come back', () => {
    expect(position.heardMs(1_500)).toBe(0);
    sendMarked(2, 2_000);
    expect(position.heardMs(2_000)).toBe(0);
    expect(position.heardMs(2_250)).toBe(250);
    expect(position.heardMs(9_000)).toBe(320);
  });

  it('does not count time in which the carrier had nothing to play', () => {
    sendMarked(1, 2_000);
    sendMarked(1, 3_000);
    expect(position.heardMs(3_050)).toBe(210);
  });

  it('goes from the last returned mark by time, no further than the next mark', () => {
    const [first = ''] = sendMarked(4, 2_000);
    position.onMark(first, 2_200);
    expect(position.heardMs(2_200)).toBeGreaterThanOrEqual(160);
    expect(position.heardMs(2_300)).toBe(260);
    expect(position.heardMs(2_600)).toBe(320);
  });

  it('never falls back when a mark tells that less was played than time alone had said', () => {
    const [first = ''] = sendMarked(4, 2_000);
    expect(position.heardMs(2_500)).toBe(500);
    position.onMark(first, 2_500);
    expect(position.heardMs(2_501)).toBe(500);
  });

  it('does not believe marks that come back before their sound can have been played', () => {
    for (const name of sendMarked(4, 2_000)) position.onMark(name, 2_001);
    expect(position.heardMs(2_001)).toBe(1);
    expect(position.heardMs(2_300)).toBe(300);
    expect(position.returnedMark).toBe(position.lastMark);
  });

  it('lets a mark stand for those it overtook, and ignores these when they come', () => {
    const [first = '', second = '', third = ''] = sendMarked(4, 2_000);
    position.onMark(second, 2_400);
    expect(position.heardMs(2_410)).toBe(330);
    position.onMark(first, 2_420);
    position.onMark(second, 2_430);
    expect(position.returnedMark).toBe(2);
    expect(position.heardMs(2_450)).toBe(370);
    position.onMark(third, 2_500);
    expect(position.heardMs(2_500)).toBe(480);
  });

  it.each([
    '',
    'g1',
    'g1:m',
    'g1:m0',
    'g1:m9',
    'g2:m1',
    'g1:m1 ',
    'g1:m-1',
    'g1:m1.5',
    'm1',
    'g1:m1e0',
    '\u0000',
  ])('ignores the unknown name %j', (name) => {
    sendMarked(2, 2_000);
    position.onMark(name, 2_100);
    expect(position.returnedMark).toBe(0);
    // Still the policy for a carrier that returns no marks.
    expect(position.heardMs(2_300)).toBe(300);
  });

  it('begins a new generation at a clear, in which older marks say nothing', () => {
    const names = sendMarked(4, 2_000);
    position.onMark(names[0] ?? '', 2_160);
    expect(position.clear(2_200)).toBe(200);
    expect(position.generation).toBe(2);
    expect(position.heardMs(2_200)).toBe(640);
    const [next = ''] = sendMarked(2, 2_300);
    for (const name of names) position.onMark(name, 2_310);
    expect(position.heardMs(2_310)).toBe(650);
    expect(position.heardMs(2_700)).toBe(800);
    position.onMark(next, 2_700);
    expect(position.heardMs(2_700)).toBe(800);
    expect(position.heardMs(2_800)).toBe(900);
  });

  it('gives every mark of a call a name of its own', () => {
    const names = [...sendMarked(3, 2_000)];
    position.clear(2_100);
    names.push(...sendMarked(3, 2_100));
    expect(new Set(names).size).toBe(6);
    expect(names[0]).toBe('g1:m1');
    expect(names[5]).toBe('g2:m6');
  });

  it('counts everything as heard once the carrier has had nothing new for the grace', () => {
    const [first = ''] = sendMarked(2, 2_000);
    position.onMark(first, 2_160);
    position.addSent(160, 10_000);
    position.newMark();
    expect(position.heardMs(10_160 + LAST_MARK_GRACE_MS - 1)).toBe(320);
    expect(position.heardMs(10_160 + LAST_MARK_GRACE_MS)).toBe(480);
  });

  it('remembers a bounded number of marks and goes on when older ones are forgotten', () => {
    const names = sendMarked(MARKS_UNRETURNED_MAX + 10, 2_000);
    position.onMark(names[9] ?? '', 2_100);
    expect(position.returnedMark).toBe(0);
    position.onMark(names[10] ?? '', 4_000);
    expect(position.returnedMark).toBe(11);
    expect(position.heardMs(4_100)).toBe(11 * 160 + 100);
  });
});
