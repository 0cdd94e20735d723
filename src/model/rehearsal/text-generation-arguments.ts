/**
 * Arguments for a function out of its JSON schema and the words around its name. No understanding is in it: ids,
 * quoted texts and numbers go to the parameters that can take them, in order, and what is required and not found gets
 * a value of its form. The result always has the form that the schema asks for, as far as it is read here.
 */

/** Schemas may hold themselves by `$ref`. */
const DEPTH_MAX = 8;
const ITEMS_MAX = 16;

type Schema = Readonly<Record<string, unknown>>;

/** What a text offers as values, each used once. */
interface Offer {
  /** All of it, for `key: value` and for names of an enumeration. */
  readonly text: string;
  /** `A-10293`, `10293`, `+15550100`. */
  readonly ids: string[];
  readonly quoted: string[];
  readonly numbers: number[];
  /** What is none of these, in one line. */
  rest: string;
}

/** A value for each parameter that the text has one for, and for each required one. */
export function argumentsFrom(schema: unknown, text: string): Record<string, unknown> {
  const value = valueFor(schema, '', { offer: offerOf(text), root: asSchema(schema), depth: 0 });
  return isRecord(value) ? value : {};
}

/** A value of the schema's form, which need not be an object. */
export function exampleOf(schema: unknown, text: string): unknown {
  return valueFor(schema, '', { offer: offerOf(text), root: asSchema(schema), depth: 0 });
}

function offerOf(text: string): Offer {
  const quoted: string[] = [];
  const unquoted = text.replaceAll(/"([^"]*)"|“([^”]*)”|(?<!\w)'([^']*)'(?!\w)/g, (_, a, b, c) => {
    quoted.push(String(a ?? b ?? c));
    return ' ';
  });
  const ids: string[] = [];
  const rest = unquoted.replaceAll(/\+?[A-Za-z0-9][\w./@-]*/g, (word) => {
    const id = word.replace(/[./@-]+$/, '');
    if (!/\d/.test(id)) return word;
    ids.push(id);
    return ' ';
  });
  const numbers = ids.filter((id) => /^\+?\d+(\.\d+)?$/.test(id)).map(Number);
  return {
    text,
    ids,
    quoted,
    numbers,
    rest: rest.replaceAll(/\s+/g, ' ').replace(/^[\s,.:;]+|[\s,:;]+$/g, ''),
  };
}

interface Fill {
  readonly offer: Offer;
  readonly root: Schema;
  readonly depth: number;
}

/** `name` is the parameter's; for the whole it is empty. */
function valueFor(given: unknown, name: string, fill: Fill): unknown {
  const schema = resolved(asSchema(given), fill);
  if (schema['const'] !== undefined) return schema['const'];
  if (Array.isArray(schema['enum']) && schema['enum'].length > 0)
    return enumValue(schema['enum'], fill.offer);
  const type = typeOf(schema);
  if (type === 'object') return objectFor(schema, fill);
  const pair = pairedValue(name, fill.offer);
  switch (type) {
    case 'array':
      return arrayFor(schema, name, fill);
    case 'integer':
    case 'number':
      return numberFor(schema, pair, fill.offer);
    case 'boolean':
      return pair === undefined ? schema['default'] !== false : !/^(false|no|off|0)$/i.test(pair);
    case 'null':
      return null;
    default:
      return stringFor(schema, name, pair ?? offeredString(name, schema, fill.offer));
  }
}

function objectFor(schema: Schema, fill: Fill): Record<string, unknown> {
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const properties = Object.entries(asSchema(schema['properties']));
  const deeper = { ...fill, depth: fill.depth + 1 };
  const value: Record<string, unknown> = {};
  // The required ones first: what the text offers is used up.
  const order = properties.toSorted(
    ([a], [b]) => Number(required.includes(b)) - Number(required.includes(a)),
  );
  for (const [name, property] of order) {
    if (required.includes(name) || isOffered(asSchema(property), name, fill)) {
      // Deeper than this nothing is filled; a schema that requires itself has no finite value anyway.
      if (fill.depth < DEPTH_MAX) value[name] = valueFor(property, name, deeper);
    }
  }
  return value;
}

/** Whether the text has something for an optional parameter. */
function isOffered(given: Schema, name: string, fill: Fill): boolean {
  const { offer } = fill;
  const schema = resolved(given, fill);
  if (pairedValue(name, offer) !== undefined) return true;
  if (Array.isArray(schema['enum'])) return schema['enum'].some((each) => hasWord(offer.text, String(each)));
  switch (typeOf(schema)) {
    case 'integer':
    case 'number':
      return offer.numbers.length > 0;
    case 'string':
      return isId(name) ? offer.ids.length > 0 : offer.quoted.length > 0;
    case 'array':
      return offer.ids.length > 0 && isId(name);
    default:
      return false;
  }
}

function arrayFor(schema: Schema, name: string, fill: Fill): unknown[] {
  const { offer, depth } = fill;
  const least = typeof schema['minItems'] === 'number' ? Math.min(schema['minItems'], ITEMS_MAX) : 0;
  const items: unknown[] = [];
  const single = name.replace(/s$/, '');
  if (depth >= DEPTH_MAX) return items;
  const isText = typeOf(resolved(asSchema(schema['items']), fill)) === 'string';
  const hasMore = () => isText && (offer.ids.length > 0 || offer.quoted.length > 0);
  do {
    items.push(valueFor(schema['items'], single, { ...fill, depth: depth + 1 }));
  } while (items.length < least || (items.length < ITEMS_MAX && hasMore()));
  return items;
}

