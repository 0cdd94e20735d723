import { describe, expect, it } from 'vitest';
import { LAST_MARK_GRACE_MS } from '../../src/limits.js';
import { PlayoutLine, soundOf } from './playout-line.js';

describe('Playout.clear', () => {
  it('drops what waits and clears the carrier at once, also when the model has finished', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.playClip(soundOf(4_000));
    line.clock.advance(1_500);
    line.playout.clear();
    expect(line.sent.at(-1)).toMatchObject({ kind: 'clear', atMs: 1_500 });
    line.clock.advance(5_000);
    expect(line.ear.heard()).toEqual(Buffer.from(soundOf(1_500)));
    expect(line.sent.at(-1)?.kind).toBe('clear');
    expect(line.playout.isSilent).toBe(true);
    expect(line.playout.heardMs(utterance)).toBe(1_500);
    expect(line.clock.pendingTimers).toBe(0);
    expect(line.events).toEqual(['first 1']);
  });

  it('does not count the marks that a clear returns as heard', () => {
    const line = new PlayoutLine();
    const utterance = line.say(4_000);
    line.clock.advance(1_000);
    line.playout.clear();
    const heardMs = line.playout.heardMs(utterance);
    expect(heardMs).toBe(1_000);
    line.clock.advance(10);
    expect(line.ear.pendingMarks).toEqual([]);
    expect(line.playout.heardMs(utterance)).toBe(heardMs);
    // Nor for the next utterance, in whose time they come back.
    const next = line.say(1_000);
    for (let mark = 1; mark <= 40; mark += 1) line.playout.onMark(`g1:m${mark}`);
    expect(line.playout.heardMs(next)).toBe(0);
    line.clock.advance(100);
    expect(line.playout.heardMs(next)).toBe(100);
  });

  it('does not count them even if the carrier returns them within the write', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.clock.advance(200);
    const names = line.ear.pendingMarks;
    expect(names.length).toBeGreaterThan(0);
    line.sendClear = () => names.forEach((name) => line.playout.onMark(name));
    line.playout.clear();
    expect(line.playout.heardMs(utterance)).toBe(200);
  });

  it('raises the generation, and takes no more sound for what was cleared', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    expect(line.playout.generation).toBe(1);
    line.playout.clear();
    expect(line.playout.generation).toBe(2);
    expect(line.playout.push(utterance, soundOf(100))).toBe(0);
    const next = line.say(200);
    line.playout.endUtterance(next);
    expect(line.marks.at(-1)).toMatch(/^g2:/);
    line.clock.advance(500);
    expect(line.events).toEqual(['first 1', 'dropped 100 over', 'first 2', 'heard 2', 'drained']);
  });

  it('says what was heard of each utterance, also of those that never began', () => {
    const line = new PlayoutLine();
    const messages = [300, 500, 500].map((ms) => line.playout.playClip(soundOf(ms)));
    line.clock.advance(450);
    line.playout.clear();
    expect(messages.map((message) => line.playout.heardMs(message))).toEqual([300, 150, 0]);
  });

  it('plays the next utterance at once after a clear', () => {
    const line = new PlayoutLine();
    line.say(1_000);
    line.clock.advance(333);
    line.playout.clear();
    line.playout.playClip(soundOf(100));
    line.clock.advance(1_000);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.ear.heard()).toHaveLength((333 + 100) * 8);
  });

  it('can be called from an observer in the middle of sending', () => {
    const line = new PlayoutLine();
    line.react = (event) => {
      if (event === 'first 1') line.playout.clear();
    };
    const utterance = line.say(1_000);
    line.clock.advance(2_000);
    expect(line.sentMs).toBe(40);
    expect(line.playout.heardMs(utterance)).toBe(0);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('lets an observer close the playout in the middle of sending', () => {
    const line = new PlayoutLine();
    line.react = () => line.playout.close();
    line.say(1_000);
    line.ear.hangUp();
    line.clock.advance(2_000);
    expect(line.sentMs).toBe(40);
    expect(line.events).toEqual(['first 1']);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('calls nobody back if the carrier goes away within a send', () => {
    const line = new PlayoutLine();
    line.send = () => line.playout.close();
    line.say(1_000);
    line.clock.advance(2_000);
    expect(line.events).toEqual([]);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('counts the sound up to the first mark anew after a clear', () => {
    const line = new PlayoutLine();
    line.say(120);
    line.playout.clear();
    line.say(400);
    expect(line.sent.map(({ mark }) => mark)).toEqual([
      ...Array(3).fill(undefined),
      undefined,
      ...[1, 2, 3].map(() => undefined),
      'g2:m1',
    ]);
  });

  it('lets an observer start the next utterance when one is heard', () => {
    const line = new PlayoutLine();
    line.react = (event) => {
      if (event === 'heard 1') line.playout.playClip(soundOf(100));
    };
    line.playout.playClip(soundOf(200));
    line.clock.advance(1_000);
    expect(line.events).toEqual(['first 1', 'heard 1', 'first 2', 'heard 2', 'drained']);
  });
});

describe('Playout.clearAt', () => {
  it('plays on until its time and clears what is left then', () => {
    const line = new PlayoutLine();
    const greeting = line.playout.playClip(soundOf(4_000));
    line.clock.advance(1_000);
    expect(line.playout.clearAt(line.clock.nowMs() + 2_000)).toBe(true);
    line.clock.advance(1_999);
    expect(line.ear.clears).toBe(0);
    line.clock.advance(1);
    expect(line.sent.at(-1)).toMatchObject({ kind: 'clear', atMs: 3_000 });
    expect(line.events.at(-1)).toBe('hold over cleared');
    expect(line.playout.heardMs(greeting)).toBe(3_000);
    line.clock.advance(5_000);
    expect(line.ear.heard()).toEqual(Buffer.from(soundOf(3_000)));
    expect(line.playout.heardMs(greeting)).toBe(3_000);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('can be answered from the callback with what was heard', () => {
    const line = new PlayoutLine();
    const greeting = line.say(4_000);
    let heardMs = -1;
    line.react = (event) => {
      if (event === 'hold over cleared') heardMs = line.playout.heardMs(greeting);
    };
    line.playout.clearAt(line.clock.nowMs() + 700);
    line.clock.advance(700);
    expect(heardMs).toBe(700);
  });

  it('keeps what is said after it for the time behind the clear, whole', () => {
    const line = new PlayoutLine();
    const greeting = line.say(4_000);
    line.clock.advance(500);
    line.playout.clearAt(line.clock.nowMs() + 1_000);
    expect(line.playout.push(greeting, soundOf(100))).toBe(0);
    const answer = line.playout.startUtterance();
    line.playout.push(answer, new Uint8Array(8_000).fill(9));
    line.playout.endUtterance(answer);
    line.clock.advance(999);
    expect(line.playout.heardMs(answer)).toBe(0);
    line.clock.advance(5_000);
    const heard = [...line.ear.heard()];
    expect(heard.slice(0, 12_000)).toEqual([...soundOf(1_500)]);
    expect(heard.slice(12_000)).toEqual(Array(8_000).fill(9));
    expect(line.ear.clears).toBe(1);
    expect(line.playout.heardMs(answer)).toBe(1_000);
    expect(line.playout.heardMs(greeting)).toBe(1_500);
    expect(line.events.slice(1)).toEqual([
      'dropped 100 over',
      'hold over cleared',
      'first 2',
      'heard 2',
      'drained',
    ]);
  });

  it('clears nothing if the sound finishes by itself, and goes on at once', () => {
    const line = new PlayoutLine();
    line.say(500);
    line.playout.clearAt(line.clock.nowMs() + 3_000);
    const answer = line.playout.playClip(soundOf(300));
    line.clock.advance(499);
    expect(line.sentMs).toBe(500);
    line.clock.advance(1_000);
    expect(line.ear.clears).toBe(0);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.playout.heardMs(answer)).toBe(300);
    expect(line.events).toEqual([
      'first 1',
      'hold over finished',
      'first 2',
      'heard 1',
      'heard 2',
      'drained',
    ]);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('goes on when the sound is over at a carrier that returns no marks', () => {
    const line = new PlayoutLine(() => []);
    line.say(500);
    line.playout.clearAt(line.clock.nowMs() + 3_000);
    line.playout.playClip(soundOf(300));
    line.clock.advance(500);
    expect(line.events).toEqual(['first 1', 'hold over finished', 'first 2']);
    line.clock.advance(2_000);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.ear.clears).toBe(0);
  });

  it('is carried out at once if its time is past or nothing is unheard', () => {
    const line = new PlayoutLine();
    line.say(500);
    expect(line.playout.clearAt(line.clock.nowMs())).toBe(false);
    expect(line.ear.clears).toBe(1);
    expect(line.playout.clearAt(line.clock.nowMs() + 1_000)).toBe(false);
    expect(line.ear.clears).toBe(2);
    line.clock.advance(2_000);
    expect(line.events).toEqual(['first 1']);
    expect(line.playout.generation).toBe(3);
  });

  it('drops what was said since, when the caller cuts in again before its time', () => {
    const line = new PlayoutLine();
    const greeting = line.say(4_000);
    const end = line.clock.nowMs() + 2_000;
    line.playout.clearAt(end);
    line.clock.advance(500);
    const second = line.playout.playClip(soundOf(1_000));
    expect(line.playout.clearAt(end + 5_000)).toBe(true);
    const third = line.playout.playClip(soundOf(200));
    line.clock.advance(5_000);
    expect([greeting, second, third].map((each) => line.playout.heardMs(each))).toEqual([2_000, 0, 200]);
    expect(line.ear.heard()).toHaveLength(2_200 * 8);
    expect(line.ear.clears).toBe(1);
  });

  it('gives way to a clear', () => {
    const line = new PlayoutLine();
    line.say(4_000);
    line.playout.clearAt(line.clock.nowMs() + 2_000);
    line.playout.playClip(soundOf(1_000));
    line.clock.advance(300);
    line.playout.clear();
    line.clock.advance(LAST_MARK_GRACE_MS + 5_000);
    expect(line.ear.heard()).toHaveLength(300 * 8);
    expect(line.events).toEqual(['first 1']);
    expect(line.clock.pendingTimers).toBe(0);
  });
});
