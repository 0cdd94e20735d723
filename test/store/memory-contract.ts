/**
 * What every store remembers of callers.
 */
import { describe, expect, test } from 'vitest';
import { MEMORY_FACT_MAX_CHARS, MEMORY_FACTS_MAX } from '../../src/tool-limits.js';
import type { MemoryFact } from '../../src/store/memory.js';
import type { Store } from '../../src/store/store.js';
import type { ContractRig } from './contract-rig.js';
import { collected, errorOf, ODD_NAMES, sessionKey } from './store-fixture.js';

const KEY = sessionKey('CA1');
const OWNER = { appName: KEY.appName, userId: KEY.userId };

function wordsOf(facts: readonly MemoryFact[]): string[] {
  return facts.map((one) =>
    one.kind === 'fact' ? `${one.entity}: ${one.fact}` : `${one.source} ${one.relation} ${one.target}`,
  );
}

export function memoryContract(rig: ContractRig): void {
  describe('memory', () => {
    const recalled = async (store: Store, owner = OWNER) => wordsOf(await store.recall(owner, 1_000));

    test('keeps facts and relations of one user in one app, the newest first', async () => {
      const store = await rig.withSession(KEY);
      const firstMs = rig.clock.wall;
      expect(await store.remember(OWNER, 'Ada', ['likes tea', 'lives in Bath'])).toBe(2);
      rig.clock.wall += 1_000;
      expect(await store.relate(OWNER, { source: 'Ada', relation: 'is sister of', target: 'Bob' })).toBe(
        true,
      );
      expect(await store.recall(OWNER, 2)).toEqual([
        { kind: 'relation', source: 'Ada', relation: 'is sister of', target: 'Bob', atMs: firstMs + 1_000 },
        { kind: 'fact', entity: 'Ada', fact: 'lives in Bath', atMs: firstMs },
      ]);
      expect(await recalled(store)).toEqual(['Ada is sister of Bob', 'Ada: lives in Bath', 'Ada: likes tea']);
      expect(await store.recall({ ...OWNER, userId: 'bob' }, 10)).toEqual([]);
      expect(await store.recall({ ...OWNER, appName: 'sales' }, 10)).toEqual([]);
      await store.close();
      expect(await recalled(await rig.open())).toHaveLength(3);
    });

    test('keeps nothing twice, and moves on the time of what is said again', async () => {
      const store = await rig.withSession(KEY);
      expect(await store.remember(OWNER, 'Ada', ['a', 'b', 'a'])).toBe(2);
      const relation = { source: 'x', relation: 'y', target: 'z' };
      expect(await store.relate(OWNER, relation)).toBe(true);
      rig.clock.wall += 1_000;
      expect(await store.remember(OWNER, 'Ada', ['a', 'c'])).toBe(1);
      expect(await store.relate(OWNER, relation)).toBe(false);
      expect(await store.remember(OWNER, 'ada', ['a'])).toBe(1);
      expect(await recalled(store)).toEqual(['ada: a', 'x y z', 'Ada: c', 'Ada: a', 'Ada: b']);
      expect(await store.remember(OWNER, 'Ada', [])).toBe(0);
      // A relation is not the fact with the same words, nor the one with another border between them.
      expect(await store.relate(OWNER, { source: 'x', relation: 'y z', target: 'z' })).toBe(true);
    });

    test('gives odd words back as they are', async () => {
      const store = await rig.withSession(KEY);
      expect(await store.remember(OWNER, 'odd', ODD_NAMES)).toBe(ODD_NAMES.length);
      expect((await recalled(store)).toSorted()).toEqual(ODD_NAMES.map((name) => `odd: ${name}`).toSorted());
      const long = '😀'.repeat(MEMORY_FACT_MAX_CHARS / 2);
      expect(await store.relate(OWNER, { source: long, relation: long, target: long })).toBe(true);
      expect((await store.recall(OWNER, 1))[0]).toMatchObject({ source: long, relation: long, target: long });
    });

    test('is bounded: the oldest go', async () => {
      const store = await rig.withSession(KEY);
      await store.createSession(sessionKey('CA1', { userId: 'bob' }));
      await store.remember({ ...OWNER, userId: 'bob' }, 'bob', ['stays']);
      for (let at = 0; at < MEMORY_FACTS_MAX + 10; at += 5) {
        rig.clock.wall += 1;
        await store.remember(
          OWNER,
          'n',
          [0, 1, 2, 3, 4].map((more) => `fact ${at + more}`),
        );
      }
      const kept = await recalled(store);
      expect(kept).toHaveLength(MEMORY_FACTS_MAX);
      expect(kept[0]).toBe(`n: fact ${MEMORY_FACTS_MAX + 9}`);
      expect(kept.at(-1)).toBe('n: fact 10');
      const all = Array.from({ length: MEMORY_FACTS_MAX }, (_, at) => `new ${at}`);
      expect(await store.remember(OWNER, 'n', all)).toBe(MEMORY_FACTS_MAX);
      expect((await recalled(store)).every((words) => words.startsWith('n: new'))).toBe(true);
      expect((await errorOf(store.remember(OWNER, 'n', [...all, 'one more']))).code).toBe('store_refused');
      expect(await recalled(store, { ...OWNER, userId: 'bob' })).toEqual(['bob: stays']);
    }, 30_000);

    test('takes what two servers remember at once, all of it once', async () => {
      const store = await rig.withSession(KEY);
      const servers = [store, await rig.open()];
      const fresh = await Promise.all(
        Array.from({ length: 24 }, (_, at) =>
          servers[at % 2]!.remember(OWNER, 'n', [`of ${at}`, `shared ${at % 3}`]),
        ),
      );
      expect(fresh.reduce((sum, one) => sum + one, 0)).toBe(24 + 3);
      expect(await recalled(store)).toHaveLength(24 + 3);
    }, 30_000);

    test('refuses callers whom nobody can know again, and words that it could not give back', async () => {
      const store = await rig.withSession(KEY);
      const nobody = { ...OWNER, userId: 'anonymous:CA1' };
      await store.createSession({ ...KEY, userId: nobody.userId });
      const relation = { source: 'a', relation: 'b', target: 'c' };
      const refused = [
        store.remember(nobody, 'Ada', ['secret-word']),
        store.relate(nobody, relation),
        store.recall(nobody, 5),
        store.recall(OWNER, 0),
        ...['', '  ', 'a\0', '\ud83d', 'x'.repeat(MEMORY_FACT_MAX_CHARS + 1)].flatMap((bad) => [
          store.remember(OWNER, bad, ['secret-word']),
          store.remember(OWNER, 'Ada', ['secret-word', bad]),
          store.relate(OWNER, { ...relation, relation: bad }),
          store.relate(OWNER, { ...relation, target: bad }),
        ]),
      ];
      for (const { code, text } of await Promise.all(refused.map(errorOf))) {
        expect(code).toBe('store_refused');
        expect(text).not.toContain('secret-word');
      }
      expect(await recalled(store)).toEqual([]);
    });

    test("goes with the user's data, and one who was forgotten is not remembered anew", async () => {
      const store = await rig.withSession(KEY);
      const sales = sessionKey('CA1', { appName: 'sales' });
      await store.createSession(sales);
      await store.remember(OWNER, 'Ada', ['a', 'b']);
      await store.remember({ ...OWNER, appName: 'sales' }, 'Ada', ['c']);
      await store.deleteSession(KEY);
      expect(await recalled(store)).toHaveLength(2);
      expect(await store.deleteUser({ appName: OWNER.appName }, OWNER.userId)).toMatchObject({
        memoryFacts: 2,
      });
      expect(await recalled(store)).toEqual([]);
      expect((await errorOf(store.remember(OWNER, 'Ada', ['late']))).code).toBe('store_no_session');
      expect(await store.deleteUser('all', OWNER.userId)).toMatchObject({ memoryFacts: 1 });
      expect(await collected(store.exportSessions())).toEqual([]);
    });

    test('by age goes only of users who have no session left', async () => {
      const store = await rig.withSession(KEY);
      await store.remember(OWNER, 'Ada', ['old']);
      rig.clock.wall += 10_000;
      await store.createSession(sessionKey('CA2'));
      expect(await store.deleteOlderThan(rig.clock.wall)).toMatchObject({ sessions: 1, memoryFacts: 0 });
      await store.deleteSession(sessionKey('CA2'));
      expect(await store.deleteOlderThan(rig.clock.wall)).toMatchObject({ sessions: 0, memoryFacts: 1 });
    });

    test('while others remember leaves nothing behind a deletion', async () => {
      const store = await rig.withSession(KEY);
      const other = await rig.open();
      const remembering = Array.from({ length: 40 }, (_, at) =>
        other.remember(OWNER, 'n', [`${at}`]).catch(() => 0),
      );
      await remembering[3];
      await store.deleteUser('all', OWNER.userId);
      await Promise.all(remembering);
      expect(await recalled(store)).toEqual([]);
    });

    test('travels with an export, and what is known there stays as it is', async () => {
      const store = await rig.withSession(KEY);
      await store.createSession(sessionKey('CA1', { userId: 'bob' }));
      await store.remember({ ...OWNER, userId: 'bob' }, 'bob', ['of bob']);
      for (const fact of ['one', 'two', 'three']) {
        rig.clock.wall += fact === 'three' ? 0 : 1_000;
        await store.remember(OWNER, 'Ada', [fact]);
      }
      await store.relate(OWNER, { source: 'a', relation: 'b', target: 'c' });
      const lines = await collected(store.exportSessions());
      const copy = await rig.open(await rig.backend.fresh());
      expect(await copy.importSessions(lines)).toMatchObject({ sessions: 2, memoryFacts: 5 });
      expect(await copy.recall(OWNER, 10)).toEqual(await store.recall(OWNER, 10));
      expect(await collected(copy.exportSessions())).toEqual(lines);
      rig.clock.wall += 1_000;
      await copy.remember(OWNER, 'Ada', ['one']);
      expect(await copy.importSessions(lines)).toMatchObject({ sessions: 0, memoryFacts: 0 });
      expect((await recalled(copy))[0]).toBe('Ada: one');
      const own = (await collected(store.exportSessions({ userId: 'bob' }))).join('\n');
      expect(own).toContain('of bob');
      expect(own).not.toContain('Ada');
    });
  });
}