function numberFor(schema: Schema, pair: string | undefined, offer: Offer): unknown {
  const whole = typeOf(schema) === 'integer';
  const paired = pair === undefined ? Number.NaN : Number(pair);
  const found = Number.isFinite(paired) ? paired : takeNumber(offer);
  const fallback = typeof schema['default'] === 'number' ? schema['default'] : 1;
  const least = typeof schema['minimum'] === 'number' ? schema['minimum'] : -Infinity;
  const most = typeof schema['maximum'] === 'number' ? schema['maximum'] : Infinity;
  const value = Math.min(most, Math.max(least, found ?? fallback));
  return whole ? Math.trunc(value) : value;
}

function takeNumber(offer: Offer): number | undefined {
  const number = offer.numbers.shift();
  if (number !== undefined) {
    const at = offer.ids.findIndex((id) => Number(id) === number);
    if (at >= 0) offer.ids.splice(at, 1);
  }
  return number;
}

function offeredString(name: string, schema: Schema, offer: Offer): string {
  const { format } = schema;
  if (format === 'date' || format === 'date-time') return dateFor(format, offer);
  const quoted = isId(name) ? undefined : offer.quoted.shift();
  const id = quoted === undefined && isId(name) ? takeId(offer) : undefined;
  if (quoted !== undefined || id !== undefined) return quoted ?? id ?? '';
  if (typeof schema['default'] === 'string') return schema['default'];
  // An id that is none is better than words; for everything else words are better.
  if (isId(name)) return offer.quoted.shift() ?? '1';
  const { rest } = offer;
  offer.rest = '';
  return rest || (takeId(offer) ?? 'unknown');
}

function takeId(offer: Offer): string | undefined {
  const id = offer.ids.shift();
  if (id !== undefined) {
    const at = offer.numbers.indexOf(Number(id));
    if (at >= 0) offer.numbers.splice(at, 1);
  }
  return id;
}

function dateFor(format: string, offer: Offer): string {
  const day = /\b\d{4}-\d{2}-\d{2}\b/.exec(offer.text)?.[0] ?? '2026-01-01';
  return format === 'date' ? day : `${day}T12:00:00Z`;
}

function stringFor(schema: Schema, name: string, text: string): string {
  const most = typeof schema['maxLength'] === 'number' ? Math.max(0, schema['maxLength']) : Infinity;
  const least = typeof schema['minLength'] === 'number' ? Math.min(schema['minLength'], 1_000) : 0;
  return (text.length > most ? text.slice(0, most) : text).padEnd(least, isId(name) ? '0' : '.');
}

/** The value of `order_id: A-10293`, `order id = A-10293` or `"order_id":"A-10293"`. */
function pairedValue(name: string, offer: Offer): string | undefined {
  if (name === '') return undefined;
  const words = name.split(/[_.:-]+/).map(escaped);
  const pair = new RegExp(String.raw`(?<!\w)${words.join('[_ -]?')}"?\s*[:=]\s*("[^"]*"|[\w.@+-]*\w)`, 'i');
  const value = pair.exec(offer.text)?.[1];
  if (value === undefined) return undefined;
  const plain = value.replaceAll('"', '');
  for (const list of [offer.ids, offer.quoted]) {
    const at = list.indexOf(plain);
    if (at >= 0) list.splice(at, 1);
  }
  return plain;
}

function enumValue(values: readonly unknown[], offer: Offer): unknown {
  return values.find((value) => hasWord(offer.text, String(value))) ?? values[0];
}

/** `A-10293` goes to `order_id`, not to `reason`. */
function isId(name: string): boolean {
  return /(^|[_-])(id|ids|number|no|code|sku|key|ref|reference|phone|order|account|invoice|tracking)s?$|(Id|Ids|Number|Code)$/i.test(
    name,
  );
}

function hasWord(text: string, word: string): boolean {
  const spaced = word.split(/[_-]+/).map(escaped).join('[_ -]?');
  return word !== '' && new RegExp(String.raw`(?<!\w)${spaced}(?!\w)`, 'i').test(text);
}

/** Behind a `$ref` into the schema's own definitions, and the first of several forms that is not null. */
function resolved(schema: Schema, fill: Fill, steps = 0): Schema {
  if (steps > DEPTH_MAX) return {};
  const reference = schema['$ref'];
  if (typeof reference === 'string') {
    let target: unknown = fill.root;
    for (const step of reference.replace(/^#\/?/, '').split('/')) {
      if (step !== '') target = isRecord(target) ? target[step] : undefined;
    }
    return resolved(asSchema(target), fill, steps + 1);
  }
  const forms = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf'];
  if (!Array.isArray(forms) || schema['properties'] !== undefined) return schema;
  const form = forms.map(asSchema).find((each) => typeOf(each) !== 'null');
  return form === undefined ? schema : resolved(form, fill, steps + 1);
}

function typeOf(schema: Schema): string {
  const type: unknown = schema['type'];
  const types: unknown[] = Array.isArray(type) ? type : [type];
  const named = types.find((each) => typeof each === 'string' && each.toLowerCase() !== 'null') ?? types[0];
  if (typeof named === 'string') return named.toLowerCase();
  if (schema['properties'] !== undefined) return 'object';
  return schema['items'] === undefined ? 'string' : 'array';
}

function asSchema(value: unknown): Schema {
  return isRecord(value) ? value : {};
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function escaped(text: string): string {
  return text.replaceAll(/[^\w ]/g, String.raw`\$&`);
}
