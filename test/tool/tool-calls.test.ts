import { describe, expect, it } from 'vitest';
import { type EventActions, NO_ACTIONS } from '../../src/event/event.js';
import type { FunctionCall } from '../../src/model/live-connection.js';
import { canonicalJson } from '../../src/tool/canonical-json.js';
import { TOOL_CALLS_OPEN_MAX, TOOL_CALLS_PER_MESSAGE_MAX } from '../../src/tool-limits.js';
import type { CallOutcome, ToolWork, WorkListener } from '../../src/tool/tool-work.js';
import { deferred, settled, tool, toolCalls, ToolStage, NOTHING_LEFT, NOTHING_OPEN } from './tool-stage.js';

const call = (id: string, name = 'slow', args = {}): FunctionCall => ({ id, name, args });
const done = (response: CallOutcome['response'], more: Partial<CallOutcome> = {}): CallOutcome => ({
  kind: 'done',
  response,
  actions: NO_ACTIONS,
  ran: true,
  endInvocation: false,
  ...more,
});

/** Work that ends when the test says so. */
class OpenWork implements ToolWork {
  readonly open = new Map<string, (outcome: CallOutcome) => void>();
  readonly signals = new Map<string, AbortSignal>();
  readonly wantsSound = false;
  isClosed = false;
  /** What the calls have changed, by id, and what goes on behind its answer; each is taken once. */
  readonly changes = new Map<string, EventActions>();
  rest: readonly EventActions[] = [];
  readonly late: EventActions[] = [];
  readonly lateResults: { readonly id: string; readonly outcome: CallOutcome }[] = [];

  carryOut({ id }: { readonly id: string }, signal: AbortSignal): Promise<CallOutcome> {
    const work = deferred<CallOutcome>();
    this.open.set(id, (outcome) => work.resolve(outcome));
    this.signals.set(id, signal);
    return work.promise;
  }

  async end(id: string, outcome: CallOutcome): Promise<void> {
    this.open.get(id)?.(outcome);
    await settled();
  }

  isLongRunning(name: string): boolean {
    return name === 'long';
  }

  onSound(): void {}
  onImage(): void {}
  counts(): Readonly<Record<string, number>> {
    return {};
  }

  takeActions({ id }: { readonly id: string }): EventActions {
    const actions = this.changes.get(id) ?? NO_ACTIONS;
    this.changes.delete(id);
    return actions;
  }

  leave(): readonly EventActions[] {
    return this.rest;
  }

  tellLate(actions: EventActions): Promise<void> {
    this.late.push(actions);
    return Promise.resolve();
  }

