/**
 * What every store does when it is to forget.
 */
import { describe, expect, test } from 'vitest';
import type { SessionKey, Store } from '../../src/store/store.js';
import type { ContractRig } from './contract-rig.js';
import { changeEvent, collected, errorOf, sessionKey, userEvent } from './store-fixture.js';

export function deletionContract(rig: ContractRig): void {
  describe('deletion', () => {
    /** Two users with two sessions each in two apps; every session has 2 events, 3 state keys and 2 artifacts. */
    async function populated(): Promise<{ store: Store; keys: SessionKey[] }> {
      const store = await rig.openFresh();
      const keys = ['support', 'sales'].flatMap((appName) =>
        ['ada', 'bob'].flatMap((userId) => ['1', '2'].map((id) => ({ appName, userId, id }))),
      );
      for (const key of keys) {
        await store.createSession(key, { [`own-${key.id}`]: 1 });
        await store.appendEvent(key, userEvent('e1'));
        await store.appendEvent(key, changeEvent('e2', { 'user:u': key.id, 'app:a': 1 }));
        await store.saveArtifact(key, 'note', Buffer.from('n'), 'text/plain');
        await store.saveArtifact(key, 'user:note', Buffer.from('n'), 'text/plain');
      }
      return { store, keys };
    }

    test('of a session takes what is its own, and leaves what is shared', async () => {
      const { store, keys } = await populated();
      const [key] = keys;
      if (key === undefined) throw new Error('no key');
      expect(await store.deleteSession(key)).toBe(true);
      expect(await store.deleteSession(key)).toBe(false);
      expect(await store.getSession(key)).toBeUndefined();
      expect((await errorOf(store.appendEvent(key, userEvent('late')))).code).toBe('store_no_session');
      await store.createSession(key);
      expect(await store.getSession(key)).toMatchObject({
        events: [],
        state: { 'user:u': '2', 'app:a': 1 },
      });
      expect((await store.listArtifacts(key)).items.map(({ name: left }) => left)).toEqual(['user:note']);
      expect((await store.listSessions({})).items).toHaveLength(8);
    });

    test('of a user takes everything of that user, in one app or in all', async () => {
      const { store, keys } = await populated();
      const perApp = { sessions: 2, events: 4, stateKeys: 3, artifactVersions: 4, memoryFacts: 0 };
      expect(await store.deleteUser({ appName: 'support' }, 'ada')).toEqual(perApp);
      expect(await store.deleteUser('all', 'ada')).toEqual(perApp);
      expect(await store.deleteUser('all', 'ada')).toEqual({
        sessions: 0,
        events: 0,
        stateKeys: 0,
        artifactVersions: 0,
        memoryFacts: 0,
      });
      const lines = await collected(store.exportSessions());
      expect(lines.join('\n')).not.toContain('ada');
      for (const key of keys.filter(({ userId }) => userId === 'bob'))
        expect(await store.getSession(key)).toMatchObject({ state: { 'user:u': '2', 'app:a': 1 } });
    });

    test('of a user takes more sessions than one transaction does', async () => {
      const store = await rig.openFresh();
      for (let at = 0; at < 120; at += 1) await store.createSession(sessionKey(`CA${at}`));
      await store.createSession(sessionKey('CA1', { userId: 'bob' }));
      expect((await store.deleteUser('all', '+12025550123')).sessions).toBe(120);
      expect((await store.listSessions({})).items).toHaveLength(1);
    });

    test('by age takes quiet sessions, and what is left of users who have none', async () => {
      const { store, keys } = await populated();
      const startMs = rig.clock.wall;
      rig.clock.wall += 10_000;
      const [active] = keys;
      if (active === undefined) throw new Error('no key');
      await store.appendEvent(active, userEvent('late'));
      expect(await store.deleteOlderThan(startMs)).toMatchObject({ sessions: 0, stateKeys: 0 });
      const counts = await store.deleteOlderThan(startMs + 1);
      // Seven sessions; the shared state and artifacts of the three users who have no session left.
      expect(counts).toMatchObject({
        sessions: 7,
        events: 14,
        stateKeys: 7 + 3,
        artifactVersions: 7 + 3 * 2,
      });
      expect((await store.listSessions({})).items).toMatchObject([active]);
      expect(await store.getSession(active)).toMatchObject({
        state: { 'own-1': 1, 'user:u': '2', 'app:a': 1 },
      });
      expect((await store.listArtifacts(active)).items).toHaveLength(2);
      expect(await store.deleteOlderThan(rig.clock.wall + 1)).toMatchObject({ sessions: 1, events: 3 });
      // What is the app's is nobody's data, and stays.
      await store.createSession(active);
      expect((await store.getSession(active))?.state).toEqual({ 'app:a': 1 });
    });

    test('while others append leaves no event behind', async () => {
      const key = sessionKey('CA1');
      const store = await rig.withSession(key);
      const other = await rig.open();
      const appends = Array.from({ length: 60 }, (_, at) =>
        other.appendEvent(key, changeEvent(`e${at}`, { 'user:k': at })).catch(() => undefined),
      );
      await appends[5];
      await store.deleteUser('all', key.userId);
      await Promise.all(appends);
      expect(await collected(store.exportSessions())).toEqual([]);
    });
  });
}
