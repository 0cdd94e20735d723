/** The operator's command for stored conversations, as its own process on a database of its own. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../src/clock.js';
import { RunEvents } from '../src/event/run-events.js';
import { silentLog } from '../src/observe/log.js';
import { EventWriter } from '../src/store/event-writer.js';
import { openStore } from '../src/store/open-store.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = mkdtempSync(join(tmpdir(), 'earshot-store-command-'));
const FULL = `sqlite:${join(FOLDER, 'full.db')}`;
const COPY = `sqlite:${join(FOLDER, 'copy.db')}`;
const SESSIONS = 40;
const EVENTS = 50;

/** Some megabytes: more than a pipe holds. */
async function fill(): Promise<void> {
  const store = await openStore(FULL, { clock: systemClock, log: silentLog });
  const writer = new EventWriter({ store, clock: systemClock, log: silentLog });
  for (let session = 0; session < SESSIONS; session += 1) {
    const key = { appName: 'support', userId: session === 0 ? 'ada' : 'bob', id: `s${session}` };
    void writer.createSession(key);
    const events = new RunEvents({
      invocationId: `i${session}`,
      agentName: 'support',
      clock: systemClock,
      onFault: (error) => {
        throw error;
      },
    });
    events.stream.listen((item) => {
      if (item.type === 'sealed' && item.event !== undefined) void writer.append(key, item.event);
    });
    for (let event = 0; event < EVENTS; event += 1) {
      events.opened(`m${event}`, 'model');
      events.sealed(`m${event}`, 'model', 'Many words. '.repeat(100), false);
    }
  }
  await writer.flushed();
  await writer.close();
  await store.close();
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** The built command; `reads: false` is a reader that takes the first piece and goes. */
function run(
  args: readonly string[],
  database: string | Record<string, string> = FULL,
  { reads = true } = {},
): Promise<Ran> {
  const child = spawn(process.execPath, ['dist/store-command.js', ...args], {
    cwd: ROOT,
    env: {
      PATH: process.env['PATH'] ?? '',
      ...(typeof database === 'string' ? { DATABASE_URL: database } : database),
    },
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (!reads) child.stdout.destroy();
  });
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output, errors })));
}

describe('the command for stored conversations', () => {
  beforeAll(fill);
  afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

  it('takes a copy that another database takes, once, and both export the same', async () => {
    const file = join(FOLDER, 'copy.jsonl');
    const exported = await run(['export']);
    expect([exported.code, exported.errors]).toEqual([0, '']);
    writeFileSync(file, exported.output);
    expect((await run(['import', file], COPY)).output).toBe(
      `imported: ${SESSIONS} sessions, ${SESSIONS * EVENTS} events; 0 sessions were there already\n`,
    );
    expect((await run(['import', file], COPY)).output).toContain(`${SESSIONS} sessions were there already`);
    expect((await run(['export'], COPY)).output).toBe(readFileSync(file, 'utf8'));
  });

  it('ends well when only the beginning of a copy is read', async () => {
    const { code, output, errors } = await run(['export'], FULL, { reads: false });
    expect([code, errors]).toEqual([0, '']);
    expect(output.length).toBeLessThan(SESSIONS * EVENTS * 1_000);
  });

  it.each([[[]], [['help']], [['--help']], [['help', 'forget']], [['forget', '--help']]])(
    'tells its commands for %j, without a database',
    async (args) => {
      const { code, output, errors } = await run(args, 'mysql://nowhere');
      expect([code, errors]).toEqual([0, '']);
      for (const command of ['forget', 'prune', 'export', 'import'])
        expect(output).toContain(`store -- ${command} `);
    },
  );

  it('finds the database in DATA_DIR, as the server does', async () => {
    const folder = join(FOLDER, 'data');
    expect((await run(['prune', '1'], { DATA_DIR: folder })).code).toBe(0);
    expect(existsSync(join(folder, 'earshot.db'))).toBe(true);
    const wrong = await run(['prune', '1'], { DATA_DIR: folder, DATABASE_URL: 'mysql://nowhere' });
    expect([wrong.code, wrong.errors]).toEqual([
      78,
      'store: DATABASE_URL must be sqlite:PATH or postgres://…\n',
    ]);
  });

  it('forgets one caller and lets old sessions go, also after a part of a day', async () => {
    expect((await run(['forget', 'ada'])).output).toMatch(`deleted: 1 sessions, ${EVENTS} events`);
    expect((await run(['export', '--user', 'ada'])).output).toBe('');
    expect((await run(['prune', '0.37'])).output).toMatch('deleted: 0 sessions');
  });

  it('closes open entries of the ledger, once, and keeps why', async () => {
    const store = await openStore(FULL, { clock: systemClock, log: silentLog });
    const session = { appName: 'support', userId: 'bob', id: 's1' };
    for (const key of ['k1', 'k2'])
      await store.claim({ session, key, tool: 'pay', callId: 'c1', guards: [] });
    const why = ['--app', 'support', '--reason', 'the bank says so', '--by', 'Grace'];
    const settle = ['settle', 'k1', ...why, '--response', '{"refund_id":"R-1"}'];
    expect((await run(settle)).output).toBe('settled\n');
    expect((await run(['release', 'k2', ...why])).output).toBe('released\n');
    for (const [again, told] of [
      [settle, 'not open'],
      [['release', 'k2', ...why], 'no such entry'],
    ] as const)
      expect(await run(again)).toMatchObject({ code: 65, errors: expect.stringContaining(told) as string });
    expect((await store.listLedger({})).items).toMatchObject([
      { key: 'k1', state: 'done', response: { refund_id: 'R-1' } },
    ]);
    expect((await store.listClosings()).items).toMatchObject([
      { key: 'k1', action: 'settle', reason: 'the bank says so', by: 'Grace' },
      { key: 'k2', action: 'release' },
    ]);
    await store.close();
  });

  it.each([
    ['no reason', 64, ['release', 'k', '--app', 'support'], /name the reason/u],
    ['no app', 64, ['release', 'k', '--reason', 'x'], /name its app/u],
    ['no answer', 64, ['settle', 'k', '--app', 'support', '--reason', 'x'], /--response/u],
    [
      'an answer that is none',
      64,
      ['settle', 'k', '--app', 'support', '--reason', 'x', '--response', '[]'],
      /must be a JSON object/u,
    ],
    [
      'an answer of what was not done',
      64,
      ['release', 'k', '--app', 'support', '--reason', 'x', '--response', '{}'],
      /belongs to settle/u,
    ],
    [
      'a missing file',
      66,
      ['import', 'nowhere.jsonl'],
      /nowhere\.jsonl cannot be read: there is no such file/u,
    ],
    ['a folder', 66, ['import', 'test'], /cannot be read: it is a folder/u],
    ['what is no copy', 65, ['import', 'package.json'], /line 1|1:/u],
    ['no such command', 64, ['burn'], /no command "burn"/u],
    ['no user', 64, ['forget'], /name a user/u],
    ['no days', 64, ['prune', '-x'], /--help|days/u],
    ['days that are none', 65, ['prune', 'many'], /days must be a number above 0/u],
  ])('tells %s in one line, with %i', async (_what, exit, args, told) => {
    const { code, output, errors } = await run(args);
    expect([code, output]).toEqual([exit, '']);
    expect(errors).toMatch(told);
    expect(errors.trimEnd().split('\n')).toHaveLength(1);
  });
});
