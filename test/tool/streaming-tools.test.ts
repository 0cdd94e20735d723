import { describe, expect, it } from 'vitest';
import { type AfterTool, definePlugin } from '../../src/agent/plugin.js';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { sleep } from '../../src/clock.js';
import { silentLog } from '../../src/observe/log.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { RunSecrets } from '../../src/tool/run-secrets.js';
import { StreamingTools } from '../../src/tool/streaming-tools.js';
import { STREAMING_STOP_MAX_MS, STREAMING_VALUES_PER_S_MAX } from '../../src/tool-limits.js';
import {
  deferred,
  NOTHING_LEFT,
  NOTHING_OPEN,
  settled,
  tool,
  ToolStage,
  type Deferred,
} from './tool-stage.js';

type Stage = () => ToolStage;
type Execute = (args: Readonly<Record<string, unknown>>, ctx: ToolContext) => unknown;

const FRAME = new Uint8Array(640);

/** 300 after 4 s, 400 at 8 s, 900 at 28 s, 500 at 48 s, and then it is over. */
function monitorStock(stage: Stage, ended: string[] = []) {
  return tool('monitor_stock_price', {
    async *execute({ stock_symbol: symbol }) {
      try {
        for (const [waitMs, price] of [
          [4_000, 300],
          [4_000, 400],
          [20_000, 900],
          [20_000, 500],
        ] as const) {
          await sleep(stage().clock, waitMs);
          yield `the price of ${String(symbol)} is ${price}`;
        }
      } finally {
        ended.push(String(symbol));
      }
    },
  });
}

/** Looks at the newest frame every half second, and tells what has changed. */
function monitorSound(stage: Stage, taps: unknown[] = []) {
  return tool('monitor_caller_audio', {
    inputStream: true,
    async *execute(_args, { inputStream, signal }) {
      taps.push(inputStream);
      let before: number | undefined = 0;
      while (!signal.aborted) {
        await sleep(stage().clock, 500);
        const level = inputStream?.drainLatest()?.data[0];
        if (level !== undefined && level !== before) yield { level };
        before = level ?? before;
      }
    },
  });
}

function stageOf(make: (stage: Stage) => readonly ReturnType<typeof tool>[]): ToolStage {
  const stage: ToolStage = new ToolStage({ tools: make(() => stage) });
  return stage;
}

const streaming = (execute: Execute, name = 'watch') => tool(name, { execute });

const redact = ({ result }: AfterTool): unknown => ('card' in result ? { card: '…' } : undefined);

