import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../src/clock.js';
import { Phone } from '../src/replay/phone.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NOTHING = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };

interface Run {
  readonly child: ChildProcess;
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  output: string;
  errors: string;
}

/** Of the servers that are started here; nothing is written into the project. */
const FOLDER = mkdtempSync(join(tmpdir(), 'earshot-main-'));
const DATABASE_URL = `sqlite:${join(FOLDER, 'calls.db')}`;

const runs: Run[] = [];

/** The built server as its own process (`npm test` builds it first). */
function run(environment: Record<string, string>, command = [process.execPath, 'dist/main.js']): Run {
  const [file, ...args] = command as [string, ...string[]];
  // A process group of its own, as a shell gives each command.
  const child = spawn(file, args, {
    cwd: ROOT,
    env: { ...NOTHING, DATABASE_URL, ...environment },
    detached: true,
  });
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on('exit', (code, signal) => resolve({ code, signal }));
  });
  const started: Run = { child, exit, output: '', errors: '' };
  child.stdout.on('data', (chunk: Buffer) => (started.output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (started.errors += chunk.toString()));
  runs.push(started);
  return started;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(ms, () => resolve());
  });
}

/** A phone whose stream is open, and the promise of its call's end. */
async function talking(url: string): Promise<{ phone: Phone; over: Promise<unknown> }> {
  const phone = new Phone({ clock: systemClock, url });
  const over = phone.call().catch(() => undefined);
  while (phone.state !== 'listening' && phone.state !== 'talking') await pause(20);
  return { phone, over };
}

interface Refusal {
  readonly severity: string;
  readonly sqlState: string;
  readonly message: string;
}

