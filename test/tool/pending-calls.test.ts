/**
 * Calls that wait for a person or for slow work: answered at once, decided once, carried out by the run that asked or without it.
 */
import { describe, expect, it } from 'vitest';
import { NothingDone } from '../../src/agent/tool.js';
import { MemoryLedger } from './memory-ledger.js';
import { MemoryPendingCalls } from './memory-pending-calls.js';
import { deferred, NOTHING_LEFT, settled, tool, ToolStage } from './tool-stage.js';

function counting(result: unknown = { status: 'sent' }) {
  const runs: unknown[] = [];
  const execute = (args: unknown): unknown => {
    runs.push(args);
    return result;
  };
  return { runs, execute };
}

describe('a call that a person has to approve', () => {
  it('A19: is answered at once, told as pending, and has not run', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({ tools: [tool('send', { execute, approval: true })] });
    const id = await stage.ask('send', { to: 'Ada' });
    expect(stage.host.answerTo(id)).toMatchObject({ status: 'pending' });
    expect(stage.host.of('responded')).toMatchObject([{ id, isPending: true }]);
    expect(runs).toEqual([]);
    await stage.close();
  });

  it('A20: runs once when it is approved, and the model is told at its next pause', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({ tools: [tool('send', { execute, approval: true })] });
    const id = await stage.ask('send', { to: 'Ada' });
    const { onlyId } = stage.store;
    const decided = [1, 2, 3].map(() => stage.desk.decide(onlyId, { decision: 'approve', by: 'Grace' }));
    expect((await Promise.all(decided)).map(({ kind }) => kind).toSorted()).toEqual([
      'decided',
      'repeat',
      'repeat',
    ]);
    await settled();
    expect(runs).toEqual([{ to: 'Ada' }]);
    expect(stage.host.resultOf(id)).toEqual({ status: 'sent' });
    expect(stage.host.frames).toEqual([[id]]);
    expect(stage.host.texts).toHaveLength(1);
    expect(stage.host.texts[0]).toContain('"status":"sent"');
    expect((await stage.desk.decide(onlyId ?? '', { decision: 'deny' })).kind).toBe('repeat');
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('A20: is an error when it is denied, and never runs', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({ tools: [tool('send', { execute, approval: true })] });
    const id = await stage.ask('send', {});
    await stage.desk.decide(stage.store.onlyId, { decision: 'deny', by: 'Grace' });
    await settled();
    expect(String(stage.host.resultOf(id)?.['error'])).toMatch(/denied by Grace/);
    expect(runs).toEqual([]);
    await stage.close();
  });

  it.each([
    [true, 'you will be told the outcome', 'this answer does not wait'],
    [false, 'this answer does not wait for it', 'you will be told'],
  ])('promises what is true: live %s', async (isLive, told, untold) => {
    const { execute } = counting();
    const tools = [tool('send', { execute, approval: true }), tool('bake', { execute, longRunning: true })];
    const stage = new ToolStage({ tools, isLive });
    for (const name of ['send', 'bake']) {
      const message = String(stage.host.answerTo(await stage.ask(name, {}))?.['message']);
      expect(message).toContain(told);
      expect(message).not.toContain(untold);
    }
    await stage.close();
  });

  it('is unknown to the desk by another id, and refused where its rule fails or nothing can be kept', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({
      tools: [
        tool('send', { execute, approval: true }),
        tool('broken', {
          execute,
          approval: () => {
            throw new Error('no rule');
          },
        }),
      ],
    });
    expect(await stage.desk.decide('nobody', { decision: 'approve' })).toEqual({ kind: 'unknown' });
    const broken = await stage.ask('broken', {});
    expect(String(stage.host.answerTo(broken)?.['error'])).toMatch(/broken was refused.*no rule/);
    stage.store.isAway = true;
    const lost = await stage.ask('send', {});
    expect(String(stage.host.answerTo(lost)?.['error'])).toMatch(/send was refused/);
    expect(runs).toEqual([]);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('needs none where its rule says so', async () => {
    const { runs, execute } = counting();
    const approval = (args: unknown): boolean => (args as { amount: number }).amount > 100;
    const parameters = { type: 'object', properties: { amount: { type: 'number' } } };
    const stage = new ToolStage({ tools: [tool('pay', { execute, approval, parameters })] });
    await stage.ask('pay', { amount: 100 });
    await stage.ask('pay', { amount: 101 });
    expect(runs).toEqual([{ amount: 100 }]);
    await stage.close();
  });

  it('is carried out without its run when that is over, once', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({ tools: [tool('send', { execute, approval: true })] });
    const id = await stage.ask('send', { to: 'Ada' });
    const { onlyId } = stage.store;
    await stage.close();
    await stage.desk.decide(onlyId, { decision: 'approve' });
    await stage.desk.idle();
    expect(runs).toEqual([{ to: 'Ada' }]);
    expect(stage.late).toMatchObject([{ callId: id, response: { status: 'sent' } }]);
    expect(stage.host.texts).toEqual([]);
  });

  it.each([
    ['at most once without a side effect', undefined, 0],
    ['exactly once by the ledger', { key: () => 'once' }, 1],
  ] as const)('that a crash cut off is done %s', async (_how, sideEffect, times) => {
    const store = new MemoryPendingCalls();
    const ledger = new MemoryLedger();
    const first = new ToolStage({ store, ledger, tools: [tool('send', { approval: true })] });
    await first.ask('send', {});
    const id = store.onlyId;
    await store.decidePendingCall(id, { decision: 'approve' });
    // Without a side effect the call was settled before it ran, and the process died right behind that.
    if (sideEffect === undefined) await store.settlePendingCall(id);
    const { runs, execute } = counting();
    const more = sideEffect === undefined ? {} : { sideEffect };
    const next = new ToolStage({
      store,
      ledger,
      tools: [tool('send', { execute, approval: true, ...more })],
    });
    await next.desk.resume();
    await next.desk.idle();
    await next.desk.resume();
    await next.desk.idle();
    expect(runs).toHaveLength(times);
  });
});

