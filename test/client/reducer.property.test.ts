import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { initialState, reduce, restart, storedMessages, type ClientState } from '../../src/client/index.js';
import { fuzzed } from '../fuzz/seed.js';
import { frameLists } from './frame-lists.js';

function reduceAll(frames: readonly unknown[], state: ClientState = initialState): ClientState {
  return frames.reduce(reduce, state);
}

/** The page, and nothing about the way in which it came to be. */
function pageOf({ messages, failures, isOver }: ClientState): object {
  return { messages, failures, isOver };
}

/** Each item moved by less than the number of frames that are kept in order. */
function shuffled<T>(items: readonly T[], moves: readonly number[]): T[] {
  return items
    .map((item, index) => ({ item, at: index + (moves[index % moves.length] ?? 0) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

const moves = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 20 });
const picks = fc.array(fc.nat({ max: 200 }), { maxLength: 40 });

/** The list with some of its frames a second time, anywhere behind or before the first. */
function duplicated<T>(items: readonly T[], chosen: readonly number[]): T[] {
  return chosen.reduce<T[]>((list, pick, index) => {
    const item = items[pick % items.length]!;
    return list.toSpliced((pick * 7 + index * 13) % (list.length + 1), 0, item);
  }, items.slice());
}

describe('any valid list of frames', () => {
  test('shows in the end what is stored', () => {
    fc.assert(
      fc.property(frameLists, ({ frames, stored }) => {
        expect(storedMessages(reduceAll(frames))).toEqual(stored);
      }),
      fuzzed(500),
    );
  });

  test('shows the same page whatever is repeated and in whatever order it comes within the window', () => {
    fc.assert(
      fc.property(frameLists, moves, picks, ({ frames }, moved, repeated) => {
        // The copies come late enough to be late, and the window holds them all.
        const state = reduceAll(duplicated(shuffled(frames, moved), repeated));
        expect(pageOf(state)).toEqual(pageOf(reduceAll(frames)));
        expect(state.counts).toMatchObject({ missing: 0, lost: 0, repeated: repeated.length });
      }),
      fuzzed(500),
    );
  });

  test('shows the same texts after a cut anywhere, once what is stored is told and the stream goes on', () => {
    fc.assert(
      fc.property(frameLists, fc.nat(), fc.boolean(), ({ frames, stored }, pick, isAnew) => {
        const cut = pick % (frames.length + 1);
        const before = reduceAll(frames.slice(0, cut));
        const messages = storedMessages(before);
        const history = { type: 'history', seq: isAnew ? 0 : cut, messages };
        const first = isAnew ? restart(before) : reduceAll([], before);
        const renumbered = isAnew
          ? frames.slice(cut).map((frame) => ({ ...frame, seq: frame.seq - cut }))
          : frames;
        const state = reduceAll([history, ...renumbered], first);
        const byMsg = (list: readonly { msg: string }[]) =>
          list.toSorted((a, b) => a.msg.localeCompare(b.msg));
        expect(byMsg(storedMessages(state))).toEqual(byMsg(stored));
      }),
      fuzzed(500),
    );
  });

  test('is shown no worse by whatever comes between its frames', () => {
    const junk = fc.oneof(
      fc.anything(),
      fc.record({ type: fc.string(), seq: fc.anything(), msg: fc.anything(), text: fc.anything() }),
      fc.record({ type: fc.constantFrom('delta', 'done', 'tool', 'error', 'history'), seq: fc.nat() }),
    );
    fc.assert(
      fc.property(frameLists, fc.array(junk), picks, ({ frames }, hostile, at) => {
        const unread = hostile.filter(
          (each) =>
            typeof each !== 'object' || !['ready', 'heartbeat'].includes((each as { type: string })?.type),
        );
        const list = unread.reduce<unknown[]>(
          (all, each, index) => all.toSpliced((at[index] ?? index) % (all.length + 1), 0, each),
          frames.slice(),
        );
        // A type that is not known has a place in the order, and would take that of a frame.
        const numberless = list.filter(
          (each) =>
            frames.includes(each as never) ||
            typeof (each as { type?: unknown })?.type !== 'string' ||
            ['delta', 'done', 'tool', 'error', 'history'].includes((each as { type: string }).type),
        );
        const state = reduceAll(numberless);
        expect(pageOf(state)).toEqual(pageOf(reduceAll(frames)));
        expect(state.counts.refused).toBe(numberless.length - frames.length);
        expect(() => reduceAll(list)).not.toThrow();
      }),
      fuzzed(500),
    );
  });

  test('counts every frame that is taken out as missing', () => {
    fc.assert(
      fc.property(frameLists, fc.nat(), ({ frames }, pick) => {
        fc.pre(frames.length > 2);
        const at = 1 + (pick % (frames.length - 2));
        const { counts } = reduceAll(frames.toSpliced(at, 1));
        expect(counts.missing + counts.lost).toBe(1);
      }),
      fuzzed(200),
    );
  });
});
