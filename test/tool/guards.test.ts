import { describe, expect, it } from 'vitest';
import { definePlugin } from '../../src/agent/plugin.js';
import type { Tool } from '../../src/agent/tool.js';
import { GUARD_TIMEOUT_MS } from '../../src/tool-limits.js';
import { deferred, NOTHING_LEFT, settled, tool, ToolStage, type StageOptions } from './tool-stage.js';

const RESULT = { status: 'approved', refund_id: 'R-1' };
const never = (): Promise<never> => new Promise(() => {});
const throws = (): never => {
  throw new Error('the rules are away');
};

type Act = () => unknown;
const BEFORE: Readonly<Record<string, Act | undefined>> = {
  none: undefined,
  undefined: () => undefined,
  null: () => Promise.resolve(null),
  substitute: () => ({ status: 'denied' }),
  falsy: () => false,
  empty: () => ({}),
  throw: throws,
  reject: () => Promise.reject(new Error('the rules are away')),
  hang: never,
};
const AFTER: Readonly<Record<string, Act | undefined>> = {
  none: undefined,
  null: () => null,
  replace: () => ({ status: 'redacted' }),
  throw: throws,
  hang: never,
};

interface Played {
  readonly runs: number;
  readonly response: unknown;
  readonly event: unknown;
}

async function play(
  options: StageOptions & { readonly kind?: 'refund' | 'monitor' },
  more: readonly Tool[] = [],
): Promise<Played & { readonly stage: ToolStage }> {
  let runs = 0;
  const name = options.kind === 'monitor' ? 'monitor_stock_price' : 'process_refund';
  const execute =
    options.kind === 'monitor'
      ? async function* () {
          runs += 1;
          yield await never();
        }
      : () => {
          runs += 1;
          return RESULT;
        };
  const { kind: _kind, ...definition } = options;
  const stage = new ToolStage({ ...definition, tools: [tool(name, { execute }), ...more] });
  const [id = ''] = stage.send([name, { order_id: 'A-1' }]);
  await stage.pass(2 * GUARD_TIMEOUT_MS);
  const played = {
    runs,
    response: stage.host.answerTo(id),
    event: stage.host.resultOf(id),
    afters: 0,
    stage,
  };
  await stage.close();
  expect(stage.counts).toEqual(NOTHING_LEFT);
  return played;
}

const guardOf = (
  where: string,
  stageName: 'beforeTool' | 'afterTool',
  act: Act | undefined,
): StageOptions => {
  if (act === undefined) return {};
  return where === 'plugin'
    ? { plugins: [definePlugin({ name: 'policy', [stageName]: act })] }
    : { [stageName]: act };
};

describe.each(['plugin', 'agent'])('in front of a tool, a guard of the %s', (where) => {
  describe.each(['refund', 'monitor'] as const)('of a %s', (kind) => {
    it.each(Object.entries(BEFORE))('that does "%s"', async (what, act) => {
      const { runs, response, event, stage } = await play({ kind, ...guardOf(where, 'beforeTool', act) });
      expect(event).toEqual(response);
      const isPassed = ['none', 'undefined', 'null'].includes(what);
      expect(runs).toBe(isPassed ? 1 : 0);
      if (isPassed && kind === 'refund') expect(response).toEqual(RESULT);
      else if (isPassed) expect(response).toMatchObject({ status: 'pending' });
      else if (what === 'substitute') expect(response).toEqual({ status: 'denied' });
      else if (what === 'falsy') expect(response).toEqual({ result: false });
      else if (what === 'empty') expect(response).toEqual({});
      else {
        const { error = '' } = response as { readonly error?: string };
        expect(error).toContain('refused');
        expect(error).toContain(kind === 'refund' ? 'process_refund' : 'monitor_stock_price');
        expect(error).toContain(what === 'hang' ? 'more than 3 s' : 'the rules are away');
        expect(stage.log.publicText).not.toContain('the rules are away');
      }
    });
  });
});

describe.each(['plugin', 'agent'])('behind a tool, a guard of the %s', (where) => {
  it.each(Object.entries(AFTER))('that does "%s"', async (what, act) => {
    const { runs, response, event } = await play(guardOf(where, 'afterTool', act));
    expect(event).toEqual(response);
    expect(runs).toBe(1);
    if (what === 'replace') expect(response).toEqual({ status: 'redacted' });
    else if (what === 'none' || what === 'null' || where === 'plugin') expect(response).toEqual(RESULT);
    else expect(response).toEqual({ error: expect.stringContaining(what === 'hang' ? '3 s' : 'away') });
  });
});

