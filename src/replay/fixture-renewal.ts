/**
 * Writes into a fixture what the server does now. What the outside does in it stays as it was written, but for the
 * carrier's marks: they follow from what the server sends.
 */
import { rename, stat, writeFile } from 'node:fs/promises';
import type { AgentCatalog } from '../agent/agent-catalog.js';
import type { Fixture, FixtureLine } from '../fixture/fixture-format.js';
import { packageVersion } from '../package-root.js';
import { replay, type ReplayResult } from './replay.js';

/** What is in the file now, and the lines from outside in it that nobody hears. */
export type Renewal = Pick<ReplayResult, 'lines' | 'unsaid'>;

/** @throws FixtureError `fixture_invalid`, and what the file system throws. */
export async function renewFixture(fixture: Fixture, agents: AgentCatalog): Promise<Renewal> {
  const renewal = await renewed(fixture, agents);
  await write(fixture, renewal.lines);
  return renewal;
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
 * of the file, exactly as later replays will go. A recording stays as long as it was, and says that it is cut. */
async function renewed(fixture: Fixture, agents: AgentCatalog): Promise<Renewal> {
  const cut = fixture.lines.find((line) => line.leg === 'call' && line.truncated !== undefined);
  const untilMs = cut?.at ?? Infinity;
  const kept = (lines: readonly FixtureLine[]): FixtureLine[] => lines.filter(({ at }) => at <= untilMs);
  const played = await replay(fixture, { agents, playsMarks: true });
  const incoming = kept(played.lines).filter(({ dir }) => dir === 'in');
  const { lines, unsaid } = await replay({ ...fixture, lines: incoming }, { agents });
  return { lines: cut === undefined ? lines : [...kept(lines), cut], unsaid: kept(unsaid) };
}
