import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/errors.js';
import { hostile } from '../support/hostile.js';
import { errorResponse, guardResponse, isEmpty, isError, responseOf } from '../../src/tool/tool-result.js';
import { TOOL_ERROR_MAX_CHARS, TOOL_RESULT_MAX_CHARS } from '../../src/tool-limits.js';

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

describe('what a handler returned', () => {
  it.each([
    [{ message: 'Your refund is on its way.' }, { message: 'Your refund is on its way.' }],
    ['ok', { result: 'ok' }],
    [42, { result: 42 }],
    [true, { result: true }],
    [null, { result: null }],
    [undefined, { result: null }],
    ['', { result: '' }],
    [{}, {}],
    [[1, { a: 2 }], { result: [1, { a: 2 }] }],
    [new Date(0), { result: '1970-01-01T00:00:00.000Z' }],
    [NaN, { result: null }],
    [new Uint8Array([7]), { '0': 7 }],
    [Object('boxed'), { result: 'boxed' }],
    [new URL('http://a.example/'), { result: 'http://a.example/' }],
    [{ items: [], f: () => 1, [Symbol('s')]: 1 }, { items: [] }],
    [
      { signal: new AbortController().signal, ok: true },
      { signal: {}, ok: true },
    ],
    [{ parts: ['door', 'wheel'] }, { parts: ['door', 'wheel'] }],
    [{ parts: [{ text: 'a' }] }, { parts: [{ text: 'a' }] }],
  ])('%j is told as an object, or wrapped', (value, told) => {
    expect(responseOf(value)).toEqual(told);
  });

  it.each([
    ['a cycle', cycle],
    ['a bigint', { amount: 10n }],
    [
      'a getter that throws',
      {
        get a() {
          throw new Error('no');
        },
      },
    ],
    [
      'one that throws what has no text',
      {
        toJSON() {
          throw Object.create(null);
        },
      },
    ],
    ['too much', 'x'.repeat(TOOL_RESULT_MAX_CHARS)],
  ])('as %s is an error in one line that says that the tool ran', (_what, value) => {
    expect(responseOf(value)).toEqual({ error: expect.stringMatching(/^The tool ran, but .*$/) });
  });

  class Order {
    readonly #id = 7;
    get id(): number {
      return this.#id;
    }
  }
  function* values() {
    yield 1;
  }
  async function* later() {
    yield await Promise.resolve(1);
  }
  it.each([
    ['a function', () => 1, /a function: return what/],
    ['a symbol', Symbol('x'), /a symbol: return what/],
    ['a generator', values(), /a Generator: .*\[\.\.\.values\]/],
    ['an async generator', later(), /an AsyncGenerator: /],
    ['an iterator', new Map([[1, 2]]).values(), /a Map Iterator: /],
    ['a Response', new Response('hi'), /a Response: .*await response\.json\(\)/],
    ['a Response in a field', { weather: new Response('hi') }, /a Response in weather: /],
    ['a generator in a list', [values()], /a Generator in 0: /],
    ['a promise in a field', { weather: Promise.resolve(1) }, /a Promise in weather: await it/],
    ['bytes', new ArrayBuffer(8), /an ArrayBuffer: nothing/],
    ['a regular expression', /x/, /a RegExp: nothing/],
    ['an object of a class that shows nothing', new Order(), /an Order: nothing/],
    ['a WeakMap', new WeakMap(), /a WeakMap: nothing/],
    ['an abort signal', new AbortController().signal, /an AbortSignal: nothing/],
  ])('as %s would pass for an empty success: it is an error that says what to do', (_what, value, why) => {
    expect(responseOf(value)).toEqual({ error: expect.stringMatching(/^The tool ran, but it returned /) });
    expect(responseOf(value)['error']).toMatch(why);
    expect(() => guardResponse(value)).toThrow(why);
  });

  it('may be a Proxy that throws wherever it is touched', () => {
    for (const value of [hostile(), { inner: hostile() }, [hostile()]])
      expect(responseOf(value)).toEqual({ error: expect.stringMatching(/^The tool ran, but /) });
  });

  it('is a copy, in which __proto__ is a key like any other', () => {
    const value = JSON.parse('{"__proto__":{"a":1},"inner":{"b":2}}') as { inner: { b: number } };
    const told = responseOf(value);
    value.inner.b = 3;
    expect(Object.keys(told)).toEqual(['__proto__', 'inner']);
    expect(told['inner']).toEqual({ b: 2 });
  });
});

