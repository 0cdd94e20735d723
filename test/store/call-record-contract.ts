/**
 * What every store knows of phone calls: which server has one, who may go on with it, and how it is forgotten.
 */
import { describe, expect, test } from 'vitest';
import type { NewCall } from '../../src/store/call-records.js';
import type { Store } from '../../src/store/store.js';
import type { ContractRig } from './contract-rig.js';
import { collected, errorOf, sessionKey, userEvent } from './store-fixture.js';

const USER = '+12025550123';

function newCall(callSid: string, changed: Partial<NewCall> = {}): NewCall {
  return {
    callSid,
    appName: 'support',
    userId: USER,
    callDirection: 'inbound',
    callerVerified: true,
    owner: 'server-a',
    ...changed,
  };
}

const LOST = { owner: 'server-a', reason: 'carrier_lost', mayReturn: true };
const OVER = { owner: 'server-a', reason: 'caller_hangup', mayReturn: false };
const TO_B = { from: 'server-a', to: 'server-b' };

export function callRecordContract(rig: ContractRig): void {
  describe('records of calls', () => {
    async function begun(...callSids: string[]): Promise<Store> {
      const store = await rig.openFresh();
      for (const callSid of callSids) {
        await store.createSession(sessionKey(callSid));
        await store.beginCall(newCall(callSid));
      }
      return store;
    }

    test('say who has a call, from its beginning to its end', async () => {
      const store = await begun('CA1');
      const startedAtMs = rig.clock.wall;
      expect(await store.findCallRecord('CA1')).toEqual({ ...newCall('CA1'), startedAtMs });
      expect(await store.findCallRecord('CA2')).toBeUndefined();
      expect(await store.findCallRecord('')).toBeUndefined();
      rig.clock.wall += 1_000;
      expect(await store.endCall('CA1', OVER)).toBe(true);
      const ended = { atMs: startedAtMs + 1_000, reason: 'caller_hangup', mayReturn: false };
      expect(await store.findCallRecord('CA1')).toEqual({ ...newCall('CA1'), startedAtMs, ended });
      expect(await store.endCall('CA1', LOST)).toBe(false);
      expect(await store.endCall('CA2', OVER)).toBe(false);
      expect((await errorOf(store.beginCall(newCall('CA3', { userId: '' })))).code).toBe('store_refused');
    });

    test('that are begun once more keep their beginning, and are the new server’s', async () => {
      const store = await begun('CA1');
      const { startedAtMs } = (await store.findCallRecord('CA1'))!;
      rig.clock.wall += 1_000;
      await store.endCall('CA1', LOST);
      await store.beginCall(newCall('CA1', { owner: 'server-b', callerVerified: false }));
      expect(await store.findCallRecord('CA1')).toEqual({
        ...newCall('CA1', { owner: 'server-b', callerVerified: false }),
        startedAtMs,
      });
    });

    test.each([
      ['goes on', undefined, true],
      ['has ended with the caller left on the line', LOST, true],
      ['is over', OVER, false],
    ])('give a call that %s to another server or not', async (_how, end, isGiven) => {
      const store = await begun('CA1');
      if (end !== undefined) await store.endCall('CA1', end);
      expect(await store.claimCall('CA1', TO_B)).toBe(isGiven);
      if (!isGiven) return;
      const record = await store.findCallRecord('CA1');
      expect(record).toMatchObject({ owner: 'server-b' });
      expect(record?.ended).toBeUndefined();
      // Who had it before says nothing about it any more.
      expect(await store.endCall('CA1', OVER)).toBe(false);
      expect(await store.claimCall('CA1', TO_B)).toBe(false);
      expect(await store.endCall('CA1', { ...OVER, owner: 'server-b' })).toBe(true);
    });

    test('give a call that is lost again to a third server, or back to the first', async () => {
      const store = await begun('CA1');
      expect(await store.claimCall('CA1', TO_B)).toBe(true);
      expect(await store.claimCall('CA1', { from: 'server-b', to: 'server-a' })).toBe(true);
      expect(await store.claimCall('CA1', { from: 'server-a', to: 'server-a' })).toBe(true);
      expect(await store.claimCall('CA2', TO_B)).toBe(false);
    });

    test('give a call to one of those who ask for it at once', async () => {
      const store = await begun(...Array.from({ length: 10 }, (_, at) => `CA${at}`));
      const others = [store, await rig.open(), await rig.open()];
      for (let at = 0; at < 10; at += 1) {
        const answers = await Promise.all(
          others.flatMap((each, number) =>
            ['x', 'y'].map((server) =>
              each.claimCall(`CA${at}`, { from: 'server-a', to: `${server}${number}` }),
            ),
          ),
        );
        expect(answers.filter((isGiven) => isGiven)).toHaveLength(1);
      }
    });

    test('let two servers write into one session at once: no event is lost, and each has its own number', async () => {
      const store = await begun('CA1');
      const other = await rig.open();
      const key = sessionKey('CA1');
      const seqs = await Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          (at % 2 === 0 ? store : other).appendEvent(key, userEvent(`e${at}`)),
        ),
      );
      expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 1));
      const ids = (await other.getSession(key))!.events.map(({ id }) => id);
      expect(ids.toSorted()).toEqual(Array.from({ length: 40 }, (_, at) => `e${at}`).toSorted());
    });

    test('go with their session, with their user, and by age where no session is left', async () => {
      const store = await begun('CA1', 'CA2', 'CA3', 'CA4');
      await store.beginCall(newCall('CA5'));
      await store.beginCall(newCall('CA6', { userId: 'bob' }));
      await store.createSession(sessionKey('CA7', { userId: 'bob' }));
      await store.beginCall(newCall('CA7', { userId: 'bob', appName: 'sales' }));
      const left = async (): Promise<string[]> => {
        const all = ['CA1', 'CA2', 'CA3', 'CA4', 'CA5', 'CA6', 'CA7'];
        const records = await Promise.all(all.map((callSid) => store.findCallRecord(callSid)));
        return records.flatMap((record) => record?.callSid ?? []);
      };
      await store.deleteSession(sessionKey('CA1'));
      expect(await left()).toEqual(['CA2', 'CA3', 'CA4', 'CA5', 'CA6', 'CA7']);
      // Another user's session of that name.
      await store.createSession(sessionKey('CA2', { userId: 'bob' }));
      await store.deleteSession(sessionKey('CA2', { userId: 'bob' }));
      await store.deleteUser({ appName: 'support' }, USER);
      expect(await left()).toEqual(['CA6', 'CA7']);
      await store.deleteUser({ appName: 'support' }, 'bob');
      expect(await left()).toEqual(['CA7']);
      await store.deleteUser('all', 'bob');
      expect(await left()).toEqual([]);

      await store.createSession(sessionKey('CA1'));
      await store.beginCall(newCall('CA1'));
      await store.beginCall(newCall('CA5'));
      rig.clock.wall += 1_000;
      await store.beginCall(newCall('CA6'));
      await store.appendEvent(sessionKey('CA1'), userEvent('late'));
      await store.deleteOlderThan(rig.clock.wall);
      expect(await left()).toEqual(['CA1', 'CA6']);
      await store.deleteOlderThan(rig.clock.wall + 1);
      expect(await left()).toEqual([]);
    });

    test('that have ended are exported, and nobody may go on with them where they come in', async () => {
      const store = await begun('CA1', 'CA2');
      await store.endCall('CA1', LOST);
      const lines = await collected(store.exportSessions());
      const calls = lines.filter((line) => line.includes('"type":"call"'));
      expect(calls).toHaveLength(1);
      expect(calls[0]).not.toContain('server-a');
      const copy = await rig.open(await rig.backend.fresh());
      await copy.importSessions(lines);
      expect(await copy.findCallRecord('CA1')).toMatchObject({
        userId: USER,
        callerVerified: true,
        owner: '',
        ended: { reason: 'carrier_lost', mayReturn: false },
      });
      expect(await copy.claimCall('CA1', { from: '', to: 'server-b' })).toBe(false);
      expect(await collected(copy.exportSessions())).toEqual(lines);
    });
  });
}
