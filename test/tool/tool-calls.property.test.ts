/**
 * Ten thousand runs of an agent's tools, each a seeded order of calls, endings, withdrawals, interruptions, decisions,
 * passing time and a hang-up at any point. Whatever the order, nothing is left, each call has its answer or none, and
 * what a tool, a guard or a rule could write is told in one event.
 */
import { describe, expect, it } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import { definePlugin } from '../../src/agent/plugin.js';
import { NothingDone, type Tool } from '../../src/agent/tool.js';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { STREAMING_STOP_MAX_MS } from '../../src/tool-limits.js';
import { Chance, fuzzCount, fuzzedAtLeast, FUZZ_SEED } from '../fuzz/seed.js';
import { deferred, NOTHING_LEFT, tool, ToolStage, type Deferred } from './tool-stage.js';

async function rest(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await nextTurn();
}

const RUNS = 10_000;
const STEPS_MAX = 18;

interface Work {
  readonly signal: AbortSignal;
  readonly deferred: Deferred<unknown>;
}

interface Stream {
  readonly signal: AbortSignal;
  isOver: boolean;
}

/** Tools that end when the test says so, or never, or only when they are told to stop. */
function toolsOf(
  world: () => Pick<Run, 'open' | 'chance' | 'streams' | 'isClosed' | 'write' | 'save'>,
): readonly Tool[] {
  const begin = (signal: AbortSignal): Promise<unknown> => {
    const { open, chance } = world();
    const work = { signal, deferred: deferred() };
    open.push(work);
    if (chance.once(2))
      signal.addEventListener('abort', () => work.deferred.reject(new Error('stopped')), { once: true });
    return work.deferred.promise;
  };
  /** Writes state in front of its work and behind it, however that ends, and keeps a file now and then. */
  const writing = async (ctx: ToolContext): Promise<unknown> => {
    world().write(ctx);
    if (world().chance.once(3)) await world().save(ctx);
    try {
      return await begin(ctx.signal);
    } finally {
      world().write(ctx);
      if (world().chance.once(3)) void world().save(ctx);
    }
  };
  async function* values(args: Readonly<Record<string, unknown>>, ctx: ToolContext) {
    const { signal } = ctx;
    const stream: Stream = { signal, isOver: false };
    world().streams.push(stream);
    expect(world().isClosed).toBe(false);
    try {
      for (;;) yield await writing(ctx);
    } finally {
      world().write(ctx);
      try {
        if (args['symbol'] === 'B') await begin(signal);
      } finally {
        stream.isOver = true;
      }
    }
  }
  /** What a person approved is done after the run, too; nothing else is begun then. */
  const approved = { approval: true, execute: (_args: unknown, ctx: ToolContext) => writing(ctx) };
  const wait = {
    execute(_args: unknown, ctx: ToolContext) {
      expect(world().isClosed).toBe(false);
      return writing(ctx);
    },
  };
  /** Writes, and then decides as it likes. */
  const rule = (_args: unknown, ctx: ToolContext): boolean => {
    world().write(ctx);
    if (world().chance.once(3)) throw new Error('no rule');
    return world().chance.once(2);
  };
  return [
    tool('quick', { execute: ({ value }) => value }),
    tool('slow', { ...wait, timeoutMs: 5_000 }),
    tool('refund', { ...wait, timeoutMs: 5_000, sideEffect: { key: ({ key }) => String(key) } }),
    tool('approved', { ...approved, timeoutMs: 5_000 }),
    tool('approved_refund', { ...approved, sideEffect: { key: ({ key }) => String(key) } }),
    tool('long', { ...wait, longRunning: true }),
    tool('monitor', { execute: values }),
    tool('listen', { execute: values, inputStream: true }),
    tool('guarded', wait),
    tool('ruled', { ...approved, approval: rule, timeoutMs: 5_000 }),
    tool('ruled_monitor', { execute: values, approval: rule }),
    tool('narrow', {
      ...wait,
      parameters: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    }),
    tool('sharing', {
      execute: (_args, { shared, signal }) =>
        world().chance.once(2) ? shared.waitFor('key') : begin(signal).then(() => shared.set('key', 1)),
    }),
    tool('leaving', {
      execute(_args, { shared }) {
        shared.waitFor('key').catch(() => {});
        return { status: 'started' };
      },
    }),
  ];
}

/** Made once: checking a definition takes longer than a run. */
let current: Run;
const TOOLS = toolsOf(() => current);

const NAMES = [...TOOLS.map(({ name }) => name), 'slow', 'monitor', 'stop_streaming', 'end_call', 'nope'];

