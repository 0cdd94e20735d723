/**
 * The agents that can answer: the modules of `agents/`, and the one that the operator named, loaded once at start.
 */
import { existsSync, readdirSync } from 'node:fs';
import { basename, extname, isAbsolute, join, resolve } from 'node:path';
import type { Clock } from '../clock.js';
import { ConfigError, errorText } from '../errors.js';
import { AGENT_LOAD_SLOW_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { Agent } from './agent.js';
import { loadAgent } from './agent-module.js';

const MODULE_ENDINGS = new Set(['.ts', '.mts', '.js', '.mjs']);

export interface AgentCatalog {
  readonly default: Agent;
  /** The agent of that file name under `agents/`, or undefined. */
  find(name: string): Agent | undefined;
  /** The agent of that own name, by which its sessions are kept. */
  named(name: string): Agent | undefined;
  /** Every agent that was loaded, the default among them. */
  readonly all: readonly Agent[];
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
    const slow = clock.setTimer(AGENT_LOAD_SLOW_MS, () => {
      log.warn(
        { module: file },
        'an agent module takes long to load: the server waits for what it awaits at its top level',
      );
    });
    const agent = await loadAgent(file, clock).finally(() => slow.cancel());
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
  const all = [...new Set([chosen, ...agents.values()])];
  return {
    default: chosen,
    find: (name) => agents.get(name) ?? (name === chosen.name ? chosen : undefined),
    named: (name) => all.find((agent) => agent.name === name),
    all,
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