  tellLateResult({ id }: { readonly id: string }, outcome: CallOutcome): Promise<void> {
    this.lateResults.push({ id, outcome });
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

describe('the calls of a run', () => {
  it('of one message are one event, then a response as each ends, and one frame when the last has', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    const answers = calls.dispatch([call('c1'), call('c2'), call('c3', 'long')]);
    await work.end('c2', done({ n: 2 }));
    await work.end('c1', done({ n: 1 }));
    expect(calls.counts()).toEqual({ tools: 1 });
    await work.end('c3', done({ n: 3 }));
    expect(host.told).toMatchObject([
      { kind: 'called', ids: ['c1', 'c2', 'c3'], long: ['c3'] },
      { kind: 'responded', id: 'c2', isPending: false },
      { kind: 'responded', id: 'c1' },
      { kind: 'responded', id: 'c3' },
      {
        kind: 'answered',
        responses: [{ id: 'c1' }, { id: 'c2' }, { id: 'c3', name: 'long', response: { n: 3 } }],
      },
    ]);
    expect((await answers).map(({ id }) => id)).toEqual(['c1', 'c2', 'c3']);
  });

  it('of two messages do not wait for one another', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1'), call('c2')]);
    void calls.dispatch([call('c3')]);
    await work.end('c3', done({}));
    await work.end('c2', done({}));
    await work.end('c1', done({}));
    expect(host.frames).toEqual([['c3'], ['c1', 'c2']]);
  });

  it('are answered one by one where that is wanted', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work, { responses: 'each' });
    void calls.dispatch([call('c1'), call('c2')]);
    await work.end('c2', done({}));
    await work.end('c1', done({}));
    expect(host.frames).toEqual([['c2'], ['c1']]);
  });

  it('that cannot be read are answered, and not run', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    await calls.dispatch([{ ...call('c1', 'refund'), unreadable: 'The arguments of refund are no object.' }]);
    expect(work.open.size).toBe(0);
    expect(host.of('answered')).toMatchObject([
      { responses: [{ id: 'c1', response: { error: 'The arguments of refund are no object.' } }] },
    ]);
  });

  it('that are pending or streaming are under way until they are settled or over', async () => {
    const work = new OpenWork();
    const { calls, listener } = toolCalls(work);
    const started = (name: string) =>
      done({ status: 'started' }, { kind: name === 'long' ? 'pending' : 'streaming' });
    const begin = async (id: string, name: string): Promise<void> => {
      void calls.dispatch([call(id, name)]);
      await work.end(id, started(name));
    };
    expect(calls.isWorkUnderWay).toBe(false);
    await begin('c1', 'long');
    expect(calls.isWorkUnderWay).toBe(true);
    listener.settled({ id: 'c1', name: 'long' }, done({ ok: true }));
    expect(calls.isWorkUnderWay).toBe(false);
    for (const isStopped of [true, false]) {
      await begin(`c2${String(isStopped)}`, 'watch');
      expect(calls.isWorkUnderWay).toBe(true);
      listener.ended('watch', isStopped);
      expect(calls.isWorkUnderWay).toBe(false);
    }
    // Over while a guard still looks at its answer.
    void calls.dispatch([call('c3', 'watch')]);
    listener.ended('watch', false);
    await work.end('c3', started('watch'));
    expect(calls.isWorkUnderWay).toBe(false);
  });

  it.each(['pending', 'streaming'] as const)('that are %s are answered at once', async (kind) => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1'), call('c2')]);
    await work.end('c2', done({ status: kind }, { kind }));
    expect(host.frames).toEqual([['c2']]);
    expect(host.of('responded')[0]?.isPending).toBe(kind === 'pending');
    await work.end('c1', done({}));
    expect(host.frames).toEqual([['c2'], ['c1']]);
  });

  it('are told only, where nothing is to be carried out', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work, { autoExecute: false });
    expect(await calls.dispatch([call('c1')])).toEqual([]);
    expect(host.told.map(({ kind }) => kind)).toEqual(['called']);
    expect(work.open.size).toBe(0);
  });

  it('are carried out and told, but not to the model, where that is not wanted', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work, { autoRespond: false });
    const answers = calls.dispatch([call('c1')]);
    expect(calls.awaitsAnswer).toBe(false);
    await work.end('c1', done({ n: 1 }));
    expect(host.told.map(({ kind }) => kind)).toEqual(['called', 'responded']);
    expect(await answers).toHaveLength(1);
  });

  it('that come twice are run once', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1'), call('c1')]);
    void calls.dispatch([call('c1')]);
    await work.end('c1', done({}));
    expect(await calls.dispatch([call('c1')])).toEqual([]);
    expect(host.of('called')).toHaveLength(1);
    expect(host.frames).toEqual([['c1']]);
  });

  it('above the bound are answered with an error, the others not harmed', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    const ids = Array.from({ length: TOOL_CALLS_OPEN_MAX + 1 }, (_, index) => `c${index}`);
    void calls.dispatch(ids.map((id) => call(id)));
    expect(work.open.size).toBe(TOOL_CALLS_OPEN_MAX);
    for (const id of ids) await work.end(id, done({}));
    expect(host.frames).toEqual([ids]);
    expect(host.answerTo(ids.at(-1)!)).toEqual({ error: expect.stringContaining('too many calls') });
    expect(calls.counts()).toEqual({ tools: 0 });
  });

  describe('beyond what one message may bring', () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => `c${index}`);
    const all = ids.map((id) => call(id));
    const taken = ids.slice(0, TOOL_CALLS_PER_MESSAGE_MAX);
    const rest = ids.slice(TOOL_CALLS_PER_MESSAGE_MAX);

    it('are answered at once in one frame, and are no event; the others are carried out', async () => {
      const work = new OpenWork();
      const { host, calls } = toolCalls(work);
      const parts = all.map((functionCall) => ({ functionCall }));
      const answers = calls.dispatch(all, parts);
      expect(host.frames).toEqual([rest]);
      expect(host.answerTo('c19999')).toEqual({ error: expect.stringContaining('too many calls') });
      expect(host.of('called')).toMatchObject([{ ids: taken }]);
      expect(work.open.size).toBe(TOOL_CALLS_OPEN_MAX);
      for (const id of taken) await work.end(id, done({}));
      expect(host.frames).toEqual([rest, taken]);
      expect(host.of('responded').map(({ id }) => id)).toHaveLength(taken.length);
      // In text each of them has to be answered in the next request.
      expect((await answers).map(({ id }) => id)).toEqual(ids);
      expect(calls.counts()).toEqual({ tools: 0 });
    });

    it('do not make the ids of calls before them forgotten', async () => {
      const work = new OpenWork();
      const { host, calls } = toolCalls(work);
      void calls.dispatch([call('before')]);
      void calls.dispatch(all);
      void calls.dispatch([call('before')]);
      expect(host.of('called')).toHaveLength(2);
    });

    it('are answered also where the others came before, and not where nothing is answered', async () => {
      const work = new OpenWork();
      const { host, calls } = toolCalls(work);
      void calls.dispatch(all.slice(0, TOOL_CALLS_PER_MESSAGE_MAX));
      void calls.dispatch(all);
      expect(host.frames).toEqual([rest]);
      for (const how of [{ autoRespond: false }, { autoExecute: false }]) {
        const silent = toolCalls(new OpenWork(), how);
        void silent.calls.dispatch(all);
        expect(silent.host.of('answered')).toEqual([]);
      }
      await calls.close();
      expect(await calls.dispatch(all)).toEqual([]);
      expect(host.frames).toEqual([rest]);
    });
  });

  it('end the conversation once the result is told', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1')]);
    await work.end('c1', done({}, { endInvocation: true }));
    expect(host.told.map(({ kind }) => kind)).toEqual(['called', 'responded', 'answered', 'ended']);
  });
});

