import { describe, expect, it } from 'vitest';
import { RunState } from '../../src/tool/run-state.js';
import { STORE_NAME_MAX_BYTES } from '../../src/limits.js';

function stateOf(stored: Record<string, unknown> = {}) {
  const changes: [string, unknown][] = [];
  const run = new RunState(stored);
  return { run, changes, state: run.view((key, value) => changes.push([key, value])) };
}

describe('the state of a run, as a tool sees it', () => {
  it('is read and written by key, like an object', () => {
    const { state, changes } = stateOf({ seen: 1, 'user:name': 'Ada', gone: null });
    expect([state['seen'], state['user:name'], state['nothing'], state['gone']]).toEqual([
      1,
      'Ada',
      undefined,
      undefined,
    ]);
    state['app:x'] = [1];
    state['seen'] = 2;
    delete state['user:name'];
    state['other'] = undefined;
    expect(changes).toEqual([
      ['app:x', [1]],
      ['seen', 2],
      ['user:name', null],
      ['other', null],
    ]);
    expect(['seen' in state, 'user:name' in state, 'gone' in state]).toEqual([true, false, false]);
    expect(Object.keys(state)).toEqual(['seen', 'app:x']);
    expect({ ...state }).toEqual({ seen: 2, 'app:x': [1] });
    expect(JSON.stringify(state)).toBe('{"seen":2,"app:x":[1]}');
    expect(Object.hasOwn(state, 'seen')).toBe(true);
    Object.assign(state, { a: 1 });
    Object.defineProperty(state, 'b', { value: 2 });
    expect([state['a'], state['b']]).toEqual([1, 2]);
  });

  it('has no key but those that were set, whatever objects have otherwise', () => {
    const { state, changes } = stateOf();
    for (const key of ['toString', 'constructor', 'hasOwnProperty', '__proto__', 'then', 'toJSON'])
      expect([key, state[key], key in state]).toEqual([key, undefined, false]);
    state['__proto__'] = { admin: true };
    expect(changes).toEqual([['__proto__', { admin: true }]]);
    expect(Object.keys(state)).toEqual(['__proto__']);
    expect((state as { readonly admin?: unknown }).admin).toBeUndefined();
    expect(({} as { readonly admin?: unknown }).admin).toBeUndefined();
  });

  it('keeps __proto__ from the store and from a worker as a key', () => {
    const stored = JSON.parse('{"__proto__":1}') as Record<string, unknown>;
    const { run, state } = stateOf(stored);
    expect(state['__proto__']).toBe(1);
    run.set('__proto__', 2, () => {});
    expect(state['__proto__']).toBe(2);
    expect(Object.entries(run.snapshot())).toEqual([['__proto__', 2]]);
  });

  it('gives out values that cannot be changed in place, and keeps copies of what it was given', () => {
    const { state } = stateOf({ stored: { deep: { n: 1 } } });
    const given = { deep: { n: 1 } };
    state['set'] = given;
    given.deep.n = 2;
    for (const key of ['stored', 'set']) {
      const { deep } = state[key] as { readonly deep: { n: number } };
      expect(() => {
        deep.n = 3;
      }).toThrow(TypeError);
      expect(deep.n).toBe(1);
    }
  });

  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  it.each([
    ['NaN', NaN],
    ['infinity within', { rates: [1, Infinity] }],
    ['a bigint', 10n],
    ['a cycle', cycle],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
  ])('refuses %s and stays as it was', (_what, value) => {
    const { state, changes } = stateOf({ key: 'before' });
    expect(() => {
      state['key'] = value;
    }).toThrow(TypeError);
    expect(state['key']).toBe('before');
    expect(changes).toEqual([]);
  });

  it('refuses keys that are none', () => {
    const { state } = stateOf();
    const set = (key: string | symbol) => (): void => {
      (state as Record<string | symbol, unknown>)[key] = 1;
    };
    expect(set('')).toThrow('is empty');
    expect(set(Symbol('x'))).toThrow('is not a string');
    expect(set('x'.repeat(STORE_NAME_MAX_BYTES + 1))).toThrow('longer than 256 bytes');
    expect((state as Record<symbol, unknown>)[Symbol.iterator]).toBeUndefined();
  });

  it('cannot be frozen by one of its tools', () => {
    const { state } = stateOf({ a: 1 });
    expect(() => Object.freeze(state)).toThrow(TypeError);
    state['b'] = 2;
    expect(Object.keys(state)).toEqual(['a', 'b']);
  });

  it('is one for all tools, and not changed where the change cannot be kept', () => {
    const { run, state } = stateOf();
    const closed = run.view(() => {
      throw new Error('the call is over');
    });
    state['a'] = 1;
    expect(closed['a']).toBe(1);
    expect(() => {
      closed['a'] = 2;
    }).toThrow('the call is over');
    expect(state['a']).toBe(1);
  });
});
