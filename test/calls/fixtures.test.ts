/** Every call in `fixtures/calls` goes as it is written there: all that the server says on each leg, to the byte. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { dialogueDiff } from '../../src/replay/dialogue-diff.js';
import { compareReplay } from '../../src/replay/replay-comparison.js';
import { replay } from '../../src/replay/replay.js';

const FOLDER = join(PACKAGE_ROOT, 'fixtures', 'calls');
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.ndjson'));

const shelf = new AgentShelf();

describe('a call goes as its fixture says', () => {
  it.each(FILES)('%s', async (name) => {
    const fixture = await readFixture(join(FOLDER, name));
    const { lines, unsaid } = await replay(fixture, { agents: await shelf.of(fixture) });
    const comparison = compareReplay(fixture.lines, lines, fixture.header.made);
    expect(dialogueDiff(fixture.lines, comparison)).toBe('');
    expect(unsaid).toEqual([]);
  });
});
