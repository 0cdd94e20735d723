import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FunctionDeclarations } from '../../../src/model/rehearsal/function-declarations.js';
import { MODEL_PROFILES } from '../../../src/model/rehearsal/model-profile.js';

function argsOf(schema: object, given: Readonly<Record<string, unknown>> = {}): unknown {
  const declared = [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }];
  return new FunctionDeclarations(declared, MODEL_PROFILES['3.8']).argsFor('f', given);
}
/** The value that is made for one required property. */
function made(schema: object, root: object = {}): unknown {
  return (argsOf({ type: 'object', properties: { x: schema }, required: ['x'], ...root }) as { x: unknown })
    .x;
}

describe('arguments made from a declaration', () => {
  it.each([
    [{ type: 'string' }, 'rehearsal'],
    [{ type: 'STRING', enum: ['b', 'c'] }, 'b'],
    [{ type: 'string', format: 'date' }, '2026-01-15'],
    [{ type: 'string', minLength: 12 }, 'rehearsalxxx'],
    [{ type: 'string', maxLength: 4 }, 'rehe'],
    [{ const: 5 }, 5],
    [{ type: 'integer', minimum: 2.5 }, 3],
    [{ type: 'number', exclusiveMinimum: 4, maximum: 4.5 }, 4.5],
    [{ type: 'integer', maximum: -3 }, -3],
    [{ type: 'boolean' }, true],
    [{ type: ['null', 'boolean'] }, true],
    [{ type: 'null' }, null],
    [{ type: 'array', items: { type: 'boolean' }, minItems: 2 }, [true, true]],
    [{ type: 'array', items: {} }, []],
    [{ type: 'string', default: 'd' }, 'd'],
    [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, 1],
    [{ allOf: [{ type: 'integer' }, { minimum: 7 }] }, 7],
    [{ properties: { y: { type: 'boolean' }, z: {} }, required: ['y'] }, { y: true }],
  ])('%j becomes %j', (schema, value) => {
    expect(made(schema)).toEqual(value);
  });

  it('follow references, and end where a schema refers to itself', () => {
    expect(made({ $ref: '#/$defs/kind' }, { $defs: { kind: { enum: ['k'] } } })).toBe('k');
    const self = { $ref: '#/$defs/node' };
    const node = { type: 'object', properties: { next: self }, required: ['next'] };
    expect(JSON.stringify(made(self, { $defs: { node } }))).toMatch(/^(\{"next":){1,10}null\}+$/);
  });

  it('leave out what is not required, and never change what is given', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      required: ['a'],
    };
    expect(argsOf(schema)).toEqual({ a: 'rehearsal' });
    expect(argsOf(schema, { a: 1, c: 2 })).toEqual({ a: 1, c: 2 });
  });

  it('are made of any schema without falling over', () => {
    const property = fc.property(fc.object({ withNullPrototype: false }), (schema) => {
      argsOf({ type: 'object', properties: { x: schema }, required: ['x'] });
    });
    expect(() => fc.assert(property)).not.toThrow();
  });
});

describe('whether a function blocks', () => {
  it.each([
    ['3.8', undefined, false],
    ['3.8', 'BLOCKING', true],
    ['3.8', 'UNSPECIFIED', false],
    ['extended-thinking', 'BLOCKING', false],
    ['3.1', 'NON_BLOCKING', true],
    ['2.5', undefined, true],
    ['2.5', 'NON_BLOCKING', false],
  ] as const)('on %s, declared %s: %s', (profile, behavior, blocks) => {
    const declared = [{ functionDeclarations: [{ name: 'f', behavior }] }];
    expect(new FunctionDeclarations(declared, MODEL_PROFILES[profile]).blocks('f')).toBe(blocks);
  });
});
