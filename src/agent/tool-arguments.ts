/**
 * The arguments of a tool: how they are told to the model, and how what it passes is read. A zod object says both; a JSON
 * schema is checked by ajv, the usual validator for it.
 */
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { z } from 'zod';
import { TOOL_ARGUMENT_ERROR_MAX_CHARS } from '../tool-limits.js';

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
  return isZod(parameters) ? byZod(parameters) : byJsonSchema(parameters);
}

/** By shape, not by class: the author's zod may be another copy of the package. */
function isZod(parameters: z.ZodObject | JsonSchema): parameters is z.ZodObject {
  return '_zod' in parameters && typeof (parameters as { safeParse?: unknown }).safeParse === 'function';
}

function byZod(parameters: z.ZodObject): ToolSchema {
  const parametersJsonSchema = z.toJSONSchema(parameters, { io: 'input', target: 'draft-2020-12' });
  if (parametersJsonSchema['type'] !== 'object') throw new Error('must be an object');
  delete parametersJsonSchema['$schema'];
  return {
    parametersJsonSchema: Object.freeze(parametersJsonSchema),
    readArguments(args) {
      const result = parameters.safeParse(args);
      if (result.success) return { args: result.data };
      return errorOf(result.error.issues.map(({ path, message }) => [path.join('.'), message]));
    },
  };
}

function byJsonSchema(parameters: JsonSchema): ToolSchema {
  if (parameters['type'] !== 'object') throw new Error('must have the type "object"');
  // Unknown keywords stand: what one model takes in a schema, the validator need not know.
  const ajv = new Ajv2020({ strict: false, allErrors: true, useDefaults: true });
  formats.default(ajv);
  const schema = structuredClone(parameters);
  const check = ajv.compile(schema);
  return {
    parametersJsonSchema: Object.freeze(schema),
    readArguments(args) {
      const copy = structuredClone(args);
      if (check(copy)) return { args: copy };
      return errorOf((check.errors ?? []).map((error) => [placeOf(error), error.message ?? 'is not valid']));
    },
  };
}

function placeOf({ instancePath, keyword, params }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.');
  const missing: unknown = keyword === 'required' ? params['missingProperty'] : undefined;
  return typeof missing === 'string' ? [path, missing].filter((part) => part !== '').join('.') : path;
}

function errorOf(faults: readonly (readonly [string, string])[]): { readonly error: string } {
  const lines = faults.map(([place, message]) => (place === '' ? message : `${place}: ${message}`));
  return { error: lines.join('; ').slice(0, TOOL_ARGUMENT_ERROR_MAX_CHARS) };
}
