/** What an author wrote stays as it was checked. */
export function deepFreeze<Value extends object>(value: Value): Value {
  Object.freeze(value);
  for (const inner of Object.values(value) as unknown[])
    if (typeof inner === 'object' && inner !== null && !Object.isFrozen(inner)) deepFreeze(inner);
  return value;
}
