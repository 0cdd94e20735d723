import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { loadAgents } from '../../src/agent/agent-catalog.js';
import { definePlugin } from '../../src/agent/plugin.js';
import { defineTool } from '../../src/agent/tool.js';
import { systemClock } from '../../src/clock.js';
import { ConfigError } from '../../src/errors.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { silentLog } from '../../src/observe/log.js';

const look = defineTool({ name: 'look_up', description: 'Looks up.', execute: () => ({}) });
const audit = definePlugin({ name: 'audit' });

describe('defineAgent', () => {
  it.each([
    [{ name: 'a b', instruction: 'x' }, 'agent "a b": name must be 1 to 64 letters'],
    [{ name: 'a', instruction: '' }, 'agent a: instruction must be text'],
    [{ name: 'a', instruction: 7 }, 'agent a: instruction must be text'],
    [{ name: 'a', instruction: 'x', greeting: '  ' }, 'agent a: greeting'],
    [{ name: 'a', instruction: 'x', tools: [{}] }, 'agent a: tools.0 is not from defineTool'],
    [{ name: 'a', instruction: 'x', tools: [look, null] }, 'agent a: tools.1 is not from defineTool'],
    [{ name: 'a', instruction: 'x', tools: [look, look] }, 'agent a: tools have the name look_up twice'],
    [
      { name: 'a', instruction: 'x', tools: [defineTool({ ...definition('end_call') })] },
      'agent a: tools have the name end_call, which is built in',
    ],
    [
      { name: 'a', instruction: 'x', tools: [defineTool({ ...definition('stop_streaming') })] },
      'agent a: tools have the name stop_streaming, which is built in',
    ],
    [{ name: 'a', instruction: 'x', plugins: [{}] }, 'agent a: plugins.0 is not from definePlugin'],
    [{ name: 'a', instruction: 'x', onDisconnect: 'never' }, 'agent a: onDisconnect must be a function'],
    [{ name: 'a', instruction: 'x', beforeTool: {} }, 'agent a: beforeTool must be a function'],
    [{ name: 'a', instruction: 'x', afterTool: 1 }, 'agent a: afterTool must be a function'],
    [{ name: 'a', instruction: 'x', guardTimeoutMs: 3000 }, 'guardTimeoutMs'],
    [{ name: 'a', instruction: 'x', maxConcurrentTools: 4 }, 'maxConcurrentTools'],
    [{ name: 'a', instruction: 'x', runConfig: { handoff: 'warm' } }, 'warm and queue are not built yet'],
    [{ name: 'a', instruction: 'x', runConfig: { guardTimeoutMs: 0 } }, 'agent a: runConfig.guardTimeoutMs'],
    [
      { name: 'a', instruction: 'x', runConfig: { maxConcurrentTools: 0 } },
      'agent a: runConfig.maxConcurrentTools',
    ],
    [
      { name: 'a', instruction: 'x', runConfig: { toolResponses: 'some' } },
      'agent a: runConfig.toolResponses',
    ],
    [{ name: 'a', instruction: 'x', runConfig: { userScopes: [] } }, 'agent a: runConfig.userScopes'],
    [{ name: 'a', instruction: 'x', runConfig: { limits: { maxTurns: 0 } } }, 'runConfig.limits.maxTurns'],
    [{ name: 'a', instruction: 'x', voice: 'Kore' }, 'voice'],
    [{ name: 'a', instruction: 'x', runConfig: { speechConfig: { voice: 'Kore' } } }, 'speechConfig'],
    [undefined, 'agent: '],
  ])('refuses %j in one line that names what is wrong', (given, named) => {
    const refused = (): unknown => defineAgent(given as never);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(expect.objectContaining({ code: 'agent_invalid' }));
    expect(refused).toThrow(named);
    expect(refused).toThrow(/^.*$/);
  });

  it('gives back what it was given, frozen', () => {
    const runConfig = { limits: { maxTurns: 3 } };
    const agent = defineAgent({
      name: 'desk',
      instruction: 'Serve.',
      tools: [look],
      plugins: [audit],
      runConfig,
    });
    expect(agent).toMatchObject({ name: 'desk', instruction: 'Serve.', tools: [look], plugins: [audit] });
    expect(Object.isFrozen(agent)).toBe(true);
    expect(Object.isFrozen(agent.runConfig?.limits)).toBe(true);
  });
});