/** What speaks as much of PostgreSQL's protocol as it takes to refuse: an ErrorResponse to the first message
 * (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
async function refusingDatabase({ severity, sqlState, message }: Refusal) {
  let connections = 0;
  const fields = `S${severity}\0V${severity}\0C${sqlState}\0M${message}\0\0`;
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(fields));
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)])));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' ? address?.port : 0,
    connections: () => connections,
    close: () => server.close(),
  };
}

async function urlOf(started: Run): Promise<string> {
  const deadlineMs = systemClock.nowMs() + 20_000;
  for (;;) {
    const url = /answers at (http:\/\/\S+)\/twilio\/voice/.exec(started.output)?.[1];
    if (url !== undefined) return url;
    if (systemClock.nowMs() > deadlineMs) throw new Error(`no address: ${started.output}${started.errors}`);
    await pause(20);
  }
}

afterEach(() => {
  for (const { child } of runs.splice(0)) {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // The whole group has ended by itself, as it should.
    }
  }
});

describe('the process', () => {
  it.each([
    [{ PORT: 'eighty' }, 'PORT'],
    [{ RECORD_CALLS: 'both' }, 'RECORD_CALLS'],
    [{ AGENT: 'nobody' }, 'AGENT'],
    [{ DATABASE_URL: 'mysql://host/calls' }, 'DATABASE_URL'],
    [{ GOOGLE_GENAI_USE_VERTEXAI: 'true' }, 'GOOGLE_CLOUD_PROJECT'],
  ])('refuses %j with one line that names the variable, and 78', async (environment, name) => {
    const started = run({ PORT: '0', ...environment });
    expect(await started.exit).toEqual({ code: 78, signal: null });
    expect(started.errors.trim().split('\n')).toHaveLength(1);
    expect(started.errors).toContain(name);
  });

  it('tells all that is missing at once, a line each, and 78', async () => {
    const started = run({ PORT: '0', HOST: '0.0.0.0' });
    expect(await started.exit).toEqual({ code: 78, signal: null });
    const names = ['TWILIO_AUTH_TOKEN', 'PUBLIC_URL', 'CONSOLE_TOKEN', 'GEMINI_API_KEY'];
    const lines = started.errors.trimEnd().split('\n');
    expect(lines.map((line) => /^earshot: (\w+) is /.exec(line)?.[1])).toEqual(names);
  });

  it('keeps everything in DATA_DIR where nobody says where the database is', async () => {
    const folder = join(FOLDER, 'mounted');
    const started = run({ PORT: '0', DATA_DIR: folder, DATABASE_URL: '' });
    await urlOf(started);
    started.child.kill('SIGTERM');
    expect((await started.exit).code).toBe(0);
    expect(existsSync(join(folder, 'earshot.db'))).toBe(true);
    expect(started.output).not.toContain('"level":40');
  });

  it('says in one line of the log that DATA_DIR cannot be written, where nothing has to be', async () => {
    const file = join(FOLDER, 'no-folder');
    writeFileSync(file, '');
    const started = run({ PORT: '0', DATA_DIR: join(file, 'data') });
    await urlOf(started);
    started.child.kill('SIGTERM');
    await started.exit;
    expect(started.output.match(/"level":40/g)).toHaveLength(1);
    expect(started.output).toMatch(/"level":40,.*nothing can be written into DATA_DIR/);
    const refused = run({ PORT: '0', DATA_DIR: join(file, 'data'), DATABASE_URL: '' });
    expect((await refused.exit).code).toBe(78);
    expect(refused.errors.trim().split('\n')).toHaveLength(1);
    expect(refused.errors).toContain(join(file, 'data', 'earshot.db'));
  });

  it('tells the agent’s name, never its path, and warns of what it was given but does not do', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-agent-'));
    const path = join(folder, 'reception-module.mjs');
    writeFileSync(
      path,
      "import { defineAgent } from 'earshot';\nexport default defineAgent({ name: 'desk', instruction: 'Serve.' });\n",
    );
    const started = run({ PORT: '0', AGENT: path, CONSOLE_TOKEN: 'short' });
    await urlOf(started);
    started.child.kill('SIGTERM');
    await started.exit;
    expect(started.output).toMatch(/answers at .*agent desk\)/);
    expect(started.output).toContain('"agent":"desk"');
    expect(started.output).toMatch(/"level":40,.*CONSOLE_TOKEN is short enough to be guessed/);
    expect(started.output + started.errors).not.toContain('reception-module');
    rmSync(folder, { recursive: true });
  });

  it('says so in one line when its port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => {
      taken.once('listening', resolve);
    });
    const address = taken.address();
    const started = run({ PORT: String(typeof address === 'object' ? address?.port : 0) });
    expect((await started.exit).code).toBe(1);
    expect(started.errors.trim().split('\n')).toHaveLength(1);
    expect(started.errors).toMatch(/PORT|port/);
    taken.close();
  });

  it.each([
    ['a login that is refused at once', 78, 'FATAL', '28P01', 'password authentication failed', 'login'],
    [
      'a database that is not there',
      78,
      'FATAL',
      '3D000',
      'database "x" does not exist',
      'database of that name',
    ],
  ])('ends the start for %s, with 78', async (_what, code, severity, sqlState, message, told) => {
    const database = await refusingDatabase({ severity, sqlState, message });
    const started = run({ PORT: '0', DATABASE_URL: `postgres://u:s3cret@127.0.0.1:${database.port}/x` });
    expect((await started.exit).code).toBe(code);
    expect(started.errors.trim().split('\n')).toHaveLength(1);
    expect(started.errors).toContain(told);
    expect(started.errors + started.output).not.toContain('s3cret');
    database.close();
  });

  it('waits for a database that is not up yet, with one line in the log, and stops when it is asked to', async () => {
    const database = await refusingDatabase({
      severity: 'FATAL',
      sqlState: '57P03',
      message: 'the database system is starting up',
    });
    const started = run({ PORT: '0', DATABASE_URL: `postgres://u:p@127.0.0.1:${database.port}/x` });
    while (database.connections() < 4) await pause(20);
    expect(started.output.match(/the store is not there yet/g)).toHaveLength(1);
    expect(started.child.exitCode).toBeNull();
    started.child.kill('SIGTERM');
    expect(await started.exit).toEqual({ code: 0, signal: null });
    database.close();
  });

  it('drains on SIGTERM: a running call goes on, no other is taken, and then it exits with 0', async () => {
    const started = run({ PORT: '0' });
    const url = await urlOf(started);
    const { phone, over } = await talking(url);
    started.child.kill('SIGTERM');
    let status = 200;
    while (status === 200) status = (await fetch(`${url}/readyz`)).status;
    expect(status).toBe(503);
    const second = await new Phone({ clock: systemClock, url }).call();
    expect(second.streams).toEqual([]);
    expect(started.child.exitCode).toBeNull();
    phone.hangUp();
    await over;
    expect(await started.exit).toEqual({ code: 0, signal: null });
  });

  it('ends at once on a second signal, a second later', async () => {
    const started = run({ PORT: '0' });
    const { phone, over } = await talking(await urlOf(started));
    started.child.kill('SIGTERM');
    while (!started.output.includes('asked to stop')) await pause(20);
    await pause(1_100);
    started.child.kill('SIGTERM');
    expect((await started.exit).code).toBe(1);
    phone.hangUp();
    await over;
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'takes a %s to npm’s whole process group for one wish',
    async (signal) => {
      const started = run({ PORT: '0' }, ['npm', 'start']);
      const { phone, over } = await talking(await urlOf(started));
      process.kill(-(started.child.pid ?? 0), signal);
      while (!started.output.includes('asked to stop')) await pause(20);
      await pause(300);
      expect(phone.state === 'listening' || phone.state === 'talking').toBe(true);
      phone.hangUp();
      await over;
      expect((await started.exit).code).toBe(0);
      expect(started.output).toContain('earshot has stopped');
    },
  );

  it('is stopped cleanly through npm, too', async () => {
    const started = run({ PORT: '0' }, ['npm', 'start']);
    await urlOf(started);
    started.child.kill('SIGTERM');
    expect(await started.exit).toEqual({ code: 0, signal: null });
    expect(started.output).toContain('earshot has stopped');
  });
});