describe('a long-running call', () => {
  it('A15: is answered at once, holds no permit, and settles itself', async () => {
    const work = deferred();
    const stage = new ToolStage({
      tools: [tool('slow', { longRunning: true, execute: () => work.promise }), tool('quick')],
      runConfig: { maxConcurrentTools: 1 },
    });
    const slow = await stage.ask('slow', {});
    const quick = await stage.ask('quick', {});
    expect(stage.host.of('called')[0]).toMatchObject({ long: [slow] });
    expect(stage.host.answerTo(slow)).toMatchObject({ status: 'pending' });
    expect(stage.host.answerTo(quick)).toEqual({ ok: 'quick' });
    work.resolve({ found: 3 });
    await settled();
    expect(stage.host.resultOf(slow)).toEqual({ found: 3 });
    expect(stage.host.texts).toHaveLength(1);
    await stage.close();
    expect(stage.counts).toEqual(NOTHING_LEFT);
  });

  it('is settled by whoever comes first, itself or a person, and its own result is told in any case', async () => {
    for (const order of ['itself', 'person'] as const) {
      const work = deferred();
      const stage = new ToolStage({
        tools: [tool('slow', { longRunning: true, execute: () => work.promise })],
      });
      const id = await stage.ask('slow', {});
      const { onlyId } = stage.store;
      if (order === 'itself') work.resolve({ found: 3 });
      const outcome = stage.desk.decide(onlyId, { decision: 'approve', by: 'Grace' });
      if (order === 'person') work.resolve({ found: 3 });
      await outcome;
      await settled();
      const results = stage.host.of('responded').filter(({ isPending }) => !isPending);
      expect(results.at(-1)).toMatchObject({ id, response: { found: 3 } });
      expect(stage.host.texts).toHaveLength(results.length);
      await stage.close();
    }
  });

  it('waits for a person where it returns nothing, or says that it is pending', async () => {
    for (const result of [undefined, null, { status: 'pending', ticket: 7 }]) {
      const stage = new ToolStage({ tools: [tool('slow', { longRunning: true, execute: () => result })] });
      const id = await stage.ask('slow', {});
      expect(stage.host.of('responded')).toHaveLength(1);
      await stage.desk.decide(stage.store.onlyId, { decision: 'approve', by: 'Grace' });
      await settled();
      expect(stage.host.resultOf(id)).toMatchObject({ status: 'approved' });
      await stage.close();
    }
  });

  it('that fails is told as failed', async () => {
    const execute = () => Promise.reject(new NothingDone('no such ticket'));
    const stage = new ToolStage({ tools: [tool('slow', { longRunning: true, execute })] });
    const id = await stage.ask('slow', {});
    expect(stage.host.resultOf(id)).toMatchObject({ error: 'no such ticket' });
    await stage.close();
  });
});

