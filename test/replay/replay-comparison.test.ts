/** What a replay's differences are, and how they are told. */
import { describe, expect, it } from 'vitest';
import type { FixtureHeader, FixtureLine } from '../../src/fixture/fixture-format.js';
import { dialogueDiff, dialogueOf } from '../../src/replay/dialogue-diff.js';
import { compareReplay } from '../../src/replay/replay-comparison.js';

type Made = FixtureHeader['made'];

const asked: FixtureLine = {
  at: 250,
  leg: 'model',
  dir: 'out',
  message: { clientContent: { turns: [{ text: 'Say this greeting now: "Hello, this is the shop."' }] } },
};
const clear: FixtureLine = { at: 900, leg: 'phone', dir: 'out', message: { event: 'clear' } };
const heard = (text: string, interrupted = false): FixtureLine => ({
  at: 2000,
  leg: 'call',
  dir: 'out',
  heard: { role: 'model', text, interrupted },
});
const ended: FixtureLine = { at: 2000, leg: 'call', dir: 'out', ended: 'caller_hangup' };
const stop: FixtureLine = { at: 1990, leg: 'phone', dir: 'in', message: { event: 'stop' } };

function sound(
  at: number,
  digest = 'aaaaaaaaaaaa',
  level = -21,
  leg: 'phone' | 'model' = 'phone',
): FixtureLine {
  return { at, leg, dir: 'out', sound: `320 ${level} ${digest}` };
}

const CALL: readonly FixtureLine[] = [
  asked,
  ...Array.from({ length: 20 }, (_, index) => sound(300 + 40 * index, String(index).padStart(12, '0'))),
  clear,
  stop,
  ended,
  heard('Hello, this is'),
];

function told(
  actual: readonly FixtureLine[],
  expected: readonly FixtureLine[] = CALL,
  made: Made = 'recorded',
): string {
  return dialogueDiff(expected, compareReplay(expected, actual, made));
}

function changed(index: number, line: FixtureLine): FixtureLine[] {
  return CALL.map((other, at) => (at === index ? line : other));
}

function differences(
  actual: readonly FixtureLine[],
  expected: readonly FixtureLine[] = CALL,
  made: Made = 'recorded',
): number {
  return compareReplay(expected, actual, made).differences;
}

describe('a comparison', () => {
  it('finds nothing between a call and itself, however its fields are ordered', () => {
    const turned = CALL.map(
      (line) => Object.fromEntries(Object.entries(line).toReversed()) as unknown as FixtureLine,
    );
    expect(differences(turned)).toBe(0);
    expect(told(turned)).toBe('');
    expect(differences([], [])).toBe(0);
  });

  it('does not look at what came from outside', () => {
    expect(differences(CALL.filter(({ dir }) => dir === 'out'))).toBe(0);
  });

  it('minds the order within a message', () => {
    const other: FixtureLine = { at: 250, leg: 'model', dir: 'out', message: { a: 1, b: 2 } };
    expect(differences([{ ...other, message: { b: 2, a: 1 } }], [other])).toBe(2);
  });

  it('minds the order on one leg, and between legs not from one instant to another', () => {
    expect(differences([ended, clear, asked, ...CALL.slice(1, 21), heard('Hello, this is')])).toBeGreaterThan(
      0,
    );
    const byLeg = CALL.toSorted((a, b) => (a.leg < b.leg ? -1 : a.leg > b.leg ? 1 : 0));
    expect(differences(byLeg)).toBe(0);
  });

  it.each([
    [5, 0],
    [-5, 0],
    [5.001, 1],
    [-5.001, 1],
    [300, 1],
  ])('takes %d ms off as %i differences', (offMs, count) => {
    expect(differences(changed(21, { ...clear, at: 900 + offMs }))).toBe(count);
  });

  it('takes no time off, but for the last digit’s rounding, from a call that a replay wrote', () => {
    expect(differences(changed(21, { ...clear, at: 900.001 }), CALL, 'by hand')).toBe(1);
    expect(differences(changed(21, { ...clear, at: 900.000_000_1 }), CALL, 'by hand')).toBe(0);
  });

  it('counts one message that is missing, and one too many, once each', () => {
    expect(differences(CALL.filter((line) => line !== clear))).toBe(1);
    expect(differences([...CALL.slice(0, 9), clear, ...CALL.slice(9)])).toBe(1);
    expect(differences([])).toBe(CALL.length - 1);
  });

  it('minds each field: the connection, the code, the sound', () => {
    const close: FixtureLine = { at: 1, leg: 'phone', dir: 'out', close: 1000 };
    expect(differences([{ ...close, close: 1001 }], [close])).toBe(2);
    expect(differences([{ ...close, conn: 2 }], [close])).toBe(2);
    expect(differences([sound(1, 'b')], [sound(1, 'a')])).toBe(2);
  });

  it('stays quick where nothing agrees', () => {
    const many = (digest: string): FixtureLine[] =>
      Array.from({ length: 6_000 }, (_, index) => sound(index, `${digest}${index}`));
    expect(differences(many('b'), many('a'))).toBe(6_000);
  });
});

