/** Calls that wait for a person or for slow work, in a run that lives, one that is over, and a server that crashed. */
import { describe, expect, it } from 'vitest';
import { definePlugin } from '../../src/agent/plugin.js';
import type { JsonObject } from '../../src/event/event.js';
import { MemoryPendingCalls } from './memory-pending-calls.js';
import {
  deferred,
  NOTHING_LEFT,
  NOTHING_OPEN,
  settled,
  tool,
  ToolStage,
  type Deferred,
  type StageOptions,
} from './tool-stage.js';

const ORDER = { order_id: 'A-1' };
const sideEffect = { key: (args: JsonObject) => `refund:${String(args['order_id'])}` };
const APPROVE = { decision: 'approve', by: 'Ada' } as const;
const DENY = { decision: 'deny', by: 'Ada' } as const;

interface Refunds {
  readonly stage: ToolStage;
  readonly deeds: () => number;
  readonly id: string;
}

/** One call of a tool that a person approves, up to its pending answer. */
async function askApproval(
  {
    execute = () => ({ refund_id: 'R-1' }),
    isGuarded = false,
  }: { readonly execute?: () => unknown; readonly isGuarded?: boolean } = {},
  options: StageOptions = {},
): Promise<Refunds> {
  let deeds = 0;
  const refund = tool('refund', {
    approval: true,
    ...(isGuarded && { sideEffect }),
    execute() {
      deeds += 1;
      return execute();
    },
  });
  const stage = new ToolStage({ ...options, tools: [refund] });
  const id = await stage.ask('refund', ORDER);
  return { stage, deeds: () => deeds, id };
}

/** A server that has come up behind another one on the same database. */
async function restarted(
  { ledger, store, readState }: Pick<ToolStage, 'ledger' | 'store'> & Pick<StageOptions, 'readState'>,
  execute: () => unknown,
  isGuarded: boolean,
): Promise<{ readonly stage: ToolStage; readonly deeds: () => number }> {
  let deeds = 0;
  const refund = tool('refund', {
    approval: true,
    ...(isGuarded && { sideEffect }),
    execute() {
      deeds += 1;
      return execute();
    },
  });
  const stage = new ToolStage({
    ledger,
    store,
    ...(readState !== undefined && { readState }),
    tools: [refund],
  });
  await stage.desk.resume();
  await settled();
  return { stage, deeds: () => deeds };
}

