/**
 * A deed is done at most once for a key, whatever becomes of the calls, the handlers, the ledger and the server. Only a
 * handler that says that it did nothing may be tried again.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NothingDone } from '../../src/agent/tool.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { silentLog } from '../../src/observe/log.js';
import { RunSecrets } from '../../src/tool/run-secrets.js';
import { NotBegun, SideEffects, type Deed } from '../../src/tool/side-effects.js';
import type { Response } from '../../src/tool/tool-result.js';
import { fuzzed } from '../fuzz/seed.js';
import { MemoryLedger, type LedgerFault } from './memory-ledger.js';
import { deferred, SESSION, type Deferred } from './tool-stage.js';

type Ending = 'done' | 'unspeakable' | 'throws' | 'nothing' | 'error' | 'left';
type Step =
  | { readonly do: 'call'; readonly key: number; readonly isLeft: boolean }
  | { readonly do: 'end'; readonly pick: number; readonly ending: Ending }
  | { readonly do: 'crash' }
  | { readonly do: 'fault'; readonly fault: LedgerFault }
  | { readonly do: 'wait'; readonly ms: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('call' as const),
        key: fc.nat(2),
        isLeft: fc.constantFrom(false, false, false, true),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('end' as const),
        pick: fc.nat(9),
        ending: fc.constantFrom<Ending[]>('done', 'done', 'unspeakable', 'throws', 'nothing', 'error'),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: 'crash' as const }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('fault' as const),
        fault: fc.constantFrom<LedgerFault[]>('none', 'before', 'after'),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(9_000) }) },
  ),
  { maxLength: 40, size: 'max' },
);

/** Microtasks only: nothing here waits for anything but the clock. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
}

interface Running {
  readonly key: number;
  readonly work: Deferred<unknown>;
  /** Its process is gone: nothing of it can reach the ledger any more. */
  isDead: boolean;
}

class World {
  readonly ledger = new MemoryLedger();
  readonly clock = new VirtualClock();
  readonly deeds = [0, 0, 0];
  readonly running: Running[] = [];
  readonly answers: { readonly key: number; readonly response: Response }[] = [];
  /** What a process that has died still writes is written nowhere. */
  #life = { isOver: false };
  #server = this.#newServer();
  calls = 0;

  call(key: number, isLeft: boolean): void {
    const life = this.#life;
    const deed: Deed = {
      session: SESSION,
      tool: 'refund',
      sideEffect: { key: () => `k${key}` },
      args: {},
      ctx: {} as never,
      callId: 'c',
      guards: [],
      approvedBy: undefined,
      secrets: new RunSecrets(),
    };
    this.calls += 1;
    const run = (): Promise<unknown> => {
      if (isLeft) return Promise.reject(new NotBegun('withdrawn'));
      if (life.isOver) return new Promise(() => {});
      const work = deferred();
      this.running.push({ key, work, isDead: false });
      return work.promise;
    };
    void this.#server.once(deed, run).then((response) => {
      if (!life.isOver) this.answers.push({ key, response });
    });
  }

  end(pick: number, ending: Ending): void {
    const [one] = this.running.splice(pick % (this.running.length || 1), 1);
    if (one === undefined) return;
    const { key, work } = one;
    // A handler that throws may have done it; one whose server died may have done it just before.
    if (ending === 'done' || ending === 'unspeakable' || ending === 'throws') this.deeds[key]! += 1;
    if (one.isDead) return;
    if (ending === 'done') work.resolve({ refund_id: key });
    else if (ending === 'unspeakable') work.resolve({ amount: 10n });
    else if (ending === 'throws') work.reject(new Error('the connection was reset'));
    else if (ending === 'nothing') work.reject(new NothingDone('declined'));
    else work.resolve({ error: 'declined' });
  }

  crash(): void {
    this.#life.isOver = true;
    for (const one of this.running) one.isDead = true;
    this.#life = { isOver: false };
    this.#server = this.#newServer();
  }

  underWay(): number {
    return this.#server.underWay;
  }

  #newServer(): SideEffects {
    const life = this.#life;
    const { ledger } = this;
    const alive = <Value>(act: () => Promise<Value>): Promise<Value> =>
      life.isOver ? new Promise(() => {}) : act();
    return new SideEffects({
      ledger: {
        claim: (claim) => alive(() => ledger.claim(claim)),
        settle: (app, key, response) => alive(() => ledger.settle(app, key, response)),
        release: (app, key) => alive(() => ledger.release(app, key)),
      },
      clock: this.clock,
      log: silentLog,
    });
  }
}

describe('side effects', () => {
  it('are done at most once for a key, over any order of calls, endings, crashes and failures of the ledger', async () => {
    let most = 0;
    let repeats = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (todo) => {
        const world = new World();
        for (const step of todo) {
          if (step.do === 'call') world.call(step.key, step.isLeft);
          else if (step.do === 'end') world.end(step.pick, step.ending);
          else if (step.do === 'crash') world.crash();
          else if (step.do === 'fault') world.ledger.faults.push(step.fault);
          else world.clock.advance(step.ms);
          await rest();
          for (const deeds of world.deeds) expect(deeds).toBeLessThanOrEqual(1);
          for (const key of [0, 1, 2])
            expect(world.running.filter((one) => one.key === key && !one.isDead).length).toBeLessThanOrEqual(
              1,
            );
        }
        while (world.running.length > 0) world.end(0, 'done');
        world.ledger.faults.length = 0;
        for (let turn = 0; turn < 12; turn += 1) {
          await rest();
          world.clock.advance(9_000);
          while (world.running.length > 0) world.end(0, 'done');
        }
        await rest();
        for (const deeds of world.deeds) expect(deeds).toBeLessThanOrEqual(1);
        expect([world.underWay(), world.clock.pendingTimers]).toEqual([0, 0]);
        most += world.deeds.filter((deeds) => deeds === 1).length;
        repeats += world.answers.filter(({ response }) => 'refund_id' in response).length;
        for (const { key, response } of world.answers)
          if ('refund_id' in response)
            expect([{ refund_id: key }, { refund_id: key, repeated: true }]).toContainEqual(response);
      }),
      fuzzed(800),
    );
    expect(most).toBeGreaterThan(200);
    expect(repeats).toBeGreaterThan(200);
  }, 60_000);
});