class Run {
  readonly chance: Chance;
  readonly open: Work[] = [];
  readonly stage: ToolStage;
  readonly sent: string[] = [];
  /** Of each id that the model took back, how much had been told by then: the test's own word, not the server's. */
  readonly withdrawnAt = new Map<string, number>();
  /** How much had been told when the connection to the model was lost, each time. */
  readonly lostAt: number[] = [];
  firstOfConnection = 0;
  readonly isEach: boolean;
  /** Of guards that hang until the test lets them go. */
  readonly guards: Deferred<unknown>[] = [];
  /** Of a ledger or a store that takes its time. */
  readonly gates: Deferred<void>[] = [];
  readonly streams: Stream[] = [];
  isClosed = false;
  /** Keys of state, and names of artifacts, that could be written. */
  readonly written: string[] = [];
  readonly saved: string[] = [];
  #names = 0;
  /** Messages of the model whose answers somebody still waits for. */
  unanswered = 0;

  constructor(seed: number) {
    this.chance = new Chance(seed);
    const guard = (ctx: ToolContext): unknown => {
      this.write(ctx);
      if (!this.chance.once(3)) return undefined;
      const held = deferred();
      this.guards.push(held);
      return held.promise;
    };
    this.isEach = this.chance.once(4);
    this.stage = new ToolStage({
      tools: TOOLS,
      plugins: [
        definePlugin({
          name: 'gate',
          beforeTool: ({ tool: name, ctx, args }) => {
            // What is not there cannot be read by the tool: it is refused behind the guard.
            if (name === 'narrow' && this.chance.once(2)) delete args['key'];
            if (name === 'narrow') this.write(ctx);
            return name === 'guarded' ? guard(ctx) : undefined;
          },
          afterTool: ({ tool: name, ctx }) => (name === 'guarded' ? guard(ctx) : undefined),
        }),
      ],
      runConfig: { maxConcurrentTools: 1 + this.chance.below(4) },
      responses: this.isEach ? 'each' : 'group',
    });
  }

  async play(): Promise<void> {
    const steps = this.chance.below(STEPS_MAX);
    for (let step = 0; step < steps; step += 1) {
      this.step();
      if (!this.chance.once(3)) await rest();
    }
    this.isClosed = true;
    const closed = this.stage.calls.close();
    // The rest of the world goes on while and after the run ends.
    for (let late = this.chance.below(4); late > 0; late -= 1) this.step();
    await rest();
    // Streaming tools have had their time then, those that ignore their signal and those that were told to stop just before.
    for (let part = 0; part < 2; part += 1) {
      this.stage.clock.advance(STREAMING_STOP_MAX_MS);
      await rest();
    }
    await closed;
    this.openGates();
    await rest(2);
    checkClosed(this);
    await this.end();
  }

  /** A key that nobody else writes, where it can be written. */
  write({ state }: ToolContext): void {
    this.#names += 1;
    const key = `k${this.#names}`;
    try {
      state[key] = this.#names;
    } catch (error) {
      if ((error as Error).message === 'the call is over: nothing more is kept of it') return;
      throw error;
    }
    this.written.push(key);
  }

  async save(ctx: ToolContext): Promise<void> {
    this.#names += 1;
    const name = `a${this.#names}`;
    try {
      await ctx.saveArtifact(name, new Uint8Array(1), 'text/plain');
    } catch {
      return;
    }
    this.saved.push(name);
  }

  openGates(): void {
    for (const gate of this.gates.splice(0)) gate.resolve();
  }