describe('the stages', () => {
  const traced = (trace: string[], name: string, value?: unknown, priority = 0) =>
    definePlugin({
      name,
      priority,
      beforeTool: () => {
        trace.push(`${name}<`);
        return value;
      },
      afterTool: () => {
        trace.push(`>${name}`);
        return value;
      },
    });
  const agent = (trace: string[]): StageOptions => ({
    beforeTool: () => void trace.push('agent<'),
    afterTool: () => void trace.push('>agent'),
  });

  it('go through plugins by priority, equals in the order of the list, and then the agent', async () => {
    const trace: string[] = [];
    const plugins = [traced(trace, 'late', undefined, 5), traced(trace, 'p1'), traced(trace, 'p2')];
    await play({ plugins, ...agent(trace) });
    expect(trace).toEqual(['p1<', 'p2<', 'late<', 'agent<', '>p1', '>p2', '>late', '>agent']);
  });

  it('end at the first value, each for itself: what stands behind the tool sees a substitute, too', async () => {
    const trace: string[] = [];
    const { response, runs } = await play({
      plugins: [traced(trace, 'p1', 'no'), traced(trace, 'p2')],
      ...agent(trace),
    });
    expect(trace).toEqual(['p1<', '>p1']);
    expect(response).toEqual({ result: 'no' });
    expect(runs).toBe(0);
  });

  it.each(['plugin', 'agent'])('do not go on behind a %s that failed in front', async (where) => {
    const trace: string[] = [];
    const failing = guardOf(where, 'beforeTool', throws);
    await play({ ...failing, afterTool: () => void trace.push('>agent') });
    expect(trace).toEqual([]);
  });

  it('go on behind a plugin that failed behind the tool', async () => {
    const trace: string[] = [];
    const failing = definePlugin({ name: 'p1', afterTool: throws });
    const { response } = await play({ plugins: [failing, traced(trace, 'p2', 'kept')] });
    expect(trace).toContain('>p2');
    expect(response).toEqual({ result: 'kept' });
  });

  it('are gone through by trusted tools neither in front nor behind, and that is logged', async () => {
    const trace: string[] = [];
    let runs = 0;
    const trusted = tool('trusted', {
      trusted: true,
      execute: () => {
        runs += 1;
      },
    });
    const stage = new ToolStage({ tools: [trusted], plugins: [traced(trace, 'p1', 'no')], ...agent(trace) });
    await stage.ask('trusted');
    expect([runs, trace]).toEqual([1, []]);
    expect(stage.log.lines).toMatchObject([{ level: 'info', fields: { tool: 'trusted' } }]);
  });

  it('are not gone through for a call that cannot run', async () => {
    const trace: string[] = [];
    const parameters = {
      type: 'object',
      properties: { order_id: { type: 'string' } },
      required: ['order_id'],
    };
    const strict = tool('strict', { parameters });
    const stage = new ToolStage({ tools: [strict], plugins: [traced(trace, 'p1')] });
    const bad = await stage.ask('strict');
    const unknown = await stage.ask('nope');
    expect(stage.host.answerTo(bad)).toMatchObject({ error: expect.stringContaining('order_id') });
    expect(stage.host.answerTo(unknown)).toMatchObject({ error: 'There is no tool named nope.' });
    expect(trace).toEqual([]);
  });
});

