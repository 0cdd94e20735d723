import { describe, expect, test } from 'vitest';
import { REORDERED_FRAMES_MAX } from '../../src/client/bounds.js';
import { initialState, reduce, restart, storedMessages, type ClientState } from '../../src/client/index.js';

const delta = (seq: number, text: string, msg = 'a') => ({ type: 'delta', seq, msg, role: 'model', text });
const done = (seq: number, text: string, msg = 'a') => ({ type: 'done', seq, msg, role: 'model', text });
const flush = (seq: number, text: string, msg = 'a') => ({ type: 'flush', seq, msg, text });
const tool = (seq: number, state: string) => ({
  type: 'tool',
  seq,
  msg: 'a',
  callId: 'c',
  name: 'look_up',
  state,
});

function after(...frames: unknown[]): ClientState {
  return frames.reduce<ClientState>(reduce, initialState);
}

function shown(...frames: unknown[]): [string, string, string][] {
  return after(...frames).messages.map(({ msg, text, status }) => [msg, text, status]);
}

describe('a message', () => {
  test.each([
    ['grows with its deltas', [delta(1, 'Sorry '), delta(2, 'to hear')], 'Sorry to hear', 'open'],
    ['takes the text of done', [delta(1, 'Sory'), done(2, 'Sorry.')], 'Sorry.', 'done'],
    ['takes what was heard', [delta(1, 'Sorry to hear'), flush(2, 'Sorry')], 'Sorry', 'cut'],
    ['keeps done against a late delta', [done(1, 'Yes.'), delta(2, ' No')], 'Yes.', 'done'],
    ['keeps done against another done', [done(1, 'Yes.'), done(2, 'No.')], 'Yes.', 'done'],
    ['keeps flush against done', [delta(1, 'Yes it'), flush(2, 'Yes'), done(3, 'Yes it is')], 'Yes', 'cut'],
    ['keeps done against flush', [done(1, 'Yes.'), flush(2, '')], 'Yes.', 'done'],
    [
      'has no fragment after an error',
      [delta(1, 'Yes'), { type: 'error', seq: 2, msg: 'a', code: 'busy', message: '', fatal: false }],
      '',
      'failed',
    ],
  ])('%s', (_, frames, text, status) => {
    expect(shown(...frames)).toEqual([['a', text, status]]);
  });

  test('does not mix with another', () => {
    expect(
      shown(delta(1, 'A'), delta(2, 'B', 'b'), delta(3, 'A'), done(4, 'BB', 'b'), delta(5, 'A')),
    ).toEqual([
      ['a', 'AAA', 'open'],
      ['b', 'BB', 'done'],
    ]);
  });

  test('with a name of the language is one like others', () => {
    expect(shown(delta(1, 'A', '__proto__'), done(2, 'B', 'constructor'))).toEqual([
      ['__proto__', 'A', 'open'],
      ['constructor', 'B', 'done'],
    ]);
  });

  test('takes the result of a tool after it was cut, and a settled tool stays settled', () => {
    const state = after(
      delta(1, 'Yes'),
      tool(2, 'running'),
      flush(3, 'Y'),
      tool(4, 'done'),
      tool(5, 'running'),
    );
    expect(state.messages).toEqual([
      {
        msg: 'a',
        role: 'model',
        text: 'Y',
        status: 'cut',
        tools: [{ callId: 'c', name: 'look_up', state: 'done' }],
      },
    ]);
  });
});