describe('a call that a person approves', () => {
  it('is answered at once as pending, not run, and told as such', async () => {
    const { stage, deeds, id } = await askApproval();
    expect(stage.host.answerTo(id)).toEqual({ status: 'pending', message: expect.any(String) });
    expect(stage.host.of('responded')).toMatchObject([{ id, isPending: true }]);
    expect(stage.counts).toMatchObject({ tools: 0, pending: 1, pendingCalls: 1, timers: 0 });
    expect(stage.store.rows.get(stage.store.onlyId)?.call).toMatchObject({
      session: { appName: 'desk', id: 'CA1' },
      callSid: 'CA1',
      invocationId: 'i1',
      callId: id,
      tool: 'refund',
      args: ORDER,
      kind: 'approval',
    });
    expect(deeds()).toBe(0);
  });

  it('runs once when it is approved, and the model is told the result', async () => {
    const { stage, deeds, id } = await askApproval();
    const pendingId = stage.store.onlyId;
    const outcomes = await Promise.all([
      stage.desk.decide(pendingId, APPROVE),
      stage.desk.decide(pendingId, APPROVE),
      stage.desk.decide(pendingId, DENY),
    ]);
    await settled();
    expect(outcomes.map(({ kind }) => kind)).toEqual(['decided', 'repeat', 'repeat']);
    expect(deeds()).toBe(1);
    expect(stage.host.of('responded')).toMatchObject([
      { id, isPending: true },
      { id, isPending: false, response: { refund_id: 'R-1' } },
    ]);
    expect(stage.host.texts).toEqual([expect.stringContaining('"refund_id":"R-1"')]);
    // The call has its answer already: this one is told in words.
    expect(stage.host.frames).toEqual([[id]]);
    expect(stage.counts).toEqual(NOTHING_OPEN);
    expect((await stage.desk.decide(pendingId, APPROVE)).kind).toBe('repeat');
  });

  it('is an error when it is denied, and does not run', async () => {
    const { stage, deeds, id } = await askApproval();
    await stage.desk.decide(stage.store.onlyId, DENY);
    await settled();
    expect(deeds()).toBe(0);
    expect(stage.host.resultOf(id)).toEqual({ error: 'refund was denied by Ada. It was not done.' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('is not known by another id', async () => {
    const { stage } = await askApproval();
    expect(await stage.desk.decide('nobody', APPROVE)).toEqual({ kind: 'unknown' });
    expect(stage.counts).toMatchObject({ pending: 1 });
  });

  it('is asked for by rule, with the arguments as the tool gets them', async () => {
    const seen: unknown[] = [];
    const refund = tool('refund', {
      parameters: { type: 'object', properties: { amount: { type: 'number', default: 3 } } },
      approval: (args, { userId }) => {
        seen.push(args, userId);
        return (args['amount'] as number) > 100;
      },
    });
    const stage = new ToolStage({ tools: [refund] });
    const small = await stage.ask('refund');
    const large = await stage.ask('refund', { amount: 500 });
    expect(stage.host.answerTo(small)).toEqual({ ok: 'refund' });
    expect(stage.host.answerTo(large)).toMatchObject({ status: 'pending' });
    expect(seen).toEqual([{ amount: 3 }, '+15550100', { amount: 500 }, '+15550100']);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('the limits are away');
      },
    ],
    ['answers later', () => Promise.resolve(false) as never],
    ['fails later', () => Promise.reject(new Error('later')) as never],
    ['answers something else', () => undefined as never],
  ])('is refused where the rule %s', async (_what, approval) => {
    let deeds = 0;
    const stage = new ToolStage({ tools: [tool('refund', { approval, execute: () => (deeds += 1) })] });
    const id = await stage.ask('refund');
    expect(stage.host.answerTo(id)).toEqual({
      error: expect.stringMatching(/^refund was refused: its approval/),
    });
    expect(deeds).toBe(0);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('goes through the guards before a person is asked, and past those behind the tool when it has run', async () => {
    let isAllowed = false;
    const { stage, id, deeds } = await askApproval(
      {},
      {
        plugins: [
          definePlugin({ name: 'policy', beforeTool: () => (isAllowed ? undefined : { status: 'denied' }) }),
        ],
        afterTool: ({ result, args }) => ({ ...result, args, isSeen: true }),
      },
    );
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'denied' });
    expect(stage.store.rows.size).toBe(0);
    isAllowed = true;
    const again = await stage.ask('refund', ORDER);
    expect(stage.store.rows.get(stage.store.onlyId)?.call.guards).toEqual(['policy']);
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await settled();
    expect(deeds()).toBe(1);
    expect(stage.host.resultOf(again)).toEqual({ refund_id: 'R-1', args: ORDER, isSeen: true });
  });

  it('changes state in its own name', async () => {
    const refund = tool('refund', {
      approval: true,
      execute: (_args, ctx) => {
        ctx.state['refunded'] = true;
        ctx.endInvocation = true;
      },
    });
    const stage = new ToolStage({ tools: [refund] });
    await stage.ask('refund');
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await settled();
    expect(stage.host.of('responded').at(-1)?.actions.stateDelta).toEqual({ refunded: true });
    expect(stage.host.of('ended')).toHaveLength(1);
  });

  it.each([false, true])(
    'whose handler takes too long is told what it came to after all (run over: %j)',
    async (isOver) => {
      const work = deferred();
      const send = tool('send', {
        approval: true,
        timeoutMs: 500,
        async execute(_args, { state }) {
          await work.promise;
          state['sent'] = true;
          return { ticket: 5 };
        },
      });
      const stage = new ToolStage({ tools: [send] });
      const id = await stage.ask('send');
      const pendingId = stage.store.onlyId;
      if (isOver) await stage.close();
      await stage.desk.decide(pendingId, APPROVE);
      await stage.pass(500);
      const first = isOver ? stage.late[0]?.response : stage.host.resultOf(id);
      expect(first).toEqual({ error: expect.stringContaining('took too long') });
      work.resolve(undefined);
      await settled();
      const told = [...stage.host.of('responded'), ...stage.late].filter(({ isLate }) => isLate);
      expect(told).toMatchObject([{ response: { ticket: 5 }, actions: { stateDelta: { sent: true } } }]);
      await stage.close();
      expect(stage.counts).toEqual(NOTHING_LEFT);
    },
  );

  it('that cannot be kept is refused and leaves nothing', async () => {
    const store = new MemoryPendingCalls();
    store.isAway = true;
    const { stage, deeds, id } = await askApproval({}, { store });
    expect(stage.host.answerTo(id)).toEqual({ error: expect.stringMatching(/^refund was refused: /) });
    expect(deeds()).toBe(0);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it.each([
    ['withdrawn', (stage: ToolStage, id: string) => stage.calls.withdraw([id])],
    ['cut by the hang-up', (stage: ToolStage) => void stage.calls.close()],
  ])('that is %s while it is being kept waits for nobody', async (_what, end) => {
    const store = new MemoryPendingCalls();
    const gate: Deferred<void> = deferred();
    store.gate = gate.promise;
    const { stage, id, deeds } = await askApproval({}, { store });
    end(stage, id);
    gate.resolve();
    await settled();
    const [row] = [...store.rows.values()];
    expect(row?.isSettled).toBe(true);
    expect((await stage.desk.decide(row!.call.id, APPROVE)).kind).toBe('repeat');
    await settled();
    expect(deeds()).toBe(0);
    expect(stage.host.frames).toEqual([]);
    expect(stage.counts).toMatchObject({ tools: 0, pending: 0, pendingCalls: 0 });
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });
});

describe('a call whose run is over before it is decided', () => {
  it('is done without it, once, and told late', async () => {
    const { stage, deeds, id } = await askApproval();
    const pendingId = stage.store.onlyId;
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
    const told = stage.host.told.length;
    await stage.desk.decide(pendingId, APPROVE);
    await stage.desk.decide(pendingId, APPROVE);
    await stage.desk.idle();
    expect(deeds()).toBe(1);
    expect(stage.late).toMatchObject([{ callId: id, response: { refund_id: 'R-1' } }]);
    expect(stage.host.told).toHaveLength(told);
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('is told late as denied', async () => {
    const { stage, deeds } = await askApproval();
    const pendingId = stage.store.onlyId;
    await stage.close();
    await stage.desk.decide(pendingId, DENY);
    await stage.desk.idle();
    expect(deeds()).toBe(0);
    expect(stage.late).toMatchObject([{ response: { error: expect.stringContaining('denied by Ada') } }]);
  });

  it.each([false, true])(
    'is not given up if it has been approved already (in the ledger: %j)',
    async (isGuarded) => {
      const work = deferred();
      const { stage, deeds, id } = await askApproval({ execute: () => work.promise, isGuarded });
      await stage.desk.decide(stage.store.onlyId, APPROVE);
      await settled();
      await stage.close();
      expect(deeds()).toBe(1);
      expect(stage.late).toEqual([]);
      work.resolve({ refund_id: 'R-1' });
      await stage.desk.idle();
      expect(stage.late).toMatchObject([{ callId: id, response: { refund_id: 'R-1' } }]);
      expect(await stage.store.listDecidedCalls()).toEqual([]);
      expect(stage.counts).toEqual(NOTHING_LEFT);
    },
  );

  it('is not done where its state cannot be read; it is tried again at the next start', async () => {
    const { stage, deeds } = await askApproval();
    const pendingId = stage.store.onlyId;
    await stage.close();
    await stage.store.decidePendingCall(pendingId, APPROVE);
    const { ledger, store } = stage;
    const readState = (): Promise<never> => Promise.reject(new Error('the store is away'));
    const blind = await restarted({ ledger, store, readState }, () => ({ refund_id: 'R-0' }), false);
    const next = await restarted(stage, () => ({ refund_id: 'R-1' }), false);
    expect([deeds(), blind.deeds(), next.deeds()]).toEqual([0, 0, 1]);
    expect(next.stage.late).toMatchObject([{ response: { refund_id: 'R-1' } }]);
  });
});

describe('over a crash', () => {
  it.each([false, true])(
    'a decided call that was not begun is done by the next server (in the ledger: %j)',
    async (isGuarded) => {
      const { stage, deeds } = await askApproval({ isGuarded });
      // The process ends behind the decision's commit.
      await stage.store.decidePendingCall(stage.store.onlyId, APPROVE);
      const next = await restarted(stage, () => ({ refund_id: 'R-1' }), isGuarded);
      const third = await restarted(stage, () => ({ refund_id: 'R-2' }), isGuarded);
      expect([deeds(), next.deeds(), third.deeds()]).toEqual([0, 1, 0]);
      expect(next.stage.late).toMatchObject([{ response: { refund_id: 'R-1' } }]);
      expect(third.stage.late).toEqual([]);
    },
  );

  it('a handler that was begun runs at most once, though its result may be lost', async () => {
    const { stage, deeds } = await askApproval({ execute: () => new Promise(() => {}) });
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await settled();
    const next = await restarted(stage, () => ({ refund_id: 'R-1' }), false);
    expect([deeds(), next.deeds()]).toEqual([1, 0]);
  });

  it('a handler that the ledger guards is not run again, and somebody is told that it has to be looked into', async () => {
    const { stage, deeds, id } = await askApproval({ execute: () => new Promise(() => {}), isGuarded: true });
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await settled();
    const next = await restarted(stage, () => ({ refund_id: 'R-1' }), true);
    expect([deeds(), next.deeds()]).toEqual([1, 0]);
    expect(next.stage.late).toMatchObject([
      { callId: id, response: { error: expect.stringContaining('a person') } },
    ]);
    expect(await stage.store.listDecidedCalls()).toEqual([]);
  });

  it('a handler that the ledger guards and that was done has its result told by the next server', async () => {
    const { stage, deeds, id } = await askApproval({ isGuarded: true });
    const pendingId = stage.store.onlyId;
    await stage.store.decidePendingCall(pendingId, APPROVE);
    const ledger = stage.ledger;
    await ledger.claim({
      session: { appName: 'desk', userId: 'u', id: 's' },
      key: 'refund:A-1',
      tool: 'refund',
      callId: 'x',
      guards: [],
    });
    await ledger.settle('desk', 'refund:A-1', { refund_id: 'R-0' });
    const next = await restarted(stage, () => ({ refund_id: 'R-1' }), true);
    expect([deeds(), next.deeds()]).toEqual([0, 0]);
    expect(next.stage.late).toMatchObject([{ callId: id, response: { refund_id: 'R-0' } }]);
  });
});

describe('long-running work', () => {
  interface Long {
    readonly stage: ToolStage;
    readonly id: string;
    readonly work: Deferred<unknown>;
    readonly signal: () => AbortSignal | undefined;
  }

  async function begin(options: { readonly isGuarded?: boolean } & StageOptions = {}): Promise<Long> {
    const { isGuarded = false, ...rest } = options;
    const work = deferred();
    let signal: AbortSignal | undefined;
    const search = tool('search', {
      longRunning: true,
      ...(isGuarded && { sideEffect }),
      execute(_args, ctx) {
        ({ signal } = ctx);
        return work.promise;
      },
    });
    const stage = new ToolStage({ ...rest, tools: [search] });
    const id = await stage.ask('search', ORDER);
    return { stage, id, work, signal: () => signal };
  }

  it('is answered at once as pending, named in the event, and has no time limit', async () => {
    const { stage, id, work } = await begin();
    expect(stage.host.of('called')).toMatchObject([{ ids: [id], long: [id] }]);
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'pending' });
    await stage.pass(3_600_000);
    work.resolve({ hits: 3 });
    await settled();
    expect(stage.host.resultOf(id)).toEqual({ hits: 3 });
    expect(stage.host.texts).toEqual([expect.stringContaining('{"hits":3}')]);
    expect(stage.host.frames).toEqual([[id]]);
    expect((await stage.desk.decide([...stage.store.rows.keys()][0]!, APPROVE)).kind).toBe('repeat');
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it('that is quick is told behind its pending answer', async () => {
    const stage = new ToolStage({ tools: [tool('search', { longRunning: true })] });
    const id = await stage.ask('search');
    expect(stage.host.told.map(({ kind }) => kind)).toEqual([
      'called',
      'responded',
      'answered',
      'responded',
      'update',
    ]);
    expect(stage.host.resultOf(id)).toEqual({ ok: 'search' });
  });

  it('that fails is told as an error', async () => {
    const { stage, id, work } = await begin();
    work.reject(new Error('the index is away'));
    await settled();
    expect(stage.host.resultOf(id)).toEqual({ error: 'the index is away' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it.each([
    ['nothing', undefined],
    ['that it is pending', { status: 'pending', ticket: 5 }],
  ])('that returns %s is left to whoever decides, and its changes are told', async (_what, value) => {
    const work = deferred();
    const search = tool('search', {
      longRunning: true,
      execute(_args, { state }) {
        state['begun'] = true;
        return work.promise;
      },
    });
    const stage = new ToolStage({ tools: [search] });
    const id = await stage.ask('search');
    work.resolve(value);
    await settled();
    expect(stage.host.of('responded')).toHaveLength(1);
    expect(stage.host.of('changed')).toMatchObject([{ actions: { stateDelta: { begun: true } } }]);
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await settled();
    expect(stage.host.resultOf(id)).toEqual({ status: 'approved', message: 'It was approved by Ada.' });
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it.each([
    [false, APPROVE, 'still being carried out'],
    [true, APPROVE, 'still being carried out'],
    [false, DENY, 'told to stop'],
    [true, DENY, 'told to stop'],
  ])(
    'that is at work may be decided, which says so, and its own result is told all the same (in the ledger: %j, %j)',
    async (isGuarded, decision, says) => {
      const { stage, id, work, signal } = await begin({ isGuarded });
      const pendingId = stage.store.onlyId;
      expect(await stage.desk.decide(pendingId, decision)).toMatchObject({ kind: 'decided' });
      await settled();
      expect(signal()?.aborted).toBe(decision.decision === 'deny');
      expect(JSON.stringify(stage.host.resultOf(id))).toContain(says);
      work.resolve({ message: 'REAL RESULT 42' });
      await settled();
      expect(stage.host.resultOf(id)).toEqual({ message: 'REAL RESULT 42' });
      expect(await stage.desk.decide(pendingId, decision)).toEqual({ kind: 'repeat' });
      expect(stage.host.texts).toHaveLength(2);
      expect(stage.counts).toEqual(NOTHING_OPEN);
    },
  );

  it('is said to be at work as long as it is, and no longer', async () => {
    const { stage, work } = await begin();
    const { store } = stage;
    const pendingId = store.onlyId;
    await stage.desk.tend();
    expect(store.kept).toEqual([pendingId]);
    work.resolve({ status: 'pending' });
    store.isAway = true;
    await settled();
    store.isAway = false;
    // The store could not be told at once, and is told at the next turn.
    await stage.desk.tend();
    expect(store.kept).toEqual([pendingId]);
    expect((await stage.desk.decide(pendingId, DENY)).kind).toBe('decided');
  });

  it('that was lost with its server is told as lost by the next one, once', async () => {
    const { stage, id } = await begin();
    const next = await restarted(stage, () => ({}), false);
    await next.stage.desk.tend();
    await next.stage.desk.tend();
    expect(next.stage.late).toMatchObject([
      { callId: id, response: { error: expect.stringMatching(/lost.*not known/) } },
    ]);
    expect((await next.stage.desk.decide([...stage.store.rows.keys()][0]!, APPROVE)).kind).toBe('repeat');
  });

  it('that was told as lost and is done all the same has its result told, too', async () => {
    const { stage, id, work } = await begin();
    const next = await restarted(stage, () => ({}), false);
    await next.stage.desk.tend();
    work.resolve({ hits: 3 });
    await settled();
    expect(stage.host.of('responded').filter(({ isLate }) => isLate)).toMatchObject([
      { id, response: { hits: 3 } },
    ]);
  });

  it.each([false, true])(
    'that ends at the moment of the decision has its own result told last (in the ledger: %j)',
    async (isGuarded) => {
      for (const isFirst of [true, false]) {
        const { stage, work } = await begin({ isGuarded });
        const id = stage.store.onlyId;
        if (isFirst) work.resolve({ hits: 3 });
        const decided = stage.desk.decide(id, APPROVE);
        if (!isFirst) work.resolve({ hits: 3 });
        await decided;
        await settled();
        const results = stage.host.of('responded').filter(({ isPending }) => !isPending);
        expect(results.at(-1)?.response).toEqual({ hits: 3 });
        expect([1, 2]).toContain(results.length);
        expect(stage.host.texts).toHaveLength(results.length);
        expect(stage.counts).toEqual(NOTHING_OPEN);
      }
    },
  );

  it('is told to stop with the run, and is told as it ended', async () => {
    const { stage, id, signal, work } = await begin();
    await stage.close();
    expect(signal()?.aborted).toBe(true);
    expect(stage.counts).toEqual(NOTHING_LEFT);
    work.reject(new Error('stopped'));
    await settled();
    expect(stage.late).toMatchObject([{ callId: id, response: { error: 'stopped' }, isLate: false }]);
  });

  it('that leaves the work to somebody else behind the end of its run can be decided then', async () => {
    const { stage, id, work } = await begin();
    await stage.close();
    work.resolve({ status: 'pending' });
    await settled();
    await stage.desk.decide(stage.store.onlyId, APPROVE);
    await stage.desk.idle();
    expect(stage.late).toMatchObject([{ callId: id, response: { status: 'approved' } }]);
  });

  it('that ends after its run all the same is told late, as whoever looks it over has it, and once', async () => {
    const { stage, id, work } = await begin({ afterTool: ({ result }) => ({ ...result, isSeen: true }) });
    const pendingId = stage.store.onlyId;
    await stage.close();
    work.resolve({ hits: 3 });
    await settled();
    expect(stage.late).toMatchObject([{ callId: id, response: { hits: 3, isSeen: true } }]);
    expect((await stage.desk.decide(pendingId, DENY)).kind).toBe('repeat');
    await settled();
    expect(stage.late).toHaveLength(1);
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('whose settling cannot be stored is told all the same', async () => {
    const { stage, id, work } = await begin();
    stage.store.isAway = true;
    work.resolve({ hits: 3 });
    await settled();
    expect(stage.host.resultOf(id)).toEqual({ hits: 3 });
    expect(stage.log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('a run whose state cannot be read', () => {
  it.each([
    ['fails', () => Promise.reject(new Error('the store is away')), 'the store is away'],
    ['hangs', () => new Promise<never>(() => {}), 'more than 5 s'],
  ])('because the store %s runs no handler with an empty one', async (_what, readState, why) => {
    let runs = 0;
    const stage = new ToolStage({ readState, tools: [tool('count', { execute: () => (runs += 1) })] });
    const id = await stage.ask('count');
    await stage.pass(5_000);
    expect(stage.host.answerTo(id)).toEqual({
      error: 'count was refused: what is known of the caller cannot be read.',
    });
    // What went wrong is for the operator, not for the model.
    expect(JSON.stringify(stage.log.lines)).toContain(why);
    expect(runs).toBe(0);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });
});

describe('built-in and unknown tools', () => {
  it('are answered in the same turn of the event loop, in front of whatever comes next', () => {
    const stage = new ToolStage({ tools: [] });
    stage.send(['nope'], ['end_call']);
    expect(stage.host.frames).toEqual([['c1', 'c2']]);
    expect(stage.host.answerTo('c1')).toEqual({
      error: 'There is no tool named nope.',
      message: expect.any(String),
    });
    expect(stage.host.answerTo('c2')).toEqual({ error: 'There is no line to hang up.' });
  });

  it.each(['constructor', '__proto__', 'toString', ''])(
    'are told apart from what objects have: %j',
    async (name) => {
      const stage = new ToolStage({ tools: [] });
      const id = await stage.ask(name);
      expect(stage.host.answerTo(id)).toMatchObject({ error: `There is no tool named ${name}.` });
    },
  );

  it('have stop_streaming among them only where a tool streams', async () => {
    const stage = new ToolStage({ tools: [tool('plain')] });
    const id = await stage.ask('stop_streaming', { function_name: 'plain' });
    expect(stage.host.answerTo(id)).toMatchObject({ error: 'There is no tool named stop_streaming.' });
  });
});
