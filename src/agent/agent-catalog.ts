/**
 * The agents that can answer: the modules of `agents/`, and the one that the operator named, loaded once at start.
 * TypeScript and plain JavaScript both load; an agent module sees the package's face as `earshot`.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, extname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';
import type { Clock } from '../clock.js';
import { ConfigError, errorText } from '../errors.js';
import { AGENT_LOAD_MAX_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import { type Agent, isAgent } from './agent.js';

const MODULE_ENDINGS = new Set(['.ts', '.mts', '.js', '.mjs']);

export interface AgentCatalog {
  readonly default: Agent;
  /** The agent of that file name under `agents/`, or undefined. */
  find(name: string): Agent | undefined;
  readonly names: readonly string[];
  /** The module of each agent, by the agent's own name; what belongs to an agent lies beside it. */
  readonly modules: ReadonlyMap<string, string>;
}

export interface CatalogOptions {
  /** `AGENT`: a name under `folder`, or a path. */
  readonly selected: string;
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Loads every agent. A broken default is a ConfigError; another broken one is logged and cannot be called. */
export async function loadAgents(options: CatalogOptions): Promise<AgentCatalog> {
  const { selected, folder, log, clock } = options;
  const agents = new Map<string, Agent>();
  const modules = new Map<string, string>();
  const load = async (file: string): Promise<Agent> => {
    const agent = await loadAgent(file, clock);
    modules.set(agent.name, file);
    return agent;
  };
  const isPath = isAbsolute(selected) || MODULE_ENDINGS.has(extname(selected)) || selected.includes('/');
  for (const file of agentFiles(folder)) {
    const name = basename(file, extname(file));
    try {
      agents.set(name, await load(file));
    } catch (error) {
      if (!isPath && name === selected) throw error;
      log.warn({ agent: name, cause: errorText(error) }, 'an agent could not be loaded and cannot be called');
    }
  }
  const chosen = isPath ? await load(resolve(selected)) : agents.get(selected);
  if (chosen === undefined) {
    const known = [...agents.keys()].join(', ') || 'none';
    throw new ConfigError(
      'config_invalid',
      `AGENT names no agent: there is no ${selected} under agents/ (${known})`,
    );
  }
  return {
    default: chosen,
    find: (name) => agents.get(name) ?? (name === chosen.name ? chosen : undefined),
    names: [...agents.keys()],
    modules,
  };
}

function agentFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => MODULE_ENDINGS.has(extname(file)) && !file.endsWith('.d.ts'))
    .sort()
    .map((file) => join(folder, file));
}

async function loadAgent(file: string, clock: Clock): Promise<Agent> {
  if (!existsSync(file) || !statSync(file).isFile())
    throw new ConfigError('agent_invalid', `there is no agent module at ${file}`);
  const ownExtension = extname(import.meta.url);
  const face = fileURLToPath(new URL(`../index${ownExtension}`, import.meta.url));
  const jiti = createJiti(import.meta.url, { alias: { earshot: face }, fsCache: false });
  let exported: unknown;
  try {
    exported = await withinTime(clock, jiti.import(file, { default: true }));
  } catch (error) {
    const [firstLine] = errorText(error).split('\n');
    throw new ConfigError('agent_invalid', `agent module ${file}: ${firstLine ?? ''}`, { cause: error });
  }
  if (isAgent(exported)) return exported;
  throw new ConfigError(
    'agent_invalid',
    `agent module ${file}: its default export is not from defineAgent(…)`,
  );
}

/** A module may wait for something at its top level, but not for ever. */
function withinTime(clock: Clock, loading: Promise<unknown>): Promise<unknown> {
  return new Promise((loaded, reject) => {
    const timer = clock.setTimer(AGENT_LOAD_MAX_MS, () => {
      reject(new Error(`it did not finish loading within ${AGENT_LOAD_MAX_MS / 1000} s`));
    });
    loading.then(loaded, reject).finally(() => timer.cancel());
  });
}