it.each([
  ['an Error', new Error('card declined'), { error: 'card declined' }],
  ['an Error inside', { cause: new TypeError('no card') }, { cause: 'no card' }],
  ['a Map', new Map([['a', new Map([['b', 1]])]]), { a: { b: 1 } }],
  ['a Set', { ids: new Set([1, 2]) }, { ids: [1, 2] }],
])('%s is told as what it holds', (_what, value, told) => {
  expect(responseOf(value)).toEqual(told);
});

describe('an error', () => {
  it.each(['', ' ', '\n'])('without a text (%j) is one all the same', (text) => {
    expect(isError(errorResponse(text))).toBe(true);
  });

  it('is told in bounds', () => {
    expect(errorResponse('x'.repeat(10_000))).toEqual({ error: 'x'.repeat(TOOL_ERROR_MAX_CHARS) });
  });

  it.each([
    [{ error: 'it failed' }, true],
    [{ error: { code: 5 } }, true],
    [{ error: null, refund_id: 'R' }, false],
    [{ error: false, refund_id: 'R' }, false],
    [{ error: '', refund_id: 'R' }, false],
    [{}, false],
  ])('%j is one: %j', (response, is) => {
    expect(isError(response)).toBe(is);
  });

  it.each([
    [new Error('text'), 'text'],
    ['text', 'text'],
    [7, '7'],
    [undefined, 'undefined'],
    [Symbol('s'), 'Symbol(s)'],
    [Object.create(null), 'what was thrown has no text'],
    [Object.assign(new Error('x'), { message: { code: 5 } }), '{"code":5}'],
    [{ code: 7 }, '{"code":7}'],
    [{ error: { code: 5n } }, '{"error":{"code":"5"}}'],
    [[{ a: 1 }], '[{"a":1}]'],
    [
      new (class Failed {
        readonly code = 7;
      })(),
      '{"code":7}',
    ],
    [
      new (class Failed {
        toString = (): string => 'it failed';
      })(),
      'it failed',
    ],
    [{ cause: new Error('away') }, '{"cause":"away"}'],
    [cycle, '{"self":"…"}'],
    [{}, 'what was thrown has no text'],
    [hostile(), 'what was thrown has no text'],
    [{ inner: hostile() }, 'what was thrown has no text'],
    [{ long: 'x'.repeat(3_000_000) }, '{"long":"(3000000 characters)"}'],
  ])('has a text, whatever was thrown (%#)', (thrown, text) => {
    expect(errorText(thrown)).toBe(text);
  });
});

it.each([
  [undefined, true],
  [null, true],
  ['', true],
  [{}, true],
  [[], false],
  [0, false],
  [false, false],
  [{ a: null }, false],
])('%j is empty: %j', (value, is) => {
  expect(isEmpty(value)).toBe(is);
});

it('tells of what was thrown no more than fits, however much it is', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 50_000; level += 1) deep = { deep };
  for (const huge of [
    Array.from({ length: 300_000 }, () => ({ a: 1 })),
    deep,
    Object.fromEntries(Array.from({ length: 10_000 }, (_, key) => [key, 'x'])),
  ]) {
    const text = errorText(huge);
    expect(text.length).toBeLessThan(2_000);
    expect(text.length).toBeGreaterThan(30);
  }
});

describe('what a guard returns', () => {
  it('is empty text if it is a content without words', () => {
    expect(guardResponse({ role: 'model', parts: [] })).toEqual({ result: '' });
  });

  it('is no content where its parts are something else', () => {
    const value = { parts: [{ sku: 'bolt', qty: 2 }] };
    expect(guardResponse(value)).toEqual(value);
  });

  it.each([undefined, null])('is nothing if it is %s', (value) => {
    expect(guardResponse(value)).toBeUndefined();
  });

  it.each([1n, 'x'.repeat(TOOL_RESULT_MAX_CHARS)])('is thrown out if it cannot be told (%#)', (value) => {
    expect(() => guardResponse(value)).toThrow(/cannot be told|too long/);
  });
});
