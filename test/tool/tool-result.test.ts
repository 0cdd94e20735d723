import { describe, expect, it } from 'vitest';
import { errorText } from '../../src/errors.js';
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
    [() => 1, { result: null }],
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
    [Object.assign(new Error('x'), { message: { code: 5 } }), '[object Object]'],
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
