/**
 * What every store gives away and takes in as lines.
 */
import { describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/store.js';
import type { ContractRig } from './contract-rig.js';
import { changeEvent, collected, errorOf, ODD_NAMES, userEvent } from './store-fixture.js';

export function exportContract(rig: ContractRig): void {
  describe('export and import', () => {
    async function filled(): Promise<Store> {
      const store = await rig.openFresh();
      for (const odd of ODD_NAMES.slice(0, 12)) {
        const key = { appName: 'support', userId: odd, id: odd };
        rig.clock.wall += 1;
        await store.createSession(key, { own: odd, 'user:u': odd });
        for (let at = 0; at < 3; at += 1)
          await store.appendEvent(key, changeEvent(`e${at}`, { [`k${at}`]: [at, '\0'], 'app:a': odd }));
        await store.saveArtifact(key, 'user:photo', Buffer.from([0, 255, 10]), 'image/png');
        await store.saveArtifact(key, odd, Buffer.from(odd), 'text/plain');
        await store.saveArtifact(key, odd, Buffer.from('second'), 'text/plain');
      }
      return store;
    }

    test('give an equal store, which exports the same', async () => {
      const store = await filled();
      const lines = await collected(store.exportSessions());
      const copy = await rig.open(await rig.backend.fresh());
      const counts = await copy.importSessions(lines);
      expect(counts).toEqual({
        sessions: 12,
        events: 36,
        stateKeys: 12 * 4 + 12 + 1,
        artifactVersions: 36,
        memoryFacts: 0,
        skippedSessions: 0,
      });
      expect(await collected(copy.exportSessions())).toEqual(lines);
      for (const key of (await store.listSessions({})).items)
        expect(await copy.getSession(key)).toEqual(await store.getSession(key));
      // What continues it, continues the numbers.
      const [key] = (await copy.listSessions({})).items;
      if (key !== undefined) expect(await copy.appendEvent(key, userEvent('next'))).toBe(4);
    });

    test('leave what is there as it is', async () => {
      const store = await filled();
      const lines = await collected(store.exportSessions());
      expect(await store.importSessions(lines)).toEqual({
        sessions: 0,
        events: 0,
        stateKeys: 0,
        artifactVersions: 0,
        memoryFacts: 0,
        skippedSessions: 12,
      });
      expect(await collected(store.exportSessions())).toEqual(lines);
    });

    test('of one user hold nothing of another, nor of the app', async () => {
      const store = await filled();
      const lines = (await collected(store.exportSessions({ userId: '%' }))).map(
        (line) => JSON.parse(line) as { userId?: string },
      );
      expect(lines.length).toBeGreaterThan(5);
      expect(new Set(lines.map(({ userId }) => userId))).toEqual(new Set(['%']));
    });

    test.each([
      '{"type":"session"}',
      'not json',
      '{"type":"event","appName":"secret-name"}',
      '[]',
      '{"type":"other"}',
    ])('refuse the line %s by its number, and keep the sessions before it', async (bad) => {
      const store = await rig.openFresh();
      const session = { type: 'session', appName: 'a', userId: 'u', createdAtMs: 1, updatedAtMs: 1 };
      const lines = [
        JSON.stringify({ ...session, sessionId: '1' }),
        JSON.stringify({ ...session, sessionId: '2' }),
        bad,
      ];
      const { code, text } = await errorOf(store.importSessions(lines));
      expect(code).toBe('store_refused');
      expect(text).toContain('line 3');
      expect(text).not.toContain('secret-name');
      expect((await store.listSessions({})).items.map(({ id }) => id)).toEqual(['1']);
    });
  });
}
