import { describe, expect, it } from 'vitest';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { NothingDone } from '../../src/agent/tool.js';
import { PERMIT_KEPT_MAX_MS } from '../../src/tool-limits.js';
import {
  deferred,
  NOTHING_LEFT,
  NOTHING_OPEN,
  settled,
  tool,
  ToolStage,
  type Deferred,
} from './tool-stage.js';

const sideEffect = {
  key: ({ order_id: order }: { readonly order_id?: unknown }) => `refund:${String(order)}`,
};
const never = (): Promise<never> => new Promise(() => {});

describe('handlers', () => {
  it('run side by side: three that need each other finish', async () => {
    const barrier: (() => void)[] = [];
    const meet = tool('meet', {
      execute: () =>
        new Promise<string>((resolve) => {
          barrier.push(() => resolve('met'));
          if (barrier.length === 3) for (const go of barrier) go();
        }),
    });
    const stage = new ToolStage({ tools: [meet] });
    stage.send(['meet'], ['meet'], ['meet']);
    await settled();
    expect(stage.host.frames).toEqual([['c1', 'c2', 'c3']]);
  });

  it.each([
    [undefined, 4],
    [3, 3],
    [1, 1],
  ])('run as many at once as the agent allows (%j): six at %i', async (maxConcurrentTools, peak) => {
    let now = 0;
    let most = 0;
    const stage: ToolStage = new ToolStage({
      tools: [
        tool('slow', {
          async execute() {
            now += 1;
            most = Math.max(most, now);
            await new Promise<void>((resolve) => void stage.clock.setTimer(300, resolve));
            now -= 1;
            if (most > 0) throw new Error('a permit is free on failure, too');
          },
        }),
      ],
      ...(maxConcurrentTools !== undefined && { runConfig: { maxConcurrentTools } }),
    });
    const ids = stage.send(...Array.from({ length: 6 }, () => ['slow'] as const));
    await stage.pass(300 * Math.ceil(6 / peak));
    expect(most).toBe(peak);
    expect(stage.host.frames).toEqual([ids]);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that throw whatever are an error of theirs alone', async () => {
    const stage = new ToolStage({
      tools: [
        tool('throws', {
          execute: () => {
            throw new Error('the order system is away');
          },
        }),
        tool('odd', { execute: () => Promise.reject(Object.create(null) as Error) }),
        tool('fine'),
      ],
    });
    stage.send(['throws'], ['odd'], ['fine']);
    await settled();
    expect(stage.host.of('answered')[0]?.responses.map(({ response }) => response)).toEqual([
      { error: 'the order system is away' },
      { error: 'what was thrown has no text' },
      { ok: 'fine' },
    ]);
    expect(stage.log.publicText).not.toContain('order system');
  });

  async function* later() {
    yield await Promise.resolve(1);
  }
  function* values() {
    yield 1;
  }
  it.each([
    ['an async generator', () => later(), 'async function*'],
    ['a generator', values, '[...values]'],
    ['an iterator', () => new Map([[1, 2]]).values(), '[...values]'],
    ['a Response', () => new Response('hi'), 'await response.json()'],
    ['a function', () => () => 1, 'a function'],
  ])('that return %s are an error that says what to do, not an empty result', async (_what, execute, why) => {
    const stage = new ToolStage({ tools: [tool('watch', { execute })] });
    const id = await stage.ask('watch');
    expect(stage.host.answerTo(id)).toEqual({ error: expect.stringContaining(why) });
  });

  it('are given up when their time is up, are told so, and are told of when they are done after all', async () => {
    const work = deferred();
    const reasons: unknown[] = [];
    const slow = tool('slow', {
      timeoutMs: 500,
      execute(_args, { signal }) {
        signal.addEventListener('abort', () => reasons.push((signal.reason as Error).message));
        return work.promise;
      },
    });
    const stage = new ToolStage({ tools: [slow], afterTool: ({ result }) => ({ ...result, seen: true }) });
    const id = await stage.ask('slow');
    await stage.pass(499);
    expect(stage.host.frames).toEqual([]);
    await stage.pass(1);
    expect(stage.host.answerTo(id)).toEqual({
      error: expect.stringContaining('more than 0.5 s'),
      seen: true,
    });
    expect(reasons).toEqual(['it took more than 0.5 s']);
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(stage.host.texts).toEqual([
      'slow was given up, but has been carried out after all. Its result: {"refund_id":"R-1","seen":true}',
    ]);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('that never end keep others waiting for a while, and then nobody any more', async () => {
    const stage = new ToolStage({
      tools: [tool('deaf', { timeoutMs: 100, execute: never }), tool('quick')],
      runConfig: { maxConcurrentTools: 2 },
    });
    stage.send(['deaf'], ['deaf']);
    await stage.pass(100);
    const waits = await stage.ask('quick');
    await stage.pass(PERMIT_KEPT_MAX_MS - 1);
    expect(stage.host.answerTo(waits)).toBeUndefined();
    await stage.pass(1);
    expect(stage.host.answerTo(waits)).toEqual({ ok: 'quick' });
    const deaf = stage.log.lines.filter(({ message }) => message.includes('others begin without'));
    expect(deaf.map(({ fields }) => fields)).toEqual([{ tool: 'deaf' }, { tool: 'deaf' }]);
    // However many there were: they stay deaf, and nobody is kept waiting.
    for (let round = 0; round < 20; round += 1) stage.send(['deaf']);
    await stage.pass(60_000);
    const id = await stage.ask('quick');
    expect(stage.host.answerTo(id)).toEqual({ ok: 'quick' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that have become deaf while others wait give way, too', async () => {
    const stage = new ToolStage({
      tools: [tool('deaf', { timeoutMs: 1_000, execute: never }), tool('quick', { timeoutMs: 10_000 })],
      runConfig: { maxConcurrentTools: 1 },
    });
    await stage.ask('deaf');
    const id = await stage.ask('quick');
    await stage.pass(1_000 + 2 * PERMIT_KEPT_MAX_MS);
    expect(stage.host.answerTo(id)).toEqual({ ok: 'quick' });
  });

  it('that have little time do not wait for others for longer, and are not begun', async () => {
    let runs = 0;
    const stage = new ToolStage({
      tools: [
        tool('hang', { timeoutMs: 100, execute: never }),
        tool('quick', { timeoutMs: 1_000, execute: () => (runs += 1) }),
      ],
      runConfig: { maxConcurrentTools: 1 },
    });
    await stage.ask('hang');
    const id = await stage.ask('quick');
    await stage.pass(1_000);
    expect(stage.host.answerTo(id)).toEqual({ error: expect.stringContaining('too many others') });
    expect(runs).toBe(0);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that are withdrawn while they wait are not begun', async () => {
    let runs = 0;
    const first = deferred();
    const stage = new ToolStage({
      tools: [tool('one', { execute: () => first.promise }), tool('two', { execute: () => (runs += 1) })],
      runConfig: { maxConcurrentTools: 1 },
    });
    const [one = '', two = ''] = stage.send(['one'], ['two']);
    await settled();
    stage.calls.withdraw([two]);
    await settled();
    first.resolve('done');
    await settled();
    expect(runs).toBe(0);
    expect(stage.host.frames).toEqual([[one]]);
    expect(stage.host.resultOf(two)).toEqual({ error: 'two was not begun: the call was withdrawn.' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that are long do not keep the quick from running', async () => {
    const stage = new ToolStage({
      tools: [tool('long', { longRunning: true, execute: never }), tool('quick')],
      runConfig: { maxConcurrentTools: 1 },
    });
    await stage.ask('long');
    const id = await stage.ask('quick');
    expect(stage.host.answerTo(id)).toEqual({ ok: 'quick' });
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });
});

describe('a side effect', () => {
  function refunds(
    execute: (args: Readonly<Record<string, unknown>>) => unknown,
    ledger = undefined as ToolStage['ledger'] | undefined,
  ) {
    let deeds = 0;
    const refund = tool('refund', {
      timeoutMs: 500,
      sideEffect,
      execute(args) {
        deeds += 1;
        return execute(args);
      },
    });
    const stage = new ToolStage({ tools: [refund], ...(ledger !== undefined && { ledger }) });
    return { stage, deeds: () => deeds };
  }
  const ORDER = { order_id: 'A-1' };
  const KEY = 'refund:A-1';

  it('is done once; a repeat has the same answer, another server’s too', async () => {
    const { stage, deeds } = refunds(() => ({ refund_id: 'R-1' }));
    const one = await stage.ask('refund', ORDER);
    const two = await stage.ask('refund', ORDER);
    const other = refunds(() => ({ refund_id: 'R-2' }), stage.ledger);
    const three = await other.stage.ask('refund', ORDER);
    expect(deeds() + other.deeds()).toBe(1);
    expect(stage.host.answerTo(one)).toEqual({ refund_id: 'R-1' });
    for (const answer of [stage.host.answerTo(two), other.stage.host.answerTo(three)])
      expect(answer).toEqual({ refund_id: 'R-1', repeated: true });
    expect(stage.ledger.stateOf(KEY)).toBe('done');
  });

  it('that is under way is waited for by a repeat', async () => {
    const work = deferred();
    const { stage, deeds } = refunds(() => work.promise);
    stage.send(['refund', ORDER], ['refund', ORDER]);
    await settled();
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(deeds()).toBe(1);
    expect([stage.host.answerTo('c1'), stage.host.answerTo('c2')]).toEqual([
      { refund_id: 'R-1' },
      { refund_id: 'R-1', repeated: true },
    ]);
  });

  it('that is done after its time still settles the ledger', async () => {
    const work = deferred();
    const { stage, deeds } = refunds(() => work.promise);
    await stage.ask('refund', ORDER);
    await stage.pass(500);
    expect(stage.ledger.stateOf(KEY)).toBe('open');
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(stage.ledger.stateOf(KEY)).toBe('done');
    const again = await stage.ask('refund', ORDER);
    expect(stage.host.answerTo(again)).toEqual({ refund_id: 'R-1', repeated: true });
    expect(deeds()).toBe(1);
  });

  it('that is done after the hang-up still settles the ledger', async () => {
    const work = deferred();
    const { stage } = refunds(() => work.promise);
    await stage.ask('refund', ORDER);
    await stage.close();
    expect(stage.host.resultOf('c1')).toEqual({ error: 'The conversation ended before it was done.' });
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(stage.ledger.stateOf(KEY)).toBe('done');
    expect(stage.host.texts).toEqual([]);
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('that was withdrawn and is done all the same is told to the model', async () => {
    const work = deferred();
    const { stage } = refunds(() => work.promise);
    const id = await stage.ask('refund', ORDER);
    stage.calls.withdraw([id]);
    await settled();
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(stage.host.frames).toEqual([]);
    expect(stage.host.texts).toEqual([
      expect.stringContaining('carried out after all. Its result: {"refund_id":"R-1"}'),
    ]);
  });

  it.each([['throws NothingDone', () => Promise.reject(new NothingDone('the card was declined'))]])(
    'that %s may be tried again',
    async (_what, execute) => {
      const { stage, deeds } = refunds(execute);
      const one = await stage.ask('refund', ORDER);
      expect(stage.host.answerTo(one)).toEqual({ error: 'the card was declined' });
      expect(stage.ledger.stateOf(KEY)).toBeUndefined();
      await stage.ask('refund', ORDER);
      expect(deeds()).toBe(2);
    },
  );

  // The money may have gone before whatever the error tells of.
  it.each([
    ['answers with an error', () => ({ error: 'the receipt could not be mailed', refund_id: 'R-1' })],
    ['returns an Error', () => new Error('the receipt could not be mailed')],
  ])('that %s is done, and a repeat gets the same answer', async (_what, execute) => {
    const { stage, deeds } = refunds(execute);
    const one = await stage.ask('refund', ORDER);
    const two = await stage.ask('refund', ORDER);
    expect(stage.host.answerTo(one)).toMatchObject({ error: 'the receipt could not be mailed' });
    expect(stage.host.answerTo(two)).toEqual({ ...stage.host.answerTo(one), repeated: true });
    expect(deeds()).toBe(1);
    expect(stage.ledger.stateOf(KEY)).toBe('done');
  });

  it('that throws stays open, and a repeat is refused', async () => {
    const { stage, deeds } = refunds(() => {
      throw new Error('the connection was reset');
    });
    const one = await stage.ask('refund', ORDER);
    const two = await stage.ask('refund', ORDER);
    expect(stage.host.answerTo(one)).toEqual({ error: expect.stringMatching(/reset.*a person has to look/) });
    expect(stage.host.answerTo(two)).toEqual({
      error: expect.stringMatching(/^refund was refused: .*not known/),
    });
    expect(deeds()).toBe(1);
    expect(stage.ledger.stateOf(KEY)).toBe('open');
  });

  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  it.each([
    ['cannot be told as JSON', { amount: 10n }],
    ['is a cycle', cycle],
    ['is too long', { text: 'x'.repeat(70_000) }],
    ['says that there was no error', { error: null, refund_id: 'R-1' }],
    ['says error: false', { error: false, refund_id: 'R-1' }],
    ['is nothing', undefined],
  ])('whose result %s was done all the same, and is not done again', async (_what, value) => {
    const { stage, deeds } = refunds(() => value);
    const one = await stage.ask('refund', ORDER);
    stage.calls.onCallerTurn();
    const two = await stage.ask('refund', ORDER);
    expect(deeds()).toBe(1);
    expect(stage.ledger.stateOf(KEY)).toBe('done');
    expect(stage.host.answerTo(two)).toEqual({ ...stage.host.answerTo(one), repeated: true });
  });

  it.each(['before', 'after'] as const)('is not done where the ledger fails %s the claim', async (fault) => {
    const { stage, deeds } = refunds(() => ({}));
    stage.ledger.faults.push(fault);
    const id = await stage.ask('refund', ORDER);
    expect(deeds()).toBe(0);
    expect(stage.host.answerTo(id)).toEqual({ error: 'refund was refused: the ledger cannot be reached.' });
  });

  it('whose result cannot be kept is answered, and stays open so that a repeat is refused', async () => {
    const { stage, deeds } = refunds(() => ({ refund_id: 'R-1' }));
    stage.ledger.faults.push('none', ...Array<'before'>(5).fill('before'));
    await stage.ask('refund', ORDER);
    await stage.pass(10_000);
    const two = await stage.ask('refund', ORDER);
    expect(deeds()).toBe(1);
    expect(stage.host.answerTo(two)).toEqual({ error: expect.stringContaining('refused') });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('whose result is kept at the third try is done', async () => {
    const { stage } = refunds(() => ({ refund_id: 'R-1' }));
    stage.ledger.faults.push('none', 'before', 'after');
    const id = await stage.ask('refund', ORDER);
    await stage.pass(2_000);
    expect(stage.ledger.stateOf(KEY)).toBe('done');
    expect(stage.host.answerTo(id)).toBeDefined();
  });

  const GIVEN_UP: readonly (readonly [string, (stage: ToolStage, id: string) => Promise<void>])[] = [
    [
      'withdrawn',
      async (stage, id) => {
        stage.calls.withdraw([id]);
        await settled();
      },
    ],
    ['too slow', (stage) => stage.pass(500)],
    ['cut by the hang-up', (stage) => stage.close()],
  ];

  /** Its handler is given up in the middle, and then does what `then` says. */
  async function givenUp(
    giveUp: (stage: ToolStage, id: string) => Promise<void>,
    then: (ctx: ToolContext) => unknown,
  ) {
    const work = deferred();
    const refund = tool('refund', {
      timeoutMs: 500,
      sideEffect,
      async execute(_args, ctx) {
        await work.promise;
        return then(ctx);
      },
    });
    const stage = new ToolStage({ tools: [refund] });
    const id = await stage.ask('refund', ORDER);
    await giveUp(stage, id);
    const before = stage.host.resultOf(id);
    await stage.pass(60_000);
    work.resolve(undefined);
    await settled();
    const inRun = stage.host.of('responded').filter(({ isLate }) => isLate);
    return { stage, id, before, late: [...inRun, ...stage.late] };
  }

  it.each(GIVEN_UP)(
    'that is %s and then writes down what it did is settled, and told once',
    async (_what, giveUp) => {
      const { stage, before, late } = await givenUp(giveUp, ({ state }) => {
        state['last'] = 'R-1';
        return { refund_id: 'R-1' };
      });
      expect(before).toHaveProperty('error');
      expect(stage.ledger.stateOf(KEY)).toBe('done');
      expect(late).toMatchObject([{ response: { refund_id: 'R-1' }, isLate: true }]);
      expect(stage.changesTold.filter(({ stateDelta }) => 'last' in stateDelta)).toHaveLength(1);
    },
  );

  it.each(GIVEN_UP)('that is %s has its outcome told though it failed', async (_what, giveUp) => {
    const nothing = await givenUp(giveUp, () => Promise.reject(new NothingDone('the card was declined')));
    expect(nothing.late).toMatchObject([{ response: { error: 'the card was declined' } }]);
    const unknown = await givenUp(giveUp, () => Promise.reject(new Error('reset')));
    expect(unknown.late).toMatchObject([{ response: { error: expect.stringContaining('a person') } }]);
  });

  it.each(GIVEN_UP.slice(0, 2))(
    'that is %s is told as perhaps done until the outcome is known',
    async (_what, giveUp) => {
      const { stage, before } = await givenUp(giveUp, () => ({ refund_id: 'R-1' }));
      expect(before?.['error']).toMatch(/whether it was done is not known yet.*you will learn the outcome/);
      expect(stage.host.texts).toEqual([
        expect.stringContaining('carried out after all. Its result: {"refund_id":"R-1"}'),
      ]);
    },
  );

  it('that still runs is told so to a repeat, which is told the outcome, too, whoever asked', async () => {
    const work = deferred();
    const { stage, deeds } = refunds(() => work.promise);
    const one = await stage.ask('refund', ORDER);
    await stage.pass(500);
    const two = await stage.ask('refund', ORDER);
    await stage.pass(500);
    for (const id of [one, two])
      expect(stage.host.answerTo(id)?.['error']).toMatch(/whether it was done is not known yet/);
    work.resolve({ refund_id: 'R-1' });
    await settled();
    expect(stage.host.of('responded').filter(({ isLate }) => isLate)).toMatchObject([
      { id: one, response: { refund_id: 'R-1' } },
      { id: two, response: { refund_id: 'R-1', repeated: true } },
    ]);
    expect(deeds()).toBe(1);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that was withdrawn before it was begun leaves nothing open', async () => {
    const { stage, deeds } = refunds(() => ({ refund_id: 'R-1' }));
    const gate: Deferred<void> = deferred();
    stage.ledger.gate = gate.promise;
    const id = await stage.ask('refund', ORDER);
    stage.calls.withdraw([id]);
    await settled();
    gate.resolve();
    await settled();
    expect(deeds()).toBe(0);
    expect(stage.ledger.stateOf(KEY)).toBeUndefined();
  });

  it('that was withdrawn before it was begun is done for whoever waits for it', async () => {
    const { stage, deeds } = refunds(() => ({ refund_id: 'R-1' }));
    const gate: Deferred<void> = deferred();
    stage.ledger.gate = gate.promise;
    const one = await stage.ask('refund', ORDER);
    const two = await stage.ask('refund', ORDER);
    stage.calls.withdraw([one]);
    gate.resolve();
    await settled();
    expect(deeds()).toBe(1);
    expect(stage.host.answerTo(two)).toEqual({ refund_id: 'R-1' });
  });

  it.each([
    ['no text', () => 5 as never],
    ['empty', () => ''],
    ['too long', () => 'x'.repeat(501)],
    ['a promise', () => Promise.reject(new Error('asynchronous')) as never],
    [
      'not there',
      () => {
        throw new Error('the order is not known');
      },
    ],
  ])('whose key is %s is refused', async (_what, key) => {
    let deeds = 0;
    const stage = new ToolStage({
      tools: [tool('refund', { sideEffect: { key }, execute: () => (deeds += 1) })],
    });
    const id = await stage.ask('refund');
    expect(stage.host.answerTo(id)).toEqual({ error: expect.stringMatching(/^refund was refused: /) });
    expect(deeds).toBe(0);
  });

  it('is refused for another amount, which names both, and has the answer of then for the same', async () => {
    const work = deferred();
    const pay = tool('pay', {
      sideEffect: {
        key: ({ id }) => String(id),
        amount: ({ cents }) => ({
          account: 'A-1',
          currency: 'EUR',
          limitMinor: 5_000,
          amountMinor: cents as number,
        }),
      },
      execute: () => work.promise,
    });
    const stage = new ToolStage({ tools: [pay] });
    const paid = [1_000, 2_000, 1_000].map((cents) => ['pay', { id: 'a1', cents }] as const);
    const [one = '', ...underWay] = stage.send(...paid);
    await settled();
    work.resolve({ message: 'paid a1' });
    await settled();
    expect(stage.host.answerTo(one)).toEqual({ message: 'paid a1' });
    const done = stage.send(...paid.slice(1));
    await settled();
    for (const [other = '', same = ''] of [underWay, done]) {
      expect(stage.host.answerTo(other)).toEqual({
        error: expect.stringMatching(/refused.*1000 EUR.*2000 EUR.*nothing more was done/),
        earlier: { message: 'paid a1' },
      });
      expect(stage.host.answerTo(same)).toEqual({ message: 'paid a1', repeated: true });
    }
  });

  it('moves no more than its account allows, and no odd amounts', async () => {
    const limits = { account: 'A-1', currency: 'USD', limitMinor: 1_000 };
    const pay = tool('pay', {
      sideEffect: {
        key: (args) => String(args['key']),
        amount: (args) => ({ ...limits, amountMinor: args['amount'] as number }),
      },
      execute: ({ key }) => ({ paid: key }),
    });
    const stage = new ToolStage({ tools: [pay] });
    const answers: unknown[] = [];
    for (const [key, amount] of [
      ['a', 600],
      ['b', 600],
      ['c', 400],
      ['d', 0.5],
      ['e', -1],
      ['f', '5'],
    ] as const)
      answers.push(stage.host.answerTo(await stage.ask('pay', { key, amount })));
    const odd = { error: expect.stringContaining('not a whole number above 0') as unknown };
    expect(answers).toEqual([
      { paid: 'a' },
      { error: expect.stringContaining('limit') },
      { paid: 'c' },
      odd,
      odd,
      odd,
    ]);
  });
});
