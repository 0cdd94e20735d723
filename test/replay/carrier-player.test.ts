import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CarrierPlayer } from '../../src/replay/carrier-player.js';
import { SoundTrack } from '../../src/replay/sound-track.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { concat, silence, tone } from './tones.js';

function playerAt(startMs = 0) {
  const clock = new VirtualClock();
  clock.advance(startMs);
  const heard = new SoundTrack();
  const returned: string[] = [];
  const player = new CarrierPlayer({
    clock,
    answeredAtMs: clock.nowMs(),
    heard,
    returnMark: (name) => returned.push(name),
  });
  return { clock, heard, returned, player };
}

describe('the carrier plays what the server sends', () => {
  it('plays sound in the order of arrival at 8 bytes a millisecond, with silence where nothing is queued', () => {
    const { clock, heard, player } = playerAt(12_345.678);
    const [first, second, third] = [tone(100, 440), tone(60, 880), tone(40, 660)];
    clock.advance(50);
    player.play(first);
    player.play(second);
    clock.advance(500);
    player.play(third);
    const expected = concat(silence(50), first, second, silence(340), third);
    expect(heard.copy(expected.length)).toEqual(expected);
    expect(player.stretches).toEqual([
      { start: 400, end: 1_680, endedBy: 'dry' },
      { start: 4_400, end: 4_720, endedBy: 'dry' },
    ]);
  });

  it('returns a mark when the sound before it has been played, not earlier', () => {
    const { clock, returned, player } = playerAt();
    player.play(tone(100));
    player.addMark('a');
    player.play(tone(20));
    player.addMark('b');
    clock.advance(99);
    expect(returned).toEqual([]);
    clock.advance(1);
    expect(returned).toEqual(['a']);
    clock.advance(20);
    expect(returned).toEqual(['a', 'b']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('returns a mark at once when nothing is queued', () => {
    const { clock, returned, player } = playerAt();
    player.addMark('early');
    player.play(tone(20));
    clock.advance(20);
    player.addMark('late');
    expect(returned).toEqual(['early', 'late']);
  });

  it('drops on clear what was not yet played and returns every pending mark in order', () => {
    const { clock, heard, returned, player } = playerAt();
    const sound = tone(200);
    player.play(sound);
    player.addMark('middle');
    player.play(sound);
    player.addMark('end');
    clock.advance(50);
    player.clear();
    expect(returned).toEqual(['middle', 'end']);
    expect(player.clears).toEqual([{ atMs: 50, droppedMs: 350, marksReturned: 2 }]);
    clock.advance(1_000);
    expect(returned).toEqual(['middle', 'end']);
    expect(heard.copy(3_200)).toEqual(concat(sound.subarray(0, 400), silence(350)));
  });

  it('plays new sound at once after clear', () => {
    const { clock, heard, player } = playerAt();
    player.play(tone(500));
    clock.advance(100);
    player.clear();
    const answer = tone(100, 880);
    player.play(answer);
    expect(heard.copy(1_600).subarray(800)).toEqual(answer);
    expect(player.stretches.map((stretch) => stretch.endedBy)).toEqual(['cleared', 'dry']);
  });

  it('returns no mark once the stream is cut, and counts what was not heard', () => {
    const { clock, returned, player } = playerAt();
    player.play(tone(300));
    player.addMark('never');
    clock.advance(100);
    player.cut();
    clock.advance(1_000);
    expect(returned).toEqual([]);
    expect(player.cutMs).toBe(200);
    expect(clock.pendingTimers).toBe(0);
  });

  it('drops what would wait longer than ten minutes', () => {
    const { player } = playerAt();
    expect(player.play(new Uint8Array(10 * 60 * 8_000))).toBe(true);
    expect(player.play(tone(20))).toBe(false);
    expect(player.overflowMs).toBe(20);
  });

  it('loses no sound and no mark, whatever the order of messages', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('play' as const), amount: fc.integer({ min: 0, max: 900 }) }),
      fc.record({ do: fc.constant('wait' as const), amount: fc.integer({ min: 0, max: 90 }) }),
      fc.record({ do: fc.constantFrom('mark' as const, 'clear' as const), amount: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { clock, heard, returned, player } = playerAt();
        let [sent, marks] = [0, 0];
        for (const { do: what, amount } of steps) {
          if (what === 'play') {
            player.play(new Uint8Array(amount).fill(0x10));
            sent += amount;
          } else if (what === 'wait') clock.advance(amount);
          else if (what === 'mark') player.addMark(String(marks++));
          else player.clear();
        }
        clock.advance(player.queuedMs);
        const played = heard.copy(heard.end).filter((code) => code === 0x10).length;
        const dropped = player.clears.reduce((sum, clear) => sum + clear.droppedMs * 8, 0);
        expect(played + dropped).toBe(sent);
        expect(returned).toEqual(Array.from({ length: marks }, (_, index) => String(index)));
        expect(clock.pendingTimers).toBe(0);
      }),
    );
  });
});