  /** What never ends by itself has ended, and every timer has had its time. */
  async end(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) {
      await rest();
      const { nextTimerAtMs } = this.stage.clock;
      if (this.open.length + this.guards.length > 0 || nextTimerAtMs !== undefined) quiet = 0;
      for (const work of this.open.splice(0)) this.settle(work);
      for (const held of this.guards.splice(0)) held.resolve(null);
      this.openGates();
      if (nextTimerAtMs !== undefined) this.stage.clock.advance(nextTimerAtMs - this.stage.clock.nowMs());
    }
  }

  step(): void {
    const { chance, stage } = this;
    const at = chance.below(23);
    if (at < 6) this.send();
    else if (at < 11) {
      const [work] = this.open.splice(chance.below(this.open.length + 1), 1);
      if (work !== undefined) this.settle(work);
    } else if (at < 13) this.withdraw([this.pick(this.sent), this.pick(this.sent)]);
    else if (at < 14) stage.calls.onCallerTurn();
    else if (at < 16) void this.decide();
    else if (at < 17)
      this.guards.splice(chance.below(this.guards.length + 1), 1)[0]?.resolve(chance.once(2) ? 'no' : null);
    else if (at < 18) stage.tools.onSound(new Uint8Array(640));
    else if (at < 19) stage.ledger.faults.push(chance.pick(['none', 'before', 'after']));
    else if (at < 20) stage.clock.advance(chance.pick([10, 500, 3_000, 6_000]));
    else if (at < 21) this.reconnect();
    else if (at < 22) {
      const gate: Deferred<void> = deferred();
      this.gates.push(gate);
      chance.pick([stage.store, stage.ledger]).gate = gate.promise;
    } else this.openGates();
  }

  send(): void {
    const { chance } = this;
    const calls = Array.from({ length: 1 + chance.below(3) }, () => {
      const args = {
        value: chance.pick(['ok', '', null]),
        key: chance.pick(['a', 'b']),
        symbol: chance.pick(['A', 'B']),
        function_name: chance.pick(['monitor', 'listen', 'nope']),
      };
      const id = chance.once(12) ? this.pick(this.current) : `c${this.sent.length}`;
      if (!this.sent.includes(id)) this.sent.push(id);
      return { id, name: chance.pick(NAMES), args };
    });
    this.unanswered += 1;
    void this.stage.calls.dispatch(calls).then(() => {
      this.unanswered -= 1;
    });
  }

  /** Ids that were called on this connection and not answered are taken back; any others mean nothing. */
  withdraw(ids: readonly string[]): void {
    const { host, calls } = this.stage;
    const answered = new Set(host.frames.flat());
    const called = new Set(host.of('called').flatMap((one) => one.ids));
    for (const id of ids) {
      const isOpen = called.has(id) && !answered.has(id) && this.current.includes(id) && !this.isClosed;
      if (isOpen && !this.withdrawnAt.has(id)) this.withdrawnAt.set(id, host.told.length);
    }
    calls.withdraw(ids);
  }

  /** The model’s connection was replaced: those that are open are not answered on the new one. */
  reconnect(): void {
    this.stage.calls.forgetIds();
    this.lostAt.push(this.stage.host.told.length);
    this.firstOfConnection = this.sent.length;
  }

  /** Ids of this connection: those of another one mean another call. */
  get current(): readonly string[] {
    return this.sent.slice(this.firstOfConnection);
  }

  async decide(): Promise<void> {
    const { store, desk } = this.stage;
    const id = this.pick([...store.rows.keys()]);
    await desk.decide(id, { decision: this.chance.pick(['approve', 'deny']), by: 'Ada' });
  }

  settle({ deferred: work }: Work): void {
    const at = this.chance.below(6);
    if (at === 0) work.reject(new Error('it broke'));
    else if (at === 1) work.reject(new NothingDone('declined'));
    else work.resolve(at === 2 ? undefined : at === 3 ? '' : { ok: true });
  }

  pick(ids: readonly string[]): string {
    return ids.length === 0 ? `c${this.sent.length}` : this.chance.pick(ids);
  }
}

const seen = {
  answered: 0,
  withdrawn: 0,
  withdrawnWithResult: 0,
  toldLate: 0,
  storedLate: 0,
  cut: 0,
  former: 0,
  settledLate: 0,
  streamed: 0,
  cutWithChanges: 0,
  changed: 0,
  changedLate: 0,
};

/** The run has just ended: what of it is still there would stay there as long as somebody else’s code does. */
function checkClosed({ stage, streams, unanswered, guards }: Run): void {
  const { counts } = stage;
  for (const count of Object.values(stage.calls.counts())) expect(count).toBe(0);
  expect(counts).toMatchObject({ toolRuns: 0, pendingCalls: 0 });
  expect(unanswered).toBe(0);
  for (const { isOver, signal } of streams) expect(isOver || signal.aborted).toBe(true);
  // What the ledger guards is finished, what was approved is done, and what ends late is looked over.
  if (counts['sideEffects'] === 0 && counts['decisions'] === 0 && guards.length === 0)
    expect(counts['timers']).toBe(0);
}

/** All that was written is told, once. */
function checkChanges({ stage, written, saved }: Run): void {
  const told = stage.changesTold;
  expect(told.flatMap(({ stateDelta }) => Object.keys(stateDelta)).toSorted()).toEqual(written.toSorted());
  expect(told.flatMap(({ artifactDelta }) => Object.keys(artifactDelta)).toSorted()).toEqual(
    saved.toSorted(),
  );
  seen.changed += stage.host.of('changed').length;
  seen.changedLate += stage.lateChanges.length;
}

