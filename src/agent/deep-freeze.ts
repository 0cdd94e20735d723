/** What an author wrote stays as it was checked, and what is stored as it was told. Bytes alone can still be changed. */
export function deepFreeze<Value extends object>(value: Value): Value {
  // Without recursion: a model's arguments may be nested deeper than a stack.
  const open: object[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (ArrayBuffer.isView(next)) continue;
    Object.freeze(next);
    for (const inner of Object.values(next) as unknown[])
      if (typeof inner === 'object' && inner !== null && !Object.isFrozen(inner)) open.push(inner);
  }
  return value;
}
