/**
 * One agent's module, loaded: by the server once at its start, and once by each worker thread that runs a tool of it.
 * TypeScript and plain JavaScript both load; an agent module sees the package's face as `earshot`.
 */
import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';
import type { Clock } from '../clock.js';
import { ConfigError, errorText } from '../errors.js';
import { isInstance, placeOf, textOf } from '../foreign.js';
import { AGENT_LOAD_MAX_MS } from '../limits.js';
import { type Agent, isAgent } from './agent.js';

/** Its default export. Rejects with a ConfigError that names the file and what is wrong with it. */
export async function loadAgent(file: string, clock: Clock): Promise<Agent> {
  if (!existsSync(file) || !statSync(file).isFile())
    throw new ConfigError('agent_invalid', `there is no agent module at ${file}`);
  const jiti = createJiti(import.meta.url, { alias: aliasesFor(file), fsCache: false });
  let exported: unknown;
  try {
    exported = await withinTime(clock, jiti.import(file, { default: true }));
  } catch (error) {
    throw new ConfigError('agent_invalid', `agent module ${file}: ${whyOf(error)}`, { cause: error });
  }
  if (isAgent(exported)) return exported;
  throw new ConfigError(
    'agent_invalid',
    `agent module ${file}: its default export is not from defineAgent(…)`,
  );
}

/** The package's face is ours. So is zod where the module has none: it may lie anywhere, and its tools need one. */
function aliasesFor(file: string): Record<string, string> {
  const ownExtension = extname(import.meta.url);
  const face = fileURLToPath(new URL(`../index${ownExtension}`, import.meta.url));
  if (hasPackage(file, 'zod')) return { earshot: face };
  const zod = dirname(createRequire(import.meta.url).resolve('zod/package.json'));
  return { earshot: face, zod };
}

function hasPackage(file: string, name: string): boolean {
  try {
    createRequire(resolve(file)).resolve(name);
    return true;
  } catch (error) {
    // One that is there, and refuses to be found in this way, is there.
    return textOf(error, 'code') !== 'MODULE_NOT_FOUND';
  }
}

/** In one line: what is wrong, and where the loader, or the stack of what was thrown, knows it. */
function whyOf(error: unknown): string {
  const [what = '', ...rest] = errorText(error)
    .split('\n')
    .map((line) => line.trim());
  if (isInstance(error, Overdue)) return what;
  // A module that cannot be read is told in a line, and its place in the next.
  const place = rest.find((line) => /^\S.*:\d+:\d+$/.test(line)) ?? placeOf(error);
  return place === undefined ? what : `${what}, at ${place}`;
}

/** Thrown by us, and in none of its lines. */
class Overdue extends Error {}

/** A module may wait for something at its top level, but not for ever. */
function withinTime(clock: Clock, loading: Promise<unknown>): Promise<unknown> {
  return new Promise((loaded, reject) => {
    const timer = clock.setTimer(AGENT_LOAD_MAX_MS, () => {
      reject(
        new Overdue(
          `it did not finish loading within ${AGENT_LOAD_MAX_MS / 1000} s: what it awaits at its top level has not ended`,
        ),
      );
    });
    loading.then(loaded, reject).finally(() => timer.cancel());
  });
}