describe('a call whose end the store does not take', () => {
  const deny = { decision: 'deny' } as const;

  it('A20: is told with its result, which settles it, and nobody denies it behind that', async () => {
    for (const isOver of [false, true]) {
      const work = deferred();
      const stage = new ToolStage({
        tools: [tool('bake', { longRunning: true, execute: () => work.promise })],
      });
      const id = await stage.ask('bake');
      const { onlyId } = stage.store;
      const settle = stage.store.settlePendingCall.bind(stage.store);
      stage.store.settlePendingCall = () => Promise.reject(new Error('the store is away'));
      // The event of the result waits for the store, too.
      const tell = stage.store.tell.bind(stage.store);
      let isStored = false;
      stage.store.tell = () => (isStored ? false : (isStored = true));
      if (isOver) await stage.close();
      work.resolve({ ok: 1 });
      await settled();
      stage.store.settlePendingCall = settle;
      expect((await stage.desk.decide(onlyId, deny)).kind).toBe('repeat');
      await settled();
      tell(onlyId);
      const results = [
        ...stage.host.of('responded').filter((one) => one.id === id && !one.isPending),
        ...stage.late,
      ].map(({ response }) => response);
      // Behind the hang-up its result counts, and its abort does not.
      expect(results).toEqual([{ ok: 1 }]);
      expect(stage.host.texts.join()).not.toContain('denied');
      await stage.close();
    }
  });

  it('A20: that was told as not kept cannot be decided on, whatever the store has of it', async () => {
    const { runs, execute } = counting();
    const stage = new ToolStage({ tools: [tool('send', { execute, approval: true })] });
    const add = stage.store.addPendingCall.bind(stage.store);
    stage.store.addPendingCall = async (call) => {
      await add(call);
      throw new Error('the connection broke at the commit');
    };
    const id = await stage.ask('send');
    expect(String(stage.host.answerTo(id)?.['error'])).toMatch(/send was refused/);
    expect((await stage.desk.decide(stage.store.onlyId, { decision: 'approve' })).kind).toBe('repeat');
    await settled();
    expect(runs).toEqual([]);
    await stage.close();
  });

  it('A20: tells what it has changed though another server tells its result', async () => {
    const work = deferred();
    const bake = tool('bake', {
      longRunning: true,
      async execute(_args, { state }) {
        state['oven'] = 'on';
        await work.promise;
        state['oven'] = 'off';
        return { ok: 1 };
      },
    });
    const stage = new ToolStage({ tools: [bake] });
    await stage.ask('bake');
    await stage.store.settlePendingCall(stage.store.onlyId);
    work.resolve(undefined);
    await settled();
    expect(stage.changesTold.map(({ stateDelta }) => stateDelta)).toContainEqual({ oven: 'off' });
    await stage.close();
  });
});

describe('what is told of a call that the ledger guards', () => {
  it('A20: is told once, whenever the process dies', async () => {
    const store = new MemoryPendingCalls();
    const ledger = new MemoryLedger();
    const { runs, execute } = counting({ paid: 1 });
    const tools = [tool('pay', { approval: true, sideEffect: { key: () => 'k' }, execute })];
    const first = new ToolStage({ store, ledger, tools });
    await first.ask('pay');
    const id = store.onlyId;
    await first.close();
    const settle = store.settlePendingCall.bind(store);
    store.settlePendingCall = () => new Promise(() => {});
    await first.desk.decide(id, { decision: 'approve' });
    await settled();
    store.settlePendingCall = settle;
    const next = new ToolStage({ store, ledger, tools });
    await next.desk.resume();
    await settled();
    expect(runs).toHaveLength(1);
    expect([...first.late, ...next.late].map(({ response }) => response)).toEqual([{ paid: 1 }]);
  });
});
