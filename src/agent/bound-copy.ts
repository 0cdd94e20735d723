/**
 * A plain copy of what an author wrote, with the fields that are known. Their code may be a class: methods stand on its
 * prototype, where a spread does not find them, and a guard that is not found lets everything pass; and they need their object.
 */
export function boundCopy<Definition extends object>(
  definition: Definition,
  fields: readonly string[],
): Definition {
  const copy: Record<string, unknown> = {};
  for (const field of fields) {
    const value: unknown = (definition as Record<string, unknown>)[field];
    if (value !== undefined) copy[field] = bound(value, definition);
  }
  return copy as Definition;
}

/** A function as a method of its object; anything else as it is. */
export function bound<Value>(value: Value, object: object): Value {
  return typeof value === 'function' ? (value.bind(object) as Value) : value;
}
