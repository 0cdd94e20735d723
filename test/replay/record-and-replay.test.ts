/**
 * A call recorded from the running server over real sockets replays green at once, and red with a precise diff when the
 * server behaves otherwise.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { readConfig } from '../../src/config.js';
import type { Fixture, FixtureHeader, FixtureLine } from '../../src/fixture/fixture-format.js';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { silentLog } from '../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { dialogueDiff } from '../../src/replay/dialogue-diff.js';
import { Phone } from '../../src/replay/phone.js';
import { type Comparison, compareReplay } from '../../src/replay/replay-comparison.js';
import { replay } from '../../src/replay/replay.js';
import { readCallerSound } from '../../src/replay/sound-file.js';
import { startServer } from '../../src/server.js';
import { ScriptedGemini } from '../support/scripted-gemini.js';

const FROM = '+493012345678';
const PRIVATE_KEYS = ['8', '3', '9'];
const MULAW_BYTES_PER_MS = 8;

let folder: string;
let recorded: Fixture;
let text: string;
let callSid: string;
let files: string[];

/** The agent greets, the caller keys something in, speaks into the answer and hangs up while the agent speaks. */
async function placeCall(dataDir: string): Promise<string> {
  const config = readConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    DATABASE_URL: `sqlite:${join(dataDir, 'earshot.db')}`,
    RECORD_CALLS: 'fixture',
    GREETING_PROTECTION_SECONDS: '0.5',
  });
  const server = await startServer(config, { clock: systemClock, log: silentLog });
  const sound = await readCallerSound(join(PACKAGE_ROOT, 'fixtures', 'callers', 'barge-in.wav'));
  const phone = new Phone({
    clock: systemClock,
    url: server.url,
    from: FROM,
    parameters: { CallerName: 'ERIKA MUSTERMANN', FromCity: 'KOELN' },
    voice: sound.subarray(17_000 * MULAW_BYTES_PER_MS, 20_000 * MULAW_BYTES_PER_MS),
    keys: PRIVATE_KEYS.map((digit, index) => ({ atMs: 3_600 + 400 * index, digit })),
  });
  const over = phone.call();
  // The end of the call is a place in it and not a time: mid-word of what the agent says after the last key.
  while (phone.elapsedMs < 6_000) {
    await new Promise<void>((resolve) => {
      systemClock.setTimer(20, resolve);
    });
  }
  phone.hangUp();
  await over;
  await server.close();
  return phone.callSid;
}

/** The call is what it is said to be only where the caller's words met the greeting: on a machine that is busy enough they may not. */
function isGreetingCut({ lines }: Fixture): boolean {
  const heard = lines.flatMap((line) =>
    line.leg === 'call' && line.heard !== undefined ? [line.heard] : [],
  );
  return heard.find(({ role }) => role === 'model')?.interrupted === true;
}

