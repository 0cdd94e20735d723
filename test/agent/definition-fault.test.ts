/** What an author is told of a declaration that is wrong: plain words and the path of the field, never a library's sentence. */
import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { definePlugin } from '../../src/agent/plugin.js';
import { defineTool } from '../../src/agent/tool.js';

const tool = { name: 'look_up', description: 'Looks up.', execute: () => ({}) };
const agent = { name: 'desk', instruction: 'Serve.' };
const limits = (of: object) => ({ ...agent, runConfig: { limits: of } });
const refusal = (define: (definition: never) => unknown, definition: unknown): string => {
  try {
    define(definition as never);
  } catch (error) {
    return (error as Error).message;
  }
  return 'taken';
};

describe('a declaration that is wrong', () => {
  it.each([
    [defineTool, undefined, 'a tool: must be an object'],
    [defineTool, {}, 'a tool: name is missing; description is missing; execute is missing'],
    [defineTool, { ...tool, description: undefined }, 'tool look_up: description is missing'],
    [defineTool, { ...tool, description: 7 }, 'tool look_up: description must be text'],
    [defineTool, { ...tool, description: ' ' }, 'tool look_up: description is empty'],
    [
      defineTool,
      { ...tool, description: 'x'.repeat(4_001) },
      'tool look_up: description has more than 4000 characters',
    ],
    [defineTool, { ...tool, name: 'look up' }, 'tool "look up": name must be a letter or _'],
    [defineTool, { ...tool, execute: 'x' }, 'tool look_up: execute must be a function'],
    [defineTool, { ...tool, worker: 'yes' }, 'tool look_up: worker must be true or false'],
    [defineTool, { ...tool, timeoutMs: 0 }, 'tool look_up: timeoutMs must be 1 or more'],
    [defineTool, { ...tool, timeoutMs: 1.5 }, 'tool look_up: timeoutMs must be a whole number'],
    [defineTool, { ...tool, timeoutMs: 600_001 }, 'tool look_up: timeoutMs must be 600000 or less'],
    [
      defineTool,
      { ...tool, timeout: 5, retries: 2 },
      'tool look_up: timeout is no field that there is; retries is',
    ],
    [defineTool, { ...tool, sideEffect: {} }, 'tool look_up: sideEffect.key is missing'],
    [defineTool, { ...tool, sideEffect: 'x' }, 'tool look_up: sideEffect must be an object'],
    [definePlugin, {}, 'a plugin: name is missing'],
    [definePlugin, { name: 'p', priority: 'first' }, 'plugin p: priority must be a number'],
    [definePlugin, { name: 'p', before: () => {} }, 'plugin p: before is no field that there is'],
    [defineAgent, {}, 'agent: name is missing; instruction is missing'],
    [defineAgent, { ...agent, tools: {} }, 'agent desk: tools must be a list'],
    [
      defineAgent,
      { ...agent, tools: Array.from({ length: 129 }, (_, at) => defineTool({ ...tool, name: `t${at}` })) },
      'agent desk: tools has more than 128 entries',
    ],
    [defineAgent, { ...agent, greeting: '' }, 'agent desk: greeting is empty'],
    [defineAgent, limits({ maxTurns: 0 }), 'agent desk: runConfig.limits.maxTurns must be 1 or more'],
    [defineAgent, limits({ maxMinutes: 0 }), 'agent desk: runConfig.limits.maxMinutes must be above 0'],
    [defineAgent, limits({ minutes: 1 }), 'agent desk: runConfig.limits.minutes is no field that there is'],
    [
      defineAgent,
      { ...agent, runConfig: { toolResponses: 'all' } },
      'agent desk: runConfig.toolResponses must be group or each',
    ],
  ] as const)('%o of %j is told in plain words', (define, definition, told) => {
    const said = refusal(define, definition);
    expect(said).toContain(told);
    expect(said).not.toMatch(/Invalid|expected|received|Unrecognized|Too (?:small|big)|\n/);
  });
});
