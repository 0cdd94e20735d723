import { describe, expect, it } from 'vitest';
import {
  CARRIER_BUFFERED_MAX_BYTES,
  LAST_MARK_GRACE_MS,
  MARK_INTERVAL_MS,
  MULAW_FRAME_BYTES,
  MULAW_SILENCE,
  PLAYOUT_BATCH_MS,
  PLAYOUT_EARLY_MS,
  PLAYOUT_LEAD_MS,
  PLAYOUT_QUEUE_MAX_MS,
  START_BUFFER_DECAY_MS,
  START_BUFFER_MAX_MS,
  START_BUFFER_MIN_MS,
  START_BUFFER_STEP_MS,
  START_BUFFER_WAIT_FACTOR,
  START_BUFFER_WAIT_MAX_MS,
  UTTERANCES_MAX,
} from '../../src/limits.js';
import { PlayoutLine, soundOf, tellingSound } from './playout-line.js';

/** The first batch behind the lead is due when this much of it was played. */
const BATCH_DUE_MS = PLAYOUT_BATCH_MS + PLAYOUT_EARLY_MS;

describe('Playout sending', () => {
  it('sends a batch in one write, and never leaves the sink corked', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.clock.advance(500);
    line.playout.clear();
    line.playout.endUtterance(utterance);
    line.clock.advance(500);
    expect(line.corked).toBe(0);
    expect(line.writes).toBeLessThanOrEqual(1 + Math.ceil(500 / PLAYOUT_BATCH_MS) + 1);
  });

  it('sends a batch up to 20 ms early when it is nudged, never more than the lead, and nothing when none is due', () => {
    const line = new PlayoutLine();
    line.say(1_000);
    line.clock.advance(BATCH_DUE_MS - PLAYOUT_EARLY_MS - 1);
    line.playout.nudge();
    expect(line.sentMs).toBe(PLAYOUT_LEAD_MS);
    line.clock.advance(1);
    line.playout.nudge();
    expect(line.sentMs).toBe(PLAYOUT_LEAD_MS + PLAYOUT_BATCH_MS);
    for (let at = 0; at < 900; at += 7) {
      line.clock.advance(7);
      line.playout.nudge();
    }
    expect(line.ear.queuedMaxMs).toBeLessThanOrEqual(PLAYOUT_LEAD_MS);
    expect(line.ear.stretches()).toHaveLength(1);
  });

  it('starts at once with the lead and then sends two messages every 80 ms on an absolute schedule', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.playout.endUtterance(utterance);
    line.clock.advance(2_000);
    const media = line.sent.filter(({ kind }) => kind === 'media');
    expect(media).toHaveLength(25);
    expect(media.map(({ atMs }) => atMs)).toEqual(
      Array.from({ length: 25 }, (_, index) =>
        index < 5 ? 0 : BATCH_DUE_MS + Math.floor((index - 5) / 2) * PLAYOUT_BATCH_MS,
      ),
    );
    expect(line.ear.queuedMaxMs).toBe(PLAYOUT_LEAD_MS);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.ear.heard()).toEqual(Buffer.from(soundOf(1_000)));
  });

  it('starts at once with the start buffer in hand, and not with a millisecond less', () => {
    for (const ms of [START_BUFFER_MIN_MS, 160, 320]) {
      const line = new PlayoutLine();
      line.say(ms);
      expect(line.sentMs).toBe(Math.min(ms, PLAYOUT_LEAD_MS));
    }
    const line = new PlayoutLine();
    const utterance = line.say(START_BUFFER_MIN_MS - 1);
    expect(line.sentMs).toBe(0);
    line.playout.push(utterance, soundOf(1));
    expect(line.sentMs).toBe(START_BUFFER_MIN_MS);
  });

  it('lets a short first chunk wait for the second, so that the carrier does not run dry between them', () => {
    for (const firstBytes of [1, 16, 159, 160, 400, 472]) {
      for (const gapMs of [15, 20, 35, 50, 60]) {
        const line = new PlayoutLine();
        const utterance = line.playout.startUtterance();
        line.playout.push(utterance, tellingSound(firstBytes));
        line.clock.advance(gapMs);
        expect(line.sent).toEqual([]);
        line.playout.push(utterance, tellingSound(1_280, firstBytes));
        expect(line.sent[0]?.atMs).toBe(gapMs);
        line.clock.advance(100);
        line.playout.push(utterance, tellingSound(1_280, firstBytes + 1_280));
        line.playout.endUtterance(utterance);
        line.clock.advance(1_000);
        expect(line.ear.stretches()).toHaveLength(1);
        const soundBytes = firstBytes + 2_560;
        expect([...line.ear.heard().subarray(0, soundBytes)]).toEqual([...tellingSound(soundBytes)]);
        expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
      }
    }
  });

  it('starts a trickle of 20 ms chunks when the start buffer is full or the bounded wait is over', () => {
    const waitMs = START_BUFFER_WAIT_FACTOR * START_BUFFER_MIN_MS;
    for (const periodMs of [5, 20, 40, 59, 60, 61, 100, waitMs, 300]) {
      const line = new PlayoutLine();
      const utterance = line.playout.startUtterance();
      for (let round = 0; round < 10; round += 1) {
        line.playout.push(utterance, soundOf(20, round * 160));
        line.clock.advance(periodMs);
      }
      const fullAtMs = (START_BUFFER_MIN_MS / 20 - 1) * periodMs;
      expect(line.sent[0]?.atMs).toBe(Math.min(fullAtMs, waitMs));
      line.playout.endUtterance(utterance);
      line.clock.advance(1_000);
      expect(line.ear.heard()).toEqual(Buffer.from(soundOf(200)));
      // Chunks at the pace of speech or faster play without a gap.
      if (periodMs <= 20) expect(line.ear.stretches()).toHaveLength(1);
    }
  });

  it('catches up after a late timer without a gap, and does not drift', () => {
    const line = new PlayoutLine();
    // The clock's grain is odd, so that no wake falls on a multiple of 40.
    const utterance = line.say(10_000);
    for (let at = 0; at < 10_000; at += 97) line.clock.advance(97);
    line.playout.endUtterance(utterance);
    line.clock.advance(2_000);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.ear.queuedMaxMs).toBeLessThanOrEqual(PLAYOUT_LEAD_MS + 1);
    expect(line.events).not.toContainEqual(expect.stringContaining('underrun'));
  });

  it('re-cuts odd pieces to whole frames and pads the end of an utterance with silence only', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.startUtterance();
    const sound = tellingSound(4_001);
    for (let at = 0; at < sound.length; at += 7) line.playout.push(utterance, sound.subarray(at, at + 7));
    line.playout.endUtterance(utterance);
    line.clock.advance(1_000);
    for (const { bytes } of line.sent) expect(bytes % MULAW_FRAME_BYTES).toBe(0);
    const heard = [...line.ear.heard()];
    expect(heard.slice(0, 4_001)).toEqual([...sound]);
    expect(heard).toHaveLength(4_160);
    expect(new Set(heard.slice(4_001))).toEqual(new Set([MULAW_SILENCE]));
  });

  it('carries a remainder below a message while the carrier has enough, and sends it before it runs dry', () => {
    const line = new PlayoutLine();
    const utterance = line.say(180);
    expect(line.sentMs).toBe(160);
    line.clock.advance(160 - PLAYOUT_LEAD_MS / 2 - 1);
    expect(line.sentMs).toBe(160);
    line.clock.advance(1);
    expect(line.sentMs).toBe(180);
    line.playout.push(utterance, soundOf(180));
    line.playout.endUtterance(utterance);
    line.clock.advance(1_000);
    expect(line.ear.stretches()).toHaveLength(1);
    expect(line.sentMs).toBe(360);
  });

  it('keeps utterances apart: the end of one is never mixed with the beginning of the next', () => {
    const line = new PlayoutLine();
    const first = line.playout.startUtterance();
    line.playout.push(first, new Uint8Array(100).fill(1));
    const second = line.playout.startUtterance();
    line.playout.push(second, new Uint8Array(160).fill(2));
    line.playout.endUtterance(second);
    line.clock.advance(500);
    const expected = [...Array(100).fill(1), ...Array(60).fill(MULAW_SILENCE), ...Array(160).fill(2)];
    expect([...line.ear.heard()]).toEqual(expected);
    expect(first.ended).toBe(true);
  });

  it('plays a recorded clip behind what waits', () => {
    const line = new PlayoutLine();
    line.say(500);
    const clip = line.playout.playClip(new Uint8Array(1_600).fill(7));
    line.clock.advance(2_000);
    expect([...line.ear.heard().subarray(4_000)]).toEqual(Array(1_600).fill(7));
    expect(line.playout.heardMs(clip)).toBe(200);
    expect(line.events).toEqual(['first 1', 'first 2', 'heard 1', 'heard 2', 'drained']);
  });

  it('pauses while the carrier socket is full, loses nothing, and calls it no underrun', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.clock.advance(100);
    const sentMs = line.sentMs;
    line.bufferedAmount = CARRIER_BUFFERED_MAX_BYTES + 1;
    line.clock.advance(3_000);
    expect(line.sentMs).toBe(sentMs);
    line.bufferedAmount = CARRIER_BUFFERED_MAX_BYTES;
    line.playout.endUtterance(utterance);
    line.clock.advance(3_000);
    expect(line.ear.heard()).toEqual(Buffer.from(soundOf(1_000)));
    expect(line.ear.queuedMaxMs).toBeLessThanOrEqual(PLAYOUT_LEAD_MS);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
  });

  it('refuses the rest of an utterance when the queue is full, and takes the next one again', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.startUtterance();
    const accepted = line.playout.push(utterance, new Uint8Array((PLAYOUT_QUEUE_MAX_MS + 1_000) * 8));
    expect(accepted).toBe(PLAYOUT_QUEUE_MAX_MS);
    line.clock.advance(5_000);
    expect(line.playout.push(utterance, soundOf(20))).toBe(0);
    expect(utterance.refused).toBe(true);
    expect(line.events).toEqual(['dropped 1000 queue_full', 'first 1', 'dropped 20 queue_full']);
    const next = line.playout.startUtterance();
    expect(line.playout.push(next, soundOf(20))).toBe(20);
    expect(utterance.acceptedMs).toBe(PLAYOUT_QUEUE_MAX_MS);
  });

  it('refuses an utterance whole when too many wait', () => {
    const line = new PlayoutLine();
    const waiting = Array.from({ length: UTTERANCES_MAX }, () => line.playout.playClip(soundOf(20)));
    const tooMany = line.playout.startUtterance();
    expect(line.playout.push(tooMany, soundOf(20))).toBe(0);
    line.playout.endUtterance(tooMany);
    line.clock.advance(10_000);
    expect(line.events.filter((event) => event.startsWith('heard'))).toEqual(
      waiting.map(({ id }) => `heard ${id}`),
    );
    expect(line.events).toContain('dropped 20 queue_full');
    expect(line.playout.heardMs(tooMany)).toBe(0);
  });

  it('takes nothing for an utterance that is over', () => {
    const line = new PlayoutLine();
    const utterance = line.say(100);
    line.playout.endUtterance(utterance);
    line.playout.endUtterance(utterance);
    expect(line.playout.push(utterance, soundOf(20))).toBe(0);
    expect(line.playout.push(utterance, new Uint8Array(0))).toBe(0);
    expect(line.events).toEqual(['first 1', 'dropped 20 over']);
  });
});

