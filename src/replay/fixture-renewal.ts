/**
 * Writes into a fixture what the server does now. What the outside does in it stays as it was written, but for the
 * carrier's marks: they follow from what the server sends.
 */
import { rename, stat, writeFile } from 'node:fs/promises';
import type { AgentCatalog } from '../agent/agent-catalog.js';
import type { Fixture, FixtureLine } from '../fixture/fixture-format.js';
import { packageVersion } from '../package-root.js';
import { replay } from './replay.js';

/** @throws FixtureError `fixture_invalid`, and what the file system throws. */
export async function renewFixture(fixture: Fixture, agents: AgentCatalog): Promise<void> {
  await write(fixture, await renewed(fixture, agents));
}

/** Replaces the file's outgoing lines, whole or not at all. */
async function write(fixture: Fixture, lines: readonly FixtureLine[]): Promise<void> {
  const header = { ...fixture.header, server: packageVersion() };
  const { mode } = await stat(fixture.path);
  const text = [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
  const unfinished = `${fixture.path}.new`;
  await writeFile(unfinished, text, { mode });
  await rename(unfinished, fixture.path);
}

/** The call's lines as they are now: first with a phone that plays and returns its marks, then, with these marks as lines
 * of the file, exactly as later replays will go. */
async function renewed(fixture: Fixture, agents: AgentCatalog): Promise<readonly FixtureLine[]> {
  const played = await replay(fixture, { agents, playsMarks: true });
  const incoming = played.lines.filter(({ dir }) => dir === 'in');
  return (await replay({ ...fixture, lines: incoming }, { agents })).lines;
}
