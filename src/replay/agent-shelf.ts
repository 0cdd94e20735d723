/**
 * The agents that fixtures name, each loaded once however many calls it answers.
 */
import { dirname, join, resolve } from 'node:path';
import { type AgentCatalog, loadAgents } from '../agent/agent-catalog.js';
import { systemClock } from '../clock.js';
import { AppError, FixtureError } from '../errors.js';
import type { Fixture } from '../fixture/fixture-format.js';
import { silentLog } from '../observe/log.js';
import { PACKAGE_ROOT } from '../package-root.js';

export class AgentShelf {
  readonly #catalogs = new Map<string, Promise<AgentCatalog>>();

  /**
   * A path in a fixture is seen from the file.
   * @throws FixtureError `fixture_invalid` for an agent of the file's that cannot be loaded; for another it is ConfigError.
   */
  async of(fixture: Fixture, override?: string): Promise<AgentCatalog> {
    const named = fixture.header.agent;
    const selected = override ?? (/[/\\]/.test(named) ? resolve(dirname(fixture.path), named) : named);
    const folder = join(PACKAGE_ROOT, 'agents');
    const catalog =
      this.#catalogs.get(selected) ?? loadAgents({ selected, folder, clock: systemClock, log: silentLog });
    this.#catalogs.set(selected, catalog);
    try {
      return await catalog;
    } catch (error) {
      if (override !== undefined || !(error instanceof AppError)) throw error;
      throw new FixtureError('fixture_invalid', `${fixture.path}:1: agent: ${error.message}`, {
        cause: error,
      });
    }
  }
}
