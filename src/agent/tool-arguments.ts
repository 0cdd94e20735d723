/**
 * The arguments of a tool: how they are told to the model, and how what it passes is read. A zod object says both; a JSON
 * schema is checked by ajv, the usual validator for it.
 */
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { z } from 'zod';
import { TOOL_ARGUMENT_ERROR_MAX_CHARS } from '../tool-limits.js';
import { deepFreeze } from './deep-freeze.js';

export type JsonSchema = Readonly<Record<string, unknown>>;

export type ReadArguments = { readonly args: unknown } | { readonly error: string };
/** Reads what the model passed. The error names each field and what is wrong with it, never its value. */
export type ArgumentReader = (args: unknown) => ReadArguments;

export interface ToolSchema {
  readonly parametersJsonSchema: JsonSchema;
  readonly readArguments: ArgumentReader;
}

/** Throws what is wrong with the schema itself, in words that follow "parameters". */
export function argumentReader(parameters: z.ZodObject | JsonSchema): ToolSchema {
  if (isZod(parameters)) return byZod(parameters);
  if ('_def' in parameters) throw new Error('is a schema of zod 3: it takes zod 4, or a JSON schema');
  return byJsonSchema(parameters);
}

/** By shape, not by class: the author's zod may be another copy of the package. */
function isZod(parameters: z.ZodObject | JsonSchema): parameters is z.ZodObject {
  return '_zod' in parameters && typeof (parameters as { safeParse?: unknown }).safeParse === 'function';
}

function byZod(parameters: z.ZodObject): ToolSchema {
  const parametersJsonSchema = z.toJSONSchema(parameters, {
    io: 'input',
    target: 'draft-2020-12',
    // Models refuse it, or know it not; what it says is checked here in any case.
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  if (parametersJsonSchema['type'] !== 'object') throw new Error('must be an object');
  delete parametersJsonSchema['$schema'];
  return {
    parametersJsonSchema: deepFreeze(parametersJsonSchema),
    readArguments(args) {
      try {
        const result = parameters.safeParse(args);
        if (result.success) return { args: result.data };
        return errorOf(result.error.issues.map(({ path, message }) => [path.join('.'), message]));
      } catch {
        // A transform or refinement of the author's threw, or is asynchronous; its words may hold values.
        return { error: 'they could not be checked' };
      }
    },
  };
}

/** Unknown keywords stand: what one model takes in a schema, the validator need not know. Two tools may have schemas of
 * one id. */
const ajv = new Ajv2020({ strict: false, allErrors: true, useDefaults: true, addUsedSchema: false });
formats.default(ajv);

function byJsonSchema(parameters: JsonSchema): ToolSchema {
  if (parameters['type'] !== 'object') throw new Error('must have the type "object"');
  if ('$async' in parameters) throw new Error('must not have $async: what a call may pass is known at once');
  const schema: Record<string, unknown> = structuredClone(parameters);
  // No model takes it, and the validator knows one dialect only.
  delete schema['$schema'];
  const check = ajv.compile(schema);
  const unknown = unknownRequired(schema);
  if (unknown !== undefined) throw new Error(`require ${unknown}, which is none of their properties`);
  return {
    parametersJsonSchema: deepFreeze(schema),
    readArguments(args) {
      const copy = structuredClone(args);
      if (check(copy)) return { args: copy };
      return errorOf((check.errors ?? []).map((error) => [placeOf(error), error.message ?? 'is not valid']));
    },
  };
}

/** What may say of a property, beside `properties`, that there is one. */
const OTHER_SOURCES = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas'];

/** The place of a property that is required and declared nowhere: no model knows that it is to be passed, and each call would be
 * refused for it. Of schemas inside others only those that stand for a value of their own are looked at. */
function unknownRequired(
  schema: Readonly<Record<string, unknown>>,
  path: readonly string[] = [],
): string | undefined {
  const { properties = {}, required = [], items, additionalProperties } = schema;
  const known = isSchema(properties) ? properties : {};
  const mayBeElsewhere = isSchema(additionalProperties) || OTHER_SOURCES.some((keyword) => keyword in schema);
  if (!mayBeElsewhere && Array.isArray(required)) {
    const names = required.filter((name) => typeof name === 'string');
    const unknown = names.find((name) => !Object.hasOwn(known, name));
    if (unknown !== undefined) return [...path, unknown].join('.');
  }
  for (const [name, inner] of [...Object.entries(known), ['items', items] as const]) {
    const found = isSchema(inner) ? unknownRequired(inner, [...path, name]) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isSchema(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function placeOf({ instancePath, keyword, params }: ErrorObject): string {
  const path = instancePath.split('/').slice(1).map(unescaped);
  const property: unknown = params[PROPERTY_OF_KEYWORD[keyword] ?? ''];
  return [...path, ...(typeof property === 'string' ? [property] : [])].join('.');
}

/** Where an error is about a property of the object at its place. */
const PROPERTY_OF_KEYWORD: Readonly<Record<string, string>> = {
  required: 'missingProperty',
  additionalProperties: 'additionalProperty',
  unevaluatedProperties: 'unevaluatedProperty',
};

/** A step of a JSON pointer (RFC 6901). */
function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function errorOf(faults: readonly (readonly [string, string])[]): { readonly error: string } {
  const lines = faults.map(([place, message]) => (place === '' ? message : `${place}: ${message}`));
  return { error: lines.join('; ').slice(0, TOOL_ARGUMENT_ERROR_MAX_CHARS) };
}
