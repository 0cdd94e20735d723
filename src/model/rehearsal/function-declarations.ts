/** The functions that a client declared: whether one may be called, whether it blocks, and arguments that fit it. */
import { REHEARSAL_SCHEMA_DEPTH_MAX } from './rehearsal-limits.js';
import type { ToolsFrame } from './client-frame.js';
import type { ModelProfile } from './model-profile.js';

type Declaration = NonNullable<ToolsFrame[number]['functionDeclarations']>[number];
type JsonObject = Readonly<Record<string, unknown>>;

/** Items of a made-up list: no more than the schema asks for, and never many. */
const ITEMS_MAX = 8;
/** For a text whose schema says only its format. */
const TEXT_OF_FORMAT: Readonly<Record<string, string>> = {
  date: '2026-01-15',
  time: '10:00:00Z',
  'date-time': '2026-01-15T10:00:00Z',
  email: 'caller@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
};

export class FunctionDeclarations {
  readonly #declarations: ReadonlyMap<string, Declaration>;
  readonly #profile: ModelProfile;

  constructor(tools: ToolsFrame | undefined, profile: ModelProfile) {
    const declared = tools?.flatMap((tool) => tool.functionDeclarations ?? []) ?? [];
    this.#declarations = new Map(declared.map((one) => [one.name, one]));
    this.#profile = profile;
  }

  get count(): number {
    return this.#declarations.size;
  }

  has(name: string): boolean {
    return this.#declarations.has(name);
  }

  /** Whether the model waits for the result, as declared where the model heeds it. */
  blocks(name: string): boolean {
    const stated = this.#declarations.get(name)?.behavior ?? 'UNSPECIFIED';
    const heeded = this.#profile.heedsDeclaredBehavior && stated !== 'UNSPECIFIED';
    return (heeded ? stated : this.#profile.toolBehavior) === 'BLOCKING';
  }

  /** The given arguments, and for the required ones among the rest something that the schema allows. */
  argsFor(name: string, given: JsonObject): JsonObject {
    const declaration = this.#declarations.get(name);
    const schema = declaration?.parametersJsonSchema ?? declaration?.parameters;
    const made = isObject(schema) ? valueOf({ ...schema, type: 'object' }, schema, 0) : {};
    return { ...(isObject(made) ? made : {}), ...given };
  }
}

/** `schema` is JSON schema or the OpenAPI form of it; `root` is where `$ref` looks. */
function valueOf(schema: unknown, root: JsonObject, depth: number): unknown {
  if (!isObject(schema) || depth > REHEARSAL_SCHEMA_DEPTH_MAX) return null;
  const said = statedValue(schema);
  if (said !== undefined) return said;
  const inner = alternativeOf(schema, root);
  if (inner !== undefined) return valueOf(inner, root, depth + 1);
  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, root, depth);
    case 'array':
      return Array.from({ length: Math.min(ITEMS_MAX, Number(schema['minItems'] ?? 0)) }, () =>
        valueOf(schema['items'], root, depth + 1),
      );
    case 'integer':
      return Math.ceil(numberOf(schema));
    case 'number':
      return numberOf(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return textOf(schema);
  }
}

/** A value that the schema names itself. */
function statedValue(schema: JsonObject): unknown {
  if ('const' in schema) return schema['const'];
  if ('default' in schema) return schema['default'];
  if ('example' in schema) return schema['example'];
  const listed = [schema['examples'], schema['enum']].find((one) => Array.isArray(one) && one.length > 0);
  return Array.isArray(listed) ? (listed[0] as unknown) : undefined;
}

/** The first of several, what all say together, or what is referred to. */
function alternativeOf(schema: JsonObject, root: JsonObject): JsonObject | undefined {
  const { $ref: reference } = schema;
  if (typeof reference === 'string') {
    const steps = reference.replace(/^#\/?/, '').split('/').filter(Boolean);
    const found = steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root);
    return isObject(found) ? found : undefined;
  }
  for (const choice of [schema['anyOf'], schema['oneOf']]) {
    if (Array.isArray(choice) && isObject(choice[0])) return choice[0];
  }
  const all: unknown = schema['allOf'];
  return Array.isArray(all) ? (Object.assign({}, ...all.filter(isObject)) as JsonObject) : undefined;
}

function objectOf(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const names = required.filter((name): name is string => typeof name === 'string');
  return Object.fromEntries(names.map((name) => [name, valueOf(properties[name], root, depth + 1)]));
}

/** Of a list of types the first that is not null; without a type, by what else is said. */
function typeOf(schema: JsonObject): string {
  const type: unknown = Array.isArray(schema['type'])
    ? (schema['type'].find((one) => one !== 'null') ?? 'null')
    : schema['type'];
  if (typeof type === 'string') return type.toLowerCase();
  if ('properties' in schema) return 'object';
  return 'items' in schema ? 'array' : 'string';
}

function numberOf(schema: JsonObject): number {
  const bound = (name: string) => (typeof schema[name] === 'number' ? schema[name] : undefined);
  const above = bound('exclusiveMinimum');
  const least = bound('minimum') ?? (above === undefined ? undefined : above + 1) ?? 1;
  return Math.min(least, bound('maximum') ?? Infinity);
}

function textOf(schema: JsonObject): string {
  const format = typeof schema['format'] === 'string' ? TEXT_OF_FORMAT[schema['format']] : undefined;
  const text = format ?? 'rehearsal';
  const [least, most] = [Number(schema['minLength'] ?? 0), Number(schema['maxLength'] ?? Infinity)];
  return text.padEnd(Math.min(least, 1_000), 'x').slice(0, most);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
