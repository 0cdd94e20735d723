/**
 * What every store does so that a deed is done only once, and an account never exceeds its limit.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVENT_MAX_BYTES } from '../../src/limits.js';
import type { ClaimOutcome, LedgerAmount, LedgerClaim, LedgerEntry } from '../../src/store/ledger.js';
import type { Store } from '../../src/store/store.js';
import { fuzzed } from '../fuzz/seed.js';
import type { ContractRig } from './contract-rig.js';
import { claimedUntilKilled } from './killed-claimer.js';
import { collected, errorOf, ODD_NAMES, sessionKey } from './store-fixture.js';

const KEY = sessionKey('CA1');
const LIMIT = 10_000;

function amountOf(amountMinor: number, change: Partial<LedgerAmount> = {}): LedgerAmount {
  return { account: 'order:A-1', amountMinor, currency: 'USD', limitMinor: LIMIT, ...change };
}

function claimOf(key: string, amount?: LedgerAmount, change: Partial<LedgerClaim> = {}): LedgerClaim {
  return {
    session: KEY,
    key,
    tool: 'process_refund',
    callId: 'call-1',
    ...(amount && { amount }),
    guards: ['limits', 'hours'],
    ...change,
  };
}

async function everyEntry(store: Store, limit = 1_000): Promise<LedgerEntry[]> {
  const all: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = await store.listLedger({}, { limit, ...(after !== undefined && { after }) });
    all.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return all;
}

export function ledgerContract(rig: ContractRig): void {
  describe('the ledger', () => {
    outcomes(rig);
    accounts(rig);
    concurrency(rig);
    keeping(rig);
    closings(rig);
  });
}

function closings(rig: ContractRig): void {
  const app = KEY.appName;
  const because = { appName: app, key: 'k', reason: 'the bank says so, ref. 7', by: 'Grace' };

  test('lets a person settle an open entry or release it, once, and keeps who, when and why', async () => {
    const store = await rig.withSession(KEY);
    const claim = claimOf('k', amountOf(4_000));
    const claimedAtMs = rig.clock.wall;
    await store.claim(claim);
    rig.clock.wall += 1_000;
    expect(await store.closeEntry(because)).toBe('closed');
    expect(await store.closeEntry(because)).toBe('unknown');
    expect(await store.claim(claim)).toEqual({ kind: 'claimed' });
    rig.clock.wall += 1_000;
    const { by: _by, ...unnamed } = because;
    const response = { refund_id: 'R-9' };
    expect(await store.closeEntry({ ...unnamed, response })).toBe('closed');
    for (const more of [{}, { response }])
      expect(await store.closeEntry({ ...because, ...more })).toBe('notOpen');
    expect(await store.claim(claim)).toMatchObject({ kind: 'done', response });
    const audit = { appName: app, key: 'k', tool: claim.tool, callId: claim.callId, amount: claim.amount };
    const { reason, by } = because;
    const first = await store.listClosings({ limit: 1 });
    expect(first.items).toEqual([
      {
        ...audit,
        id: expect.any(String) as string,
        action: 'release',
        claimedAtMs,
        reason,
        by,
        closedAtMs: claimedAtMs + 1_000,
      },
    ]);
    expect(first.next).toBeDefined();
    expect((await store.listClosings({ after: first.next! })).items).toEqual([
      {
        ...audit,
        id: expect.any(String) as string,
        action: 'settle',
        claimedAtMs: claimedAtMs + 1_000,
        reason,
        closedAtMs: claimedAtMs + 2_000,
      },
    ]);
  });

  test('is closed by one of many who try at once, on two servers', async () => {
    const store = await rig.withSession(KEY);
    const servers = [store, await rig.open()];
    await store.claim(claimOf('k'));
    const closed = await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        servers[at % 2]!.closeEntry(at % 3 === 0 ? because : { ...because, response: { at } }),
      ),
    );
    expect(closed.filter((outcome) => outcome === 'closed')).toHaveLength(1);
    expect((await store.listClosings()).items).toHaveLength(1);
  });

  test('is closed for a reason, by a name, with an answer that can be kept', async () => {
    const store = await rig.withSession(KEY);
    await store.claim(claimOf('k'));
    for (const wrong of [
      { reason: ' ' },
      { reason: 'a\0' },
      { reason: 'x'.repeat(1_001) },
      { by: '' },
      { key: '' },
    ])
      expect(await errorOf(store.closeEntry({ ...because, ...wrong }))).toMatchObject({
        code: 'store_refused',
      });
    const large = { text: 'x'.repeat(EVENT_MAX_BYTES) };
    expect(await errorOf(store.closeEntry({ ...because, response: large }))).toMatchObject({
      code: 'store_refused',
    });
    expect((await store.listLedger({ state: 'open' })).items).toHaveLength(1);
    expect((await store.listClosings()).items).toEqual([]);
  });

  test('keeps nothing of a caller where it was closed', async () => {
    const store = await rig.withSession(KEY);
    await store.claim(claimOf('k'));
    await store.closeEntry(because);
    expect(JSON.stringify((await store.listClosings()).items)).not.toContain(KEY.userId);
  });
}

function outcomes(rig: ContractRig): void {
  test('claims a key, keeps it open, and answers a repeat with what was answered', async () => {
    const store = await rig.withSession(KEY);
    const claim = claimOf('refund:A-1', amountOf(4_000), { approvedBy: 'Grace' });
    const claimedAtMs = rig.clock.wall;
    expect(await store.claim(claim)).toEqual({ kind: 'claimed' });
    rig.clock.wall += 5_000;
    expect(await store.claim({ ...claim, callId: 'another' })).toEqual({
      kind: 'open',
      sinceMs: claimedAtMs,
    });
    const response = { refund_id: 'R-1', odd: '\0\ud83d', deep: [{ a: null }] };
    expect(await store.settle(KEY.appName, claim.key, response)).toBe(true);
    const done = { kind: 'done', response, amount: claim.amount, isSameCall: true };
    expect(await store.claim(claim)).toEqual(done);
    expect(await store.claim({ ...claim, callId: 'another' })).toEqual({ ...done, isSameCall: false });
    expect(await store.settle(KEY.appName, claim.key, { refund_id: 'R-2' })).toBe(false);
    expect(await store.release(KEY.appName, claim.key)).toBe(false);
    expect(await store.claim(claim)).toEqual(done);
    expect((await store.listLedger({})).items).toEqual([
      {
        appName: KEY.appName,
        key: claim.key,
        state: 'done',
        tool: claim.tool,
        callId: claim.callId,
        sessionId: KEY.id,
        userId: KEY.userId,
        amount: claim.amount,
        guards: claim.guards,
        approvedBy: 'Grace',
        claimedAtMs,
        settledAtMs: claimedAtMs + 5_000,
        response,
      },
    ]);
  });

  test('lets a key be claimed again that was released, and only then', async () => {
    const store = await rig.withSession(KEY);
    expect(await store.release(KEY.appName, 'k')).toBe(false);
    expect(await store.settle(KEY.appName, 'k', {})).toBe(false);
    await store.claim(claimOf('k'));
    expect(await store.release('sales', 'k')).toBe(false);
    expect((await store.claim(claimOf('k'))).kind).toBe('open');
    expect(await store.release(KEY.appName, 'k')).toBe(true);
    expect((await store.listLedger({})).items).toEqual([]);
    expect(await store.claim(claimOf('k'))).toEqual({ kind: 'claimed' });
  });

  test('keeps apps and odd keys apart', async () => {
    const store = await rig.withSession(KEY);
    const sales = sessionKey('CA1', { appName: 'sales' });
    for (const key of ODD_NAMES) {
      expect(await store.claim(claimOf(key))).toEqual({ kind: 'claimed' });
      expect(await store.claim(claimOf(key, undefined, { session: sales }))).toEqual({ kind: 'claimed' });
    }
    for (const key of ODD_NAMES) expect(await store.settle('sales', key, { key })).toBe(true);
    for (const key of ODD_NAMES) {
      expect((await store.claim(claimOf(key))).kind).toBe('open');
      expect(await store.claim(claimOf(key, undefined, { session: sales }))).toEqual({
        kind: 'done',
        response: { key },
        // Of a session that is not stored the entry does not hold the name.
        isSameCall: false,
      });
    }
  });

  test.each<[string, Partial<LedgerClaim>]>([
    ['an empty key', { key: '' }],
    ['a key with a NUL', { key: 'a\0b' }],
    ['a key that is too long', { key: 'x'.repeat(300) }],
    ['no call id', { callId: '' }],
    ['an amount of nothing', { amount: amountOf(0) }],
    ['an amount below nothing', { amount: amountOf(-5) }],
    ['half a cent', { amount: amountOf(0.5) }],
    ['an amount that is no number', { amount: amountOf(Number.NaN) }],
    ['an amount that a number does not hold', { amount: amountOf(2 ** 53) }],
    ['a limit that is none', { amount: amountOf(1, { limitMinor: Number.POSITIVE_INFINITY }) }],
    ['no currency', { amount: amountOf(1, { currency: '' }) }],
    ['an approver without a name', { approvedBy: '' }],
  ])('refuses a claim with %s, and keeps nothing of it', async (_, change) => {
    const store = await rig.withSession(KEY);
    const { code, text } = await errorOf(store.claim(claimOf('secret-key', undefined, change)));
    expect(code).toBe('store_refused');
    expect(text).not.toContain('secret-key');
    expect((await store.listLedger({})).items).toEqual([]);
  });

  test('refuses a response that it could not give back, and leaves the entry open', async () => {
    const store = await rig.withSession(KEY);
    await store.claim(claimOf('k'));
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    for (const response of [circle, { text: 'x'.repeat(2 ** 20) }])
      expect((await errorOf(store.settle(KEY.appName, 'k', response))).code).toBe('store_refused');
    expect((await store.claim(claimOf('k'))).kind).toBe('open');
  });
}

function accounts(rig: ContractRig): void {
  test('refuses what would exceed the limit of an account, to the last minor unit', async () => {
    const store = await rig.withSession(KEY);
    expect(await store.claim(claimOf('a', amountOf(6_000)))).toEqual({ kind: 'claimed' });
    await store.settle(KEY.appName, 'a', {});
    const refused = (await store.claim(claimOf('b', amountOf(4_001)))) as { kind: string; why: string };
    expect(refused.kind).toBe('refused');
    expect(refused.why).toContain('4001 is more than the 4000 that are left of the limit of 10000 (USD');
    expect(refused.why).not.toContain(KEY.userId);
    expect(await store.claim(claimOf('b', amountOf(4_000)))).toEqual({ kind: 'claimed' });
    // Also an open one counts; another account, and one of another app, does not.
    expect((await store.claim(claimOf('c', amountOf(1)))).kind).toBe('refused');
    expect((await store.claim(claimOf('c', amountOf(1, { account: 'order:A-2' })))).kind).toBe('claimed');
    const sales = { session: sessionKey('CA1', { appName: 'sales' }) };
    expect((await store.claim(claimOf('c', amountOf(LIMIT), sales))).kind).toBe('claimed');
    // What was released is there again; a repeat is one although the account is full.
    expect((await store.claim(claimOf('b', amountOf(4_000)))).kind).toBe('open');
    await store.release(KEY.appName, 'b');
    expect((await store.claim(claimOf('d', amountOf(4_000)))).kind).toBe('claimed');
    expect((await store.claim(claimOf('a', amountOf(6_000)))).kind).toBe('done');
  });

  test('keeps one currency and one limit for each account', async () => {
    const store = await rig.withSession(KEY);
    await store.claim(claimOf('a', amountOf(100)));
    const refusals: ClaimOutcome[] = [
      await store.claim(claimOf('b', amountOf(1, { currency: 'EUR' }))),
      await store.claim(claimOf('b', amountOf(1, { currency: 'usd' }))),
      await store.claim(claimOf('b', amountOf(1, { limitMinor: LIMIT + 1 }))),
    ];
    expect(refusals).toMatchObject([
      { kind: 'refused', why: expect.stringContaining('in USD, and this is in EUR') as string },
      { kind: 'refused', why: expect.stringContaining('in USD, and this is in usd') as string },
      { kind: 'refused', why: expect.stringContaining('the limit was 10000 before') as string },
    ]);
    // What was certainly never done binds nobody.
    await store.release(KEY.appName, 'a');
    expect((await store.claim(claimOf('b', amountOf(1, { currency: 'EUR' })))).kind).toBe('claimed');
  });

  test('counts in whole numbers as far as they go', async () => {
    const store = await rig.withSession(KEY);
    const max = Number.MAX_SAFE_INTEGER;
    const claim = (key: string, amountMinor: number) =>
      store.claim(claimOf(key, amountOf(amountMinor, { limitMinor: max })));
    expect((await claim('a', max - 1)).kind).toBe('claimed');
    expect((await claim('b', 2)).kind).toBe('refused');
    expect((await claim('b', max)).kind).toBe('refused');
    expect((await claim('b', 1)).kind).toBe('claimed');
    const amounts = (await everyEntry(store)).map(({ amount }) => amount?.amountMinor);
    expect(new Set(amounts)).toEqual(new Set([1, max - 1]));
  });
}

type Move = { readonly key: string; readonly amount: number } & (
  { readonly do: 'claim'; readonly account: string } | { readonly do: 'settle' | 'release' }
);

const move: fc.Arbitrary<Move> = fc.record({
  do: fc.constantFrom(
    'claim' as const,
    'claim' as const,
    'claim' as const,
    'settle' as const,
    'release' as const,
  ),
  key: fc.constantFrom('k1', 'k2', 'k3', 'k4'),
  account: fc.constantFrom('a1', 'a2'),
  amount: fc.integer({ min: 1, max: 70 }),
});

function concurrency(rig: ContractRig): void {
  test('gives one key to one of fifty who claim it at once, from two servers', async () => {
    const store = await rig.withSession(KEY);
    const servers = [store, await rig.open()];
    for (const amount of [undefined, amountOf(6_000)]) {
      const key = `k-${amount?.amountMinor}`;
      const all = await Promise.all(
        Array.from({ length: 50 }, (_, at) => servers[at % 2]!.claim(claimOf(key, amount))),
      );
      const kinds = all.map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === 'claimed')).toHaveLength(1);
      expect(kinds.filter((kind) => kind === 'open')).toHaveLength(49);
    }
  }, 60_000);

  test('gives an account to as many as its limit has room for, from two servers', async () => {
    const store = await rig.withSession(KEY);
    const servers = [store, await rig.open()];
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, at) => servers[at % 2]!.claim(claimOf(`k${at}`, amountOf(3_000)))),
    );
    expect(all.filter(({ kind }) => kind === 'claimed')).toHaveLength(3);
    expect(all.filter(({ kind }) => kind === 'refused')).toHaveLength(37);
  }, 60_000);

  test('gives a key once where two accounts are claimed with it', async () => {
    const store = await rig.withSession(KEY);
    const servers = [store, await rig.open()];
    for (let round = 0; round < 10; round += 1) {
      const all = await Promise.all(
        Array.from({ length: 8 }, (_, at) =>
          servers[at % 2]!.claim(
            claimOf(`k${round}`, at % 3 === 0 ? undefined : amountOf(1, { account: `a${at % 3}` })),
          ),
        ),
      );
      expect(all.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
    }
  }, 60_000);

  test('never exceeds a limit nor gives a key twice, whatever several writers do', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(move, { maxLength: 12 }), { minLength: 3, maxLength: 5 }),
        async (writers) => {
          const store = await rig.withSession(KEY);
          const servers = [store, await rig.open()];
          const told = new Tally();
          const watching = watch(store);
          await Promise.all(writers.map((moves, at) => play(servers[at % 2]!, moves, told)));
          expect(await watching.stop()).toBeLessThanOrEqual(100);
          expect(told.differences(await everyEntry(store))).toEqual([]);
          await rig.close();
        },
      ),
      fuzzed(12),
    );
  }, 240_000);
}

/** Looks at the accounts again and again while others write: the largest sum that anybody could have seen. */
function watch(store: Store): { stop: () => Promise<number> } {
  let isOver = false;
  const looking = (async () => {
    let largest = 0;
    for (let isLast = false; !isLast;) {
      isLast = isOver;
      const sums = new Map<string, number>();
      for (const { amount } of await everyEntry(store))
        if (amount) sums.set(amount.account, (sums.get(amount.account) ?? 0) + amount.amountMinor);
      largest = Math.max(largest, ...sums.values());
    }
    return largest;
  })();
  return {
    stop: () => {
      isOver = true;
      return looking;
    },
  };
}