function definition(name: string) {
  return { name, description: 'Does it.', execute: () => ({}) };
}

describe('the catalog', () => {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-agents-'));
  const write = (file: string, source: string): string => {
    writeFileSync(join(folder, file), source);
    return join(folder, file);
  };
  write(
    'good.mjs',
    "import { defineAgent } from 'earshot';\nexport default defineAgent({ name: 'good', instruction: 'x' });\n",
  );
  write(
    'typed.ts',
    "import { defineAgent } from 'earshot';\nconst name: string = 'typed';\nexport default defineAgent({ name, instruction: 'x' });\n",
  );
  const toolUser = join(mkdtempSync(join(tmpdir(), 'earshot-agent-')), 'tool-user.mjs');
  writeFileSync(
    toolUser,
    "import { defineTool } from 'earshot';\nexport const tool = defineTool({ name: 'x' });\n",
  );
  const withTools = [
    "import { defineAgent, definePlugin, defineTool, NothingDone } from 'earshot';",
    "import { z } from 'zod';",
    'const parameters = z.object({ symbol: z.string() });',
    "const watch = defineTool({ name: 'watch', description: 'Watches.', parameters, execute: async function* ({ symbol }) { yield symbol; } });",
    "const slow = defineTool({ name: 'slow', description: 'Is slow.', longRunning: true, execute: async () => { throw new NothingDone('x'); } });",
    "export default defineAgent({ name: 'NAME', instruction: 'x', tools: [watch, slow], plugins: [definePlugin({ name: 'p' })] });",
  ].join('\n');
  // With the packages beside it, as an author's module is.
  const authors = mkdtempSync(join(tmpdir(), 'earshot-authors-'));
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(authors, 'node_modules'));
  for (const ending of ['mjs', 'ts'])
    writeFileSync(join(authors, `kinds-${ending}.${ending}`), withTools.replace('NAME', `kinds-${ending}`));
  afterAll(() => rmSync(authors, { recursive: true }));
  write('broken.mjs', 'export default {;\n');
  write('foreign.mjs', "export default { name: 'foreign' };\n");
  write('notes.txt', 'not an agent');

  it('loads every agent of the folder and leaves out, loudly, what cannot be loaded', async () => {
    const warned: object[] = [];
    const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) };
    const catalog = await loadAgents({ clock: systemClock, selected: 'good', folder, log });
    expect(catalog.default.name).toBe('good');
    expect(catalog.names).toEqual(['good', 'typed']);
    expect(catalog.find('typed')?.name).toBe('typed');
    expect(catalog.find('broken')).toBeUndefined();
    expect(warned).toMatchObject([{ agent: 'broken' }, { agent: 'foreign' }]);
  });

  it.each([
    ['broken', 'broken.mjs'],
    ['foreign', 'defineAgent'],
    ['nobody', 'AGENT'],
    [join(folder, 'missing.mjs'), 'missing.mjs'],
    [toolUser, 'tool x: description'],
    [join(folder, 'foreign.mjs'), 'defineAgent'],
  ])('does not start with %s as its agent', async (selected, named) => {
    const loading = loadAgents({ clock: systemClock, selected, folder, log: silentLog });
    await expect(loading).rejects.toBeInstanceOf(ConfigError);
    await expect(loading).rejects.toThrow(named);
  });

  it.each(['mjs', 'ts'])('knows the kind of each tool of a module in .%s', async (ending) => {
    const selected = join(authors, `kinds-${ending}.${ending}`);
    const catalog = await loadAgents({ clock: systemClock, selected, folder, log: silentLog });
    expect(catalog.default.tools?.map(({ name, kind }) => [name, kind])).toEqual([
      ['watch', 'streaming'],
      ['slow', 'longRunning'],
    ]);
  });

  it('loads every agent that ships', async () => {
    const warned: object[] = [];
    const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) };
    const catalog = await loadAgents({
      clock: systemClock,
      selected: 'support',
      folder: join(PACKAGE_ROOT, 'agents'),
      log,
    });
    expect(catalog.default.name).toBe('support');
    expect(warned).toEqual([]);
  });
});