function check(run: Run): void {
  const { stage, isEach, lostAt, withdrawnAt } = run;
  expect(stage.counts).toEqual(NOTHING_LEFT);
  checkChanges(run);
  const { told, frames } = stage.host;
  const calledAt = new Map<string, number>();
  const toldLate = new Set<string>();
  const responses = new Map<string, { pending: number; final: number }>();
  const answered = new Map<string, number>();
  const groupOf = new Map<string, readonly string[]>();
  const cut = new Set<string>();
  /** Whether the connection was lost after the call came, and before so much had been told. */
  const isFormer = (id: string, at = Infinity): boolean =>
    lostAt.some((lost) => lost > (calledAt.get(id) ?? 0) && lost <= at);
  for (const [at, one] of told.entries()) {
    if (one.kind === 'called')
      for (const id of one.ids) {
        expect(calledAt.has(id)).toBe(false);
        calledAt.set(id, at);
        groupOf.set(id, one.ids);
      }
    if (one.kind === 'withdrawn') {
      for (const id of one.ids) expect(withdrawnAt.get(id)).toBeLessThanOrEqual(at);
      for (const id of one.ids) expect(responses.has(id)).toBe(one.withResult.includes(id));
      seen.withdrawnWithResult += one.withResult.length;
    }
    if (one.kind === 'responded' && one.isLate) {
      // Behind what was told before, and once.
      expect(responses.has(one.id)).toBe(true);
      expect(toldLate.has(one.id)).toBe(false);
      toldLate.add(one.id);
    } else if (one.kind === 'responded') {
      expect(calledAt.get(one.id)).toBeLessThan(at);
      const so = responses.get(one.id) ?? { pending: 0, final: 0 };
      // What is settled was pending before, and only once.
      if (one.isPending) expect(so).toEqual({ pending: 0, final: 0 });
      so[one.isPending ? 'pending' : 'final'] += 1;
      responses.set(one.id, so);
      if (one.response['error'] === CUT) {
        cut.add(one.id);
        if (Object.keys(one.actions.stateDelta).length > 0) seen.cutWithChanges += 1;
      }
    }
    if (one.kind === 'answered')
      for (const { id } of one.responses) {
        expect(at).toBeLessThan(withdrawnAt.get(id) ?? Infinity);
        expect(responses.has(id)).toBe(true);
        expect(isFormer(id, at)).toBe(false);
        answered.set(id, (answered.get(id) ?? 0) + 1);
      }
  }
  expect([...withdrawnAt.keys()].toSorted()).toEqual(
    stage.host
      .of('withdrawn')
      .flatMap(({ ids }) => ids)
      .toSorted(),
  );
  for (const id of calledAt.keys()) {
    const { pending = 0, final = 0 } = responses.get(id) ?? {};
    expect(pending + final).toBeGreaterThan(0);
    expect(final).toBeLessThanOrEqual(1);
    if (pending + final > 1) seen.settledLate += 1;
    if (withdrawnAt.has(id)) continue;
    // Answered exactly once, unless the run or the connection ended before the last call of its frame.
    const isLost = cut.has(id) || (!isEach && groupOf.get(id)?.some((other) => cut.has(other)) === true);
    const times = answered.get(id) ?? 0;
    if (cut.has(id)) seen.cut += 1;
    if (isFormer(id)) seen.former += 1;
    if (isLost || isFormer(id)) expect(times).toBeLessThanOrEqual(1);
    else expect(times).toBe(1);
  }
  seen.answered += frames.flat().length;
  seen.withdrawn += withdrawnAt.size;
  seen.streamed += stage.host.of('update').filter(({ replaces }) => replaces !== undefined).length;
  seen.toldLate += toldLate.size;
  // The late ones are told somewhere, once: as the result of what was pending, or again of what was told as given up.
  const settledLate = stage.late.flatMap(({ callId, isLate }) => (isLate ? [] : callId));
  expect(new Set(settledLate).size).toBe(settledLate.length);
  for (const id of settledLate) expect(responses.get(id)?.final ?? 0).toBe(0);
  const storedLate = stage.late.flatMap(({ callId, isLate }) => (isLate ? callId : []));
  seen.storedLate += storedLate.length;
  for (const id of storedLate) {
    expect(toldLate.has(id)).toBe(false);
    toldLate.add(id);
    expect((responses.get(id)?.final ?? 0) + settledLate.filter((other) => other === id).length).toBe(1);
  }
}

const CUT = 'The conversation ended before it was done.';

describe('any order of calls, completions, withdrawals, interruptions, decisions and hang-ups', () => {
  const runs = fuzzCount(RUNS);
  const slices = 10;

  it.each(Array.from({ length: slices }, (_, index) => index))(
    'leaves nothing behind and answers each call once (slice %i)',
    async (slice) => {
      for (let index = slice; index < runs; index += slices) {
        const seed = (FUZZ_SEED + index * 7_919) | 0;
        const run = new Run(seed);
        current = run;
        try {
          await run.play();
          check(run);
        } catch (error) {
          throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
        }
      }
      expect(seen.answered).toBeGreaterThan(0);
    },
    120_000,
  );

  it('has come upon all of it', () => {
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(fuzzedAtLeast(100));
  });
});
