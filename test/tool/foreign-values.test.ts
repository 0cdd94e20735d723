import { describe, expect, it } from 'vitest';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { definePlugin } from '../../src/agent/plugin.js';
import { handedOut, ignoreRejection, isInstance, isSet, textOf } from '../../src/foreign.js';
import { RunStream, type RunItem } from '../../src/event/run-stream.js';
import { tellPlugins } from '../../src/tool/plugin-events.js';
import { RunSecrets } from '../../src/tool/run-secrets.js';
import { defineAgent } from '../../src/agent/agent.js';
import { TimeUp, withinTime } from '../../src/tool/within-time.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { BLOCKING_TOLD_MS } from '../../src/tool-limits.js';
import { hostile } from '../support/hostile.js';
import { RecordingLog } from '../telephony/recording-log.js';
import { invocationOf, NOTHING_LEFT, settled, tool, ToolStage } from './tool-stage.js';

/** Whatever an author's code may hand us: `throw`, a rejection, a value, a thenable. */
const HOSTILE: readonly (readonly [string, () => unknown])[] = [
  [
    'throws a Proxy',
    () => {
      throw hostile();
    },
  ],
  [
    'throws an Error in a Proxy',
    () => {
      throw hostile(new TimeUp('x'));
    },
  ],
  ['rejects with a Proxy', () => Promise.reject(hostile())],
  ['rejects with an Error in a Proxy', () => Promise.reject(hostile(new Error('x')))],
  ['returns a Proxy', () => hostile()],
  ['returns a function in a Proxy', () => hostile(() => {})],
  ['resolves with what holds a Proxy', () => Promise.resolve({ a: hostile() })],
  [
    'returns what throws when it is waited for',
    () => ({
      // eslint-disable-next-line unicorn/no-thenable
      get then() {
        throw hostile();
      },
    }),
  ],
  [
    'returns a promise that throws when it is waited for',
    () =>
      Object.defineProperty(Promise.resolve(1), 'constructor', {
        get() {
          throw hostile();
        },
      }),
  ],
];