describe('Playout running dry', () => {
  /** Says 400 ms, more than any start buffer, and lets the carrier run dry for `gapMs` before the next piece. */
  function stutter(line: PlayoutLine, gapMs: number, refillMs: number): void {
    const utterance = line.say(400);
    line.clock.advance(400 + gapMs);
    line.playout.push(utterance, soundOf(refillMs));
    line.clock.advance(refillMs + 1_000);
    line.playout.endUtterance(utterance);
    line.clock.advance(LAST_MARK_GRACE_MS);
  }

  it('counts an underrun with its gap when sound goes on', () => {
    const line = new PlayoutLine();
    stutter(line, 100, 300);
    expect(line.events).toEqual(['first 1', 'underrun 100 model', 'heard 1', 'drained']);
    expect(line.ear.stretches()).toHaveLength(2);
  });

  it('does not call the wait for a late end an underrun', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.startUtterance();
    line.playout.push(utterance, tellingSound(1_650));
    line.clock.advance(3_000);
    line.playout.endUtterance(utterance);
    line.clock.advance(1_000);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
    expect(line.sentMs).toBe(220);
    expect(line.playout.startBufferMs).toBe(START_BUFFER_MIN_MS);
  });

  it('refills before it goes on after an underrun', () => {
    const line = new PlayoutLine();
    const utterance = line.say(200);
    line.clock.advance(300);
    line.playout.push(utterance, soundOf(40));
    expect(line.sentMs).toBe(200);
    const refillMs = START_BUFFER_MIN_MS + START_BUFFER_STEP_MS;
    expect(line.playout.startBufferMs).toBe(refillMs);
    line.playout.push(utterance, soundOf(refillMs - 41));
    expect(line.sentMs).toBe(200);
    line.playout.push(utterance, soundOf(1));
    expect(line.sentMs).toBe(200 + refillMs);
    expect(line.events.at(-1)).toBe('underrun 100 model');
  });

  it('goes on at once with a piece that comes as the carrier runs dry, and refills a millisecond later', () => {
    for (const lateMs of [-1, -0.5, 0, 0.5, 1, 1.5, 2]) {
      const line = new PlayoutLine();
      const utterance = line.say(200);
      line.clock.advance(200 + lateMs);
      line.playout.push(utterance, soundOf(20));
      const inTime = lateMs <= 1;
      expect(line.sentMs).toBe(inTime ? 220 : 200);
      line.playout.endUtterance(utterance);
      line.clock.advance(1_000);
      expect(line.events.filter((event) => event.startsWith('underrun'))).toEqual(
        inTime ? [] : [`underrun ${lateMs} model`],
      );
    }
  });

  it('counts each underrun of an utterance, and grows the start buffer for each', () => {
    const line = new PlayoutLine();
    const utterance = line.say(200);
    for (let round = 1; round <= 3; round += 1) {
      line.clock.advance(round === 1 ? 400 : 600);
      line.playout.push(utterance, soundOf(400));
      expect(line.playout.startBufferMs).toBe(START_BUFFER_MIN_MS + round * START_BUFFER_STEP_MS);
    }
    expect(line.events).toEqual(['first 1', ...Array(3).fill('underrun 200 model')]);
  });

  it('waits anew for each start, whether the last wait ran out or was cut off', () => {
    const line = new PlayoutLine();
    stutter(line, 100, 300);
    const before = line.sentMs;
    line.say(20);
    line.clock.advance(START_BUFFER_WAIT_MAX_MS);
    expect(line.sentMs).toBe(before + 20);
    line.clock.advance(500);
    line.say(20);
    const waitMs = START_BUFFER_WAIT_FACTOR * line.playout.startBufferMs;
    line.clock.advance(waitMs - 1);
    expect(line.sentMs).toBe(before + 20);
    line.playout.clear();
    line.say(20);
    line.clock.advance(waitMs - 1);
    expect(line.sentMs).toBe(before + 20);
    line.clock.advance(1);
    expect(line.sentMs).toBe(before + 40);
  });

  it('waits for the start buffer before the next utterance, up to a bound that grows with it', () => {
    const waitsMs = [120, 240, 360, START_BUFFER_WAIT_MAX_MS, START_BUFFER_WAIT_MAX_MS];
    for (const [stutters, waitMs] of waitsMs.entries()) {
      const line = new PlayoutLine();
      for (let round = 0; round < stutters; round += 1) stutter(line, 100, 400);
      const before = line.sentMs;
      const utterance = line.say(20);
      expect(line.sentMs).toBe(before);
      line.clock.advance(waitMs - 1);
      expect(line.sentMs).toBe(before);
      line.clock.advance(1);
      expect(line.sentMs).toBe(before + 20);
      line.playout.endUtterance(utterance);
      line.clock.advance(1_000);
      expect(line.playout.isSilent).toBe(true);
    }
  });

  it('plays an utterance that ends before the start buffer is full at once', () => {
    for (const stutters of [0, 1, 10]) {
      const line = new PlayoutLine();
      for (let round = 0; round < stutters; round += 1) stutter(line, 100, 400);
      const before = line.sentMs;
      const utterance = line.playout.startUtterance();
      line.playout.push(utterance, tellingSound(161));
      line.clock.advance(15);
      expect(line.sentMs).toBe(before);
      line.playout.endUtterance(utterance);
      expect(line.sentMs).toBe(before + 40);
    }
  });

  it('grows the start buffer no further than its maximum, and clean utterances take it back', () => {
    const line = new PlayoutLine();
    for (let round = 0; round < 10; round += 1) stutter(line, 100, 400);
    expect(line.playout.startBufferMs).toBe(START_BUFFER_MAX_MS);
    const clean = (START_BUFFER_MAX_MS - START_BUFFER_MIN_MS) / START_BUFFER_DECAY_MS;
    for (let round = 1; round <= clean + 3; round += 1) {
      line.playout.playClip(soundOf(100));
      line.clock.advance(1_000);
      const decayedMs = START_BUFFER_MAX_MS - round * START_BUFFER_DECAY_MS;
      expect(line.playout.startBufferMs).toBe(Math.max(START_BUFFER_MIN_MS, decayedMs));
    }
    const before = line.sentMs;
    line.say(START_BUFFER_MIN_MS);
    expect(line.sentMs).toBe(before + START_BUFFER_MIN_MS);
  });

  it('blames itself, not the model, when sound was there but its timer came too late', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.clock.advance(100);
    // A process that stands still for 400 ms: time goes on, no timer fires.
    line.clock.stall(400);
    line.clock.advance(2_000);
    line.playout.endUtterance(utterance);
    line.clock.advance(100);
    expect(line.events).toEqual(['first 1', 'underrun 220 late', 'heard 1', 'drained']);
    expect(line.ear.heard()).toEqual(Buffer.from(soundOf(1_000)));
    expect(line.ear.queuedMaxMs).toBe(PLAYOUT_LEAD_MS);
    expect(line.playout.startBufferMs).toBe(START_BUFFER_MIN_MS);
  });

  it('still blames itself when the model brings more before the late timer', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_000);
    line.clock.stall(400);
    line.playout.push(utterance, soundOf(1_000));
    expect(line.events).toEqual(['first 1', 'underrun 200 late']);
    expect(line.playout.startBufferMs).toBe(START_BUFFER_MIN_MS);
  });

  it('plays a trickle that never ends', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.startUtterance();
    for (let round = 0; round < 200; round += 1) {
      line.playout.push(utterance, soundOf(20));
      line.clock.advance(100);
    }
    line.clock.advance(START_BUFFER_WAIT_MAX_MS);
    expect(line.playout.queuedMs).toBe(0);
    expect(line.sentMs).toBe(4_000);
  });
});

