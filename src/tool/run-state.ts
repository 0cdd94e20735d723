/**
 * State of one run: what the session held when it began, and what its tools have changed since. All tools see a change at
 * once; it is stored with the event that tells the result of the tool that made it.
 */
import type { JsonObject } from '../event/event.js';
import { faultOfName } from '../event/name-fault.js';

/** Hears of a change, with the value's bytes as JSON, before it is made; what it throws keeps it from being made. */
export type OnChange = (key: string, value: unknown, bytes: number) => void;

export class RunState {
  readonly #values = new Map<string, unknown>();

  constructor(stored: JsonObject) {
    for (const [key, value] of Object.entries(stored)) this.#values.set(key, frozen(value).value);
  }

  /** Everything, as JSON: for what cannot look keys up here. */
  snapshot(): JsonObject {
    return Object.fromEntries(this.#values);
  }

  /** @throws TypeError for what is no key and no JSON; what `changed` throws. */
  set(key: string | symbol, value: unknown, changed: OnChange): void {
    const name = checkedKey(key);
    const kept = frozen(value === undefined ? null : value);
    changed(name, kept.value, kept.bytes);
    this.#values.set(name, kept.value);
  }

  /**
   * As one tool sees it. Values come out frozen: a change is an assignment of a key, which throws what `set` throws.
   */
  view(changed: OnChange): Record<string, unknown> {
    const values = this.#values;
    const set = (key: string | symbol, value: unknown): true => {
      this.set(key, value, changed);
      return true;
    };
    return new Proxy<Record<string, unknown>>(Object.create(null) as Record<string, unknown>, {
      get: (_target, key) => (typeof key === 'string' ? (values.get(key) ?? undefined) : undefined),
      has: (_target, key) => typeof key === 'string' && (values.get(key) ?? undefined) !== undefined,
      set: (_target, key, value) => set(key, value),
      // There is no row to take away: a key that is null is one that is not there.
      deleteProperty: (_target, key) => set(key, null),
      ownKeys: () => [...values.keys()].filter((key) => values.get(key) !== null),
      getOwnPropertyDescriptor: (_target, key) =>
        typeof key === 'string' && (values.get(key) ?? undefined) !== undefined
          ? { value: values.get(key), enumerable: true, configurable: true, writable: true }
          : undefined,
      defineProperty: (_target, key, { value }) => set(key, value),
      preventExtensions: () => false,
    });
  }
}

/** By the store's own rule: a key that it would refuse is refused where it is written. */
function checkedKey(key: string | symbol): string {
  const fault = faultOfName(key);
  if (typeof key !== 'string' || fault !== undefined) throw new TypeError(`state: a key ${fault}`);
  return key;
}

/** A copy as JSON keeps it, frozen throughout, and its size. */
function frozen(value: unknown): { readonly value: unknown; readonly bytes: number } {
  const json = JSON.stringify(value, noNull);
  if (json === undefined) throw new TypeError('state: a value must be JSON');
  return { value: freeze(JSON.parse(json)), bytes: Buffer.byteLength(json) };
}

/** JSON would write null for them, and a key that is null is one that is not there. */
function noNull(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new TypeError(`state: a value must be JSON, which has no ${value}`);
  return value;
}

function freeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