describe('calls that the model withdraws', () => {
  it('are stopped and not answered, while the others are', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1'), call('c2')]);
    calls.withdraw(['c1', 'unknown']);
    calls.withdraw(['c1']);
    expect(work.signals.get('c1')?.aborted).toBe(true);
    expect(work.signals.get('c2')?.aborted).toBe(false);
    await work.end('c2', done({}));
    expect(host.frames).toEqual([['c2']]);
    await work.end('c1', done({ error: 'stopped' }));
    expect(host.frames).toEqual([['c2']]);
    expect(host.resultOf('c1')).toEqual({ error: 'stopped' });
    expect(host.of('withdrawn')).toEqual([{ kind: 'withdrawn', ids: ['c1'], withResult: [] }]);
    expect(host.texts).toEqual([]);
    expect(calls.counts()).toEqual({ tools: 0 });
  });

  it('are told later if they were carried out all the same, and not if they were not begun', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1', 'refund'), call('c2')]);
    calls.withdraw(['c1', 'c2']);
    await work.end('c1', done({ refund_id: 'R-1' }));
    await work.end('c2', done({ status: 'denied' }, { ran: false }));
    expect(host.texts).toEqual([expect.stringMatching(/^refund was withdrawn, .*"refund_id":"R-1"/)]);
    expect(host.frames).toEqual([]);
  });

  // I7: a result that waits for the others of its message has not been sent.
  it.each([
    ['by itself', ['c1'], [['c2']]],
    ['with the last one that is open', ['c2', 'c1'], []],
  ])(
    'while the result waits for the others are not answered, and told with it (%s)',
    async (_what, ids, frames) => {
      const work = new OpenWork();
      const { host, calls } = toolCalls(work);
      const all = calls.dispatch([call('c1', 'refund'), call('c2')]);
      await work.end('c1', done({ refund_id: 'R-1' }));
      calls.withdraw(ids);
      await work.end('c2', done({}));
      expect(host.frames).toEqual(frames);
      expect(host.of('withdrawn')).toMatchObject([{ withResult: ['c1'] }]);
      expect(host.texts[0]).toMatch(/^refund was withdrawn, .*"refund_id":"R-1"/);
      expect((await all).map(({ id }) => id)).toEqual(frames.flat());
      expect(host.of('responded').filter(({ id }) => id === 'c1')).toHaveLength(1);
    },
  );

  it('while the result waits are those of this connection only', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1'), call('c2')]);
    await work.end('c1', done({}));
    calls.forgetIds();
    calls.withdraw(['c1']);
    expect(host.of('withdrawn')).toEqual([]);
    await calls.close();
  });

  it('after they were answered change nothing', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1')]);
    await work.end('c1', done({}));
    calls.withdraw(['c1']);
    expect(host.of('withdrawn')).toEqual([]);
  });

  it('complete the frame of the others when they are what it waited for', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    const answers = calls.dispatch([call('c1'), call('c2')]);
    await work.end('c1', done({}));
    calls.withdraw(['c2']);
    expect(host.frames).toEqual([['c1']]);
    expect(await answers).toHaveLength(1);
  });
});

