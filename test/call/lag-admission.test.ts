import { describe, expect, it } from 'vitest';
import { LagAdmission } from '../../src/call/lag-admission.js';
import {
  LAG_CALM_SAMPLES,
  LAG_FULL_MS,
  LAG_FULL_SAMPLES,
  LAG_ROOM_MS,
  LAG_SAMPLE_MS,
} from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

function admission() {
  const clock = new VirtualClock();
  let lagMs = 0;
  let asked = 0;
  const subject = new LagAdmission({
    clock,
    lagMs: () => {
      asked += 1;
      return lagMs;
    },
  });
  const sample = (ms: number): boolean => {
    lagMs = ms;
    clock.advance(LAG_SAMPLE_MS);
    return subject.isFull;
  };
  return {
    clock,
    subject,
    asked: () => asked,
    /** One sample of so much lag; whether the server is full after it. */
    sample,
    /** So many late samples in a row that it is full. */
    fill: (ms = LAG_FULL_MS + 1): boolean => {
      for (let late = 0; late < LAG_FULL_SAMPLES; late += 1) sample(ms);
      return subject.isFull;
    },
  };
}

describe('admission by event-loop lag', () => {
  it('has room before anything was measured', () => {
    expect(admission().subject.isFull).toBe(false);
  });

  it('looks once a period, since each look begins a new one', () => {
    const { clock, asked } = admission();
    clock.advance(LAG_SAMPLE_MS - 1);
    expect(asked()).toBe(0);
    clock.advance(1);
    expect(asked()).toBe(1);
    clock.advance(10 * LAG_SAMPLE_MS);
    expect(asked()).toBe(11);
  });

  it('is full above the bound, not at it', () => {
    expect(admission().fill(LAG_FULL_MS)).toBe(false);
    expect(admission().fill(LAG_FULL_MS + 1)).toBe(true);
  });

  it('is not full by late samples with a good one among them', () => {
    const { sample } = admission();
    for (let round = 0; round < 5; round += 1) {
      for (let late = 1; late < LAG_FULL_SAMPLES; late += 1) expect(sample(LAG_FULL_MS * 3)).toBe(false);
      expect(sample(0)).toBe(false);
    }
  });

  it('has room again only after so many calm samples in a row', () => {
    const { sample, fill } = admission();
    fill();
    for (let calm = 1; calm < LAG_CALM_SAMPLES; calm += 1) expect(sample(LAG_ROOM_MS - 1)).toBe(true);
    expect(sample(LAG_ROOM_MS - 1)).toBe(false);
  });

  it.each([
    ['at the bound of calm', LAG_ROOM_MS],
    ['between the two bounds', LAG_FULL_MS],
    ['above both', LAG_FULL_MS + 1],
  ])('counts calm from the beginning after a sample %s', (_name, lagMs) => {
    const { sample, fill } = admission();
    fill();
    for (let calm = 1; calm < LAG_CALM_SAMPLES; calm += 1) sample(0);
    expect(sample(lagMs)).toBe(true);
    for (let calm = 1; calm < LAG_CALM_SAMPLES; calm += 1) expect(sample(0)).toBe(true);
    expect(sample(0)).toBe(false);
  });

  it('does not become full between the bounds', () => {
    const { sample } = admission();
    for (const lagMs of [LAG_ROOM_MS, LAG_FULL_MS, LAG_ROOM_MS + 1]) expect(sample(lagMs)).toBe(false);
  });

  it('leaves no timer behind when it is closed, and may be closed twice', () => {
    const { clock, subject, asked } = admission();
    clock.advance(LAG_SAMPLE_MS);
    subject.close();
    subject.close();
    expect(clock.pendingTimers).toBe(0);
    clock.advance(10 * LAG_SAMPLE_MS);
    expect(asked()).toBe(1);
  });
});
