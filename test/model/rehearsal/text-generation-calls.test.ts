import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { responseSentence } from '../../../src/model/rehearsal/response-sentence.js';
import { argumentsFrom } from '../../../src/model/rehearsal/text-generation-arguments.js';
import { namedCalls } from '../../../src/model/rehearsal/text-generation-calls.js';
import { GENERATE_REQUEST_FIELDS } from '../../../src/model/rehearsal/text-generation-fields.js';
import { readGenerateRequest } from '../../../src/model/rehearsal/text-generation-request.js';
import { readProtoJson } from '../../../src/model/rehearsal/proto-json.js';

/** Found the same way each time; the number means nothing. */
const RUNS = { seed: 3, numRuns: 300 };

const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required });

describe('arguments', () => {
  it.each([
    [
      'an id and the words',
      object({ order_id: { type: 'STRING' }, reason: { type: 'STRING' } }, ['order_id', 'reason']),
      'A-10293 because it is broken',
      { order_id: 'A-10293', reason: 'because it is broken' },
    ],
    [
      'the words before the id in the schema',
      object({ reason: { type: 'string' }, order_id: { type: 'string' } }, ['reason', 'order_id']),
      'A-10293 because it is broken',
      { reason: 'because it is broken', order_id: 'A-10293' },
    ],
    ['quoted text', object({ to: { type: 'string' } }, ['to']), 'to "Mrs Gray" please', { to: 'Mrs Gray' }],
    ['a pair', object({ city: { type: 'string' } }), 'city: Bergen', { city: 'Bergen' }],
    ['a number', object({ amount: { type: 'number' } }, ['amount']), 'pay 12.50 back', { amount: 12.5 }],
    [
      'a whole number within its limits',
      object({ n: { type: 'integer', minimum: 1, maximum: 5 } }, ['n']),
      '9',
      { n: 5 },
    ],
    [
      'one of a list',
      object({ size: { type: 'string', enum: ['small', 'very_large'] } }, ['size']),
      'a very large one',
      { size: 'very_large' },
    ],
    ['the first of a list', object({ size: { enum: ['small', 'large'] } }, ['size']), '', { size: 'small' }],
    [
      'several ids',
      object({ order_ids: { type: 'array', items: { type: 'string' } } }, ['order_ids']),
      'A-1, A-2 and A-3',
      { order_ids: ['A-1', 'A-2', 'A-3'] },
    ],
    [
      'an object inside',
      object({ who: object({ name: { type: 'string' } }, ['name']) }, ['who']),
      '"Ann"',
      { who: { name: 'Ann' } },
    ],
    [
      'null beside a type',
      object({ order_id: { type: ['null', 'string'] } }, ['order_id']),
      'A-1',
      { order_id: 'A-1' },
    ],
    [
      'another form',
      object({ order_id: { anyOf: [{ type: 'null' }, { type: 'string' }] } }, ['order_id']),
      'A-1',
      { order_id: 'A-1' },
    ],
    [
      'a reference',
      { $defs: { id: { type: 'string' } }, ...object({ order_id: { $ref: '#/$defs/id' } }, ['order_id']) },
      'A-1',
      { order_id: 'A-1' },
    ],
    [
      'a day',
      object({ day: { type: 'string', format: 'date' } }, ['day']),
      'on 2026-10-09',
      { day: '2026-10-09' },
    ],
    ['a refused yes', object({ express: { type: 'boolean' } }), 'express: no', { express: false }],
    [
      'nothing that is not asked for',
      object({ note: { type: 'string' }, order_id: { type: 'string' } }),
      'please',
      {},
    ],
    ['no schema', undefined, 'A-1', {}],
  ])('hold %s', (_, schema, text, args) => {
    expect(argumentsFrom(schema, text)).toEqual(args);
  });

  it('have an end where the schema has none', () => {
    const endless = { $defs: { a: object({ a: { $ref: '#/$defs/a' } }, ['a']) }, $ref: '#/$defs/a' };
    expect(JSON.stringify(argumentsFrom(endless, '')).length).toBeLessThan(200);
    expect(argumentsFrom({ $ref: '#' }, '')).toEqual({});
  });

  it('hold what is required, of its type, whatever the text', () => {
    const types = { s: 'string', n: 'number', i: 'integer', b: 'boolean', order_id: 'string' };
    const properties = Object.fromEntries(Object.entries(types).map(([name, type]) => [name, { type }]));
    fc.assert(
      fc.property(fc.string({ maxLength: 200, unit: 'grapheme' }), (text) => {
        const args = argumentsFrom(object(properties, Object.keys(types)), text);
        for (const [name, type] of Object.entries(types)) {
          const value = args[name];
          if (type === 'integer') expect(Number.isInteger(value)).toBe(true);
          else expect(typeof value).toBe(type);
          if (type === 'number') expect(Number.isFinite(value)).toBe(true);
        }
      }),
      RUNS,
    );
  });
});

describe('functions named in a text', () => {
  const functions = ['lookup_order', 'lookup_order_history', 'processRefund', 'say.hello'].map((name) => ({
    name,
    schema: object({ order_id: { type: 'string' } }),
  }));
  const names = (text: string) => namedCalls(functions, text).map(({ name }) => name);

  it.each([
    ['lookup_order', ['lookup_order']],
    ['lookup_order_history', ['lookup_order_history']],
    ['Look up the order history.', ['lookup_order_history']],
    ['process my refund', ['processRefund']],
    ['say hello', ['say.hello']],
    ['lookup_order A-1 and lookup_order A-2', ['lookup_order', 'lookup_order']],
    ['lookup_orders', []],
    ['order lookup', []],
    ['lookup_order with {"note":"say hello"}', ['lookup_order']],
    ['lookup_order with {"note":"say hello"} and say hello', ['lookup_order', 'say.hello']],
    ['lookup_order with {broken', ['lookup_order']],
  ])('%s', (text, expected) => {
    expect(names(text)).toEqual(expected);
  });

  it('keep the JSON that follows, braces in its texts too', () => {
    expect(namedCalls(functions, 'lookup_order {"a":{"b":"}\\"{"}}')[0]?.args).toEqual({ a: { b: '}"{' } });
  });

  it('are found in any text without an error, and not without bound', () => {
    const word = fc.constantFrom(
      'lookup',
      'order',
      'history',
      '{',
      '}',
      '"',
      '\\',
      'say hello',
      '7',
      ' ',
      ':',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 200 }), (words) => {
        const calls = namedCalls(functions, words.join(' '));
        expect(calls.length).toBeLessThanOrEqual(16);
        for (const { name } of calls) expect(functions.some((each) => each.name === name)).toBe(true);
      }),
      RUNS,
    );
  });
});

describe('what comes from outside', () => {
  it('is read or refused, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { violations } = readProtoJson(GENERATE_REQUEST_FIELDS, value);
        expect(violations.every(({ description }) => description.startsWith('Invalid '))).toBe(true);
        expect(readGenerateRequest(JSON.stringify(value), 'gemini-flash-latest')).toBeDefined();
      }),
      RUNS,
    );
  });

  it('is told in one sentence, whatever a function answers', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (response) => {
        expect(responseSentence('lookup_order', response).trim()).not.toBe('');
      }),
      RUNS,
    );
  });

  it('is not mistaken for a field by the names that every object has', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'has_own_property']) {
      const { violations } = readProtoJson(GENERATE_REQUEST_FIELDS, JSON.parse(`{"${name}":1}`));
      expect(violations).toHaveLength(1);
    }
  });
});