describe('arguments', () => {
  it('that a guard changed reach the handler, while the original stays as it was', async () => {
    const seen: unknown[] = [];
    const stage = new ToolStage({
      tools: [tool('pay', { execute: (args) => void seen.push(args) })],
      plugins: [
        definePlugin({
          name: 'limit',
          beforeTool: ({ args }) => {
            args['amount'] = 5;
            (args['nested'] as Record<string, unknown>)['deep'] = 'changed';
          },
        }),
      ],
      afterTool: ({ args }) => void seen.push(args),
    });
    const args = { amount: 500, nested: { deep: 'original' } };
    void stage.calls.dispatch([{ id: 'x', name: 'pay', args }]);
    await settled();
    const changed = { amount: 5, nested: { deep: 'changed' } };
    expect(seen).toEqual([changed, changed]);
    expect(args).toEqual({ amount: 500, nested: { deep: 'original' } });
  });

  it('that a guard made wrong do not reach the handler', async () => {
    let runs = 0;
    const parameters = { type: 'object', properties: { amount: { type: 'number' } } };
    const stage = new ToolStage({
      tools: [tool('pay', { parameters, execute: () => (runs += 1) })],
      beforeTool: ({ args }) => {
        args['amount'] = 'all of it';
      },
    });
    const id = await stage.ask('pay', { amount: 1 });
    expect(runs).toBe(0);
    expect(stage.host.answerTo(id)).toMatchObject({ error: expect.stringContaining('amount') });
  });

  it('that cannot be copied any more are an error, not a crash', async () => {
    const stage = new ToolStage({
      tools: [tool('pay')],
      beforeTool: ({ args }) => {
        args['amount'] = () => 5;
      },
    });
    const id = await stage.ask('pay');
    expect(stage.host.answerTo(id)).toMatchObject({ error: expect.any(String) });
  });

  it('cannot be changed by a guard that kept them', async () => {
    const seen: unknown[] = [];
    let kept: Record<string, unknown> = {};
    const slow = tool('slow', { execute: (args) => void seen.push(structuredClone(args)) });
    const first = deferred();
    const stage = new ToolStage({
      tools: [tool('first', { execute: () => first.promise }), slow],
      runConfig: { maxConcurrentTools: 1 },
      plugins: [
        definePlugin({
          name: 'keeper',
          beforeTool({ tool: name, args }) {
            if (name === 'slow') kept = args;
          },
        }),
      ],
      beforeTool: () => undefined,
    });
    stage.send(['first'], ['slow', { amount: 1 }]);
    await settled();
    kept['amount'] = 1_000;
    first.resolve('done');
    await settled();
    expect(seen).toEqual([{ amount: 1 }]);
  });
});

describe('what a guard returns', () => {
  it.each([
    [{ role: 'model', parts: [{ text: 'not ' }, { text: 'now' }] }, { result: 'not now' }],
    [{ parts: [{ functionResponse: { name: 'x', response: { status: 'held' } } }] }, { status: 'held' }],
    [{ parts: [{ functionResponse: { name: 'x' } }] }, {}],
    [{ parts: [] }, { result: '' }],
    [{ parts: ['door', 'wheel'] }, { parts: ['door', 'wheel'] }],
    [
      { parts: [{ text: 'x' }], status: 'own' },
      { parts: [{ text: 'x' }], status: 'own' },
    ],
    ['text', { result: 'text' }],
    [0, { result: 0 }],
    [[1, 2], { result: [1, 2] }],
  ])('as %j is told as %j, in front and behind', async (value, told) => {
    expect((await play({ beforeTool: () => value })).response).toEqual(told);
    expect((await play({ afterTool: () => value })).response).toEqual(told);
    const plugins = [definePlugin({ name: 'p', beforeTool: () => value })];
    expect((await play({ plugins })).response).toEqual(told);
  });

  it('is a copy: changing the result that was shown changes nothing', async () => {
    const { response } = await play({
      afterTool: ({ result }) => {
        (result as Record<string, unknown>)['status'] = 'stolen';
      },
    });
    expect(response).toEqual(RESULT);
  });
});

describe('the stage behind a tool', () => {
  it('looks over what is told of a handler whose time was up, even where it fails itself', async () => {
    const seen: unknown[] = [];
    const failing = definePlugin({ name: 'p1', afterTool: throws });
    const stage = new ToolStage({
      tools: [tool('slow', { timeoutMs: 100, execute: never })],
      plugins: [failing],
      afterTool: ({ result }) => {
        seen.push(result);
        return { status: 'we are on it' };
      },
    });
    const id = await stage.ask('slow');
    await stage.pass(100);
    expect(seen).toEqual([{ error: expect.stringContaining('took too long') }]);
    expect(stage.host.answerTo(id)).toEqual({ status: 'we are on it' });
  });

  it('looks over what is told of a call that was withdrawn meanwhile', async () => {
    const stage = new ToolStage({
      tools: [tool('pay', { execute: () => ({ card: '4111' }) })],
      afterTool: async ({ ctx }) => {
        await Promise.resolve();
        stage.calls.withdraw(['c1']);
        expect(ctx.signal.aborted).toBe(true);
        return { card: 'hidden' };
      },
    });
    const id = await stage.ask('pay');
    expect(stage.host.resultOf(id)).toEqual({ card: 'hidden' });
    expect(stage.host.texts).toEqual([expect.stringContaining('"card":"hidden"')]);
    expect(stage.host.frames).toEqual([]);
  });
});
