import { describe, expect, it } from 'vitest';
import { definePlugin, isPlugin } from '../../src/agent/plugin.js';
import { ConfigError } from '../../src/errors.js';

describe('definePlugin', () => {
  it.each([
    [{ name: 'a b' }, 'plugin "a b": name must be 1 to 64 letters'],
    [{}, 'a plugin: name'],
    [{ name: 'audit', priority: 'first' }, 'plugin audit: priority'],
    [{ name: 'audit', priority: NaN }, 'plugin audit: priority'],
    [{ name: 'audit', beforeTool: {} }, 'plugin audit: beforeTool must be a function'],
    [{ name: 'audit', afterTool: 1 }, 'plugin audit: afterTool must be a function'],
    [{ name: 'audit', onEvent: 'log' }, 'plugin audit: onEvent must be a function'],
    [{ name: 'audit', beforeModel: () => {} }, 'plugin audit: beforeModel is no field that there is'],
    [undefined, 'a plugin: '],
  ])('refuses %j in one line that names plugin and field', (definition, why) => {
    const refused = (): unknown => definePlugin(definition as never);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(why);
    expect(refused).toThrow(/^.*$/);
  });

  it('gives back what it was given, frozen and known again', () => {
    const onEvent = (): void => {};
    const plugin = definePlugin({ name: 'audit', priority: 2, onEvent });
    expect(plugin).toMatchObject({ name: 'audit', priority: 2, onEvent: expect.any(Function) });
    expect(Object.isFrozen(plugin) && isPlugin(plugin)).toBe(true);
    expect(isPlugin({ name: 'audit' })).toBe(false);
  });

  // A guard that is lost lets everything pass.
  it('takes a class, whose methods keep their object', () => {
    class Deny {
      readonly name = 'deny';
      readonly #why = 'not today';
      beforeTool(): string {
        return this.#why;
      }
      afterTool(): string {
        return this.#why;
      }
    }
    const deny = definePlugin(new Deny());
    expect([deny.beforeTool?.({} as never), deny.afterTool?.({} as never)]).toEqual([
      'not today',
      'not today',
    ]);
  });
});