beforeAll(async () => {
  for (let tries = 1; tries <= 3; tries += 1) {
    folder = await mkdtemp(join(tmpdir(), 'earshot-record-'));
    callSid = await placeCall(folder);
    files = await readdir(join(folder, 'recordings'));
    recorded = await recordingIn(folder);
    text = await readFile(recorded.path, 'utf8');
    if (isGreetingCut(recorded) || tries === 3) break;
    await rm(folder, { recursive: true, force: true });
  }
}, 90_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The one recording in a server's folder. */
async function recordingIn(dataDir: string): Promise<Fixture> {
  const [name = ''] = await readdir(join(dataDir, 'recordings'));
  return readFixture(join(dataDir, 'recordings', name));
}

async function replayed(change: { header?: Partial<FixtureHeader>; agent?: string }): Promise<Comparison> {
  const fixture = { ...recorded, header: { ...recorded.header, ...change.header } };
  const agents = await new AgentShelf().of(fixture, change.agent);
  const { lines } = await replay(fixture, { agents });
  return compareReplay(fixture.lines, lines, fixture.header.made);
}

function told(comparison: Comparison): string[] {
  return dialogueDiff(recorded.lines, comparison).split('\n');
}

function has(what: (line: FixtureLine) => boolean): boolean {
  return recorded.lines.some(what);
}

describe('a call that was recorded over real sockets', () => {
  it('holds the whole call: sound both ways, keys, a barge-in, the hang-up and what was heard', () => {
    expect(files).toHaveLength(1);
    expect(recorded.header).toMatchObject({ made: 'recorded', agent: 'support', door: 'developer' });
    expect(has((line) => line.leg === 'phone' && line.sound !== undefined)).toBe(true);
    expect(has((line) => line.leg === 'model' && line.sound !== undefined)).toBe(true);
    expect(has((line) => line.leg === 'phone' && line.message?.['event'] === 'dtmf')).toBe(true);
    expect(has((line) => line.leg === 'phone' && line.message?.['event'] === 'clear')).toBe(true);
    expect(has((line) => line.leg === 'call' && line.ended === 'caller_hangup')).toBe(true);
    expect(has((line) => line.leg === 'call' && line.heard?.role === 'model')).toBe(true);
    expect(has((line) => line.leg === 'phone' && line.post === '/twilio/status')).toBe(true);
    expect(has((line) => line.leg === 'call' && line.truncated !== undefined)).toBe(false);
  });

  it('tells nobody who called', () => {
    for (const secret of [FROM, FROM.slice(1), callSid, 'MUSTERMANN', 'KOELN', '127.0.0.1']) {
      expect(text).not.toContain(secret);
    }
    for (const digit of PRIVATE_KEYS) expect(text).not.toContain(`"digit":"${digit}"`);
    expect(text).not.toMatch(/pressed the key \\+"[^5#*]/);
  });

  it('replays green at once, to the microsecond', async () => {
    const fixture = recorded;
    const agents = await new AgentShelf().of(fixture);
    const { lines, unsaid } = await replay(fixture, { agents });
    const comparison = compareReplay(fixture.lines, lines, fixture.header.made);
    expect(dialogueDiff(fixture.lines, comparison)).toBe('');
    expect(unsaid).toEqual([]);
    const outgoing = (all: readonly FixtureLine[]): string[] =>
      all.filter(({ dir, leg }) => dir === 'out' && leg === 'phone').map((line) => `${line.at}`);
    expect(outgoing(lines)).toEqual(outgoing(fixture.lines));
  });

  it('goes red in the greeting’s request when the agent’s greeting changes by a letter, and nowhere else', async () => {
    const agent = join(folder, 'support.ts');
    const [face, support] = [
      ['src', 'index.ts'],
      ['agents', 'support.ts'],
    ].map((path) => JSON.stringify(join(PACKAGE_ROOT, ...path)));
    await writeFile(
      agent,
      [
        `import { defineAgent } from ${face};`,
        `import support from ${support};`,
        "const greeting = support.greeting.replace('Harbour Goods', 'Harbour Foods');",
        'export default defineAgent({ ...support, greeting });',
      ].join('\n'),
    );
    const comparison = await replayed({ agent });
    expect(comparison.differences).toBe(2);
    const rows = told(comparison).filter((row) => /^[-+]/.test(row));
    expect(rows).toHaveLength(2);
    // A recorded time may be a little later than the replay's, which then stands in front.
    const [added, missing] = rows.toSorted();
    expect(missing).toMatch(/^- .*model ← .*Say this greeting/);
    expect(added).toMatch(/^\+ .*model ← .*Say this greeting/);
  });

  it('goes red where the greeting is cut when its protection changes, and tells the clear by its time', async () => {
    const { settings } = recorded.header;
    const comparison = await replayed({
      header: { settings: { ...settings, greetingProtectionMs: 60_000 } },
    });
    const rows = told(comparison);
    expect(rows.find((row) => /^[-+]/.test(row))).toMatch(/^[-+] .*phone ←/);
    expect(rows.some((row) => /^- .*phone ← \{"event":"clear"\}/.test(row))).toBe(true);
  });

  it('goes red in the setup alone when another model is asked for', async () => {
    const comparison = await replayed({ header: { model: 'another-model' } });
    expect(comparison.differences).toBe(2);
    expect(told(comparison).find((row) => row.startsWith('+'))).toContain('models/another-model');
  });
});

describe('a recorded call whose model refuses it', () => {
  // The clip begins within the message that opens the stream.
  it('holds the first sound that went out, and replays green', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'earshot-record-'));
    const gemini = await ScriptedGemini.start({ handshake: { httpStatus: 403 } });
    const nobody = { GEMINI_API_KEY: 'key', GOOGLE_GEMINI_BASE_URL: gemini.url };
    const config = readConfig({ PORT: '0', DATA_DIR: dataDir, RECORD_CALLS: 'fixture', ...nobody });
    const server = await startServer(config, { clock: systemClock, log: silentLog });
    const phone = new Phone({ clock: systemClock, url: server.url });
    const over = phone.call();
    while (phone.elapsedMs < 500) {
      await new Promise<void>((resolve) => {
        systemClock.setTimer(20, resolve);
      });
    }
    phone.hangUp();
    await over;
    await server.close();
    await gemini.close();
    const fixture = await recordingIn(dataDir);
    await rm(dataDir, { recursive: true });
    expect(fixture.lines.some((line) => line.leg === 'phone' && line.sound !== undefined)).toBe(true);
    const { lines, unsaid } = await replay(fixture, { agents: await new AgentShelf().of(fixture) });
    expect(dialogueDiff(fixture.lines, compareReplay(fixture.lines, lines, fixture.header.made))).toBe('');
    expect(unsaid).toEqual([]);
  });
});
