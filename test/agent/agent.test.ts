import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defineAgent, definePlugin, defineTool } from '../../src/agent/agent.js';
import { loadAgents } from '../../src/agent/agent-catalog.js';
import { systemClock } from '../../src/clock.js';
import { ConfigError } from '../../src/errors.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { silentLog } from '../../src/observe/log.js';

describe('defineAgent', () => {
  it.each([
    [{ name: 'a b', instruction: 'x' }, 'name'],
    [{ name: 'a', instruction: '' }, 'instruction'],
    [{ name: 'a', instruction: 'x', greeting: '  ' }, 'greeting'],
    [{ name: 'a', instruction: 'x', tools: [{}] }, 'not built yet'],
    [{ name: 'a', instruction: 'x', plugins: [] }, 'not built yet'],
    [{ name: 'a', instruction: 'x', onDisconnect: () => {} }, 'not built yet'],
    [{ name: 'a', instruction: 'x', beforeTool: () => {} }, 'not built yet'],
    [{ name: 'a', instruction: 'x', afterTool: () => {} }, 'not built yet'],
    [{ name: 'a', instruction: 'x', guardTimeoutMs: 3000 }, 'guardTimeoutMs is not built yet'],
    [{ name: 'a', instruction: 'x', maxConcurrentTools: 4 }, 'maxConcurrentTools is not built yet'],
    [{ name: 'a', instruction: 'x', runConfig: { handoff: 'warm' } }, 'runConfig.handoff is not built yet'],
    [{ name: 'a', instruction: 'x', runConfig: { guardTimeoutMs: 3000 } }, 'not built yet'],
    [{ name: 'a', instruction: 'x', runConfig: { maxConcurrentTools: 4 } }, 'not built yet'],
    [{ name: 'a', instruction: 'x', voice: 'Kore' }, 'voice'],
    [{ name: 'a', instruction: 'x', runConfig: { speechConfig: { voice: 'Kore' } } }, 'speechConfig'],
    [undefined, 'agent'],
  ])('refuses %j, naming what is wrong', (definition, named) => {
    expect(() => defineAgent(definition as never)).toThrow(
      expect.objectContaining({ code: 'agent_invalid' }),
    );
    expect(() => defineAgent(definition as never)).toThrow(named);
  });

  it('gives back what it was given, frozen', () => {
    const agent = defineAgent({ name: 'desk', instruction: 'Serve.', tools: [] });
    expect(agent).toMatchObject({ name: 'desk', instruction: 'Serve.' });
    expect(Object.isFrozen(agent)).toBe(true);
  });
});

describe('what an agent module may name but not use yet', () => {
  it.each([
    ['defineTool', () => defineTool({ name: 'look_up', description: 'Looks up.', execute: () => ({}) })],
    ['definePlugin', () => definePlugin({ name: 'audit' })],
  ])('%s says that it is not built yet', (name, define) => {
    expect(define).toThrow(ConfigError);
    expect(define).toThrow(expect.objectContaining({ code: 'agent_invalid' }));
    expect(define).toThrow(new RegExp(`^${name}: .* are not built yet in this version$`));
  });
});

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
    [toolUser, 'defineTool: tools are not built yet'],
    [join(folder, 'foreign.mjs'), 'defineAgent'],
  ])('does not start with %s as its agent', async (selected, named) => {
    const loading = loadAgents({ clock: systemClock, selected, folder, log: silentLog });
    await expect(loading).rejects.toBeInstanceOf(ConfigError);
    await expect(loading).rejects.toThrow(named);
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
