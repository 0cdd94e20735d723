import { describe, expect, it } from 'vitest';
import { ToolGroup } from '../../src/tool/tool-group.js';

function group(ids: readonly string[], isEach = false) {
  const frames: string[][] = [];
  const made = new ToolGroup({
    calls: ids.map((id) => ({ id, name: 'x' })),
    isEach,
    answer: (responses) => void frames.push(responses.map(({ id }) => id)),
  });
  const settle = (id: string, atOnce = false): void => made.settle({ id, name: 'x', response: {} }, atOnce);
  return { made, frames, settle };
}

describe('the calls of one message', () => {
  it.each([[['a', 'b', 'c']], [['c', 'b', 'a']], [['b', 'c', 'a']]])(
    'that end as %j are answered in one frame, in their own order',
    async (order) => {
      const { made, frames, settle } = group(['a', 'b', 'c']);
      for (const id of order) {
        expect(frames).toEqual([]);
        settle(id);
      }
      expect(frames).toEqual([['a', 'b', 'c']]);
      expect((await made.done).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    },
  );

  it('are answered one by one where that is wanted', () => {
    const { frames, settle } = group(['a', 'b'], true);
    settle('b');
    settle('a');
    expect(frames).toEqual([['b'], ['a']]);
  });

  it('are answered once, whatever is settled again or was never called', () => {
    const { frames, settle } = group(['a', 'b']);
    for (const id of ['a', 'a', 'x', 'b', 'b']) settle(id);
    expect(frames).toEqual([['a', 'b']]);
  });

  it('do not hold back what is answered at once', async () => {
    const { made, frames, settle } = group(['a', 'b', 'c']);
    settle('a');
    settle('b', true);
    expect(frames).toEqual([['b']]);
    settle('c');
    expect(frames).toEqual([['b'], ['a', 'c']]);
    expect((await made.done).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  it('wait for none that was withdrawn, and answer none', async () => {
    const { made, frames, settle } = group(['a', 'b', 'c']);
    settle('a');
    made.withdraw('b');
    settle('b');
    expect(frames).toEqual([]);
    made.withdraw('c');
    expect(frames).toEqual([['a']]);
    expect((await made.done).map(({ id }) => id)).toEqual(['a']);
  });

  it('do not send the result of one that was withdrawn while it waited', async () => {
    const { made, frames, settle } = group(['a', 'b']);
    settle('a');
    made.withdraw('a');
    settle('a');
    settle('b');
    expect(frames).toEqual([['b']]);
    expect((await made.done).map(({ id }) => id)).toEqual(['b']);
  });

  it('send no empty frame when all were withdrawn, or answered before', async () => {
    const { made, frames, settle } = group(['a', 'b']);
    made.withdraw('a');
    settle('b', true);
    expect(frames).toEqual([['b']]);
    const all = group(['a']);
    all.made.withdraw('a');
    expect(all.frames).toEqual([]);
    expect(await all.made.done).toEqual([]);
    expect(await made.done).toHaveLength(1);
  });
});