describe('the order of what goes out at one instant', () => {
  const legs: readonly FixtureLine[] = [
    { at: 40, leg: 'model', dir: 'out', close: 1000 },
    { at: 40, leg: 'phone', dir: 'out', close: 1000 },
    { at: 40, leg: 'rest', dir: 'out', request: { method: 'POST', uri: '/x', data: {} } },
    { at: 40, leg: 'operator', dir: 'out', answer: { status: 200 } },
    { at: 40, leg: 'call', dir: 'out', ended: 'caller_hangup' },
    { at: 40, leg: 'model', dir: 'out', conn: 2, sound: '640 -99 1f6763983967' },
  ];
  const pairs = legs.flatMap((one) =>
    legs.filter((other) => other.leg !== one.leg).map((other) => [one, other] as const),
  );

  it.each(['by hand', 'recorded'] as const)('is minded between any two legs, %s', (made) => {
    for (const [one, other] of pairs) {
      expect(differences([one, other], [one, other], made)).toBe(0);
      expect(differences([other, one], [one, other], made)).toBe(1);
      expect(
        differences(
          [
            { ...other, at: 41 },
            { ...one, at: 42 },
          ],
          [one, { ...other, at: 41 }],
          made,
        ),
      ).toBe(made === 'recorded' ? 0 : 1);
    }
  });

  it('is minded between the sound to the model and the sound to the phone', () => {
    const both = [sound(40, 'a', -21, 'model'), sound(40, 'b')];
    expect(differences(both.toReversed(), both, 'by hand')).toBe(1);
  });

  it('counts what was moved, and not what it was moved past', () => {
    const first = sound(40, 'a', -21, 'model');
    const rest = Array.from({ length: 30 }, (_, index) => sound(40, String(index)));
    expect(differences([...rest, first], [first, ...rest], 'by hand')).toBe(1);
    expect(differences([first, ...rest], [...rest, first], 'by hand')).toBe(1);
  });

  it('is told in one row: what, and on which side of what it is now', () => {
    const [model, phone] = legs as [FixtureLine, FixtureLine];
    const row = told([phone, model], [model, phone], 'by hand');
    expect(row).toMatch(/^~ +0\.040 {2}\w+ ← +close 1000 {2}\(now (before|behind) \w+ ← close 1000\)$/m);
    expect(row).not.toMatch(/^[-+]/m);
    const sounds = [sound(40, 'a', -21, 'model'), sound(40, 'b')];
    expect(told(sounds.toReversed(), sounds, 'by hand')).toMatch(/^~ .*♪ .*now \w+ \w+ ← ♪/m);
  });

  it('is not minded in a recording for what a recorder hears of in another turn', () => {
    const connect: FixtureLine = { at: 40, leg: 'model', dir: 'out', connect: true };
    const cut: FixtureLine = { at: 40, leg: 'model', dir: 'out', cut: true };
    const answer: FixtureLine = { at: 40, leg: 'phone', dir: 'out', answer: { status: 200, xml: '' } };
    for (const line of [connect, cut]) {
      expect(differences([line, answer], [answer, line], 'recorded')).toBe(0);
      expect(differences([line, answer], [answer, line], 'by hand')).toBe(1);
    }
  });
});

describe('a recording that is incomplete', () => {
  const cutAt: FixtureLine = { at: 580, leg: 'call', dir: 'out', truncated: 'the disk is too slow' };
  const known = [...CALL.slice(0, 8), cutAt];

  it('is compared up to where it ends, and says so', () => {
    const { differences: count, truncated } = compareReplay(known, CALL, 'recorded');
    expect(count).toBe(0);
    expect(truncated).toEqual({ at: 580, why: 'the disk is too slow' });
    expect(compareReplay(CALL, CALL, 'recorded').truncated).toBeUndefined();
  });

  it('is red for what differs before, on either side', () => {
    expect(differences(changed(3, sound(380, 'bbbb')), known)).toBe(2);
    expect(differences(CALL.slice(0, 7), known)).toBe(1);
    expect(differences([{ ...clear, at: 400 }, ...CALL], known)).toBe(1);
  });
});