describe('calls whose connection is lost', () => {
  it('are told to the next one in words, however many of their message had ended before', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1', 'fast'), call('c2')]);
    await work.end('c1', done({ n: 1 }));
    calls.forgetIds();
    expect(calls.awaitsAnswer).toBe(false);
    await work.end('c2', done({ n: 2 }));
    expect(host.frames).toEqual([]);
    expect(host.texts).toEqual([
      expect.stringMatching(/^fast, .*connection was lost, has a result: {"n":1}/),
      expect.stringMatching(/^slow, .*connection was lost, has a result: {"n":2}/),
    ]);
    expect(host.resultOf('c2')).toEqual({ n: 2 });
    expect(calls.counts()).toEqual({ tools: 0 });
  });

  it('do not get in the way of those that bear their ids on the next one', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1', 'old')]);
    const endOld = work.open.get('c1')!;
    const oldSignal = work.signals.get('c1')!;
    calls.forgetIds();
    void calls.dispatch([call('c1', 'new')]);
    expect(calls.counts()).toEqual({ tools: 2 });
    endOld(done({ of: 'old' }));
    await settled();
    expect(host.frames).toEqual([]);
    expect(calls.awaitsAnswer).toBe(true);
    await work.end('c1', done({ of: 'new' }));
    expect(host.answerTo('c1')).toEqual({ of: 'new' });
    expect(oldSignal.aborted).toBe(false);
    expect(calls.counts()).toEqual({ tools: 0 });
  });

  it('are not withdrawn by an id of the next one, and are over with the run', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    void calls.dispatch([call('c1', 'old')]);
    const oldSignal = work.signals.get('c1')!;
    calls.forgetIds();
    void calls.dispatch([call('c1', 'new')]);
    calls.withdraw(['c1']);
    expect([oldSignal.aborted, work.signals.get('c1')?.aborted]).toEqual([false, true]);
    await calls.close();
    expect(oldSignal.aborted).toBe(true);
    expect(host.of('responded')).toHaveLength(2);
  });
});

describe('a call that had nothing to report', () => {
  it.each([
    ['empty text', ''],
    ['null', null],
    ['nothing', undefined],
    ['an empty object', {}],
  ])('but %s is not run again in the same turn of the caller', async (_what, value) => {
    let runs = 0;
    const note = tool('note', {
      parameters: { type: 'object', properties: {} },
      execute: () => {
        runs += 1;
        return value;
      },
    });
    const stage = new ToolStage({ tools: [note] });
    await stage.ask('note', { a: 1, b: { c: 1, d: 2 } });
    const again = await stage.ask('note', { b: { d: 2, c: 1 }, a: 1 });
    const third = await stage.ask('note', { a: 1, b: { c: 1, d: 2 } });
    expect(runs).toBe(1);
    for (const id of [again, third])
      expect(stage.host.answerTo(id)).toMatchObject({ status: 'done', retryable: false });
    await stage.ask('note', { a: 2 });
    expect(runs).toBe(2);
    stage.calls.onCallerTurn();
    await stage.ask('note', { a: 1, b: { c: 1, d: 2 } });
    expect(runs).toBe(3);
    expect(stage.counts).toEqual(NOTHING_OPEN);
  });

  it.each([[0], [false], [[]], ['text'], [{ a: null }]])('is not one that returns %j', async (value) => {
    let runs = 0;
    const ask = tool('ask', {
      execute: () => {
        runs += 1;
        return value;
      },
    });
    const stage = new ToolStage({ tools: [ask] });
    await stage.ask('ask');
    await stage.ask('ask');
    expect(runs).toBe(2);
  });
});