/** What the writers were told, by key: claims, releases and settlements. */
class Tally {
  readonly #keys = new Map<string, { claimed: number; released: number; settled: number }>();

  add(key: string, what: 'claimed' | 'released' | 'settled'): void {
    const counts = this.#keys.get(key) ?? { claimed: 0, released: 0, settled: 0 };
    counts[what] += 1;
    this.#keys.set(key, counts);
  }

  /** Where it is not so that each claim was released or is what the ledger has, and that what was settled is done, once. */
  differences(entries: readonly LedgerEntry[]): string[] {
    return ['k1', 'k2', 'k3', 'k4'].flatMap((key) => {
      const { claimed = 0, released = 0, settled = 0 } = this.#keys.get(key) ?? {};
      const state = entries.find((one) => one.key === key)?.state;
      const isAlike =
        claimed - released === (state === undefined ? 0 : 1) && settled === (state === 'done' ? 1 : 0);
      const told = `${claimed} claimed, ${released} released, ${settled} settled`;
      return isAlike ? [] : [`${key}: ${told}, and it is ${state ?? 'not there'}`];
    });
  }
}

async function play(store: Store, moves: readonly Move[], told: Tally): Promise<void> {
  for (const one of moves) {
    if (one.do === 'claim') {
      const amount = amountOf(one.amount, { account: one.account, limitMinor: 100 });
      const { kind } = await store.claim(claimOf(one.key, amount));
      if (kind === 'claimed') told.add(one.key, 'claimed');
    } else if (one.do === 'settle') {
      if (await store.settle(KEY.appName, one.key, {})) told.add(one.key, 'settled');
    } else if (await store.release(KEY.appName, one.key)) told.add(one.key, 'released');
  }
}

