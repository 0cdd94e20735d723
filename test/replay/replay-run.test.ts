/** How a run over several fixtures goes when one of them, or the replay itself, is at fault. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Redaction } from '../../src/fixture/redaction.js';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { CarrierPlayer } from '../../src/replay/carrier-player.js';
import type { MemorySocket } from '../../src/replay/memory-socket.js';
import { ReplayedRequest } from '../../src/replay/replayed-request.js';
import { type ReplayCommand, replayFiles } from '../../src/replay/replay-run.js';
import { replay } from '../../src/replay/replay.js';

/** A short call without a sound file. */
const CALL = join(PACKAGE_ROOT, 'fixtures', 'calls', 'without-rest.ndjson');

let folder: string;
let shipped: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'earshot-run-'));
  shipped = await readFile(CALL, 'utf8');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, `${name}.ndjson`);
  await writeFile(path, text);
  return path;
}

async function run(files: readonly string[], options: Partial<ReplayCommand> = {}) {
  const printed: string[] = [];
  const errors: string[] = [];
  const command = { files, update: false, show: false, agent: undefined, ...options };
  const exit = await replayFiles(command, {
    print: (text) => printed.push(text),
    printError: (text) => errors.push(text),
  });
  return { exit, printed: printed.join('\n'), errors: errors.join('\n'), last: printed.at(-1) };
}

function withHeader(change: object): string {
  const [header = '', ...rows] = shipped.split('\n');
  return [JSON.stringify({ ...(JSON.parse(header) as object), ...change }), ...rows].join('\n');
}

/** With rows at their place in time. */
function withRows(
  ...added: readonly { readonly at: number; readonly leg: string; readonly [name: string]: unknown }[]
): string {
  const [header = '', ...rows] = shipped.trimEnd().split('\n');
  for (const one of added) {
    const at = rows.findIndex((row) => (JSON.parse(row) as { at: number }).at > one.at);
    rows.splice(at === -1 ? rows.length : at, 0, JSON.stringify(one));
  }
  return `${[header, ...rows].join('\n')}\n`;
}

const UNHEARD = { at: 500, leg: 'model', dir: 'in', conn: 7, message: { setupComplete: {} } };
const UNHEARD_MARK = {
  at: 501,
  leg: 'phone',
  dir: 'in',
  conn: 7,
  message: { event: 'mark', mark: { name: 'm' } },
};

describe('a run over several files', () => {
  it('goes on behind one that cannot be read, adds up, and exits with the worst', async () => {
    const different = await file('different', shipped.replace('Hello, you have', 'Hallo, you have'));
    const broken = await file('broken', `${shipped}{"at":`);
    const gone = join(folder, 'gone.ndjson');
    const all = await run([gone, CALL, broken, different, CALL, CALL]);
    expect(all.last).toBe('3 the same, 1 different, 2 unreadable');
    expect(all.exit).toBe(78);
    expect(all.errors).toContain(`${gone}: cannot be read`);
    expect(all.errors).toMatch(/broken\.ndjson:\d+: is not JSON/);
    expect(await run([CALL, different])).toMatchObject({ exit: 1, last: '1 the same, 1 different' });
    expect(await run([CALL])).toMatchObject({ exit: 0, errors: '' });
  });

  it.each([
    ['an agent that is not there', { agent: 'nobody' }, ':1: agent: '],
    ['an agent module that is not there', { agent: './nobody.ts' }, ':1: agent: '],
    [
      'a setting too small to be put into words',
      { settings: { idleRepromptMs: 0.000_01 } },
      ':1: settings: ',
    ],
  ])('names file, line and reason: %s', async (_what, header, reason) => {
    const path = await file('bad', withHeader(header));
    const { exit, errors, last } = await run([path, CALL]);
    expect(errors.startsWith(`${path}${reason}`)).toBe(true);
    expect(exit).toBe(78);
    expect(last).toBe('1 the same, 0 different, 1 unreadable');
  });

  it('tells an agent of the command line once, whatever the files', async () => {
    await expect(run([CALL, CALL], { agent: 'nobody' })).rejects.toThrow('nobody');
  });

  it('tells a fault of its own as such, with another code than that of a bad file', async () => {
    vi.spyOn(Redaction.prototype, 'xml').mockImplementationOnce(() => {
      throw new TypeError('out of order');
    });
    const broken = await file('broken', `${shipped}{"at":`);
    const { exit, errors, last } = await run([CALL, broken, CALL]);
    expect(errors).toContain(`failed   ${CALL}: TypeError: out of order`);
    expect(last).toBe('1 the same, 0 different, 1 unreadable, 1 failed');
    expect(exit).toBe(70);
  });
});