describe.each(HOSTILE)('an author’s code that %s', (_what, execute) => {
  it('as a tool is an error of that call', async () => {
    const stage = new ToolStage({ tools: [tool('odd', { execute }), tool('fine')] });
    stage.send(['odd'], ['fine']);
    await settled();
    expect(stage.host.answerTo('c1')).toEqual({ error: expect.any(String) });
    expect(stage.host.answerTo('c2')).toEqual({ ok: 'fine' });
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('as a deed is one that is told, and done once at most', async () => {
    for (const sideEffect of [
      { key: () => 'k' },
      { key: execute as never },
      { key: () => 'k', amount: execute as never },
    ]) {
      let deeds = 0;
      const deed = tool('deed', {
        sideEffect,
        execute() {
          deeds += 1;
          return execute();
        },
      });
      const stage = new ToolStage({ tools: [deed] });
      const id = await stage.ask('deed');
      const again = await stage.ask('deed');
      expect(stage.host.answerTo(id)).toEqual({ error: expect.any(String) });
      expect(stage.host.answerTo(again)).toMatchObject({ error: expect.any(String) });
      expect(deeds).toBeLessThanOrEqual(1);
      await stage.close();
      expect(stage.counts).toEqual(NOTHING_LEFT);
    }
  });

  it('as a rule refuses the call', async () => {
    const stage = new ToolStage({ tools: [tool('odd', { approval: execute as never })] });
    const id = await stage.ask('odd');
    expect(stage.host.answerTo(id)).toEqual({ error: expect.stringContaining('approval rule') });
  });

  it.each(['beforeTool', 'afterTool'] as const)(
    'as %s of a plugin or an agent harms nobody',
    async (stageName) => {
      const plugin = definePlugin({ name: 'odd', [stageName]: execute });
      for (const definition of [{ plugins: [plugin] }, { [stageName]: execute }]) {
        const stage = new ToolStage({ tools: [tool('fine')], ...definition });
        const id = await stage.ask('fine');
        expect(stage.host.answerTo(id)).toEqual(expect.any(Object));
        if (stageName === 'beforeTool') expect(stage.host.answerTo(id)).not.toHaveProperty('ok');
        await stage.close();
        expect(stage.counts).toEqual(NOTHING_LEFT);
      }
    },
  );

  it('as long-running or streaming work is over', async () => {
    async function* yields() {
      yield (await execute()) as string;
    }
    const next = (): AsyncIterator<string> => ({ next: execute as never, return: execute as never });
    const stage = new ToolStage({
      tools: [
        tool('long', { longRunning: true, execute }),
        tool('stream', { execute: yields }),
        tool('iterate', { interrupts: true, execute: () => ({ [Symbol.asyncIterator]: next }) }),
        tool('begin', { interrupts: true, execute }),
      ],
    });
    stage.send(['long'], ['stream'], ['iterate'], ['begin']);
    await stage.pass(1_000);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('as what looks up secrets and scopes fails for who asks', async () => {
    const getSecret = execute as never;
    const ask = (_args: unknown, ctx: ToolContext): unknown => ctx.getSecret('K');
    const stage = new ToolStage({ tools: [tool('ask', { execute: ask })], runConfig: { getSecret } });
    const id = await stage.ask('ask');
    expect(stage.host.answerTo(id)).toEqual({ error: expect.any(String) });
  });

  it('as a plugin that watches is logged at most', async () => {
    const plugin = definePlugin({ name: 'odd', onEvent: execute });
    const agent = defineAgent({ name: 'a', instruction: 'x', plugins: [plugin] });
    let hear: (item: RunItem) => void = () => {};
    const run = { listen: (heard: typeof hear) => (hear = heard) } as unknown as RunStream;
    const log = new RecordingLog();
    tellPlugins(agent, run, { secrets: new RunSecrets(), log });
    hear({ type: 'event', event: { id: 'e' } } as unknown as RunItem);
    await settled();
    expect(log.lines.length).toBeLessThanOrEqual(1);
  });

  it('is waited for, looked at and ignored', async () => {
    const clock = new VirtualClock();
    const work = (async () => execute())();
    await withinTime(work, { clock, delayMs: 5 }).then(
      () => {},
      (error: unknown) => expect(isInstance(error, Error)).toBe(true),
    );
    let value: unknown;
    try {
      value = execute();
    } catch (error) {
      value = error;
    }
    ignoreRejection(value);
    expect(() => [isInstance(value, Error), textOf(value, 'name')]).not.toThrow();
    await handedOut(execute).catch(() => {});
    await settled();
    expect(clock.pendingTimers).toBe(0);
  });
});

it('a context whose end cannot be read ends nothing', async () => {
  const execute = (_args: unknown, ctx: ToolContext): string => {
    Object.defineProperty(ctx, 'endInvocation', {
      get() {
        throw hostile();
      },
    });
    return 'done';
  };
  const stage = new ToolStage({ tools: [tool('odd', { execute })] });
  const id = await stage.ask('odd');
  expect(stage.host.answerTo(id)).toEqual({ result: 'done' });
  expect(isSet(hostile(), 'a')).toBe(false);
});

describe('what a context hands out', () => {
  // An unhandled rejection fails the run of the tests, too.
  it('is nobody’s stray error when nobody waits for it', async () => {
    const away = (): Promise<never> => Promise.reject(new Error('the database is away'));
    const controller = new AbortController();
    const clock = new VirtualClock();
    const { ctx } = invocationOf({
      clock,
      artifacts: { save: away, load: away },
      memory: { remember: away, relate: away },
    }).scope(controller.signal);
    const rejected: unknown[] = [];
    const hear = (error: unknown): void => void rejected.push(error);
    process.on('unhandledRejection', hear);
    const promises = [
      ctx.shared.waitFor('never', { timeoutMs: 5 }),
      ctx.shared.waitFor('aborted'),
      ctx.shared.waitFor(''),
      ctx.shared.waitFor('x', { timeoutMs: -1 }),
      ctx.saveArtifact('a', new Uint8Array(1), 'text/plain'),
      ctx.saveArtifact(5 as never, new Uint8Array(1), 'text/plain'),
      ctx.loadArtifact('a'),
      ctx.memory.remember('caller', ['x']),
      ctx.memory.relate('a', 'b', 'c'),
      ctx.getSecret('K'),
    ];
    await settled();
    clock.advance(5);
    controller.abort(new Error('over'));
    await settled();
    process.off('unhandledRejection', hear);
    expect(rejected).toEqual([]);
    for (const { status } of await Promise.allSettled(promises)) expect(status).toBe('rejected');
  });
});

describe('an author’s code that holds up the sound', () => {
  const told = (stage: ToolStage) =>
    stage.log.lines.filter(({ message }) => message.includes('worker: true')).map(({ fields }) => fields);
  /** Time goes by without anybody else having a turn. */
  const spinning = (stage: () => ToolStage, ms: number) => (): void => stage().clock.advance(ms);

  it.each([
    ['a tool', (spin: () => void) => ({ tools: [tool('busy', { execute: spin })] }), { tool: 'busy' }],
    [
      'a tool that throws',
      (spin: () => void) => ({
        tools: [
          tool('busy', {
            execute() {
              spin();
              throw new Error('x');
            },
          }),
        ],
      }),
      { tool: 'busy' },
    ],
    [
      'a guard',
      (spin: () => void) => ({
        tools: [tool('busy')],
        plugins: [definePlugin({ name: 'audit', beforeTool: spin })],
      }),
      { tool: 'busy', guard: 'audit' },
    ],
    [
      'a callback',
      (spin: () => void) => ({ tools: [tool('busy')], afterTool: spin }),
      { tool: 'busy', guard: 'agent' },
    ],
    [
      'a rule',
      (spin: () => void) => ({
        tools: [
          tool('busy', {
            approval() {
              spin();
              return false;
            },
          }),
        ],
      }),
      { tool: 'busy' },
    ],
    [
      'a streaming tool',
      (spin: () => void) => ({
        tools: [
          tool('busy', {
            async *execute() {
              spin();
              yield await Promise.resolve('x');
            },
          }),
        ],
      }),
      { tool: 'busy' },
    ],
  ])('is named in the log: %s', async (_what, made, who) => {
    for (const [ms, lines] of [
      [BLOCKING_TOLD_MS - 1, []],
      [BLOCKING_TOLD_MS, [{ ...who, heldUpMs: BLOCKING_TOLD_MS }]],
    ] as const) {
      const stage: ToolStage = new ToolStage(made(spinning(() => stage, ms)));
      await stage.ask('busy');
      expect(told(stage)).toEqual(lines);
    }
  });

  it('is not what only waits', async () => {
    const stage: ToolStage = new ToolStage({
      tools: [
        tool('slow', {
          execute: () => new Promise<void>((resolve) => void stage.clock.setTimer(5_000, resolve)),
        }),
      ],
    });
    await stage.ask('slow');
    await stage.pass(5_000);
    expect(told(stage)).toEqual([]);
  });
});
