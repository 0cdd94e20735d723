/**
 * Holds what the server wrote in a replay against what the fixture says it wrote: leg by leg, message by message, content
 * and order exactly, times as exactly as the fixture knows them; and across legs the order of what went out at one instant.
 */
import { diffArrays } from 'diff';
import { type FixtureHeader, type FixtureLeg, type FixtureLine, roundMs } from '../fixture/fixture-format.js';

/** What a recording's own taps may be off by: they stand a few calls away from the wire. What a replay wrote is exact. */
const TIME_SLACK_MS: Readonly<Record<FixtureHeader['made'], number>> = { recorded: 5, 'by hand': 0 };
/** Two legs that differ in more places than this are compared place by place. */
const EDITS_MAX = 2_000;

/** A message that is as it should be, but on the wrong side of another leg's `other` at the same instant. */
export interface Moved {
  readonly where: 'before' | 'behind';
  readonly other: FixtureLine;
}

/** One place of a leg: the fixture's message, the replay's, or both. */
export interface Place {
  readonly at: number;
  readonly expected: FixtureLine | undefined;
  readonly actual: FixtureLine | undefined;
  readonly same: boolean;
  /** The one thing that is not the same. */
  readonly moved?: Moved;
}

export interface Comparison {
  /** Outgoing messages of all legs, in the order of time. */
  readonly places: readonly Place[];
  readonly differences: number;
  /** From when on, and why, the fixture does not know the call; nothing is compared from there on. */
  readonly truncated: { readonly at: number; readonly why: string } | undefined;
}

const LEGS: readonly FixtureLeg[] = ['phone', 'model', 'rest', 'operator', 'call'];

export function compareReplay(
  fixture: readonly FixtureLine[],
  replayed: readonly FixtureLine[],
  made: FixtureHeader['made'],
): Comparison {
  const slackMs = TIME_SLACK_MS[made];
  const truncated = truncationOf(fixture);
  const untilMs = truncated === undefined ? Infinity : truncated.at + slackMs;
  // Copies: which line is meant must not hang on whether both sides hold the same object.
  const expected = fixture.filter((line) => !isTruncation(line)).map((line) => ({ ...line }));
  const actual = replayed.filter(({ at }) => at <= untilMs).map((line) => ({ ...line }));
  const orders = new Map<FixtureLine | undefined, number>();
  for (const lines of [expected, actual])
    for (const [order, line] of lines.entries()) orders.set(line, order);
  const orderOf = (line: FixtureLine | undefined): number => orders.get(line) ?? -1;
  const places = LEGS.flatMap((leg) =>
    alignLeg(outgoing(expected, leg), outgoing(actual, leg), slackMs),
  ).filter(
    (one) => !(one.expected === undefined && truncated !== undefined && one.at >= truncated.at - slackMs),
  );
  places.sort((a, b) => a.at - b.at || orderOf(a.expected ?? a.actual) - orderOf(b.expected ?? b.actual));
  const ordered = markMoved(places, orderOf, made);
  return { places: ordered, differences: ordered.filter(({ same }) => !same).length, truncated };
}

function isTruncation(line: FixtureLine): boolean {
  return line.leg === 'call' && line.truncated !== undefined;
}

/** Where a recording ended before its call did. */
function truncationOf(lines: readonly FixtureLine[]): Comparison['truncated'] {
  const line = lines.find((one) => isTruncation(one));
  return line?.leg === 'call' ? { at: line.at, why: line.truncated ?? '' } : undefined;
}

/** The places of each instant whose messages are the same but did not go out in the fixture's order, as few as can be. */
function markMoved(
  places: readonly Place[],
  orderOf: (line: FixtureLine) => number,
  made: FixtureHeader['made'],
): Place[] {
  const marked = [...places];
  const instant: { index: number; order: number; line: FixtureLine }[] = [];
  const close = (): void => {
    const kept = longestRising(instant.map(({ order }) => order));
    for (const [position, { index, order }] of instant.entries()) {
      const one = marked[index];
      if (kept.has(position) || one === undefined) continue;
      const passed = instant.slice(0, position).find((other, at) => kept.has(at) && other.order > order);
      const passedBy = instant.findLast((other, at) => at > position && kept.has(at) && other.order < order);
      const moved: Moved | undefined = passed
        ? { where: 'before', other: passed.line }
        : passedBy && { where: 'behind', other: passedBy.line };
      if (moved !== undefined) marked[index] = { ...one, same: false, moved };
    }
    instant.length = 0;
  };
  let at = Number.NaN;
  for (const [index, one] of places.entries()) {
    if (one.at !== at) close();
    at = one.at;
    const { same, expected, actual } = one;
    if (!same || expected === undefined || actual === undefined || !hasOrder(expected, made)) continue;
    instant.push({ index, order: orderOf(actual), line: expected });
  }
  close();
  return marked;
}

/** A recorder hears of a connection, and of a socket that was cut, in another turn than the wire does. */
function hasOrder(line: FixtureLine, made: FixtureHeader['made']): boolean {
  if (made === 'by hand') return true;
  return !(line.leg === 'model' && line.connect !== undefined) && !('cut' in line && line.cut !== undefined);
}

/** Positions of a longest rising run of `values`. */
function longestRising(values: readonly number[]): Set<number> {
  /** By length less one: where the run of that length with the lowest end ends. */
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  for (const [position, value] of values.entries()) {
    let length = ends.length;
    while (length > 0 && (values[ends[length - 1] ?? 0] ?? 0) > value) length -= 1;
    before.push(length === 0 ? undefined : ends[length - 1]);
    ends[length] = position;
  }
  const kept = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = before[at]) kept.add(at);
  return kept;
}

function outgoing(lines: readonly FixtureLine[], leg: FixtureLeg): FixtureLine[] {
  return lines.filter((line) => line.leg === leg && line.dir === 'out');
}

/** All of a line but its time, the same however its own fields are ordered. What is in a message keeps its order. */
function contentOf(line: FixtureLine): string {
  const fields = Object.entries(line).filter(([name]) => name !== 'at');
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function alignLeg(
  expected: readonly FixtureLine[],
  actual: readonly FixtureLine[],
  slackMs: number,
): Place[] {
  const left = expected.map((line) => contentOf(line));
  const right = actual.map((line) => contentOf(line));
  const edits = diffArrays(left, right, { maxEditLength: EDITS_MAX });
  if (edits === undefined) return placeByPlace(expected, actual, left, right, slackMs);
  const places: Place[] = [];
  let e = 0;
  let a = 0;
  for (const { added, removed, value } of edits) {
    for (let index = 0; index < value.length; index += 1) {
      if (added) places.push(place(undefined, actual[a++], false, slackMs));
      else if (removed) places.push(place(expected[e++], undefined, false, slackMs));
      else places.push(place(expected[e++], actual[a++], true, slackMs));
    }
  }
  return places;
}

function placeByPlace(
  expected: readonly FixtureLine[],
  actual: readonly FixtureLine[],
  left: readonly string[],
  right: readonly string[],
  slackMs: number,
): Place[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) =>
    place(expected[index], actual[index], left[index] === right[index], slackMs),
  );
}

function place(
  expected: FixtureLine | undefined,
  actual: FixtureLine | undefined,
  sameContent: boolean,
  slackMs: number,
): Place {
  const at = expected?.at ?? actual?.at ?? 0;
  const inTime = roundMs(Math.abs(at - (actual?.at ?? at))) <= slackMs;
  return { at, expected, actual, same: sameContent && inTime };
}