describe('a streaming tool', () => {
  it('is not there before it is called, and answered at once then, in a frame of its own', async () => {
    const slow = deferred();
    const stage = stageOf((of) => [monitorStock(of), tool('slow', { execute: () => slow.promise })]);
    await settled();
    expect(stage.counts).toEqual(NOTHING_OPEN);
    const [monitor = '', other = ''] = stage.send(['monitor_stock_price', { stock_symbol: 'XYZ' }], ['slow']);
    await settled();
    expect(stage.host.frames).toEqual([[monitor]]);
    expect(stage.host.answerTo(monitor)).toEqual({ status: 'pending', message: expect.any(String) });
    expect(stage.counts).toMatchObject({ streamingTools: 1, inputStreams: 0 });
    slow.resolve('done');
    await settled();
    expect(stage.host.frames).toEqual([[monitor], [other]]);
    await stage.close();
  });

  it('tells 300 after 4 s, 400 at 8 s, 900 at 28 s and 500 at 48 s, and is gone when it has ended', async () => {
    const ended: string[] = [];
    const stage = stageOf((of) => [monitorStock(of, ended)]);
    await stage.ask('monitor_stock_price', { stock_symbol: 'XYZ' });
    const told: [number, string][] = [];
    for (let second = 1; second <= 60; second += 1) {
      await stage.pass(1_000);
      const { texts } = stage.host;
      if (texts.length > told.length) told.push([second, texts.at(-1)!]);
    }
    const says = (price: number): string => `monitor_stock_price reports: the price of XYZ is ${price}`;
    expect(told).toEqual([
      [4, says(300)],
      [8, says(400)],
      [28, says(900)],
      [48, says(500)],
    ]);
    expect(
      stage.host
        .of('update')
        .every(({ replaces, interrupts }) => replaces === 'monitor_stock_price' && !interrupts),
    ).toBe(true);
    expect(ended).toEqual(['XYZ']);
    expect(stage.counts).toEqual(NOTHING_OPEN);
    expect(stage.host.of('forgotten')).toEqual([]);
  });

  it('is silent once it is stopped, while another one goes on; called again it begins anew', async () => {
    const ended: string[] = [];
    const stage = stageOf((of) => [monitorStock(of, ended), monitorSound(of)]);
    stage.send(['monitor_stock_price', { stock_symbol: 'XYZ' }], ['monitor_caller_audio']);
    await stage.pass(8_000);
    expect(stage.host.texts).toHaveLength(2);
    const stopped = await stage.ask('stop_streaming', { function_name: 'monitor_stock_price' });
    expect(stage.counts['streamingTools']).toBe(2);
    // It sleeps until 28 s, so that it is given up a second later.
    await stage.pass(STREAMING_STOP_MAX_MS);
    expect(stage.host.answerTo(stopped)).toMatchObject({ status: 'stopped' });
    expect(stage.host.of('forgotten')).toEqual([{ kind: 'forgotten', replaces: 'monitor_stock_price' }]);
    expect(stage.counts).toMatchObject({ streamingTools: 1, inputStreams: 1 });
    stage.calls.work.onSound(Uint8Array.from(FRAME).fill(7));
    await stage.pass(51_000);
    expect(stage.host.texts.slice(2)).toEqual(['monitor_caller_audio reports: {"level":7}']);
    expect(ended).toEqual(['XYZ']);
    await stage.ask('monitor_stock_price', { stock_symbol: 'XYZ' });
    await stage.pass(4_000);
    expect(stage.host.texts.at(-1)).toContain('300');
    await stage.close();
  });

  it('that does not run cannot be stopped, which is no error', async () => {
    const stage = stageOf((of) => [monitorStock(of)]);
    for (const name of ['monitor_stock_price', 'nope'])
      expect(stage.host.answerTo(await stage.ask('stop_streaming', { function_name: name }))).toMatchObject({
        status: 'none active',
      });
    expect(stage.host.answerTo(await stage.ask('stop_streaming'))).toHaveProperty('error');
  });

  it('that fails tells the model that it has, and the log why', async () => {
    const stage = stageOf(() => [
      streaming(async function* () {
        yield await Promise.resolve('first');
        throw new Error('the feed of +15550100 broke');
      }),
    ]);
    await stage.ask('watch');
    expect(stage.host.texts).toEqual(['watch reports: first', 'watch has failed and is over.']);
    // An update of the same name would take the place of the last value.
    expect(stage.host.of('update').map(({ replaces }) => replaces)).toEqual(['watch', undefined]);
    expect(JSON.stringify(stage.log.lines)).toContain('the feed');
    expect(stage.log.publicText).not.toContain('the feed');
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it.each([
    ['objects as JSON', { price: 300 }, '{"price":300}'],
    ['text as it is', '300', '300'],
    ['numbers', 300, '{"result":300}'],
    ['what is no JSON as an error', 10n, '{"error":'],
    ['what is long cut', 'x'.repeat(9_000), 'xxx'],
  ])('tells %s', async (_what, value, told) => {
    const stage = stageOf(() => [
      streaming(async function* () {
        yield await Promise.resolve(value);
      }),
    ]);
    await stage.ask('watch');
    expect(stage.host.texts).toEqual([expect.stringContaining(`watch reports: ${told}`)]);
    expect(stage.host.texts[0]!.length).toBeLessThanOrEqual(4_000);
  });

  it('tells what it changed with no answer to tell it', async () => {
    const stage = stageOf(() => [
      streaming(async function* (_args, { state }) {
        state['seen'] = 1;
        yield await Promise.resolve('a');
        state['seen'] = 2;
      }),
    ]);
    await stage.ask('watch');
    expect(stage.host.of('changed').map(({ actions }) => actions.stateDelta)).toEqual([
      { seen: 1 },
      { seen: 2 },
    ]);
  });

  it('that wants to interrupt says so', async () => {
    const alarm = tool('alarm', {
      interrupts: true,
      async *execute() {
        yield await Promise.resolve('fire');
      },
    });
    const stage = new ToolStage({ tools: [alarm] });
    await stage.ask('alarm');
    expect(stage.host.of('update')).toMatchObject([{ interrupts: true }]);
  });

  it.each([
    ['is refused where nobody listens', { isLive: false }, 'needs a live conversation'],
    [
      'is not begun where a guard says no',
      { plugins: [definePlugin({ name: 'p', beforeTool: () => 'no' })] },
      'no',
    ],
  ])('%s', async (_what, options, why) => {
    let runs = 0;
    const watch = streaming(async function* () {
      runs += 1;
      yield await Promise.resolve(1);
    });
    const stage = new ToolStage({ ...options, tools: [watch] });
    const id = await stage.ask('watch');
    expect(JSON.stringify(stage.host.answerTo(id))).toContain(why);
    expect(runs).toBe(0);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('is refused where its rule wants an approval', async () => {
    const watch = tool('watch', {
      approval: () => true,
      async *execute() {
        yield await Promise.resolve(1);
      },
    });
    const stage = new ToolStage({ tools: [watch] });
    const id = await stage.ask('watch');
    expect(stage.host.answerTo(id)).toEqual({
      error: expect.stringContaining('cannot wait for an approval'),
    });
  });

  it('that returns no generator has failed', async () => {
    const stage = new ToolStage({ tools: [tool('listen', { inputStream: true, execute: () => 'text' })] });
    await stage.ask('listen');
    expect(stage.host.texts).toEqual(['listen has failed and is over.']);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('takes no permit', async () => {
    const stage: ToolStage = new ToolStage({
      tools: [monitorStock(() => stage), tool('quick')],
      runConfig: { maxConcurrentTools: 1 },
    });
    await stage.ask('monitor_stock_price', { stock_symbol: 'A' });
    expect(stage.host.answerTo(await stage.ask('quick'))).toEqual({ ok: 'quick' });
    await stage.close();
  });
});

describe('a streaming tool that is called twice', () => {
  it('with the same arguments, in whatever order, runs on', async () => {
    let runs = 0;
    const parameters = { type: 'object', properties: {} };
    const execute: Execute = async function* () {
      runs += 1;
      yield await new Promise(() => {});
    };
    const stage = new ToolStage({ tools: [tool('watch', { parameters, execute })] });
    await stage.ask('watch', { a: 1, b: { c: 1, d: 2 } });
    const id = await stage.ask('watch', { b: { d: 2, c: 1 }, a: 1 });
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'running' });
    expect([runs, stage.counts['streamingTools']]).toEqual([1, 1]);
    await stage.close();
  });

  it('with other arguments begins anew behind the end of the first, answered at once', async () => {
    const trace: string[] = [];
    const ends: Deferred<unknown>[] = [];
    const stage = stageOf(() => [
      streaming(async function* ({ symbol }, { signal }) {
        trace.push(`begin ${String(symbol)}`);
        try {
          signal.addEventListener('abort', () => ends.at(-1)?.resolve('late'));
          ends.push(deferred());
          yield await ends.at(-1)!.promise;
        } finally {
          await Promise.resolve();
          trace.push(`end ${String(symbol)}`);
        }
      }),
    ]);
    await stage.ask('watch', { symbol: 'A' });
    const id = await stage.ask('watch', { symbol: 'B' });
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'pending' });
    expect(trace).toEqual(['begin A', 'end A', 'begin B']);
    expect(stage.host.texts).toEqual([]);
    ends.at(-1)!.resolve('of B');
    await settled();
    expect(stage.host.texts).toEqual(['watch reports: of B']);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('with ever other arguments at once runs once in the end: the last', async () => {
    const running = new Set<string>();
    const stage = stageOf(() => [
      streaming(async function* ({ symbol }, { signal }) {
        running.add(String(symbol));
        try {
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          yield 'late';
        } finally {
          running.delete(String(symbol));
        }
      }),
    ]);
    stage.send(...['A', 'B', 'C', 'D'].map((symbol) => ['watch', { symbol }] as const));
    await stage.pass(2_000);
    expect([...running]).toEqual(['D']);
    expect(stage.counts['streamingTools']).toBe(1);
    await stage.close();
    expect([...running]).toEqual([]);
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });
});

describe('the caller’s sound', () => {
  it('is copied only for tools that ask for it, and only from then on', async () => {
    const taps: unknown[] = [];
    const seen: number[] = [];
    const stage = stageOf((of) => [
      monitorStock(of),
      tool('listen', {
        inputStream: true,
        async *execute(_args, { inputStream }) {
          taps.push(inputStream);
          for await (const { data, mimeType } of inputStream!) {
            expect(mimeType).toBe('audio/pcm;rate=16000');
            seen.push(data[0]!);
          }
          yield 'the end';
        },
      }),
      monitorSound(of, taps),
    ]);
    const feed = (from: number, count: number): void => {
      for (let index = from; index < from + count; index += 1) {
        const frame = Uint8Array.from(FRAME).fill(index);
        stage.calls.work.onSound(frame);
        // The caller's buffer is used again.
        frame.fill(255);
      }
    };
    await stage.ask('monitor_stock_price', { stock_symbol: 'A' });
    expect(stage.calls.work.wantsSound).toBe(false);
    feed(0, 10);
    await stage.ask('listen');
    expect(stage.calls.work.wantsSound).toBe(true);
    await stage.ask('monitor_caller_audio');
    expect(taps[0]).not.toBe(taps[1]);
    feed(10, 10);
    await settled();
    expect(seen).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    expect(stage.counts).toMatchObject({ streamingTools: 3, inputStreams: 2 });
    await stage.ask('stop_streaming', { function_name: 'listen' });
    feed(20, 20);
    await stage.ask('listen');
    feed(40, 5);
    await settled();
    expect(seen.slice(10)).toEqual([40, 41, 42, 43, 44]);
    expect(stage.host.texts).not.toContain('listen reports: the end');
    await stage.close();
    expect(stage.calls.work.wantsSound).toBe(false);
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('is told of only when the newest of it has changed', async () => {
    const stage = stageOf((of) => [monitorSound(of)]);
    await stage.ask('monitor_caller_audio');
    for (const level of [0, 0, 5, 5, 0]) {
      stage.calls.work.onSound(Uint8Array.from(FRAME).fill(9));
      stage.calls.work.onSound(Uint8Array.from(FRAME).fill(level));
      await stage.pass(500);
    }
    expect(stage.host.texts).toEqual([
      'monitor_caller_audio reports: {"level":5}',
      'monitor_caller_audio reports: {"level":0}',
    ]);
    await stage.close();
  });

  it('is not pictures', async () => {
    const seen: string[] = [];
    const look = tool('look', {
      inputStream: 'image',
      async *execute(_args, { inputStream }) {
        for await (const { mimeType } of inputStream!) {
          seen.push(mimeType);
          yield mimeType;
        }
      },
    });
    const stage = new ToolStage({ tools: [look] });
    await stage.ask('look');
    expect(stage.calls.work.wantsSound).toBe(false);
    stage.calls.work.onSound(FRAME);
    stage.calls.work.onImage('image/jpeg', Uint8Array.of(1));
    await settled();
    expect(seen).toEqual(['image/jpeg']);
    await stage.close();
  });
});

it('pictures that nobody takes are few, the newest', async () => {
  const wanted = deferred();
  const seen: number[] = [];
  const look = tool('look', {
    inputStream: 'image',
    async *execute(_args, { inputStream }) {
      await wanted.promise;
      for await (const { data } of inputStream!) {
        seen.push(data[0] ?? -1);
        yield data[0];
      }
    },
  });
  const stage = new ToolStage({ tools: [look] });
  await stage.ask('look');
  for (let image = 0; image < 100; image += 1) stage.calls.work.onImage('image/jpeg', Uint8Array.of(image));
  wanted.resolve(undefined);
  await stage.pass(3_000);
  expect(seen).toEqual([92, 93, 94, 95, 96, 97, 98, 99]);
  await stage.close();
});

describe('a streaming tool at its end', () => {
  it('that ignores its signal is given up after a second, and nothing of it is told any more', async () => {
    const stuck = deferred();
    let kept: ToolContext | undefined;
    const stage = stageOf(() => [
      streaming(async function* (_args, ctx) {
        kept = ctx;
        yield await stuck.promise;
        ctx.state['late'] = true;
      }),
    ]);
    await stage.ask('watch');
    const id = await stage.ask('stop_streaming', { function_name: 'watch' });
    await stage.pass(STREAMING_STOP_MAX_MS - 1);
    expect(stage.host.answerTo(id)).toBeUndefined();
    await stage.pass(1);
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'stopped' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
    expect(() => {
      kept!.state['late'] = true;
    }).toThrow('the call is over');
    const told = stage.host.told.length;
    stuck.resolve('late');
    await settled();
    expect(stage.host.told).toHaveLength(told);
  });

  it('that throws in its finally is stopped all the same', async () => {
    const stage = stageOf(() => [
      streaming(async function* (_args, { signal }) {
        try {
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          yield 'late';
        } finally {
          // eslint-disable-next-line no-unsafe-finally
          throw new Error('the socket was closed already');
        }
      }),
    ]);
    await stage.ask('watch');
    const id = await stage.ask('stop_streaming', { function_name: 'watch' });
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'stopped' });
    expect(stage.host.texts).toEqual([]);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that never waits lets others have their turn, and can be stopped', async () => {
    let yields = 0;
    const stage = stageOf(() => [
      streaming(async function* () {
        for (;;) yield (yields += 1);
      }),
      tool('quick'),
    ]);
    await stage.ask('watch');
    expect(yields).toBeGreaterThan(1);
    expect(stage.host.answerTo(await stage.ask('quick'))).toEqual({ ok: 'quick' });
    await stage.ask('stop_streaming', { function_name: 'watch' });
    const after = yields;
    await settled();
    expect(yields).toBe(after);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('is asked for so many values a second, whatever it yields', async () => {
    let yields = 0;
    const stage = stageOf(() => [
      streaming(async function* () {
        for (;;) yield (yields += 1);
      }),
    ]);
    await stage.ask('watch');
    for (let second = 1; second <= 3; second += 1) {
      for (let turn = 0; turn < 50; turn += 1) await settled();
      expect(yields).toBeLessThanOrEqual(second * STREAMING_VALUES_PER_S_MAX);
      expect(yields).toBeGreaterThan((second - 1) * STREAMING_VALUES_PER_S_MAX);
      await stage.pass(1_000);
    }
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('that is over by itself is forgotten all the same when it is stopped', async () => {
    const stage = stageOf(() => [
      streaming(async function* () {
        yield await Promise.resolve('the last value');
      }),
    ]);
    await stage.ask('watch');
    await settled();
    expect(stage.host.of('forgotten')).toEqual([]);
    const id = await stage.ask('stop_streaming', { function_name: 'watch' });
    expect(JSON.stringify(stage.host.answerTo(id))).toContain('none active');
    expect(stage.host.of('forgotten')).toEqual([{ kind: 'forgotten', replaces: 'watch' }]);
  });

  it.each([
    ['a plugin', { plugins: [definePlugin({ name: 'redact', afterTool: redact })] }],
    ['the agent', { afterTool: redact }],
  ])('has its values looked over by %s, as any result', async (_who, options) => {
    const watch = streaming(async function* () {
      yield await Promise.resolve({ card: '4111 1111' });
      yield 'nothing to hide';
    });
    const stage = new ToolStage({ ...options, tools: [watch] });
    await stage.ask('watch');
    await stage.pass(100);
    expect(stage.host.texts).toEqual(['watch reports: {"card":"…"}', 'watch reports: nothing to hide']);
    await stage.close();
  });

  it('may end the conversation, behind its last value', async () => {
    const stage = stageOf(() => [
      streaming(async function* (_args, ctx) {
        yield await Promise.resolve('the line is needed');
        ctx.endInvocation = true;
      }),
    ]);
    await stage.ask('watch');
    await stage.pass(100);
    expect(stage.host.texts).toEqual(['watch reports: the line is needed']);
    expect(stage.host.told.map(({ kind }) => kind)).toContain('ended');
    await stage.close();
  });

  it('that is stopped and called again in one message begins behind the end of the first', async () => {
    const trace: string[] = [];
    const stage = stageOf(() => [
      streaming(async function* ({ symbol }, { signal }) {
        trace.push(`begin ${String(symbol)}`);
        try {
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          yield 'late';
        } finally {
          await settled();
          trace.push(`end ${String(symbol)}`);
        }
      }),
    ]);
    await stage.ask('watch', { symbol: 'A' });
    stage.send(['stop_streaming', { function_name: 'watch' }], ['watch', { symbol: 'B' }]);
    for (let turn = 0; turn < 10; turn += 1) await settled();
    expect(trace).toEqual(['begin A', 'end A', 'begin B']);
    await stage.close();
  });

  it('is stopped with the run: its finally has run within a second, and nothing more is told', async () => {
    const ended: string[] = [];
    const stage = stageOf(() => [
      streaming(async function* (_args, { signal }) {
        try {
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          yield 'late';
        } finally {
          await Promise.resolve();
          ended.push('watch');
        }
      }),
    ]);
    await stage.ask('watch');
    const told = stage.host.told.length;
    await stage.calls.close();
    expect(ended).toEqual(['watch']);
    expect(stage.host.told).toHaveLength(told);
    expect(stage.counts).toEqual(NOTHING_LEFT);
    await stage.ask('watch');
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('is waited for by the run’s end, also where it is being stopped already', async () => {
    let isOver = false;
    const stage: ToolStage = stageOf(() => [
      streaming(async function* () {
        try {
          await sleep(stage.clock, 700);
          yield 'late';
        } finally {
          isOver = true;
        }
      }),
    ]);
    await stage.ask('watch');
    stage.send(['stop_streaming', { function_name: 'watch' }]);
    let isClosed = false;
    void stage.calls.close().then(() => {
      isClosed = true;
    });
    await settled();
    expect([isOver, isClosed]).toEqual([false, false]);
    await stage.pass(700);
    expect([isOver, isClosed]).toEqual([true, true]);
  });

  it('is not begun behind the end of its run, however the call got so far', async () => {
    const tools = new StreamingTools({
      listener: { update() {}, ended() {}, forget() {}, ends() {}, changed: () => Promise.resolve() },
      secrets: new RunSecrets(),
      clock: new VirtualClock(),
      log: silentLog,
    });
    await tools.close();
    const watch = streaming(async function* () {
      yield await Promise.resolve(1);
    });
    const scope = (): never => {
      throw new Error('no context is made for it');
    };
    expect(tools.start({ tool: watch, args: {}, scope, after: undefined })).toEqual({
      error: 'watch was not begun: the conversation is over.',
    });
    expect(tools.counts()).toEqual({ streamingTools: 0, inputStreams: 0 });
  });
});
