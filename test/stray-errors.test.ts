import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../src/clock.js';
import { STRAY_ERRORS_MAX, STRAY_ERRORS_WINDOW_MS } from '../src/limits.js';
import { Phone } from '../src/replay/phone.js';
import { VirtualClock } from '../src/replay/virtual-clock.js';
import { StrayErrors } from '../src/stray-errors.js';
import { hostile } from './support/hostile.js';
import { ServerProcess } from './support/server-process.js';
import { waitUntil } from './support/wait-until.js';
import { RecordingLog } from './telephony/recording-log.js';

function watched() {
  const clock = new VirtualClock();
  const log = new RecordingLog();
  const source = new EventEmitter();
  let givenUp = 0;
  const strays = new StrayErrors({ clock, log, onGivenUp: () => (givenUp += 1) });
  strays.watch(source);
  return { clock, log, source, strays, givenUp: () => givenUp };
}

describe('a stray error', () => {
  it('is one line that says where it comes from, and not what it says', () => {
    const { log, source, strays } = watched();
    const error = new RangeError('of +15550100 there is\n    at most (/nothing.ts:1:1)\nnothing');
    source.emit('uncaughtException', error);
    expect(log.lines).toHaveLength(1);
    const [line] = log.lines;
    expect(line).toMatchObject({
      level: 'error',
      fields: { kind: 'exception', class: 'RangeError', pii: { cause: error.message } },
    });
    expect(log.publicText).toContain('stray-errors.test.ts:');
    expect(log.publicText).not.toMatch(/15550100|nothing\.ts/);
    expect(strays.counts).toEqual({ exception: 1, rejection: 0 });
  });

  it('tells the code of its cause', () => {
    const { log, source } = watched();
    const cause = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    source.emit('unhandledRejection', new TypeError('fetch failed', { cause }));
    expect(log.lines[0]?.fields).toMatchObject({ kind: 'rejection', code: 'ECONNREFUSED' });
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'just text'],
    ['a number', 7],
    ['a symbol', Symbol('s')],
    ['an object', { code: 7 }],
    ['one without a prototype', Object.create(null)],
    ['one that throws wherever it is touched', hostile()],
    ['a function that is one', hostile(() => {})],
    ['an error with a false stack', Object.assign(new Error('x'), { stack: 5 })],
    ['an error with a false message', Object.assign(new Error('x'), { message: { a: 1 } })],
    ['an error in an error', new Error('x', { cause: hostile() })],
  ])('may be %s', (_what, error) => {
    for (const event of ['uncaughtException', 'unhandledRejection']) {
      const { log, source, givenUp } = watched();
      source.emit(event, error);
      expect(log.lines).toHaveLength(1);
      expect(givenUp()).toBe(0);
    }
  });

  it('is borne a hundred times a minute and not once more; then all are only counted', () => {
    const { clock, log, source, strays, givenUp } = watched();
    for (let index = 0; index < STRAY_ERRORS_MAX; index += 1) source.emit('unhandledRejection', 'x');
    clock.advance(STRAY_ERRORS_WINDOW_MS);
    for (let index = 0; index < STRAY_ERRORS_MAX; index += 1) source.emit('uncaughtException', 'x');
    expect(givenUp()).toBe(0);
    source.emit('uncaughtException', 'x');
    expect(givenUp()).toBe(1);
    const lines = log.lines.length;
    for (let index = 0; index < 1_000; index += 1) source.emit('uncaughtException', 'x');
    expect(log.lines).toHaveLength(lines);
    expect(givenUp()).toBe(1);
    expect(strays.counts).toEqual({ exception: STRAY_ERRORS_MAX + 1_001, rejection: STRAY_ERRORS_MAX });
  });

  it('that says that the server itself, or Node, is broken is one too many', () => {
    const ours = new assert.AssertionError({ message: 'x' });
    const folder = new URL('../src/', import.meta.url);
    ours.stack = `AssertionError: x\n    at queue (${new URL('call/call.ts', folder).pathname}:1:1)`;
    const theirs = new assert.AssertionError({ message: 'x' });
    theirs.stack = 'AssertionError: x\n    at execute (/srv/agents/desk.ts:1:1)';
    const node = Object.assign(new Error('x'), { code: 'ERR_INTERNAL_ASSERTION' });
    for (const [error, times] of [
      [ours, 1],
      [theirs, 0],
      [node, 1],
    ] as const) {
      const { source, givenUp } = watched();
      source.emit('uncaughtException', error);
      expect(givenUp()).toBe(times);
    }
  });

  it('does not end the process for a log that fails', () => {
    const source = new EventEmitter();
    const fail = (): never => assert.fail();
    const log = { debug: fail, info: fail, warn: fail, error: fail };
    const strays = new StrayErrors({ clock: new VirtualClock(), log, onGivenUp() {} });
    strays.watch(source);
    source.emit('uncaughtException', new Error('x'));
    expect(strays.counts.exception).toBe(1);
  });
});

