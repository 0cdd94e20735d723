/**
 * Reads JSON as Google's front end reads it into a protocol buffer: known fields only, in camelCase or snake_case, `null`
 * as absent, whole numbers as text too. Finds every fault and says it in the form of the front end, with the field's
 * path in snake_case and an entry of a map by its place. Knows forms only; what a request means is for others.
 * Source: https://protobuf.dev/programming-guides/json/ and error reports of users of the Gemini API.
 */

export type ProtoField =
  | { readonly kind: 'string' | 'number' | 'integer' | 'bool' | 'struct' | 'any' }
  /** Without values any name passes. `type` stands in the refusal. */
  | { readonly kind: 'enum'; readonly type: string; readonly values?: readonly string[] }
  | { readonly kind: 'list'; readonly of: ProtoField }
  | { readonly kind: 'map'; readonly of: ProtoField }
  /** A function, because messages hold themselves: a schema has properties that are schemas. */
  | { readonly kind: 'message'; readonly fields: () => ProtoFields };

export type ProtoFields = Readonly<Record<string, ProtoField>>;

export interface FieldViolation {
  /** `contents[0].parts[1]`; empty for the whole request. */
  readonly field: string;
  readonly description: string;
}

/** Protocol buffers are read to this depth of nested messages. */
const DEPTH_MAX = 100;
/** More faults than these are not listed. */
const VIOLATIONS_MAX = 20;

const TYPE_NAMES = {
  string: 'TYPE_STRING',
  number: 'TYPE_DOUBLE',
  integer: 'TYPE_INT32',
  bool: 'TYPE_BOOL',
} as const;

/** The value with field names in camelCase, and the faults; the value means nothing if there are any. */
export function readProtoJson(
  fields: ProtoFields,
  value: unknown,
): { readonly value: unknown; readonly violations: readonly FieldViolation[] } {
  const reader = new ProtoReader();
  const read = reader.message(fields, value, { path: '', depth: 0 });
  return { value: read, violations: reader.violations };
}

interface Place {
  readonly path: string;
  readonly depth: number;
}

class ProtoReader {
  readonly violations: FieldViolation[] = [];

  message(fields: ProtoFields, value: unknown, place: Place): unknown {
    if (place.depth > DEPTH_MAX) return this.#refuse(place.path, 'Message too deep.');
    if (!isObject(value)) return this.#wrongKind(value, place);
    const read: Record<string, unknown> = {};
    for (const [key, child] of Object.entries(value)) {
      const name = Object.hasOwn(fields, key) ? key : camelCase(key);
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (field === undefined) this.#unknownName(key, place, 'Cannot find field.');
      else if (child !== null || field.kind === 'any') {
        const path = place.path === '' ? snakeCase(name) : `${place.path}.${snakeCase(name)}`;
        read[name] = this.#field(field, child, { path, depth: place.depth });
      }
    }
    return read;
  }

  #field(field: ProtoField, value: unknown, place: Place): unknown {
    switch (field.kind) {
      case 'message':
        return this.message(field.fields(), value, { ...place, depth: place.depth + 1 });
      case 'list':
        return this.#list(field.of, value, place);
      case 'map':
        return this.#map(field.of, value, place);
      case 'struct':
        return isObject(value) ? value : this.#wrongKind(value, place);
      case 'any':
        return value;
      case 'enum':
        return this.#enumeration(field, value, place);
      default:
        return this.#scalar(field.kind, value, place);
    }
  }

  /** A single message stands for a list of one. */
  #list(of: ProtoField, value: unknown, place: Place): unknown {
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.map((item, index) => this.#field(of, item, { ...place, path: `${place.path}[${index}]` }));
  }

  #map(of: ProtoField, value: unknown, place: Place): unknown {
    if (!isObject(value)) return this.#wrongKind(value, place);
    const entries = Object.entries(value).map(([key, child], index) => {
      return [key, this.#field(of, child, { ...place, path: `${place.path}[${index}].value` })] as const;
    });
    return Object.fromEntries(entries);
  }

  #scalar(kind: keyof typeof TYPE_NAMES, value: unknown, place: Place): unknown {
    if (Array.isArray(value) || isObject(value)) return this.#wrongKind(value, place);
    if (kind === 'string' && typeof value === 'string') return value;
    if (kind === 'bool' && typeof value === 'boolean') return value;
    if (kind === 'number' || kind === 'integer') {
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
      if (typeof number === 'number' && Number.isFinite(number)) {
        if (kind === 'number' || Number.isSafeInteger(number)) return number;
      }
    }
    return this.#refuse(place.path, `(${TYPE_NAMES[kind]}), ${shown(value)}`);
  }

  #enumeration(field: ProtoField & { kind: 'enum' }, value: unknown, place: Place): unknown {
    if (Array.isArray(value) || isObject(value)) return this.#wrongKind(value, place);
    if (Number.isInteger(value)) return value;
    if (typeof value === 'string') {
      // Google's own examples write the types of a schema in small letters.
      const name = value.toUpperCase();
      if (field.values === undefined || field.values.includes(name)) return name;
    }
    return this.#refuse(place.path, `(type.googleapis.com/${field.type}), ${shown(value)}`);
  }

  #wrongKind(value: unknown, place: Place): undefined {
    if (place.path === '') {
      this.#add('', 'Invalid JSON payload received. Expected an object.');
      return undefined;
    }
    const dot = place.path.lastIndexOf('.');
    const parent = { path: dot < 0 ? '' : place.path.slice(0, dot), depth: place.depth };
    const name = place.path.slice(dot + 1);
    if (Array.isArray(value))
      this.#unknownName(name, parent, 'Proto field is not repeating, cannot start list.');
    else if (isObject(value)) this.#unknownName(name, parent, 'Starting an object on a scalar field.');
    else this.#refuse(place.path, shown(value));
    return undefined;
  }

  #unknownName(name: string, { path }: Place, why: string): void {
    const at = path === '' ? '' : ` at '${path}'`;
    this.#add(path, `Invalid JSON payload received. Unknown name "${cut(name)}"${at}: ${why}`);
  }

  #refuse(path: string, why: string): undefined {
    this.#add(path, `Invalid value at '${path}' ${why}`);
    return undefined;
  }

  #add(field: string, description: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ field, description });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(cut(value)) : String(value);
}

function cut(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
