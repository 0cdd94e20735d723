/**
 * What every store does with function calls that wait for a person or for slow work.
 */
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/event/event.js';
import { prepareEvent } from '../../src/store/prepared-event.js';
import type { PendingCall } from '../../src/store/pending-calls.js';
import type { Store } from '../../src/store/store.js';
import { PENDING_CALLS_MAX } from '../../src/tool-limits.js';
import type { ContractRig } from './contract-rig.js';
import { changeEvent, errorOf, sessionKey, userEvent } from './store-fixture.js';

const KEY = sessionKey('CA1');

function callOf(id: string, change: Partial<PendingCall> = {}): PendingCall {
  return {
    id,
    session: KEY,
    callSid: 'CA1',
    invocationId: 'run-1',
    callId: `call-of-${id}`,
    tool: 'process_refund',
    args: { order_id: 'A-1', reason: '\0 odd \ud83d' },
    kind: 'approval',
    guards: ['limits'],
    requestedAtMs: 1_764_530_000_000,
    ...change,
  };
}

async function waiting(store: Store, limit = 1_000): Promise<PendingCall[]> {
  const all: PendingCall[] = [];
  let after: string | undefined;
  do {
    const page = await store.listPendingCalls({ limit, ...(after !== undefined && { after }) });
    all.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return all;
}

export function pendingCallContract(rig: ContractRig): void {
  describe('pending calls', () => {
    test('wait until they are decided, and are carried out until they are settled', async () => {
      const store = await rig.withSession(KEY);
      const [one, two] = [
        callOf('p1'),
        callOf('p2', { callSid: '', kind: 'longRunning', args: {}, guards: [] }),
      ];
      await store.addPendingCall(one);
      await store.addPendingCall(two);
      expect(await waiting(store)).toEqual([one, two]);
      expect(await store.findPendingCall('p1')).toEqual({ id: 'p1', isSettled: false });
      const decided = { ...one, decision: 'approve', by: 'Grace', decidedAtMs: rig.clock.wall };
      expect(await store.decidePendingCall('p1', { decision: 'approve', by: 'Grace' })).toEqual({
        kind: 'decided',
        call: decided,
      });
      expect(await waiting(store)).toEqual([two]);
      // What a crash would leave behind.
      await store.close();
      const again = await rig.open();
      expect(await again.listDecidedCalls()).toEqual([decided]);
      expect(await again.settlePendingCall('p1')).toBe(true);
      expect(await again.settlePendingCall('p1')).toBe(false);
      expect(await again.listDecidedCalls()).toEqual([]);
      expect(await again.findPendingCall('p1')).toEqual({ id: 'p1', decision: 'approve', isSettled: true });
    });

    test('are decided once, and a repeat tells what was decided', async () => {
      const store = await rig.withSession(KEY);
      await store.addPendingCall(callOf('p1'));
      expect(await store.decidePendingCall('p1', { decision: 'deny' })).toMatchObject({
        kind: 'decided',
        call: { decision: 'deny', by: undefined },
      });
      for (const decision of ['approve', 'deny'] as const)
        expect(await store.decidePendingCall('p1', { decision, by: 'Bob' })).toEqual({
          kind: 'repeat',
          decision: 'deny',
        });
      expect(await store.listDecidedCalls()).toMatchObject([{ id: 'p1', decision: 'deny', by: undefined }]);
      await store.settlePendingCall('p1');
      expect(await store.decidePendingCall('p1', { decision: 'approve' })).toEqual({
        kind: 'repeat',
        decision: 'deny',
      });
    });

    test('that settled by themselves can no longer be decided', async () => {
      const store = await rig.withSession(KEY);
      await store.addPendingCall(callOf('p1', { kind: 'longRunning' }));
      expect(await store.settlePendingCall('p1')).toBe(true);
      expect(await waiting(store)).toEqual([]);
      expect(await store.decidePendingCall('p1', { decision: 'approve' })).toEqual({ kind: 'repeat' });
      expect(await store.listDecidedCalls()).toEqual([]);
    });

    test('are told apart where their handlers are at work, also once they are decided', async () => {
      const store = await rig.withSession(KEY);
      const call = callOf('p1', { kind: 'longRunning', isWorking: true });
      await store.addPendingCall(call);
      expect(await waiting(store)).toEqual([call]);
      await store.addPendingCall(callOf('p2', { kind: 'longRunning', isWorking: true }));
      await store.handOverPendingCall('p2');
      expect(await waiting(store)).toEqual([call, callOf('p2', { kind: 'longRunning' })]);
      for (const [id, isWorking] of [
        ['p1', true],
        ['p2', undefined],
      ] as const) {
        const outcome = await store.decidePendingCall(id, { decision: 'deny' });
        expect(outcome).toMatchObject({ kind: 'decided', call: { id, decision: 'deny' } });
        expect(outcome.kind === 'decided' && outcome.call.isWorking).toBe(isWorking);
      }
      rig.clock.wall += 1_001;
      expect(await store.listLostCalls(1_000)).toEqual([]);
    });

    test('are lost when nobody has said for so long that they are worked at', async () => {
      const store = await rig.withSession(KEY);
      const calls = ['p1', 'p2', 'p3', 'p4'].map((id) =>
        callOf(id, { kind: 'longRunning', isWorking: id !== 'p4' }),
      );
      for (const call of calls) await store.addPendingCall(call);
      expect(await store.listLostCalls(1_000)).toEqual([]);
      rig.clock.wall += 1_001;
      await store.keepPendingCalls(['p1', 'p4', 'unknown']);
      await store.keepPendingCalls([]);
      expect(await store.listLostCalls(1_000)).toEqual([calls[1], calls[2]]);
      await store.settlePendingCall('p2');
      await store.handOverPendingCall('p3');
      rig.clock.wall += 1_001;
      expect(await store.listLostCalls(1_000)).toEqual([calls[0]]);
    });

    test('are not known by an id that was never given', async () => {
      const store = await rig.withSession(KEY);
      await store.addPendingCall(callOf('p1'));
      for (const id of ['unknown', '', 'a\0b', 'half \ud83d', 'x'.repeat(300), '%', 'P1']) {
        expect(await store.findPendingCall(id)).toBeUndefined();
        expect(await store.decidePendingCall(id, { decision: 'approve' })).toEqual({ kind: 'unknown' });
        expect(await store.settlePendingCall(id)).toBe(false);
      }
    });

    test('are decided by one of many who decide at once, and settled by one', async () => {
      const store = await rig.withSession(KEY);
      const servers = [store, await rig.open()];
      for (let round = 0; round < 5; round += 1) {
        const id = `p${round}`;
        await store.addPendingCall(callOf(id));
        const outcomes = await Promise.all(
          Array.from({ length: 12 }, (_, at) =>
            servers[at % 2]!.decidePendingCall(id, {
              decision: at % 3 === 0 ? 'deny' : 'approve',
              by: `person ${at}`,
            }),
          ),
        );
        const decided = outcomes.filter((outcome) => outcome.kind === 'decided');
        expect(decided).toHaveLength(1);
        const decision = decided[0]?.call.decision;
        const repeats = outcomes.filter(({ kind }) => kind === 'repeat');
        expect(repeats).toEqual(Array.from({ length: 11 }, () => ({ kind: 'repeat', decision })));
        const settled = await Promise.all(
          Array.from({ length: 8 }, (_, at) => servers[at % 2]!.settlePendingCall(id)),
        );
        expect(settled.filter(Boolean)).toHaveLength(1);
      }
    });

    test('are bounded for each session, and only those that wait count', async () => {
      const store = await rig.withSession(KEY);
      const other = await rig.open();
      await store.createSession(sessionKey('CA2'));
      const added = await Promise.allSettled(
        Array.from({ length: PENDING_CALLS_MAX + 5 }, (_, at) =>
          (at % 2 === 0 ? store : other).addPendingCall(callOf(`p${at}`)),
        ),
      );
      expect(added.filter(({ status }) => status === 'rejected')).toHaveLength(5);
      const { code, text } = await errorOf(store.addPendingCall(callOf('more')));
      expect(code).toBe('store_refused');
      expect(text).toContain(`at most ${PENDING_CALLS_MAX}`);
      await store.addPendingCall(callOf('of-another', { session: sessionKey('CA2') }));
      const first = (await waiting(store)).find(({ session }) => session.id === KEY.id);
      await store.settlePendingCall(first?.id ?? '');
      await store.addPendingCall(callOf('more'));
    }, 60_000);

    test('are refused without a session, with a known id, and with what could not be given back', async () => {
      const store = await rig.withSession(KEY);
      await store.addPendingCall(callOf('p1'));
      const none = callOf('p2', { session: sessionKey('none') });
      expect((await errorOf(store.addPendingCall(none))).code).toBe('store_no_session');
      expect((await errorOf(store.addPendingCall(callOf('p1', { tool: 'other' })))).code).toBe(
        'store_conflict',
      );
      for (const change of [
        { id: '' },
        { tool: 'a\0' },
        { callId: '' },
        { requestedAtMs: Number.NaN },
        { args: { text: 'x'.repeat(2 ** 20) } },
      ])
        expect((await errorOf(store.addPendingCall(callOf('p2', change)))).code).toBe('store_refused');
      const by = { decision: 'approve', by: '' } as const;
      expect((await errorOf(store.decidePendingCall('p1', by))).code).toBe('store_refused');
      expect(await waiting(store)).toEqual([callOf('p1')]);
    });

    test('are listed page by page, oldest first, also past one that is gone', async () => {
      const store = await rig.withSession(KEY);
      await store.createSession(sessionKey('CA2'));
      for (let at = 0; at < 12; at += 1)
        await store.addPendingCall(
          callOf(`p${11 - at}`, {
            session: sessionKey(at % 2 === 0 ? 'CA1' : 'CA2'),
            requestedAtMs: 1_000 + Math.floor(at / 3),
          }),
        );
      const whole = await waiting(store);
      const places = whole.map(({ requestedAtMs, id }) => `${requestedAtMs} ${id}`);
      expect(places).toHaveLength(12);
      expect(places).toEqual(places.toSorted());
      for (const limit of [1, 5, 12]) expect(await waiting(store, limit)).toEqual(whole);
      const page = await store.listPendingCalls({ limit: 3 });
      await store.deleteSession(page.items[2]?.session ?? KEY);
      const left = whole.slice(3).filter(({ session }) => session.id !== page.items[2]?.session.id);
      expect((await store.listPendingCalls({ after: page.next ?? '' })).items).toEqual(left);
      expect((await errorOf(store.listPendingCalls({ after: 'x' }))).code).toBe('store_refused');
      expect((await errorOf(store.listPendingCalls({ limit: 0 }))).code).toBe('store_refused');
    });

    test('are settled by the event of their result, in one commit, and told by it once', async () => {
      const store = await rig.withSession(KEY);
      for (const id of ['p1', 'p2', 'p3']) await store.addPendingCall(callOf(id));
      await store.decidePendingCall('p1', { decision: 'approve' });
      const result = (id: string, name = 'process_refund'): Event => ({
        ...changeEvent(id, { told: id }),
        content: { role: 'user', parts: [{ functionResponse: { id: 'c1', name, response: { ok: 1 } } }] },
      });
      // Another server carries it out, too, as after a crash: its word comes second.
      const other = await rig.open();
      expect(await store.appendEvent(KEY, result('p1'))).toBe(1);
      expect(await errorOf(other.appendEvent(KEY, result('p1', 'again')))).toMatchObject({
        code: 'store_conflict',
      });
      expect(await other.listDecidedCalls()).toEqual([]);
      expect(await other.settlePendingCall('p1')).toBe(false);
      // Nobody decides any more on what has a result.
      await store.appendPrepared([prepareEvent(KEY, userEvent('e1')), prepareEvent(KEY, result('p2'))]);
      expect(await other.decidePendingCall('p2', { decision: 'deny' })).toEqual({ kind: 'repeat' });
      // What is settled before is told all the same; what is no result settles nothing, and neither does what is not stored.
      expect(await store.settlePendingCall('p3')).toBe(true);
      expect(await store.appendEvent(KEY, result('p3'))).toBe(4);
      await store.addPendingCall(callOf('p4'));
      await store.appendEvent(KEY, userEvent('p4'));
      expect(await errorOf(store.appendEvent(KEY, result('p4')))).toMatchObject({ code: 'store_conflict' });
      expect(await store.findPendingCall('p4')).toEqual({ id: 'p4', isSettled: false });
      const { state } = (await store.getSession(KEY)) ?? {};
      expect(state).toEqual({ told: 'p3' });
    });

    test('go with their session, whatever deletes it', async () => {
      const store = await rig.withSession(KEY);
      const keys = [KEY, sessionKey('CA2', { userId: 'bob' }), sessionKey('CA3', { userId: 'eve' })];
      for (const [at, session] of keys.entries()) {
        await store.createSession(session);
        await store.addPendingCall(callOf(`p${at}`, { session }));
        await store.decidePendingCall(`p${at}`, { decision: 'approve' });
      }
      await store.deleteSession(KEY);
      expect((await store.listDecidedCalls()).map(({ id }) => id)).toEqual(['p1', 'p2']);
      await store.deleteUser('all', 'bob');
      expect(await store.findPendingCall('p1')).toBeUndefined();
      await store.deleteOlderThan(rig.clock.wall + 1);
      expect(await store.listDecidedCalls()).toEqual([]);
      expect(await store.decidePendingCall('p2', { decision: 'approve' })).toEqual({ kind: 'unknown' });
    });
  });
}