const FOLDER = mkdtempSync(join(tmpdir(), 'earshot-stray-'));
const AGENT = join(FOLDER, 'careless.mjs');
/** Each does something that nobody waits for, and answers. */
const CARELESS: Readonly<Record<string, string>> = {
  forgotten_fetch: `void fetch('http://127.0.0.1:9/')`,
  forgotten_wait: `void ctx.shared.waitFor('never', { timeoutMs: 1 })`,
  late_throw: `setTimeout(() => { throw new Error('PRIVATE words') }, 1)`,
  late_reject: `setTimeout(() => void Promise.reject(new Error('PRIVATE words')), 1)`,
  late_state: `setTimeout(() => { ctx.state.a = 1 }, 50)`,
  late_artifact: `setTimeout(() => void ctx.saveArtifact('a', Buffer.from('x'), 'text/plain'), 50)`,
  late_secret: `void ctx.getSecret('X'); void ctx.memory.remember('caller', 5); void ctx.shared.waitFor(5)`,
  aborted: `void new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('aborted'))))`,
  throws_proxy: `throw hostile`,
  rejects_proxy: `void Promise.reject(hostile)`,
  late_proxy: `setTimeout(() => { throw hostile }, 1)`,
};
writeFileSync(
  AGENT,
  `import { defineAgent, defineTool } from 'earshot';
const no = () => { throw new Error('no'); };
const hostile = new Proxy({}, { get: no, getPrototypeOf: no, has: no });
const tool = (name, execute) => defineTool({ name, description: name, execute });
export default defineAgent({ name: 'careless', greeting: 'Hello.', instruction: 'x', tools: [
${Object.entries(CARELESS)
  .map(([name, does]) => `  tool('${name}', (_args, ctx) => { ${does}; return { message: 'begun' }; }),`)
  .join('\n')}
  tool('flood', () => { setInterval(() => { throw new Error('again'); }, 1); return { message: 'begun' }; }),
] });
`,
);
afterAll(() => rmSync(FOLDER, { recursive: true }));

const servers: ServerProcess[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
});

/** The built server (`npm test` builds it first). */
async function start(): Promise<{ server: ServerProcess; url: string }> {
  const DATABASE_URL = `sqlite:${join(mkdtempSync(join(FOLDER, 'data-')), 'calls.db')}`;
  const server = new ServerProcess({ PORT: '0', AGENT, DATABASE_URL });
  servers.push(server);
  return { server, url: await server.url() };
}

async function ask(url: string, tool: string): Promise<string> {
  const message = { userId: tool, newMessage: { parts: [{ text: `${tool} {}` }] } };
  const response = await fetch(`${url}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(message),
  });
  return response.text();
}

async function straysOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const values = [...text.matchAll(/^earshot_stray_errors_total\{.*\} (\d+)$/gm)];
  expect(values).toHaveLength(2);
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

async function talking(url: string): Promise<{ phone: Phone; over: Promise<unknown> }> {
  const phone = new Phone({ clock: systemClock, url });
  const over = phone.call();
  await waitUntil('a call', () => phone.state === 'listening' || phone.state === 'talking');
  return { phone, over };
}

describe('the built server', () => {
  it('goes on for everybody when one tool leaves behind what fails', async () => {
    const { server, url } = await start();
    const { phone, over } = await talking(url);
    for (const tool of Object.keys(CARELESS)) {
      const answer = await ask(url, tool);
      if (tool === 'throws_proxy') expect(answer).toContain('has no text');
      else expect(answer).toContain('begun');
    }
    // What rejects is somebody's only where the author made the promise.
    await waitUntil('all of them', async () => (await straysOf(url)) >= 7);
    expect(phone.state === 'listening' || phone.state === 'talking').toBe(true);
    const strays = server.output
      .split('\n')
      .filter((line) => line.includes('a stray error'))
      .map((line) => JSON.parse(line) as { readonly level: number; readonly frames: readonly string[] });
    expect(strays).toHaveLength(await straysOf(url));
    expect(strays.every(({ level }) => level === 50)).toBe(true);
    const lateThrow = readFileSync(AGENT, 'utf8')
      .split('\n')
      .findIndex((line) => line.includes("'late_throw'"));
    expect(strays.flatMap(({ frames }) => frames).join('\n')).toContain(`careless.mjs:${lateThrow + 1}:`);
    expect(server.output).not.toContain('PRIVATE');
    phone.hangUp();
    await over;
    server.signal('SIGTERM');
    expect(await server.exit).toBe(0);
  });

  it('lets its calls end, takes no others and exits with 1 when they do not stop coming', async () => {
    const { server, url } = await start();
    const { phone, over } = await talking(url);
    await ask(url, 'flood');
    await waitUntil('a drain', async () => (await fetch(`${url}/readyz`)).status === 503);
    expect(phone.state === 'listening' || phone.state === 'talking').toBe(true);
    expect(server.output.match(/a stray error/g)).toHaveLength(STRAY_ERRORS_MAX + 1);
    phone.hangUp();
    await over;
    expect(await server.exit).toBe(1);
    expect(server.output).toContain('the server stops because of stray errors');
  });
});