describe('the diff as a dialogue', () => {
  it('tells a sound that differs by its place, length, level and digest', () => {
    const diff = told(changed(6, sound(500, 'bbbbbbbbbbbb', -35)));
    expect(diff).toMatch(/^- +0\.500 {2}phone ← ♪ 0\.04 s {2}-21 dB 000000000005$/m);
    expect(diff).toMatch(/^\+ +0\.500 {2}phone ← ♪ 0\.04 s {2}-35 dB bbbbbbbbbbbb$/m);
    expect(diff.split('\n').filter((row) => /^[-+]/.test(row))).toHaveLength(2);
  });

  it('tells a message that is missing with -, one too many with +, and what came before', () => {
    const missing = told(CALL.filter((line) => line !== clear));
    expect(missing).toMatch(/^- +0\.900 {2}phone ← \{"event":"clear"\}$/m);
    expect(missing).not.toMatch(/^\+/m);
    expect(missing).toMatch(/^ {2} +0\.300 {2}phone ← ♪ 0\.80 s in 20 messages$/m);
    const more = told([...CALL.slice(0, 9), { ...clear, at: 580 }, ...CALL.slice(9)]);
    expect(more).toMatch(/^\+ +0\.580 {2}phone ← \{"event":"clear"\}$/m);
    expect(more).not.toMatch(/^-/m);
  });

  it('tells a message that came at another time by both times', () => {
    const late = told(changed(21, { ...clear, at: 940 }));
    expect(late).toMatch(/^- +0\.900 {2}phone ← \{"event":"clear"\}$/m);
    expect(late).toMatch(/^\+ +0\.940 {2}phone ← \{"event":"clear"\}$/m);
  });

  it('tells a transcript that differs, with the dash of what was cut', () => {
    const diff = told(changed(CALL.length - 1, heard('Hello, this is the', true)));
    expect(diff).toMatch(/^- +2\.000 {2}call {4}model: Hello, this is$/m);
    expect(diff).toMatch(/^\+ +2\.000 {2}call {4}model: Hello, this is the —$/m);
  });

  it('tells long texts from where they differ', () => {
    const long = 'Once upon a time. '.repeat(40);
    const diff = told([heard(`${long}And then?`)], [heard(`${long}The end.`)]);
    expect(diff).toMatch(/^- .*Once upon a time\. The end\.$/m);
    expect(diff).toMatch(/^\+ .*Once upon a time\. And then\?$/m);
    for (const row of diff.split('\n')) expect(row.length).toBeLessThan(150);
  });

  it('tells each of several long texts that differ side by side from where it differs', () => {
    const long = 'Once upon a time. '.repeat(20);
    const texts = (ends: readonly string[]): FixtureLine[] => ends.map((end) => heard(`${long}${end}`));
    const diff = told(texts(['A1', 'B1', 'C1']), texts(['A0', 'B0', 'C0']));
    for (const end of ['A0', 'B0', 'C0']) expect(diff).toMatch(new RegExp(`^- .*${end}$`, 'm'));
    for (const end of ['A1', 'B1', 'C1']) expect(diff).toMatch(new RegExp(`^\\+ .*${end}$`, 'm'));
  });

  it('stays short however much differs', () => {
    const diff = told([], CALL);
    expect(diff.split('\n').length).toBeLessThan(25);
    expect(diff).toContain('more rows');
    const everyFourth = Array.from({ length: 400 }, (_, index) => sound(40 * index, String(index)));
    const spots = everyFourth.map((line, index) => (index % 40 === 0 ? sound(40 * index, 'zz') : line));
    const many = told(spots, everyFourth);
    expect(many.split('\n').length).toBeLessThan(70);
  });

  it('puts no mark, no stall and no time of its own into a call that is shown', () => {
    const mark: FixtureLine = {
      at: 500,
      leg: 'phone',
      dir: 'out',
      message: { event: 'mark', mark: { name: 'm' } },
    };
    const stall: FixtureLine = { at: 600, leg: 'clock', dir: 'in', stalledSince: 500 };
    const shown = dialogueOf([asked, sound(300), mark, sound(340), stall, clear, ended, heard('Hello')]);
    expect(shown.split('\n')).toHaveLength(5);
    expect(shown).toContain('♪ 0.08 s in 2 messages');
    expect(shown).not.toContain('mark');
  });
});
