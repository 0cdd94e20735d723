/** `--update` keeps what the outside does as it was written, and a replay is the same to the byte each time. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FixtureLine } from '../../src/fixture/fixture-format.js';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { renewFixture } from '../../src/replay/fixture-renewal.js';
import { compareReplay } from '../../src/replay/replay-comparison.js';
import { replay } from '../../src/replay/replay.js';

const FIXTURES = join(PACKAGE_ROOT, 'fixtures');
const CALLS = (await readdir(join(FIXTURES, 'calls'))).filter((name) => name.endsWith('.ndjson'));
/** One of each kind: sounds by name, keys, a lost line, REST, a stopped reader, operators. */
const WRITTEN_BY_HAND = [
  'barge-in-mid-sentence.ndjson',
  'keypad.ndjson',
  'lost-line.ndjson',
  'line-is-not-cut.ndjson',
  'carrier-does-not-read.ndjson',
  'malformed-frames.ndjson',
  'operators-look.ndjson',
];
const shelf = new AgentShelf();

function isMark(line: FixtureLine): boolean {
  return line.leg === 'phone' && line.message?.['event'] === 'mark';
}

function fromOutside(lines: readonly FixtureLine[]): FixtureLine[] {
  return lines.filter((line) => line.dir === 'in' && !isMark(line));
}

/** Whose replay takes longest; they differ from others in length alone. */
const LONG = new Set(['ten-minutes.ndjson', 'forty-minutes.ndjson', 'drain.ndjson', 'endless-answer.ndjson']);

describe('a replay', () => {
  it.each(CALLS.filter((name) => !LONG.has(name)))('is the same to the byte: %s', async (name) => {
    const fixture = await readFixture(join(FIXTURES, 'calls', name));
    const agents = await shelf.of(fixture);
    const once = await replay(fixture, { agents });
    const again = await replay(fixture, { agents });
    expect(JSON.stringify(again)).toBe(JSON.stringify(once));
  });

  it('does not depend on another that runs beside it', async () => {
    const names = ['question-and-answer.ndjson', 'keypad.ndjson', 'drain-without-waiting.ndjson'];
    const fixtures = await Promise.all(names.map((name) => readFixture(join(FIXTURES, 'calls', name))));
    const results = await Promise.all(
      fixtures.map(async (fixture) => replay(fixture, { agents: await shelf.of(fixture) })),
    );
    for (const [index, { lines }] of results.entries()) {
      expect(compareReplay(fixtures[index]?.lines ?? [], lines, 'by hand').differences).toBe(0);
    }
  });

  it('goes red when a line from outside is left out, and tells which could not be said', async () => {
    const fixture = await readFixture(join(FIXTURES, 'calls', 'greeting-and-goodbye.ndjson'));
    const agents = await shelf.of(fixture);
    const lines = fixture.lines.filter((line) => !(line.leg === 'model' && line.open === true));
    const { lines: told, unsaid } = await replay({ ...fixture, lines }, { agents });
    expect(compareReplay(fixture.lines, told, 'by hand').differences).toBeGreaterThan(0);
    expect(unsaid.some((line) => line.leg === 'rest')).toBe(true);
  });
});

describe('an update', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'earshot-renewal-'));
    // Sounds and agents are named by where they are, seen from the file.
    await cp(join(FIXTURES, 'callers'), join(folder, 'callers'), { recursive: true });
    await cp(join(FIXTURES, 'calls'), join(folder, 'calls'), { recursive: true });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function update(path: string): Promise<string> {
    const fixture = await readFixture(path);
    await renewFixture(fixture, await shelf.of(fixture));
    return readFile(path, 'utf8');
  }

  it.each(WRITTEN_BY_HAND)(
    'of %s, whose own lines were thrown away, brings back the very same file',
    async (name) => {
      const path = join(folder, 'calls', name);
      const shipped = await readFile(path, 'utf8');
      const [header = '', ...rows] = shipped.trimEnd().split('\n');
      const bare = rows.filter((row) => {
        const line = JSON.parse(row) as FixtureLine;
        return line.dir === 'in' && !isMark(line);
      });
      await writeFile(path, `${[header, ...bare].join('\n')}\n`);
      const once = await update(path);
      expect(once).toBe(shipped);
      expect(await update(path)).toBe(once);
    },
  );

  it('keeps every line from outside, and its play and say as they were written', async () => {
    const path = join(folder, 'calls', 'barge-in-after-generation.ndjson');
    const before = await readFixture(path);
    await update(path);
    const after = await readFixture(path);
    expect(fromOutside(after.lines)).toEqual(fromOutside(before.lines));
    expect(after.header).toEqual(before.header);
    expect(after.lines.some((line) => line.leg === 'phone' && line.play !== undefined)).toBe(true);
    expect(after.lines.some((line) => line.leg === 'model' && line.say !== undefined)).toBe(true);
  });

  it('of a fixture that cannot be replayed leaves the file as it was, and nothing beside it', async () => {
    const path = join(folder, 'calls', 'hangs-up-mid-word.ndjson');
    const text = (await readFile(path, 'utf8')).replace('{"silenceMs":1900}', '{"file":"gone.wav"}');
    await writeFile(path, text);
    await expect(update(path)).rejects.toThrow('gone.wav');
    expect(await readFile(path, 'utf8')).toBe(text);
    expect((await readdir(join(folder, 'calls'))).filter((name) => name.endsWith('.new'))).toEqual([]);
  });
});
