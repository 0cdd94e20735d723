import { describe, expect, it } from 'vitest';
import { MULAW_SILENCE } from '../../src/limits.js';
import { CarrierEar } from './carrier-ear.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

function setUp(returnDelays?: (name: string) => readonly number[]) {
  const clock = new VirtualClock(100);
  const marks: string[] = [];
  const ear = new CarrierEar({
    clock,
    onMark: (name) => marks.push(`${name}@${clock.nowMs()}`),
    ...(returnDelays === undefined ? {} : { returnDelays }),
  });
  return { clock, marks, ear };
}

describe('CarrierEar', () => {
  it('plays eight bytes a millisecond and returns a mark when all before it was played', () => {
    const { clock, marks, ear } = setUp();
    ear.media(new Uint8Array(320).fill(1));
    ear.mark('first');
    ear.media(new Uint8Array(320).fill(2));
    ear.mark('second');
    expect(ear.queuedMs).toBe(80);
    clock.advance(39);
    expect(marks).toEqual([]);
    expect(ear.playedMs).toBe(39);
    clock.advance(100);
    expect(marks).toEqual(['first@140', 'second@180']);
    expect([...ear.heard()]).toEqual([...Array(320).fill(1), ...Array(320).fill(2)]);
    expect(ear.queuedMaxMs).toBe(80);
  });

  it('returns a mark at once if nothing waits, but not within the call', () => {
    const { clock, marks, ear } = setUp();
    ear.mark('early');
    expect(marks).toEqual([]);
    clock.advance(0);
    expect(marks).toEqual(['early@100']);
  });

  it('hears a gap where sound came too late, and records it as silence', () => {
    const { clock, ear } = setUp();
    ear.media(new Uint8Array(160).fill(1));
    clock.advance(30);
    ear.media(new Uint8Array(160).fill(2));
    clock.advance(25);
    expect(ear.stretches().map(({ startMs, sound }) => [startMs, sound.length])).toEqual([
      [100, 160],
      [130, 160],
    ]);
    const recording = [...ear.recording(100)];
    expect(recording).toHaveLength(55 * 8);
    expect(recording.slice(160, 240)).toEqual(Array(80).fill(MULAW_SILENCE));
    expect(recording.slice(240, 400)).toEqual(Array(160).fill(2));
  });

  it('drops what waits on clear and returns all pending marks', () => {
    const { clock, marks, ear } = setUp();
    ear.media(new Uint8Array(800).fill(1));
    ear.mark('a');
    ear.media(new Uint8Array(800).fill(2));
    ear.mark('b');
    clock.advance(60);
    ear.clear();
    expect(ear.pendingMarks).toEqual([]);
    expect(ear.queuedMs).toBe(0);
    clock.advance(500);
    expect(marks).toEqual(['a@160', 'b@160']);
    expect([...ear.heard()]).toEqual(Array(480).fill(1));
    expect(ear.playedMs).toBe(60);
    expect(ear.clears).toBe(1);
  });

  it('loses, doubles and delays marks as it is told', () => {
    const delays: Record<string, number[]> = { lost: [], twice: [0, 5], late: [50] };
    const { clock, marks, ear } = setUp((name) => delays[name] ?? [0]);
    for (const name of ['late', 'lost', 'twice']) ear.mark(name);
    clock.advance(100);
    expect(marks).toEqual(['twice@100', 'twice@105', 'late@150']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('leaves no timer after the line is cut', () => {
    const { clock, marks, ear } = setUp(() => [50]);
    ear.mark('returning');
    clock.advance(10);
    ear.media(new Uint8Array(800));
    ear.mark('pending');
    ear.hangUp();
    expect(clock.pendingTimers).toBe(0);
    clock.advance(500);
    expect(marks).toEqual([]);
  });
});