describe('the end of a run', () => {
  it('comes before what was on its way to it', async () => {
    const work = new OpenWork();
    let listener: WorkListener | undefined;
    const { host, calls } = toolCalls(work, {
      work: (made) => {
        listener = made;
        return work;
      },
    });
    const later: (() => void)[] = [];
    host.enter = (happens) => void later.push(happens);
    void calls.dispatch([call('c1')]);
    await work.end('c1', done({}));
    listener?.update({ text: 'late', interrupts: false });
    void listener?.changed(NO_ACTIONS);
    listener?.settled({ id: 'c0', name: 'long' }, done({}));
    await calls.close();
    const told = host.told.length;
    for (const happens of later) happens();
    expect(later).toHaveLength(4);
    expect(host.told).toHaveLength(told);
  });

  it('tells each open call as such, answers nothing more, and lets nothing follow', async () => {
    const work = new OpenWork();
    const { host, calls } = toolCalls(work);
    const answers = calls.dispatch([call('c1'), call('c2'), call('c3')]);
    await work.end('c1', done({ n: 1 }));
    calls.withdraw(['c3']);
    await calls.close();
    const told = host.told.length;
    expect(host.resultOf('c2')).toEqual({ error: 'The conversation ended before it was done.' });
    expect(host.resultOf('c3')).toEqual({ error: 'The conversation ended before it was done.' });
    expect(host.frames).toEqual([]);
    expect(work.signals.get('c2')?.aborted).toBe(true);
    expect(work.isClosed).toBe(true);
    // Whoever waits for the answers, as text runs do, does not wait for ever.
    expect(await answers).toHaveLength(1);
    await work.end('c2', done({ n: 2 }, { endInvocation: true }));
    calls.withdraw(['c2']);
    expect(await calls.dispatch([call('c4')])).toEqual([]);
    await calls.close();
    expect(host.told).toHaveLength(told);
    expect(calls.counts()).toEqual({ tools: 0 });
  });

  it('with every kind of call in flight leaves nothing', async () => {
    const never = (): Promise<never> => new Promise(() => {});
    const stage = new ToolStage({
      tools: [
        tool('slow', { execute: never }),
        tool('long', { longRunning: true, execute: never }),
        tool('approved', { approval: true }),
        tool('refund', { sideEffect: { key: () => 'k' }, execute: never }),
        tool('watch', {
          inputStream: true,
          async *execute() {
            yield await never();
          },
        }),
        tool('waits', { execute: (_args, { shared }) => shared.waitFor('key') }),
        tool('guarded'),
      ],
      beforeTool: ({ tool: name }) => (name === 'guarded' ? never() : undefined),
      runConfig: { maxConcurrentTools: 3 },
    });
    const names = ['slow', 'long', 'approved', 'refund', 'watch', 'waits', 'guarded', 'slow'] as const;
    stage.send(...names.map((name) => [name] as const));
    await stage.pass(100);
    expect(stage.counts).toMatchObject({ tools: 5, pending: 2, streamingTools: 1, sideEffects: 1 });
    await stage.close();
    // The ledger's entry stays open until the handler ends, which it never does.
    expect(stage.counts).toEqual({ ...NOTHING_LEFT, sideEffects: 1 });
    expect(new Set(stage.host.of('responded').map(({ id }) => id)).size).toBe(8);
  });
});

it('values are equal by their JSON in whatever order their keys stand', () => {
  const value = { b: [{ d: 1, c: null }], a: { z: 1, y: 2 } };
  expect(canonicalJson(value)).toBe('{"a":{"y":2,"z":1},"b":[{"c":null,"d":1}]}');
  expect(canonicalJson(JSON.parse('{"__proto__":1,"a":2}'))).toBe('{"__proto__":1,"a":2}');
});

it('arguments that nobody can read to their end are an error, and nothing breaks', async () => {
  const stage = new ToolStage({ tools: [tool('look_up')] });
  let args: Record<string, unknown> = {};
  for (let depth = 0; depth < 200_000; depth += 1) args = { a: args };
  const answered = await stage.calls.dispatch([{ id: 'deep', name: 'look_up', args }]);
  expect(String(answered[0]?.response['error'])).toMatch(/arguments of look_up/);
  await stage.close();
});
