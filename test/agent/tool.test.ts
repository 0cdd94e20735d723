import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, isTool, NothingDone, type Tool } from '../../src/agent/tool.js';
import { ConfigError } from '../../src/errors.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { TOOL_TIMEOUT_MS } from '../../src/tool-limits.js';

const plain = { name: 'look_up', description: 'Looks up.', execute: () => ({}) };
const key = (): string => 'k';
async function* watch(): AsyncGenerator<string> {
  yield await Promise.resolve('x');
}

function errorOf(tool: Tool, args: unknown): string {
  const read = tool.readArguments(args);
  return 'error' in read ? read.error : 'none';
}

describe('defineTool', () => {
  it.each([
    [{ ...plain, name: '1x' }, 'tool 1x: name must be a letter or _'],
    [{ ...plain, name: 'two\nlines' }, 'tool "two\\nlines": name must be'],
    [{ ...plain, name: 'x'.repeat(65) }, `tool ${'x'.repeat(64 - 'tool '.length)}`],
    [{ ...plain, name: undefined }, 'a tool: name'],
    [{ ...plain, description: ' ' }, 'tool look_up: description'],
    [{ ...plain, execute: 'run' }, 'tool look_up: execute must be a function'],
    [{ ...plain, parameters: 'none' }, 'tool look_up: parameters must be a zod object or a JSON schema'],
    [{ ...plain, parameters: z.string() }, 'tool look_up: parameters must be an object'],
    [{ ...plain, parameters: z.object({ at: z.date() }) }, 'tool look_up: parameters Date cannot'],
    [{ ...plain, parameters: { type: 'array' } }, 'tool look_up: parameters must have the type "object"'],
    [
      { ...plain, parameters: { type: 'object', properties: { a: { type: 'text' } } } },
      'tool look_up: parameters schema is invalid',
    ],
    [{ ...plain, parameters: { type: 'object', _def: {} } }, 'tool look_up: parameters is a schema of zod 3'],
    [
      { ...plain, parameters: { type: 'object', required: ['b'], properties: { a: { type: 'string' } } } },
      'tool look_up: parameters require b, which is none of their properties',
    ],
    [{ ...plain, parameters: { type: 'object', required: ['b'] } }, 'tool look_up: parameters require b,'],
    [
      {
        ...plain,
        parameters: {
          type: 'object',
          properties: {
            lines: { type: 'array', items: { type: 'object', required: ['toString'], properties: {} } },
          },
        },
      },
      'tool look_up: parameters require lines.items.toString,',
    ],
    [{ ...plain, longRunning: 1 }, 'tool look_up: longRunning'],
    [{ ...plain, inputStream: 'sound' }, 'tool look_up: inputStream must be true, false or "image"'],
    [{ ...plain, interrupts: 'yes' }, 'tool look_up: interrupts'],
    [{ ...plain, trusted: 'yes' }, 'tool look_up: trusted'],
    [{ ...plain, worker: 'yes' }, 'tool look_up: worker'],
    [{ ...plain, timeoutMs: 0 }, 'tool look_up: timeoutMs'],
    [{ ...plain, timeoutMs: Infinity }, 'tool look_up: timeoutMs'],
    [{ ...plain, sideEffect: {} }, 'tool look_up: sideEffect.key is missing'],
    [{ ...plain, sideEffect: { key, amount: 5 } }, 'tool look_up: sideEffect.amount must be a function'],
    [{ ...plain, approval: 'yes' }, 'tool look_up: approval must be true, false or a function'],
    [{ ...plain, timeout: 5 }, 'tool look_up: timeout is no field that there is'],
    [{ ...plain, longRunning: true, timeoutMs: 5 }, 'tool look_up: timeoutMs: a longRunning tool has none'],
    [{ ...plain, execute: watch, worker: true }, 'tool look_up: worker: a streaming tool'],
    [{ ...plain, inputStream: true, worker: true }, 'tool look_up: worker: a streaming tool'],
    [{ ...plain, execute: watch, longRunning: true }, 'tool look_up: longRunning: a streaming tool'],
    [{ ...plain, execute: watch, timeoutMs: 5 }, 'tool look_up: timeoutMs: a streaming tool has none'],
    [{ ...plain, execute: watch, sideEffect: { key } }, 'tool look_up: sideEffect: a streaming'],
    [{ ...plain, execute: watch, approval: true }, 'tool look_up: approval: a streaming tool'],
    [undefined, 'a tool: '],
  ])('refuses the bad definition %# in one line that names tool and field', (definition, why) => {
    const refused = (): unknown => defineTool(definition as never);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(expect.objectContaining({ code: 'agent_invalid' }));
    expect(refused).toThrow(why);
    expect(refused).toThrow(/^.*$/);
  });

  it.each([
    { required: ['a'], properties: { a: true } },
    { required: ['b'], patternProperties: { '^b$': { type: 'string' } } },
    { required: ['b'], additionalProperties: { type: 'string' } },
    { required: ['b'], allOf: [{ properties: { b: { type: 'string' } } }] },
    { required: ['b'], $ref: '#/$defs/b', $defs: { b: { properties: { b: {} } } } },
    { properties: { a: {}, b: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    { required: [], properties: { required: { type: 'string' } } },
  ])('takes what requires a property that is declared elsewhere (%j)', (parameters) => {
    expect(isTool(defineTool({ ...plain, parameters: { type: 'object', ...parameters } }))).toBe(true);
  });

  it('fills in what the author left out', () => {
    const tool = defineTool(plain);
    expect(tool).toMatchObject({
      kind: 'function',
      input: undefined,
      interrupts: false,
      trusted: false,
      worker: false,
      timeoutMs: TOOL_TIMEOUT_MS,
      parametersJsonSchema: { type: 'object', properties: {} },
    });
    expect(tool.approval({}, {} as never)).toBe(false);
    expect(tool.readArguments({})).toEqual({ args: {} });
    expect(isTool(tool) && Object.isFrozen(tool)).toBe(true);
    expect(isTool({ ...plain })).toBe(false);
  });

  it.each([
    ['an async generator', { execute: watch }, 'streaming', undefined],
    ['a function that asks for sound', { inputStream: true }, 'streaming', 'sound'],
    ['a function that asks for pictures', { inputStream: 'image' }, 'streaming', 'image'],
    ['a function that interrupts', { interrupts: true }, 'streaming', undefined],
    ['a long one', { longRunning: true }, 'longRunning', undefined],
    ['a plain one', { inputStream: false, longRunning: false }, 'function', undefined],
  ] as const)('tells the kind of %s', (_what, options, kind, input) => {
    expect(defineTool({ ...plain, ...options })).toMatchObject({ kind, input });
  });

  it('has an error that says that nothing was done', () => {
    expect(new NothingDone('the card was declined')).toMatchObject({ name: 'NothingDone' });
  });
});

describe('the arguments of a zod object', () => {
  const parameters = z.strictObject({
    order_id: z.string().describe('The order.'),
    times: z.number().int().default(1),
    lines: z.array(z.strictObject({ sku: z.string() })).optional(),
    kind: z.enum(['gift', 'sale']).optional(),
  });
  const tool = defineTool({ ...plain, parameters });

  it('are declared as the model takes them: no $schema, no additionalProperties, no default required', () => {
    const text = JSON.stringify(tool.parametersJsonSchema);
    expect(text).not.toMatch(/\$schema|additionalProperties/);
    expect(tool.parametersJsonSchema).toMatchObject({
      type: 'object',
      properties: {
        order_id: { type: 'string', description: 'The order.' },
        lines: { type: 'array', items: { type: 'object' } },
      },
      required: ['order_id'],
    });
    expect(Object.isFrozen(tool.parametersJsonSchema['properties'])).toBe(true);
  });

  it('are read with their defaults', () => {
    expect(tool.readArguments({ order_id: 'A-1' })).toEqual({ args: { order_id: 'A-1', times: 1 } });
  });

  it('are refused by field and never by value', () => {
    const secret = '4111111111111111';
    const args = { order_id: 4_111_111, times: secret, lines: [{ sku: true }], kind: secret, extra: secret };
    const error = errorOf(tool, args);
    for (const field of ['order_id', 'times', 'lines.0.sku', 'kind', 'extra']) expect(error).toContain(field);
    expect(error).not.toMatch(/4111111/);
    expect(error.length).toBeLessThanOrEqual(1_000);
    expect(errorOf(tool, {})).toContain('order_id');
    expect(errorOf(tool, null)).not.toBe('none');
  });

  it('cannot break the reader, whatever a refinement of the author does', () => {
    const secret = '4111111111111111';
    const throwing = z.object({
      a: z.string().refine((value) => {
        throw new Error(`no ${value}`);
      }),
    });
    const asynchronous = z.object({ a: z.string().refine(() => Promise.resolve(true)) });
    for (const each of [throwing, asynchronous]) {
      const error = errorOf(defineTool({ ...plain, parameters: each }), { a: secret });
      expect(error).toBe('they could not be checked');
    }
  });
});

describe('another copy of zod', () => {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-zod-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('makes parameters as ours does', async () => {
    cpSync(join(PACKAGE_ROOT, 'node_modules', 'zod'), folder, { recursive: true });
    const address = pathToFileURL(join(folder, 'index.js')).href;
    const other = (await import(/* @vite-ignore */ address)) as { readonly z: typeof z };
    expect(other.z).not.toBe(z);
    const parameters = other.z.object({ city: other.z.string().describe('Where.') });
    const tool = defineTool({ ...plain, parameters });
    expect(tool.parametersJsonSchema).toEqual({
      type: 'object',
      properties: { city: { type: 'string', description: 'Where.' } },
      required: ['city'],
    });
    expect(tool.readArguments({ city: 'London' })).toEqual({ args: { city: 'London' } });
    expect(errorOf(tool, {})).toContain('city');
  });
});

describe('the arguments of a JSON schema', () => {
  const parameters = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      'a/b': { type: 'string' },
      when: { type: 'string', format: 'date' },
      inner: {
        type: 'object',
        properties: { n: { type: 'number', default: 4 }, must: {} },
        required: ['must'],
      },
      times: { type: 'number', default: 2 },
      colour: { type: 'string', enum: ['red'], 'x-hint': 'of the car' },
    },
    required: ['when'],
    additionalProperties: false,
  };
  const tool = defineTool({ ...plain, parameters });

  it('are not checked some time later', () => {
    const asynchronous = { type: 'object', $async: true, properties: {} };
    expect(() =>
      defineTool({ name: 'f', description: 'd', parameters: asynchronous, execute: () => 1 }),
    ).toThrow('$async');
  });

  it('takes a class, whose methods keep their object', () => {
    class Refund {
      readonly name = 'refund';
      readonly description = 'Refunds.';
      readonly #id: string = 'R-1';
      readonly sideEffect = { key: () => this.#id };
      execute(): string {
        return this.#id;
      }
      approval(): boolean {
        return this.#id !== '';
      }
    }
    const { execute, approval, sideEffect } = defineTool(new Refund());
    expect([execute({}, {} as never), approval({}, {} as never), sideEffect?.key({}, {} as never)]).toEqual([
      'R-1',
      true,
      'R-1',
    ]);
  });

  it('are declared as written, but for $schema, in a copy', () => {
    const { $schema, ...rest } = parameters;
    expect($schema).toContain('draft-07');
    expect(tool.parametersJsonSchema).toEqual(rest);
    expect(Object.isFrozen(parameters)).toBe(false);
  });

  it('are read with their defaults, in a copy', () => {
    const args = { when: '2026-01-02' };
    expect(tool.readArguments(args)).toEqual({ args: { when: '2026-01-02', times: 2 } });
    expect(args).toEqual({ when: '2026-01-02' });
  });

  it('may have an id that another tool’s have, too', () => {
    const properties = { a: {}, b: {} };
    const withId = { $id: 'https://example.com/order', type: 'object', properties, required: ['a'] };
    defineTool({ ...plain, parameters: { ...withId, required: ['b'] } });
    expect(errorOf(defineTool({ ...plain, parameters: withId }), {})).toContain('a: ');
    const broken = { ...withId, properties: { a: { type: 'text' } } };
    const refused = (): unknown => defineTool({ ...plain, parameters: broken });
    expect(refused).toThrow('invalid');
    expect(refused).toThrow('invalid');
  });

  it('are refused by field and never by value', () => {
    const secret = '4111111111111111';
    const args = { 'a/b': 4_111_111, inner: { n: secret }, colour: secret, when: secret, more: secret };
    const error = errorOf(tool, args);
    for (const field of ['a/b', 'inner.must', 'inner.n', 'colour', 'when', 'more'])
      expect(error).toContain(`${field}: `);
    expect(error).not.toMatch(/4111111/);
    expect(errorOf(tool, {})).toContain('when: ');
    expect(errorOf(tool, 'text')).toContain('must be object');
  });
});
