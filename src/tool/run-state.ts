/**
 * State of one run: what the session held when it began, and what its tools have changed since. All tools see a change at
 * once; it is stored with the event that tells the result of the tool that made it.
 */
import type { JsonObject } from '../event/event.js';
import { STATE_KEY_MAX_CHARS } from '../tool-limits.js';
import type { RunSecrets } from './run-secrets.js';

export class RunState {
  readonly #values = new Map<string, unknown>();
  readonly #secrets: RunSecrets | undefined;

  /** `secrets`: what is not kept, and stands in a value as its mark. */
  constructor(stored: JsonObject, secrets?: RunSecrets) {
    this.#secrets = secrets;
    for (const [key, value] of Object.entries(stored)) this.#values.set(key, frozen(value, undefined));
  }

  /** Everything, as JSON: for what cannot look keys up here. */
  snapshot(): JsonObject {
    return Object.fromEntries(this.#values);
  }

  /** Changes that were made elsewhere. Returns them as they are kept. */
  apply(delta: JsonObject): JsonObject {
    const kept = Object.entries(delta).map(
      ([key, value]) => [checkedKey(key, this.#secrets), frozen(value, this.#secrets)] as const,
    );
    for (const [key, value] of kept) this.#values.set(key, value);
    return Object.fromEntries(kept);
  }

  /**
   * As one tool sees it. Values come out frozen: a change is an assignment of a key, which `changed` is told of.
   * @throws TypeError for what is no JSON; `changed` may throw, too.
   */
  view(changed: (key: string, value: unknown) => void): Record<string, unknown> {
    const values = this.#values;
    const secrets = this.#secrets;
    const set = (key: string | symbol, value: unknown): true => {
      const name = checkedKey(key, secrets);
      const kept = frozen(value === undefined ? null : value, secrets);
      changed(name, kept);
      values.set(name, kept);
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

function checkedKey(key: string | symbol, secrets: RunSecrets | undefined): string {
  if (typeof key !== 'string' || key === '') throw new TypeError('state: a key is text');
  if (key.length > STATE_KEY_MAX_CHARS)
    throw new TypeError(`state: a key has at most ${STATE_KEY_MAX_CHARS} characters`);
  if (secrets?.holds(key) === true) throw new TypeError('state: a key holds a secret, which is not kept');
  return key;
}

/** A copy as JSON keeps it, without secrets, frozen throughout. */
function frozen(value: unknown, secrets: RunSecrets | undefined): unknown {
  const json = JSON.stringify(value, noNull);
  if (json === undefined) throw new TypeError('state: a value must be JSON');
  const read: unknown = JSON.parse(json);
  return freeze(secrets === undefined ? read : secrets.json(read));
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