describe('Playout marks and ends', () => {
  it('sends a mark at least every 160 ms of sound and one behind the last sound, in the same write', () => {
    const line = new PlayoutLine();
    const utterance = line.say(1_010);
    line.playout.endUtterance(utterance);
    line.clock.advance(2_000);
    let unmarkedMs = 0;
    for (const { bytes, mark, kind } of line.sent) {
      expect(kind).toBe('media');
      unmarkedMs += bytes / 8;
      expect(unmarkedMs).toBeLessThanOrEqual(MARK_INTERVAL_MS);
      if (mark !== undefined) unmarkedMs = 0;
    }
    expect(unmarkedMs).toBe(0);
    expect(new Set(line.marks).size).toBe(line.marks.length);
    expect(line.marks[0]).toBe('g1:m1');
  });

  it('sends the last mark alone when the end is known only after the last sound', () => {
    const line = new PlayoutLine();
    const utterance = line.say(200);
    line.clock.advance(150);
    expect(line.marks).toEqual(['g1:m1']);
    line.playout.endUtterance(utterance);
    expect(line.sent.at(-1)).toMatchObject({ kind: 'mark', mark: 'g1:m2' });
    line.clock.advance(49);
    expect(line.events).toEqual(['first 1']);
    line.clock.advance(1);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
  });

  it('sends no second mark for the same place', () => {
    const line = new PlayoutLine();
    const utterance = line.say(160);
    line.playout.endUtterance(utterance);
    expect(line.marks).toEqual(['g1:m1']);
  });

  it('says when each utterance was heard, in order, and when all were', () => {
    const line = new PlayoutLine();
    const times: string[] = [];
    line.react = (event) => times.push(`${event} @${line.timeMs}`);
    for (const ms of [300, 0, 200]) line.playout.endUtterance(line.say(ms));
    line.clock.advance(5_000);
    expect(times).toEqual([
      'first 1 @0',
      'first 3 @180',
      'heard 1 @300',
      'heard 2 @300',
      'heard 3 @500',
      'drained @500',
    ]);
  });

  it('waits for a mark that never comes no longer than the grace', () => {
    const line = new PlayoutLine(() => []);
    const utterance = line.say(200);
    line.playout.endUtterance(utterance);
    line.clock.advance(200);
    expect(line.playout.heardMs(utterance)).toBe(200);
    line.clock.advance(LAST_MARK_GRACE_MS - 1);
    expect(line.events).toEqual(['first 1']);
    line.clock.advance(1);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
    expect(line.clock.pendingTimers).toBe(0);
  });

  it('goes on from an utterance whose last mark was lost', () => {
    const line = new PlayoutLine((name) => (name === 'g1:m1' ? [0] : []));
    const first = line.playout.playClip(soundOf(320));
    const second = line.playout.playClip(soundOf(4_000));
    line.clock.advance(320 + LAST_MARK_GRACE_MS - 1);
    expect([line.playout.heardMs(first), line.playout.heardMs(second)]).toEqual([320, 0]);
    line.clock.advance(201);
    expect(line.events).toEqual(['first 1', 'first 2', 'heard 1']);
    // Up to the first mark of the second, as that has not come back either.
    expect(line.playout.heardMs(second)).toBe(MARK_INTERVAL_MS);
  });

  it('sends nothing from within a send, even to a carrier that returns marks within it', () => {
    const line = new PlayoutLine();
    const send = line.send.bind(line);
    let depth = 0;
    line.send = (mulaw, mark) => {
      expect((depth += 1)).toBe(1);
      send(mulaw, mark);
      if (mark !== undefined) line.playout.onMark(mark);
      depth -= 1;
    };
    // All is there before the first message may go, so that one mark comes back while the next message is due.
    line.bufferedAmount = CARRIER_BUFFERED_MAX_BYTES + 1;
    line.playout.playClip(soundOf(90));
    line.playout.playClip(soundOf(500));
    line.bufferedAmount = 0;
    line.clock.advance(2_000);
    expect(line.ear.heard()).toHaveLength(600 * 8);
    expect(line.events).toEqual(['first 1', 'first 2', 'heard 1', 'heard 2', 'drained']);
  });

  it('sets no timer for the last fraction of a millisecond', () => {
    const line = new PlayoutLine(() => []);
    line.playout.playClip(soundOf(160));
    line.clock.advance(159.5);
    line.playout.onMark('g1:m1');
    line.clock.advance(1);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
  });

  it('does not take a mark that comes back too early for the end of the sound', () => {
    const line = new PlayoutLine();
    const utterance = line.playout.playClip(soundOf(160));
    line.playout.onMark('g1:m1');
    expect(line.events).toEqual(['first 1']);
    line.clock.advance(159);
    expect(line.playout.heardMs(utterance)).toBe(159);
    line.clock.advance(1);
    expect(line.events).toEqual(['first 1', 'heard 1', 'drained']);
  });

  it('leaves no timer when there is nothing to do, and none after close', () => {
    const line = new PlayoutLine();
    expect(line.clock.pendingTimers).toBe(0);
    const utterance = line.say(500);
    line.playout.endUtterance(utterance);
    line.clock.advance(500);
    expect(line.clock.pendingTimers).toBe(0);
    line.say(500);
    line.clock.advance(100);
    line.playout.close();
    line.playout.close();
    line.ear.hangUp();
    expect(line.clock.pendingTimers).toBe(0);
    const events = line.events.length;
    const sent = line.sent.length;
    line.playout.playClip(soundOf(100));
    line.playout.clear();
    line.playout.clearAt(line.clock.nowMs() + 100);
    line.playout.onMark('g1:m2');
    line.clock.advance(5_000);
    expect(line.events).toHaveLength(events);
    expect(line.sent).toHaveLength(sent);
    expect(line.clock.pendingTimers).toBe(0);
  });
});
