/**
 * Holds what the server wrote in a replay against what the fixture says it wrote: leg by leg, message by message, content
 * and order exactly, times to TIME_SLACK_MS.
 */
import { diffArrays } from 'diff';
import type { FixtureLeg, FixtureLine } from '../fixture/fixture-format.js';

/** What a recording's own taps may be off by: they stand a few calls away from the wire. */
const TIME_SLACK_MS = 5;
/** Two legs that differ in more places than this are compared place by place. */
const EDITS_MAX = 2_000;

/** One place of a leg: the fixture's message, the replay's, or both. */
export interface Place {
  readonly at: number;
  readonly expected: FixtureLine | undefined;
  readonly actual: FixtureLine | undefined;
  readonly same: boolean;
}

export interface Comparison {
  /** Outgoing messages of all legs, in the order of time. */
  readonly places: readonly Place[];
  readonly differences: number;
}

const LEGS: readonly FixtureLeg[] = ['phone', 'model', 'rest', 'operator', 'call'];

export function compareReplay(expected: readonly FixtureLine[], actual: readonly FixtureLine[]): Comparison {
  const places = LEGS.flatMap((leg) => alignLeg(outgoing(expected, leg), outgoing(actual, leg)));
  places.sort((a, b) => a.at - b.at);
  return { places, differences: places.filter(({ same }) => !same).length };
}

function outgoing(lines: readonly FixtureLine[], leg: FixtureLeg): FixtureLine[] {
  return lines.filter((line) => line.leg === leg && line.dir === 'out');
}

/** All of a line but its time, the same however its own fields are ordered. What is in a message keeps its order. */
function contentOf(line: FixtureLine): string {
  const fields = Object.entries(line).filter(([name]) => name !== 'at');
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function alignLeg(expected: readonly FixtureLine[], actual: readonly FixtureLine[]): Place[] {
  const left = expected.map((line) => contentOf(line));
  const right = actual.map((line) => contentOf(line));
  const edits = diffArrays(left, right, { maxEditLength: EDITS_MAX });
  if (edits === undefined) return placeByPlace(expected, actual, left, right);
  const places: Place[] = [];
  let e = 0;
  let a = 0;
  for (const { added, removed, value } of edits) {
    for (let index = 0; index < value.length; index += 1) {
      if (added) places.push(place(undefined, actual[a++], false));
      else if (removed) places.push(place(expected[e++], undefined, false));
      else places.push(place(expected[e++], actual[a++], true));
    }
  }
  return places;
}

function placeByPlace(
  expected: readonly FixtureLine[],
  actual: readonly FixtureLine[],
  left: readonly string[],
  right: readonly string[],
): Place[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) =>
    place(expected[index], actual[index], left[index] === right[index]),
  );
}

function place(
  expected: FixtureLine | undefined,
  actual: FixtureLine | undefined,
  sameContent: boolean,
): Place {
  const at = expected?.at ?? actual?.at ?? 0;
  const inTime = Math.abs(at - (actual?.at ?? at)) <= TIME_SLACK_MS;
  return { at, expected, actual, same: sameContent && inTime };
}
