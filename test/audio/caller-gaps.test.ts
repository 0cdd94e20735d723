import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallerGaps } from '../../src/audio/caller-gaps.js';
import { CALLER_GAP_FILL_MAX_MS, CALLER_IDLE_FILL_AFTER_MS, FRAME_MS } from '../../src/limits.js';

const FRAME_BYTES = 160;

/** Frames with these timestamps, each arriving when it says; returns the silence before each. */
function fillsFor(timestamps: readonly number[], gaps = new CallerGaps()): number[] {
  return timestamps.map((timestampMs) => gaps.onFrame(timestampMs, FRAME_BYTES, timestampMs));
}

describe('gaps in the carrier’s timestamps', () => {
  it('fills nothing before the first frame, wherever the stream starts', () => {
    expect(fillsFor([71_340, 71_360, 71_380])).toEqual([0, 0, 0]);
  });

  it('fills a jump with as much silence as is missing', () => {
    expect(fillsFor([0, 20, 540, 560, 600])).toEqual([0, 0, 500, 0, 20]);
  });

  it('fills a long jump up to the bound and counts the rest', () => {
    const gaps = new CallerGaps();
    expect(fillsFor([0, 20 + 60_000, 40 + 60_000], gaps)).toEqual([0, CALLER_GAP_FILL_MAX_MS, 0]);
    expect(gaps.counts.unfilledMs).toBe(60_000 - CALLER_GAP_FILL_MAX_MS);
  });

  it('lets jitter below a frame pass and fills it once it has added up to one', () => {
    expect(fillsFor([0, 27, 33, 66, 80, 115, 120])).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(fillsFor([0, 28, 56, 84])).toEqual([0, 0, 0, 24]);
  });

  it('takes the length of a frame from its bytes', () => {
    const gaps = new CallerGaps();
    gaps.onFrame(0, 480, 0);
    expect(gaps.onFrame(60, 80, 60)).toBe(0);
    expect(gaps.onFrame(70, 160, 70)).toBe(0);
    expect(gaps.onFrame(120, 160, 120)).toBe(30);
  });

  it('fills nothing for repeated and backward timestamps, nor again for time that it has passed', () => {
    const gaps = new CallerGaps();
    expect(fillsFor([1_000, 1_020, 1_020, 500, 520, 1_060, 1_080], gaps)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(gaps.counts.notAdvancing).toBe(2);
  });

  it('tolerates timestamps that are no time, and counts them', () => {
    const gaps = new CallerGaps();
    expect(fillsFor([Number.NaN, 0, -5, Infinity, -Infinity, Number.NaN, 120], gaps)).toEqual([
      0, 0, 0, 0, 0, 0, 20,
    ]);
    expect(gaps.counts.invalid).toBe(5);
  });

  it('passes over one wild timestamp, and follows a clock that stays where it jumped', () => {
    const gaps = new CallerGaps();
    expect(fillsFor([0, 1e12, 40, 60], gaps)).toEqual([0, 0, 0, 0]);
    expect(fillsFor([5e11, 5e11 + 20, 5e11 + 40, 5e11 + 160], gaps)).toEqual([0, 0, 0, 100]);
    expect(gaps.counts.wild).toBe(3);
  });

  it('begins anew with a new stream', () => {
    const gaps = new CallerGaps();
    fillsFor([90_000, 90_020], gaps);
    gaps.reset();
    expect(gaps.idleFillMs(1e6)).toBe(0);
    expect(fillsFor([0, 20, 140], gaps)).toEqual([0, 0, 100]);
  });
});

describe('a stalled carrier', () => {
  it('is given no silence before its first frame', () => {
    expect(new CallerGaps().idleFillMs(1e9)).toBe(0);
  });

  it('is filled from 750 ms on, in step with the clock, up to the bound', () => {
    const gaps = new CallerGaps();
    gaps.onFrame(0, FRAME_BYTES, 100);
    expect(gaps.idleFillMs(100 + CALLER_IDLE_FILL_AFTER_MS - 1)).toBe(0);
    expect(gaps.idleFillMs(100 + 755)).toBe(740);
    expect(gaps.idleFillMs(100 + 759)).toBe(0);
    expect(gaps.idleFillMs(100 + 805)).toBe(60);
    expect(gaps.idleFillMs(100 + 60_000)).toBe(CALLER_GAP_FILL_MAX_MS - 800);
    expect(gaps.idleFillMs(100 + 61_000)).toBe(0);
  });

  it('is not filled again when the timestamps show the gap', () => {
    const gaps = new CallerGaps();
    gaps.onFrame(0, FRAME_BYTES, 0);
    expect(gaps.idleFillMs(1_000)).toBe(1_000);
    expect(gaps.onFrame(1_540, FRAME_BYTES, 1_545)).toBe(520);
    expect(gaps.onFrame(1_560, FRAME_BYTES, 1_565)).toBe(0);
    expect(gaps.onFrame(1_780, FRAME_BYTES, 1_785)).toBe(200);
  });

  it('is not filled again when the gap shows in the middle of the late frames', () => {
    const gaps = new CallerGaps();
    gaps.onFrame(0, FRAME_BYTES, 0);
    expect(gaps.idleFillMs(2_000)).toBe(2_000);
    expect(gaps.onFrame(20, FRAME_BYTES, 2_005)).toBe(0);
    expect(gaps.onFrame(1_040, FRAME_BYTES, 2_005)).toBe(0);
  });

  it('does not cost a later gap its silence when the late frames bring none', () => {
    const gaps = new CallerGaps();
    gaps.onFrame(0, FRAME_BYTES, 0);
    expect(gaps.idleFillMs(1_000)).toBe(1_000);
    for (let timestampMs = 20; timestampMs <= 1_100; timestampMs += 20) {
      expect(gaps.onFrame(timestampMs, FRAME_BYTES, 1_100)).toBe(0);
    }
    expect(gaps.onFrame(1_620, FRAME_BYTES, 1_620)).toBe(500);
  });
});

describe('whatever the carrier sends', () => {
  const anyTimestamp = fc.oneof(
    fc.nat({ max: 20_000 }),
    fc.double({ min: -1e3, max: 1e6, noNaN: false }),
    fc.constantFrom(Number.NaN, Infinity, -1, 1e15, Number.MAX_VALUE),
  );
  const step = fc.record({
    timestampMs: anyTimestamp,
    bytes: fc.nat({ max: 1_000 }),
    waitMs: fc.nat({ max: 5_000 }),
  });

  it('fills whole milliseconds within the bounds, and in all no more than timestamps and clock advanced', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const gaps = new CallerGaps();
        let nowMs = 0;
        let gapFilledMs = 0;
        let earliestMs = Infinity;
        let latestMs = -Infinity;
        for (const { timestampMs, bytes, waitMs } of steps) {
          let idleFilledMs = 0;
          for (const part of [0.2, 0.3, 0.5]) {
            nowMs += part * waitMs;
            const idleMs = gaps.idleFillMs(nowMs);
            expect(idleMs).toBeGreaterThanOrEqual(0);
            idleFilledMs += idleMs;
          }
          expect(idleFilledMs).toBeLessThanOrEqual(Math.min(waitMs + 1e-6, CALLER_GAP_FILL_MAX_MS));
          const fillMs = gaps.onFrame(timestampMs, bytes, nowMs);
          expect(fillMs).toBe(Math.floor(fillMs));
          expect(fillMs).toBeGreaterThanOrEqual(0);
          expect(fillMs).toBeLessThanOrEqual(CALLER_GAP_FILL_MAX_MS);
          gapFilledMs += fillMs;
          if (!(timestampMs >= 0 && timestampMs < Infinity)) continue;
          if (earliestMs === Infinity) earliestMs = timestampMs;
          latestMs = Math.max(latestMs, timestampMs);
          expect(gapFilledMs).toBeLessThanOrEqual(latestMs - earliestMs);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('keeps fed sound within a frame of the carrier’s clock when frames come as they were spoken', () => {
    const pauses = fc.array(fc.oneof(fc.nat({ max: 15 }), fc.nat({ max: 2_900 })), { maxLength: 60 });
    fc.assert(
      fc.property(pauses, fc.nat({ max: 1e6 }), (pausesMs, startMs) => {
        const gaps = new CallerGaps();
        let carrierMs = startMs;
        let fedMs = 0;
        for (const pauseMs of [0, ...pausesMs]) {
          for (let waitedMs = 0; waitedMs < pauseMs; waitedMs += 100) {
            fedMs += gaps.idleFillMs(carrierMs + waitedMs);
          }
          carrierMs += pauseMs;
          carrierMs += FRAME_MS;
          fedMs += gaps.onFrame(carrierMs - FRAME_MS, FRAME_BYTES, carrierMs) + FRAME_MS;
          const aheadMs = fedMs - (carrierMs - startMs);
          expect(aheadMs).toBeLessThanOrEqual(0);
          expect(aheadMs).toBeGreaterThan(-FRAME_MS);
        }
      }),
      { numRuns: 300 },
    );
  });
});