describe('the order', () => {
  test('is that of the numbers, without waiting for a missing one', () => {
    expect(shown(delta(1, 'a'), delta(3, 'c'))).toEqual([['a', 'ac', 'open']]);
    expect(shown(delta(1, 'a'), delta(3, 'c'), delta(2, 'b'))).toEqual([['a', 'abc', 'open']]);
  });

  test('is told where it has a gap, until the gap is filled', () => {
    expect(after(delta(1, 'a'), delta(4, 'd')).counts).toMatchObject({ missing: 2, lost: 0 });
    expect(after(delta(1, 'a'), delta(4, 'd'), delta(2, 'b'), delta(3, 'c')).counts).toMatchObject({
      missing: 0,
    });
  });

  test('takes an error of its own for a notice: no message stands for it, then or later', () => {
    const error = (seq: number, msg: string) => {
      return { type: 'error', seq, msg, code: 'too_fast', message: 'texts come too fast', fatal: false };
    };
    const state = after(
      delta(1, 'a'),
      error(2, 'web-1'),
      error(3, 'web-2'),
      delta(4, 'late', 'web-2'),
      done(5, 'late', 'web-2'),
      delta(6, 'b'),
    );
    expect(state.messages.map(({ text, status }) => [text, status])).toEqual([['ab', 'open']]);
    expect(state.failures.map(({ msg }) => msg)).toEqual(['web-1', 'web-2']);
  });

  test('has no gap where the server says with a heartbeat that nothing is left out', () => {
    const frames = [delta(1, 'a'), { type: 'heartbeat', seq: 5 }, delta(6, 'f')];
    expect(after(...frames).counts).toMatchObject({ missing: 0, lost: 0 });
  });

  test('gives up what is missing for longer than the window', () => {
    const frames = Array.from({ length: REORDERED_FRAMES_MAX + 2 }, (_, index) =>
      delta(index + (index > 0 ? 2 : 1), '.'),
    );
    expect(after(...frames).counts).toMatchObject({ missing: 0, lost: 1 });
    const late = reduce(after(...frames), delta(2, 'late'));
    expect(late.counts).toMatchObject({ repeated: 1, lost: 1 });
    expect(late.messages[0]?.text).not.toContain('late');
  });

  test('begins anew with restart, which takes away what was not complete', () => {
    const state = restart(after(done(7, 'Yes.'), delta(8, 'And', 'b')));
    expect(state.messages.map(({ text }) => text)).toEqual(['Yes.']);
    expect(storedMessages(reduce(state, done(1, 'New.', 'c'))).map(({ text }) => text)).toEqual([
      'Yes.',
      'New.',
    ]);
  });
});

describe('history', () => {
  const history = { type: 'history', seq: 9, messages: [{ msg: 'h', role: 'user', text: 'Hello' }] };

  test('takes the place of everything before it, also of what comes later with a smaller number', () => {
    expect(shown(delta(1, 'a'), done(2, 'b', 'b'), history, delta(8, 'late'), delta(10, 'new', 'n'))).toEqual(
      [
        ['h', 'Hello', 'done'],
        ['n', 'new', 'open'],
      ],
    );
  });

  test('seals what it holds', () => {
    expect(shown(history, { ...delta(10, 'more'), msg: 'h' })).toEqual([['h', 'Hello', 'done']]);
  });
});

describe('what cannot be used', () => {
  test.each([
    ['no object', 'delta', 'a frame is an object'],
    ['no type', { seq: 1 }, 'type is missing or not what it should be'],
    ['no number', { type: 'ready' }, 'seq is missing or not what it should be'],
    ['a broken number', { type: 'ready', seq: 1.5 }, 'seq is missing or not what it should be'],
    ['a role that is none', { ...delta(1, ''), role: 'agent' }, 'role is missing or not what it should be'],
    ['a broken history', { type: 'history', seq: 1, messages: [1] }, 'messages holds something else'],
    [
      'a getter that throws',
      {
        get type() {
          throw new Error('no');
        },
      },
      'it cannot be read',
    ],
  ])('is refused with a reason: %s', (_, frame, reason) => {
    const state = after(frame);
    expect(state.refusal).toBe(reason);
    expect(state.counts.refused).toBe(1);
    expect(state.messages).toEqual([]);
  });

  test('is counted where the type is not known, and leaves no gap', () => {
    expect(after(delta(1, 'a'), { type: 'mood', seq: 2 }, delta(3, 'b')).counts).toMatchObject({
      unknown: 1,
      missing: 0,
    });
  });

  test('does not bring in keys that no frame has', () => {
    const state = after({ ...delta(1, 'a'), secret: 1 }, { ...tool(2, 'running'), args: { pin: 1 } });
    expect(JSON.stringify(state)).not.toMatch(/secret|pin/);
  });
});
