/**
 * One agent's module, loaded: by the server once at its start, and once by each worker thread that runs a tool of it.
 * TypeScript and plain JavaScript both load; an agent module sees the package's face as `earshot`.
 */
import { existsSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';
import type { Clock } from '../clock.js';
import { ConfigError, errorText } from '../errors.js';
import { AGENT_LOAD_MAX_MS } from '../limits.js';
import { type Agent, isAgent } from './agent.js';

/** Its default export. Rejects with a ConfigError that names the file and what is wrong with it. */
export async function loadAgent(file: string, clock: Clock): Promise<Agent> {
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