describe('lines that nobody hears', () => {
  it('are counted and told, each of them, in a replay', async () => {
    const { exit, printed } = await run([await file('unheard', withRows(UNHEARD, UNHEARD_MARK))]);
    expect(exit).toBe(1);
    expect(printed).toMatch(/^differs .*: 2 lines that nobody hears; /m);
    expect(printed).toMatch(/0\.500 {2}model 7 → .*setupComplete/);
    expect(printed).toMatch(/0\.501 {2}phone 7 → .*mark/);
    expect(printed).not.toContain('0 messages');
  });

  it('are counted and told in an update, which is then not green', async () => {
    const path = await file('unheard', withRows(UNHEARD));
    const { exit, printed } = await run([path], { update: true });
    expect(exit).toBe(1);
    expect(printed).toContain(`written  ${path}, with 1 line that nobody hears:`);
    expect(printed).toMatch(/0\.500 {2}model 7 → .*setupComplete/);
    const both = await run([path, await file('whole', shipped)], { update: true });
    expect(both.last).toBe('1 written, 1 written with lines that nobody hears');
  });
});

it('shows what an update writes when both are asked for', async () => {
  const path = await file('shown', shipped);
  const { printed, exit } = await run([path], { update: true, show: true });
  expect(exit).toBe(0);
  expect(printed).toMatch(/phone → POST \/twilio\/voice/);
  expect(printed).toContain(`written  ${path}`);
});

describe('a recording that is incomplete', () => {
  async function truncated(): Promise<string> {
    const rows = withHeader({ made: 'recorded' }).trimEnd().split('\n');
    const kept = rows.filter((row, index) => index === 0 || (JSON.parse(row) as { at: number }).at < 3_000);
    const last = { at: 3_000, leg: 'call', dir: 'out', truncated: 'the disk is too slow' };
    return file('truncated', `${[...kept, JSON.stringify(last)].join('\n')}\n`);
  }

  it('is green up to where it ends, and says that it ends there', async () => {
    const { exit, printed } = await run([await truncated()]);
    expect(printed).toMatch(/^same {5}/);
    expect(printed).toContain('incomplete from 3.000 on (the disk is too slow)');
    expect(exit).toBe(0);
  });

  it('stays so in an update', async () => {
    const path = await truncated();
    await run([path], { update: true });
    const { lines } = await readFixture(path);
    expect(lines.at(-1)).toMatchObject({ at: 3_000, truncated: 'the disk is too slow' });
    expect((await run([path])).exit).toBe(0);
  });
});

describe('a fault inside a replay', () => {
  async function replayed(path: string, playsMarks = false): Promise<unknown> {
    const fixture = await readFixture(path);
    return replay(fixture, { agents: await new AgentShelf().of(fixture), playsMarks });
  }

  it('fails it where the phone plays what it hears', async () => {
    vi.spyOn(CarrierPlayer.prototype, 'play').mockImplementation(() => {
      throw new Error('no loudspeaker');
    });
    await expect(replayed(CALL, true)).rejects.toThrow('no loudspeaker');
  });

  it('fails it when what goes on at one moment never ends', async () => {
    type Send = (this: ReplayedRequest, ...request: Parameters<ReplayedRequest['send']>) => void;
    const send: Send = Reflect.get(ReplayedRequest.prototype, 'send');
    vi.spyOn(ReplayedRequest.prototype, 'send').mockImplementation(function endless(
      this: ReplayedRequest,
      ...request
    ) {
      send.apply(this, request);
      const write: MemorySocket['_write'] = Reflect.get(this.socket, '_write');
      let turns = 0;
      const again = (): void => {
        turns += 1;
        write.call(this.socket, '', 'utf8', () => {});
        if (turns < 2_000) setImmediate(again);
      };
      again();
    });
    await expect(replayed(CALL)).rejects.toThrow('at 0.000 the server did not come to rest');
  });

  it('is none where an operator is answered with what is no JSON: it is noted as text', async () => {
    const path = await file('metrics', withRows({ at: 500, leg: 'operator', dir: 'in', get: '/metrics' }));
    const { lines } = (await replayed(path)) as Awaited<ReturnType<typeof replay>>;
    const answer = lines.find((line) => line.leg === 'operator' && line.dir === 'out');
    expect(answer).toMatchObject({
      at: 500,
      answer: { status: 200, body: expect.stringContaining('# HELP') },
    });
    expect((await run([path])).exit).toBe(1);
  });
});
