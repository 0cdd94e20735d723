import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { NothingDone } from '../../src/agent/tool.js';
import { type Clock, systemClock } from '../../src/clock.js';
import { NO_ACTIONS, type Event } from '../../src/event/event.js';
import {
  TOOL_WORKER_CALLS_WAITING_MAX,
  TOOL_WORKER_ERROR_MAX_CHARS,
  TOOL_WORKER_EVENTS_MAX_CHARS,
  TOOL_WORKER_NICENESS,
  TOOL_WORKER_PRINTED_MAX_CHARS,
  TOOL_WORKER_TAKE_MAX_MS,
  TOOL_WORKERS_CLOSE_MAX_MS,
  TOOL_WORKERS_MAX,
} from '../../src/tool-limits.js';
import type { WorkerOutcome, WorkerRun } from '../../src/tool/worker-call.js';
import type { WorkerSnapshot } from '../../src/tool/worker-messages.js';
import { WorkerTools } from '../../src/tool/worker-tools.js';
import { pause, waitUntil } from '../support/wait-until.js';
import { RecordingLog } from '../telephony/recording-log.js';

// Each thread compiles the source anew, which takes seconds where the machine has other work.
vi.setConfig({ testTimeout: 120_000 });

const workshop = fileURLToPath(new URL('agents/workshop.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'earshot-worker-tools-'));
let files = 0;

/** A file that is not there yet. */
function newFile(): string {
  files += 1;
  return join(folder, `flag-${files}`);
}

const snapshot: WorkerSnapshot = {
  invocationId: 'inv-1',
  callSid: 'CA1',
  appName: 'workshop',
  userId: '+15550100',
  sessionId: 'CA1',
  callerVerified: true,
  state: {},
  events: [],
  runConfig: { responseModalities: ['AUDIO'] },
  scopes: { error: 'userScopes: the agent’s runConfig has no userScopes' },
};

function runOf(tool: string, args: object = {}, more: Partial<WorkerRun> = {}): WorkerRun {
  return {
    module: workshop,
    tool,
    args: args as Record<string, unknown>,
    snapshot,
    getSecret: () => Promise.reject(new Error('no secrets')),
    signal: new AbortController().signal,
    ...more,
  };
}

/** Timers that give a worker up which does not take its call: they fire when a test says so. */
let takingTimers: (() => void)[] = [];
const clock: Clock = {
  ...systemClock,
  setTimer(delayMs, fire) {
    if (delayMs !== TOOL_WORKER_TAKE_MAX_MS) return systemClock.setTimer(delayMs, fire);
    takingTimers.push(fire);
    return { cancel: () => (takingTimers = takingTimers.filter((each) => each !== fire)) };
  },
};

/** One pool for all tests of single calls, so that few threads have to begin. */
const log = new RecordingLog();
const tools = new WorkerTools({ clock, log });

afterAll(() => tools.close());

function warnings(): readonly string[] {
  return log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
}

function threads(): number {
  return (process.report.getReport() as { workers: unknown[] }).workers.length;
}

describe('a worker tool', () => {
  it('runs in another thread, with what its schema made of the arguments', async () => {
    expect(await tools.run(runOf('sum', { numbers: ['1', '2.5'] }))).toEqual({
      result: { sum: 3.5, isMainThread: false },
      stateDelta: {},
      endInvocation: false,
    });
  });

  it('is not run with arguments that its schema does not read', async () => {
    const refused = tools.run(runOf('sum', { numbers: 'all' }));
    await expect(refused).rejects.toThrow(/^numbers: /);
    await expect(refused).rejects.toBeInstanceOf(NothingDone);
  });

  it('sees the state, and its changes come back', async () => {
    const state = { visits: 1, basket: ['tea'], 'app:open': true };
    const outcome = await tools.run(runOf('keep', {}, { snapshot: { ...snapshot, state } }));
    expect(outcome).toEqual({
      result: { before: state, after: { visits: 2, 'user:name': { first: 'Ada' }, 'app:open': true } },
      stateDelta: { visits: 2, 'user:name': { first: 'Ada' }, basket: null },
      endInvocation: true,
    });
  });

  it('cannot change more of the state than is kept of one call', async () => {
    await expect(tools.run(runOf('keep_much'))).rejects.toThrow(/changes of the state are too long to keep/);
  });

  it('sees who is on the line, what was said and how the agent is set', async () => {
    const events: Event[] = [
      { id: 'e1', invocationId: 'inv-1', author: 'user', timestamp: 1, actions: NO_ACTIONS },
    ];
    const runConfig = {
      responseModalities: ['AUDIO' as const],
      maxConcurrentTools: 2,
      getSecret: () => 'kept here',
    };
    const full = { ...snapshot, events, runConfig, scopes: ['refund'] };
    const { result } = await tools.run(runOf('look', {}, { snapshot: full }));
    expect(result).toMatchObject({
      invocationId: 'inv-1',
      callSid: 'CA1',
      appName: 'workshop',
      userId: '+15550100',
      sessionId: 'CA1',
      callerVerified: true,
      events,
      runConfig: { responseModalities: ['AUDIO'], maxConcurrentTools: 2 },
      scopes: ['refund'],
      isAborted: false,
    });
  });

  it('sees the newest events of a long conversation', async () => {
    const text = 'x'.repeat(TOOL_WORKER_EVENTS_MAX_CHARS / 8);
    const events = Array.from({ length: 20 }, (_, n) => ({
      id: `e${n}`,
      invocationId: 'inv-1',
      author: 'user',
      timestamp: n,
      content: { parts: [{ text }] },
      actions: NO_ACTIONS,
    }));
    // The result is bounded, too, and says how long it would have been.
    const told = tools.run(runOf('look', {}, { snapshot: { ...snapshot, events, scopes: [] } }));
    const why = await told.then(() => 'it was told', String);
    const [, chars] = /too long to tell \((\d+) characters\)/.exec(why) ?? [];
    expect(Number(chars)).toBeGreaterThan(7 * text.length);
    expect(Number(chars)).toBeLessThan(8 * text.length);
  });

  it('is told by name what a snapshot does not have', async () => {
    const { result } = await tools.run(runOf('reach'));
    const names = ['shared', 'callControl', 'inputStream', 'followUp', 'saveArtifact', 'loadArtifact'];
    const why = (name: string) => `ctx.${name} is not there in a worker tool: its context is a snapshot`;
    expect(result).toEqual({
      ...Object.fromEntries(names.map((name) => [name, why(name)])),
      userScopes: 'userScopes: the agent’s runConfig has no userScopes',
    });
  });

  it('asks the server for secrets', async () => {
    const asked: string[] = [];
    const getSecret = async (name: string): Promise<string | null> => {
      asked.push(name);
      if (name === 'lost') throw new Error('the vault is shut');
      return name === 'none' ? null : `secret of ${name}`;
    };
    const { result } = await tools.run(runOf('unlock', { names: ['a', 'none', 'lost'] }, { getSecret }));
    expect(result).toEqual(['secret of a', null, 'the vault is shut']);
    expect(asked).toEqual(['a', 'none', 'lost']);
    const many = Array.from({ length: 100 }, (_, n) => `${n}`);
    const flood = await tools.run(runOf('unlock', { names: many }, { getSecret }));
    expect((flood.result as string[]).filter((said) => said.includes('are asked for already'))).toHaveLength(
      36,
    );
  });

  it.each([
    ['throw', 'the ledger is torn'],
    ['reject', 'the ledger is wet'],
    ['text', 'no error at all'],
    ['hostile', 'what was thrown has no text'],
    ['long', 'x'.repeat(TOOL_WORKER_ERROR_MAX_CHARS)],
  ])('fails with the text of what it threw (%s)', async (how, message) => {
    const error: unknown = await tools.run(runOf('fail', { how })).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(NothingDone);
    expect(error).toMatchObject({ message });
  });

  it('says that nothing was done in the words of its own copy of the package', async () => {
    const failed = tools.run(runOf('fail', { how: 'nothing done' }));
    await expect(failed).rejects.toBeInstanceOf(NothingDone);
    await expect(failed).rejects.toThrow('the bank is closed');
  });

  it.each([
    ['date', { at: '1970-01-01T00:00:00.000Z' }],
    ['list', [1, null, 'x']],
    ['null', null],
    ['nothing at all', undefined],
  ])('returns what JSON makes of it (%s)', async (what, result) => {
    expect(await tools.run(runOf('give_back', { what }))).toMatchObject({ result });
  });

  it.each([
    ['bigint', /^The tool ran, but what it returned cannot be told as JSON: .*BigInt/],
    ['circle', /^The tool ran, but what it returned cannot be told as JSON: .*circular/],
    ['function', /^The tool ran, but it returned a function: return what the model is to be told\.$/],
    ['symbol', /^The tool ran, but it returned a symbol: /],
    ['iterator', /^The tool ran, but it returned an Array Iterator: /],
    ['response', /^The tool ran, but it returned a Response: /],
    ['long', /^The tool ran, but its result is too long to tell \(70002 characters\)\.$/],
  ])('fails clearly when its result cannot travel (%s)', async (what, message) => {
    await expect(tools.run(runOf('give_back', { what }))).rejects.toThrow(message);
  });

  it('prints to the log, as what is personal, and not without end', async () => {
    expect(await tools.run(runOf('print'))).toMatchObject({ result: 'printed' });
    const printed = () =>
      log.lines
        .filter(({ message }) => message === 'a worker tool printed')
        .map(({ fields }) => (fields['pii'] as { text: string }).text)
        .join('');
    await waitUntil('what was printed', () => printed().length === TOOL_WORKER_PRINTED_MAX_CHARS);
    expect(printed()).toContain('to the author');
    expect(log.publicText).not.toContain('to the author');
  });

  it.runIf(process.platform === 'linux')('gives way to the loop of the server', async () => {
    const own = getPriority();
    const { result } = await tools.run(runOf('rank'));
    expect(result).toBe(Math.max(own, TOOL_WORKER_NICENESS));
    expect(getPriority()).toBe(own);
  });

  it.each([
    ['no module', runOf('sum', {}, { module: join(folder, 'nowhere.ts') }), /there is no agent module at/],
    ['no tool', runOf('subtract'), /has no worker tool subtract$/],
    ['no worker tool', runOf('here'), /has no worker tool here$/],
  ])('that is not there is a clear error, and nothing was done (%s)', async (_, run, message) => {
    const failed = tools.run(run);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toBeInstanceOf(NothingDone);
  });

  it('has needed one thread for all that came one after another', () => {
    expect(tools.counts()).toEqual({ workers: 1, running: 0, waiting: 0 });
    expect(takingTimers).toEqual([]);
    expect(warnings()).toEqual([]);
  });
});

describe('a worker', () => {
  it('serves tools of several modules', async () => {
    const other = join(folder, 'other.mjs');
    writeFileSync(
      other,
      `import { defineAgent, defineTool } from 'earshot';
      const parameters = { type: 'object', properties: { by: { type: 'number', default: 3 } } };
      const triple = defineTool({
        name: 'sum', description: 'x', parameters, worker: true, execute: ({ by }, ctx) => by * ctx.state.n,
      });
      export default defineAgent({ name: 'other', instruction: 'x', tools: [triple] });\n`,
    );
    const state = { n: 4 };
    const runs = [
      runOf('sum', { numbers: ['1'] }),
      runOf('sum', {}, { module: other, snapshot: { ...snapshot, state } }),
      runOf('sum', { numbers: ['2'] }),
    ];
    const results: unknown[] = [];
    for (const run of runs) results.push((await tools.run(run)).result);
    expect(results).toEqual([{ sum: 1, isMainThread: false }, 12, { sum: 2, isMainThread: false }]);
    expect(tools.counts().workers).toBe(1);
  });

  it('leaves the loop of the server free while it computes', async () => {
    const file = newFile();
    const order: string[] = [];
    const ground = tools.run(runOf('grind', { file })).then(() => order.push('tool'));
    for (let frame = 0; frame < 50; frame += 1) {
      await pause(1);
      order.push('frame');
    }
    // A handler in this loop would never see the file, for nobody would write it.
    writeFileSync(file, '');
    await ground;
    expect(order).toEqual([...Array.from({ length: 50 }, () => 'frame'), 'tool']);
  });

  it('that died of what an earlier call left behind costs the next call nothing', async () => {
    const left = await tools.run(runOf('leave_dying'));
    const next = await tools.run(runOf('where', { file: folder }));
    expect(next.result).toMatchObject({ call: 1 });
    expect(next.result).not.toMatchObject({ threadId: left.result });
  });

  it('that is held by what an earlier call left behind is replaced, and the next call is not lost', async () => {
    const left = await tools.run(runOf('leave_busy'));
    const next = tools.run(runOf('where', { file: folder }));
    expect(takingTimers).toHaveLength(1);
    takingTimers[0]?.();
    expect((await next).result).not.toMatchObject({ threadId: left.result });
    expect(warnings()).toContain('a worker is held by what an earlier tool left behind');
  });

  it('is ended at once when its call is aborted, though it listens to nobody, and replaced', async () => {
    const file = newFile();
    const timeUp = new AbortController();
    const spinning = tools.run(runOf('spin', { file }, { signal: timeUp.signal }));
    await waitUntil('the tool to begin', () => existsSync(file));
    timeUp.abort(new Error('it took more than 20 s'));
    await expect(spinning).rejects.toThrow('it took more than 20 s');
    await expect(spinning).rejects.not.toBeInstanceOf(NothingDone);
    expect(tools.counts().running).toBe(0);
    await waitUntil('the thread to end', () => tools.counts().workers === 0);
    expect(await tools.run(runOf('sum', { numbers: ['7'] }))).toMatchObject({ result: { sum: 7 } });
  });

  it.each([
    ['exit', /^the tool broke its worker thread: it ended its own thread with code 3$/],
    ['memory', /^the tool broke its worker thread: .*memory limit/],
    ['later', /^the tool broke its worker thread: .*JSON/],
    ['unhandled', /^the tool broke its worker thread: nobody caught it$/],
  ])('that its tool broke fails that call and no other (%s)', async (how, message) => {
    const warned = warnings().length;
    const file = newFile();
    const beside = tools.run(runOf('where', { file }));
    const failed = tools.run(runOf('fail', { how }));
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.not.toBeInstanceOf(NothingDone);
    writeFileSync(file, '');
    expect(await beside).toMatchObject({ result: { threadId: expect.any(Number) } });
    expect(await tools.run(runOf('sum', { numbers: ['7'] }))).toMatchObject({ result: { sum: 7 } });
    expect(warnings().slice(warned)).toEqual(['a worker thread ended']);
  });
});

describe('all workers', () => {
  it('share what is asked for at once, and each loads a module once', async () => {
    const all = new WorkerTools({ clock, log });
    const file = newFile();
    const runs = Array.from({ length: 20 }, () => all.run(runOf('where', { file })));
    expect(all.counts()).toEqual({ workers: TOOL_WORKERS_MAX, running: TOOL_WORKERS_MAX, waiting: 16 });
    writeFileSync(file, '');
    const told = (await Promise.all(runs)).map(({ result }) => result as { threadId: number; call: number });
    const ids = new Set(told.map(({ threadId }) => threadId));
    expect(ids.size).toBe(TOOL_WORKERS_MAX);
    for (const id of ids) {
      const calls = told.flatMap(({ threadId, call }) => (threadId === id ? call : []));
      expect(calls).toEqual(calls.map((_, n) => n + 1));
    }
    expect(all.counts()).toEqual({ workers: TOOL_WORKERS_MAX, running: 0, waiting: 0 });
    await all.close();
  });

  it('refuse what is beyond the queue, let go of who is withdrawn, and end with whatever they do', async () => {
    const threadsBefore = threads();
    const all = new WorkerTools({ clock, log });
    const never = newFile();
    const withdrawn = new AbortController();
    const settled: Promise<PromiseSettledResult<WorkerOutcome>[]> = Promise.allSettled(
      Array.from({ length: TOOL_WORKERS_MAX + TOOL_WORKER_CALLS_WAITING_MAX - 1 }, () =>
        all.run(runOf('grind', { file: never })),
      ),
    );
    const last = all.run(runOf('sum', { numbers: [] }, { signal: withdrawn.signal }));
    const tooMuch = all.run(runOf('sum', { numbers: [] }));
    await expect(tooMuch).rejects.toThrow(/too many tools wait/);
    await expect(tooMuch).rejects.toBeInstanceOf(NothingDone);
    expect(all.counts().waiting).toBe(TOOL_WORKER_CALLS_WAITING_MAX);

    withdrawn.abort(new Error('the caller has hung up'));
    await expect(last).rejects.toThrow('the caller has hung up');
    await expect(last).rejects.toBeInstanceOf(NothingDone);
    expect(all.counts().waiting).toBe(TOOL_WORKER_CALLS_WAITING_MAX - 1);

    await Promise.all([all.close(), all.close()]);
    expect(all.counts()).toEqual({ workers: 0, running: 0, waiting: 0 });
    expect(threads()).toBe(threadsBefore);
    const reasons = (await settled).map((each) => (each.status === 'rejected' ? each.reason : undefined));
    expect(new Set(reasons.map(String))).toEqual(
      new Set(['Error: the server is closing', 'NothingDone: the server is closing']),
    );
    await expect(all.run(runOf('sum', { numbers: [] }))).rejects.toThrow('the server is closing');
  });

  it('are not waited for without end where a system call holds one', async () => {
    const closeAtOnce: Clock = {
      ...systemClock,
      setTimer: (delayMs, fire) =>
        systemClock.setTimer(delayMs === TOOL_WORKERS_CLOSE_MAX_MS ? 0 : delayMs, fire),
    };
    const all = new WorkerTools({ clock: closeAtOnce, log });
    const [begun, end] = [newFile(), newFile()];
    const blocked = all.run(runOf('block', { begun, end })).then(() => 'it ended', String);
    await waitUntil('the tool to begin', () => existsSync(begun));
    await all.close();
    expect(await blocked).toBe('Error: the server is closing');
    expect(all.counts()).toEqual({ workers: 1, running: 0, waiting: 0 });
    expect(warnings()).toContain('worker threads of tools do not end');
    writeFileSync(end, '');
    await waitUntil('the thread to end', () => all.counts().workers === 0);
  });

  it('are not asked for a call that was withdrawn before', async () => {
    const all = new WorkerTools({ clock, log });
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(all.run(runOf('sum', { numbers: [] }, { signal }))).rejects.toThrow('too late');
    expect(all.counts()).toEqual({ workers: 0, running: 0, waiting: 0 });
  });
});

describe('the built server', () => {
  it('has them too, and idle ones do not keep it from exiting', async () => {
    const built = new URL('../../dist/', import.meta.url).href;
    const script = `
      const { WorkerTools } = await import('${built}tool/worker-tools.js');
      const { systemClock } = await import('${built}clock.js');
      const { silentLog } = await import('${built}observe/log.js');
      const tools = new WorkerTools({ clock: systemClock, log: silentLog });
      const run = ${JSON.stringify(runOf('sum', { numbers: ['20', '22'] }))};
      const { signal } = new AbortController();
      console.log(JSON.stringify((await tools.run({ ...run, signal })).result), tools.counts().workers);`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    expect(stdout).toBe('{"sum":42,"isMainThread":false} 1\n');
  });
});
