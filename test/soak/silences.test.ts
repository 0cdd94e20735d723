import { describe, expect, test } from 'vitest';
import { type LineSounds, unexplainedSilences } from './silences.js';

const span = (fromMs: number, toMs: number) => ({ fromMs, toMs });
const whole = (fromMs: number, toMs: number) => ({ ...span(fromMs, toMs), isWhole: true });
const broken = (fromMs: number, toMs: number) => ({ ...span(fromMs, toMs), isWhole: false });

function line(sounds: Partial<LineSounds>): LineSounds {
  return { openedAtMs: 200, endedAtMs: 30_000, agent: [], clips: [], caller: [], ...sounds };
}

describe('a silence without an explanation', () => {
  test.each<[string, Partial<LineSounds>, string[]]>([
    ['nobody greets', { endedAtMs: 4_000 }, ['200-4000 the stream had opened']],
    ['the greeting comes late', { agent: [whole(3_300, 30_000)] }, ['200-3300 the stream had opened']],
    [
      'nobody answers the caller',
      { agent: [whole(500, 2_000)], caller: [span(3_000, 4_000)], endedAtMs: 7_500 },
      ['4000-7500 the caller had spoken'],
    ],
    [
      'the agent breaks off',
      { agent: [broken(500, 2_000)], endedAtMs: 6_000 },
      ['2000-6000 the agent had broken off'],
    ],
    [
      'the answer ends with the caller’s own words',
      { agent: [whole(500, 2_100)], caller: [span(1_500, 2_000)], endedAtMs: 6_000 },
      ['2100-6000 the caller had spoken'],
    ],
    [
      'a clip is followed by nothing',
      { agent: [broken(500, 2_000)], clips: [span(4_000, 5_000)], endedAtMs: 10_500 },
      ['5000-10500 the agent had broken off'],
    ],
    [
      'a clip was long ago',
      {
        clips: [span(1_000, 2_000)],
        caller: [span(4_000, 6_500)],
        endedAtMs: 10_000,
      },
      ['6500-10000 the caller had spoken'],
    ],
    [
      'the caller says it again and again',
      { agent: [whole(500, 1_000)], caller: [span(2_000, 3_000), span(7_000, 8_000)], endedAtMs: 12_000 },
      ['3000-7000 the caller had spoken', '8000-12000 the caller had spoken'],
    ],
  ])('is there when %s', (_, sounds, expected) => {
    const told = unexplainedSilences(line(sounds)).map((one) => `${one.fromMs}-${one.toMs} ${one.owed}`);
    expect(told).toEqual(expected);
  });

  test('is shorter by what the measuring machine was late', () => {
    const sounds = line({ agent: [whole(3_700, 30_000)] });
    expect(unexplainedSilences(sounds)).toHaveLength(1);
    expect(unexplainedSilences(sounds, (fromMs, toMs) => (toMs - fromMs) / 5)).toEqual([]);
  });

  test.each<[string, Partial<LineSounds>]>([
    ['it is the caller’s turn', { agent: [whole(500, 2_000)] }],
    [
      'the answer comes within three seconds',
      { agent: [whole(500, 1_000), whole(6_000, 7_000)], caller: [span(2_000, 3_100)] },
    ],
    [
      'a clip has just explained it',
      { agent: [broken(500, 2_000), whole(9_900, 11_000)], clips: [span(4_000, 5_000)] },
    ],
    [
      'one clip follows the other',
      { agent: [whole(11_000, 12_000)], clips: [span(1_700, 2_700), span(6_700, 7_000)] },
    ],
    ['the caller speaks', { agent: [whole(500, 1_000), whole(9_000, 9_500)], caller: [span(1_500, 8_000)] }],
    ['the call is over', { agent: [whole(500, 1_000)], caller: [span(2_000, 3_000)], endedAtMs: 5_900 }],
    [
      'the agent was cut in on and answers',
      { agent: [broken(500, 1_500), whole(4_000, 5_000)], caller: [span(1_300, 2_500)] },
    ],
    ['the agent finishes over the caller', { agent: [whole(500, 3_000)], caller: [span(1_300, 2_500)] }],
  ])('is not there when %s', (_, sounds) => {
    expect(unexplainedSilences(line(sounds))).toEqual([]);
  });
});
