/** Every call in `fixtures/calls` goes as it is written there: all that the server says on each leg, to the byte. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AgentCatalog, loadAgents } from '../../src/agent/agent-catalog.js';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { silentLog } from '../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { dialogueDiff } from '../../src/replay/dialogue-diff.js';
import { compareReplay } from '../../src/replay/replay-comparison.js';
import { replay } from '../../src/replay/replay.js';
import { systemClock } from '../../src/clock.js';

const FOLDER = join(PACKAGE_ROOT, 'fixtures', 'calls');
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.ndjson'));

let agents: AgentCatalog;

beforeAll(async () => {
  const folder = join(PACKAGE_ROOT, 'agents');
  agents = await loadAgents({ selected: 'support', folder, clock: systemClock, log: silentLog });
});

describe('a call goes as its fixture says', () => {
  it.each(FILES)('%s', async (name) => {
    const fixture = await readFixture(join(FOLDER, name));
    const { lines, unsaid } = await replay(fixture, { agents });
    const comparison = compareReplay(fixture.lines, lines);
    expect(dialogueDiff(fixture.lines, comparison)).toBe('');
    expect(unsaid).toEqual([]);
  });
});