function keeping(rig: ContractRig): void {
  test('keeps open what was claimed and not settled when the process was killed', async () => {
    const store = await rig.withSession(KEY);
    await store.close();
    const { claimed, settled } = await claimedUntilKilled(rig.url, KEY);
    const again = await rig.open();
    const entries = new Map((await everyEntry(again)).map((entry) => [entry.key, entry.state]));
    expect(settled.length).toBeGreaterThan(20);
    for (const key of settled) expect(entries.get(key)).toBe('done');
    const unsettled = claimed.filter((key) => !settled.includes(key));
    // The last one may have been settled before that could be told.
    for (const key of unsettled.slice(0, -1)) expect(entries.get(key)).toBe('open');
    expect(unsettled.length).toBeGreaterThan(20);
    for (const key of claimed) expect((await again.claim(claimOf(key))).kind).not.toBe('claimed');
  }, 60_000);

  test('lists entries page by page, oldest first, by app, account and state', async () => {
    const store = await rig.withSession(KEY);
    for (let at = 0; at < 21; at += 1) {
      rig.clock.wall += at % 3 === 0 ? 1_000 : 0;
      const session = sessionKey('CA1', { appName: at % 2 === 0 ? 'even' : 'odd' });
      await store.claim(claimOf(`k${20 - at}`, amountOf(1, { account: `a${at % 4}` }), { session }));
      if (at % 5 === 0) await store.settle(session.appName, `k${20 - at}`, { at });
    }
    const whole = await everyEntry(store);
    expect(whole).toHaveLength(21);
    const places = whole.map(({ claimedAtMs, appName, key }) => `${claimedAtMs} ${appName} ${key}`);
    expect(places).toEqual(places.toSorted());
    for (const limit of [1, 4, 21]) expect(await everyEntry(store, limit)).toEqual(whole);
    for (const filter of [
      { appName: 'even' },
      { account: 'a3' },
      { state: 'open' },
      { state: 'done', appName: 'odd' },
    ] as const)
      expect((await store.listLedger(filter)).items).toEqual(
        whole.filter(
          (entry) =>
            (!('appName' in filter) || entry.appName === filter.appName) &&
            (!('account' in filter) || entry.amount?.account === filter.account) &&
            (!('state' in filter) || entry.state === filter.state),
        ),
      );
    for (const after of ['x', '', Buffer.from('[1,"a"]').toString('base64url')])
      expect((await errorOf(store.listLedger({}, { after }))).code).toBe('store_refused');
    expect((await errorOf(store.listLedger({}, { limit: 0 }))).code).toBe('store_refused');
    expect((await errorOf(store.listLedger({ account: '' }))).code).toBe('store_refused');
  });

  test('gives pages that are bounded in bytes, and each of them something', async () => {
    const store = await rig.withSession(KEY);
    const text = 'x'.repeat(1_000_000);
    for (let at = 0; at < 20; at += 1) {
      await store.claim(claimOf(`k${at}`));
      await store.settle(KEY.appName, `k${at}`, { text });
    }
    const first = await store.listLedger({});
    expect(first.items.length).toBeGreaterThan(1);
    expect(first.items.length).toBeLessThan(10);
    expect(await everyEntry(store)).toHaveLength(20);
  });

  test('outlives session, retention and user, and then names nobody', async () => {
    const store = await rig.withSession(KEY);
    const bob = sessionKey('CA2', { userId: 'bob' });
    await store.createSession(bob);
    await store.claim(claimOf('open', amountOf(1)));
    await store.claim(claimOf('done', amountOf(1)));
    await store.settle(KEY.appName, 'done', { said: 1 });
    await store.claim(claimOf('other', amountOf(1), { session: bob }));
    const before = await everyEntry(store);
    await store.deleteSession(KEY);
    rig.clock.wall += 1_000;
    await store.deleteOlderThan(rig.clock.wall);
    expect(await everyEntry(store)).toEqual(before);
    await store.deleteUser({ appName: 'sales' }, KEY.userId);
    expect(await everyEntry(store)).toEqual(before);
    await store.deleteUser('all', KEY.userId);
    const blank = before.map((entry) =>
      entry.key === 'other' ? entry : { ...entry, userId: '', sessionId: '' },
    );
    expect(await everyEntry(store)).toEqual(blank);
    expect((await collected(store.exportSessions())).join('\n')).not.toContain(KEY.userId);
    expect((await store.claim(claimOf('done'))).kind).toBe('done');
    // A call that goes on may do something, but nobody is written down anew.
    expect((await store.claim(claimOf('late', amountOf(1)))).kind).toBe('claimed');
    expect((await everyEntry(store)).find(({ key }) => key === 'late')).toMatchObject({
      userId: '',
      sessionId: '',
    });
  });

  test('travels with an export, and never makes claimable what was claimed', async () => {
    const store = await rig.withSession(KEY);
    for (const key of ['open', 'done', 'both', 'blank']) await store.claim(claimOf(key, amountOf(10)));
    await store.settle(KEY.appName, 'done', { there: 1 });
    await store.claim(claimOf('bare', undefined, { session: sessionKey('CA9', { userId: 'bob' }) }));
    const lines = await collected(store.exportSessions());
    const copy = await rig.open(await rig.backend.fresh());
    await copy.createSession(KEY);
    await copy.claim(claimOf('both', amountOf(20), { callId: 'mine' }));
    await copy.claim(claimOf('open', amountOf(20), { callId: 'mine' }));
    await copy.settle(KEY.appName, 'open', { here: 1 });
    await copy.importSessions(lines);
    await copy.importSessions(lines);
    const kept = new Map((await everyEntry(copy)).map((entry) => [entry.key, entry]));
    expect(kept.get('both')).toMatchObject({ state: 'open', callId: 'mine' });
    expect(kept.get('open')).toMatchObject({ state: 'done', response: { here: 1 } });
    const original = new Map((await everyEntry(store)).map((entry) => [entry.key, entry]));
    for (const key of ['done', 'blank', 'bare']) expect(kept.get(key)).toEqual(original.get(key));
    for (const key of original.keys()) expect((await copy.claim(claimOf(key))).kind).not.toBe('claimed');
    // What came in counts.
    expect((await copy.claim(claimOf('more', amountOf(LIMIT - 59)))).kind).toBe('refused');
    const empty = await rig.open(await rig.backend.fresh());
    await empty.importSessions(lines);
    expect(await collected(empty.exportSessions())).toEqual(lines);
    const own = (await collected(store.exportSessions({ userId: KEY.userId }))).map(
      (line) => JSON.parse(line) as { type: string; userId: string; key: string },
    );
    expect(own.filter(({ type }) => type === 'ledger').map(({ key }) => key)).toEqual([
      'blank',
      'both',
      'done',
      'open',
    ]);
    expect(new Set(own.map(({ userId }) => userId))).toEqual(new Set([KEY.userId]));
  });
}
