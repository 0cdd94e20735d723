/**
 * The agents that fixtures name, each loaded once however many calls it answers.
 */
import { dirname, join, resolve } from 'node:path';
import { type AgentCatalog, loadAgents } from '../agent/agent-catalog.js';
import { systemClock } from '../clock.js';
import type { Fixture } from '../fixture/fixture-format.js';
import { silentLog } from '../observe/log.js';
import { PACKAGE_ROOT } from '../package-root.js';

export class AgentShelf {
  readonly #catalogs = new Map<string, Promise<AgentCatalog>>();

  /** A path in a fixture is seen from the file. @throws ConfigError for an agent that cannot be loaded. */
  of(fixture: Fixture, override?: string): Promise<AgentCatalog> {
    const named = fixture.header.agent;
    const selected = override ?? (/[/\\]/.test(named) ? resolve(dirname(fixture.path), named) : named);
    const folder = join(PACKAGE_ROOT, 'agents');
    const catalog =
      this.#catalogs.get(selected) ?? loadAgents({ selected, folder, clock: systemClock, log: silentLog });
    this.#catalogs.set(selected, catalog);
    return catalog;
  }
}
