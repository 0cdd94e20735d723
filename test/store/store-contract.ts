/**
 * What every store does, whatever database is below it. Each backend's test runs this suite.
 */
import { afterEach, describe, expect, test } from 'vitest';
import {
  ARTIFACT_MAX_BYTES,
  EVENT_MAX_BYTES,
  EVENT_PAGE_MAX_BYTES,
  SESSION_EVENTS_MAX,
  SESSION_EVENTS_MAX_BYTES,
  STORE_NAME_MAX_BYTES,
} from '../../src/limits.js';
import { prepareEvent } from '../../src/store/prepared-event.js';
import type { SessionKey } from '../../src/store/store.js';
import { callRecordContract } from './call-record-contract.js';
import { ContractRig, type Backend } from './contract-rig.js';
import { deletionContract } from './deletion-contract.js';
import { exportContract } from './export-contract.js';
import { ledgerContract } from './ledger-contract.js';
import { memoryContract } from './memory-contract.js';
import { pendingCallContract } from './pending-call-contract.js';
import { readingContract } from './reading-contract.js';
import { changeEvent, collected, errorOf, ODD_NAMES, sessionKey, userEvent } from './store-fixture.js';

const BAD_NAMES: [string, unknown][] = [
  ['empty', ''],
  ['too long', 'x'.repeat(STORE_NAME_MAX_BYTES + 1)],
  ['too long in UTF-8', '😀'.repeat(STORE_NAME_MAX_BYTES / 4) + 'é'],
  ['a NUL', 'a\0b'],
  ['half a character', 'a\ud83d'],
  ['no text', 7],
  ['missing', undefined],
];

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);

// oxlint-disable-next-line vitest/require-top-level-describe -- each backend's test names its own
export function storeContract(name: string, backend: () => Backend): void {
  describe(`a store on ${name}`, () => {
    const rig = new ContractRig(backend);

    afterEach(() => rig.close());

    describe('sessions', () => {
      test('are made once, and say when they are there already', async () => {
        const store = await rig.openFresh();
        const key = sessionKey('CA1');
        expect(await store.getSession(key)).toBeUndefined();
        expect(await store.createSession(key, { mood: 'calm' })).toBe(true);
        expect(await store.createSession(key, { mood: 'other' })).toBe(false);
        expect(await store.getSession(key)).toEqual({
          ...key,
          createdAtMs: rig.clock.wall,
          updatedAtMs: rig.clock.wall,
          state: { mood: 'calm' },
          events: [],
          omittedEvents: 0,
        });
      });

      test('of two users, apps and ids are apart', async () => {
        const store = await rig.openFresh();
        const keys = ['support', 'sales'].flatMap((appName) =>
          ['+12025550100', '+12025550101'].flatMap((userId) =>
            ['1', '2'].map((id) => ({ appName, userId, id })),
          ),
        );
        for (const key of keys) {
          await store.createSession(key);
          await store.appendEvent(key, changeEvent('same-id', { mine: key }));
        }
        for (const key of keys) {
          const session = await store.getSession(key);
          expect(session?.state).toEqual({ mine: key });
          expect(session?.events).toHaveLength(1);
        }
      });

      test('are listed newest first, page by page, by app and user', async () => {
        const store = await rig.openFresh();
        const keys = Array.from({ length: 23 }, (_, at) =>
          sessionKey(`CA${at}`, { userId: `user-${at % 3}`, appName: at % 2 === 0 ? 'even' : 'odd' }),
        );
        for (const [at, key] of keys.entries()) {
          // Several at one moment: the names decide then.
          rig.clock.wall += at % 4 === 0 ? 1_000 : 0;
          await store.createSession(key);
        }
        const whole = (await store.listSessions({})).items;
        expect(whole).toHaveLength(keys.length);
        expect(whole.map(({ createdAtMs }) => createdAtMs)).toEqual(
          whole.map(({ createdAtMs }) => createdAtMs).toSorted((a, b) => b - a),
        );
        for (const limit of [1, 4, 23, 1_000]) {
          const paged: unknown[] = [];
          let after: string | undefined;
          do {
            const page = await store.listSessions({}, { limit, ...(after !== undefined && { after }) });
            paged.push(...page.items);
            after = page.next;
          } while (after !== undefined);
          expect(paged).toEqual(whole);
        }
        const { items } = await store.listSessions({ appName: 'odd', userId: 'user-1' });
        expect(items).toEqual(
          whole.filter(({ appName, userId }) => appName === 'odd' && userId === 'user-1'),
        );
      });

      test('refuse a cursor or a limit that is none', async () => {
        const store = await rig.withSession(sessionKey('CA1'));
        const bad = [
          store.listSessions({}, { after: 'x' }),
          store.listSessions({}, { after: Buffer.from('[1]').toString('base64url') }),
          store.listSessions({}, { after: Buffer.from('[1,"a","b","\\u0000"]').toString('base64url') }),
          store.listSessions({}, { after: Buffer.from('[1.5,"a","b","c"]').toString('base64url') }),
          store.listSessions({}, { limit: 0 }),
          store.listEvents(sessionKey('CA1'), { after: -1 }),
          store.listEvents(sessionKey('CA1'), { limit: 1.5 }),
        ];
        for (const { code } of await Promise.all(bad.map(errorOf))) expect(code).toBe('store_refused');
        // A place or a version that there will never be is not there.
        expect(await store.listEvents(sessionKey('CA1'), { after: 2 ** 40 })).toEqual({ items: [] });
        await store.saveArtifact(sessionKey('CA1'), 'a', new Uint8Array(1), 'a/b');
        for (const version of [-1, 0.5, 2 ** 40, Number.NaN])
          expect(await store.loadArtifact(sessionKey('CA1'), 'a', version)).toBeUndefined();
      });

      test.each(BAD_NAMES)('refuse a name that is %s', async (_, bad) => {
        const store = await rig.withSession(sessionKey('CA1'));
        const part = bad as string;
        const attempts: Promise<unknown>[] = [
          store.createSession(sessionKey(part)),
          store.createSession(sessionKey('CA2', { userId: part })),
          store.createSession(sessionKey('CA2', { appName: part })),
          store.appendEvent(sessionKey('CA1'), { ...userEvent('e'), id: part }),
          store.saveArtifact(sessionKey('CA1'), part, new Uint8Array(1), 'a/b'),
          store.deleteUser('all', part),
        ];
        if (bad !== undefined)
          attempts.push(
            store.listSessions({ userId: part }),
            collected(store.exportSessions({ appName: part })),
            store.listArtifacts(sessionKey('CA1'), { after: part }),
          );
        if (typeof bad === 'string')
          attempts.push(store.appendEvent(sessionKey('CA1'), changeEvent('e', { [part]: 1 })));
        for (const { code, text } of await Promise.all(attempts.map(errorOf))) {
          expect(code).toBe('store_refused');
          if (typeof bad === 'string' && bad !== '') expect(text).not.toContain(bad);
        }
        expect((await store.getSession(sessionKey('CA1')))?.events).toEqual([]);
      });

      test('keep odd names apart, and give them back as they are', async () => {
        const store = await rig.openFresh();
        for (const odd of ODD_NAMES) {
          const key = { appName: odd, userId: odd, id: odd };
          expect(await store.createSession(key)).toBe(true);
          await store.appendEvent(key, { ...changeEvent(odd, { [odd]: odd }), author: odd });
          await store.saveArtifact(key, odd, Buffer.from(odd), 'text/plain');
        }
        for (const odd of ODD_NAMES) {
          const session = await store.getSession({ appName: odd, userId: odd, id: odd });
          expect(session).toMatchObject({ appName: odd, userId: odd, id: odd });
          expect(Object.entries(session?.state ?? {})).toEqual([[odd, odd]]);
          expect(session?.events.map(({ id, author }) => [id, author])).toEqual([[odd, odd]]);
          const { items } = await store.listArtifacts({ appName: odd, userId: odd, id: odd });
          expect(items.map(({ name: artifact }) => artifact)).toEqual([odd]);
        }
        expect((await store.listSessions({})).items).toHaveLength(ODD_NAMES.length);
      });
    });

    describe('events', () => {
      test('come back as they were appended, in order, numbered from 1', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const events = Array.from({ length: 12 }, (_, at) => ({
          ...userEvent(`event-${11 - at}`),
          turnComplete: true,
          usageMetadata: { totalTokenCount: at },
          longRunningToolIds: ['a'],
          content: {
            role: 'model' as const,
            parts: [{ functionCall: { id: 'a', name: 'lookup', args: { deep: [{ at }] } } }, { text: 'ok' }],
          },
        }));
        for (const [at, event] of events.entries()) expect(await store.appendEvent(key, event)).toBe(at + 1);
        const session = await store.getSession(key);
        expect(session?.events).toEqual(events);
        expect((await store.listEvents(key))?.items).toEqual(
          events.map((event, at) => ({ seq: at + 1, event })),
        );
      });

      test('are paged by their number, whatever the page', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        await store.appendPrepared(
          Array.from({ length: 25 }, (_, at) => prepareEvent(key, userEvent(`e${at}`))),
        );
        for (const limit of [1, 7, 25, 10_000]) {
          const seqs: number[] = [];
          let after: number | undefined = 0;
          while (after !== undefined) {
            const page = await store.listEvents(key, { after, limit });
            seqs.push(...(page?.items.map(({ seq }) => seq) ?? []));
            after = page?.next;
          }
          expect(seqs).toEqual(Array.from({ length: 25 }, (_, at) => at + 1));
        }
        expect(await store.listEvents(key, { after: 25 })).toEqual({ items: [] });
        expect(await store.listEvents(sessionKey('none'))).toBeUndefined();
      });

      test('that are partial are never stored', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const partial = { ...changeEvent('e1', { seen: true }), partial: true };
        expect((await errorOf(store.appendEvent(key, partial))).code).toBe('store_refused');
        expect(await store.getSession(key)).toMatchObject({ events: [], state: {} });
      });

      test('of a session that is not there are refused', async () => {
        const store = await rig.withSession(sessionKey('CA1'));
        expect((await errorOf(store.appendEvent(sessionKey('CA2'), userEvent('e')))).code).toBe(
          'store_no_session',
        );
        expect(await store.getSession(sessionKey('CA2'))).toBeUndefined();
      });

      test('appended again are the same event; another one with its id is refused', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        await store.appendEvent(key, changeEvent('e1', { count: 1 }));
        await store.appendEvent(key, changeEvent('e2', { count: 2 }));
        // As after a connection that broke at the commit.
        expect(await store.appendEvent(key, changeEvent('e1', { count: 1 }))).toBe(1);
        expect((await errorOf(store.appendEvent(key, changeEvent('e1', { count: 9 })))).code).toBe(
          'store_conflict',
        );
        expect(await store.appendEvent(key, userEvent('e3'))).toBe(3);
        expect(await store.getSession(key)).toMatchObject({ state: { count: 2 }, omittedEvents: 0 });
      });

      test('of a batch each have their outcome', async () => {
        const [one, two] = [sessionKey('CA1'), sessionKey('CA2')];
        const store = await rig.withSession(one);
        await store.createSession(two);
        await store.appendEvent(one, userEvent('old'));
        const outcomes = await store.appendPrepared([
          prepareEvent(one, changeEvent('a', { n: 1, 'app:n': 1 })),
          prepareEvent(sessionKey('none'), changeEvent('b', { 'app:lost': 1 })),
          prepareEvent(two, changeEvent('c', { n: 2, 'app:n': 2 })),
          prepareEvent(one, userEvent('old')),
          prepareEvent(one, userEvent('old', 'changed')),
          prepareEvent(one, changeEvent('d', { n: 4, 'app:n': 3 })),
          prepareEvent(one, changeEvent('d', { n: 4, 'app:n': 3 })),
        ]);
        expect(outcomes.map((outcome) => (outcome.stored ? outcome.seq : outcome.error.code))).toEqual([
          2,
          'store_no_session',
          1,
          1,
          'store_conflict',
          3,
          3,
        ]);
        const session = await store.getSession(one);
        expect(session?.events.map(({ id }) => id)).toEqual(['old', 'a', 'd']);
        expect(session?.state).toEqual({ n: 4, 'app:n': 3 });
        expect((await store.getSession(two))?.state).toEqual({ n: 2, 'app:n': 3 });
      });

      test('appended by two servers at once are all there, with their state', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const other = await rig.open();
        const each = 40;
        const seqs = await Promise.all(
          [store, other].flatMap((one, who) =>
            Array.from({ length: each }, (_, at) =>
              one.appendEvent(key, changeEvent(`${who}-${at}`, { [`key-${who}-${at}`]: at, 'app:last': at })),
            ),
          ),
        );
        expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 2 * each }, (_, at) => at + 1));
        const session = await other.getSession(key);
        expect(session?.events).toHaveLength(2 * each);
        expect(Object.keys(session?.state ?? {})).toHaveLength(2 * each + 1);
      });

      test('appended by two servers in batches that cross do not stop each other', async () => {
        const keys = Array.from({ length: 8 }, (_, at) => sessionKey(`CA${at}`));
        const store = await rig.openFresh();
        const other = await rig.open();
        for (const key of keys) await store.createSession(key);
        const batches = [store, other].flatMap((one, who) =>
          Array.from({ length: 10 }, (_, at) => {
            const ordered = who === 0 ? keys : keys.toReversed();
            return one.appendPrepared(
              ordered.map((key) =>
                prepareEvent(key, changeEvent(`${who}-${at}`, { 'app:a': at, 'user:b': at })),
              ),
            );
          }),
        );
        const outcomes = (await Promise.all(batches)).flat();
        expect(outcomes.every(({ stored }) => stored)).toBe(true);
        for (const key of keys) expect((await store.getSession(key))?.events).toHaveLength(20);
      });

      test('keep every character of their texts', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const texts = [
          'a\0b\0',
          '\0',
          '\ud83d lone',
          '🧑‍🚀',
          '\u2028\u2029',
          '\u0001\u001f\u007f',
          '"\\\'`',
          'ﷺ'.repeat(100),
        ];
        for (const [at, text] of texts.entries())
          await store.appendEvent(key, {
            ...changeEvent(`e${at}`, { [`k${at}`]: text }),
            content: { parts: [{ text }] },
          });
        const session = await store.getSession(key);
        expect(session?.events.map(({ content }) => content?.parts?.[0]?.text)).toEqual(texts);
        expect(Object.values(session?.state ?? {})).toEqual(texts);
      });

      test('as large as allowed are stored, larger ones refused', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const rest = prepareEvent(key, userEvent('large', '')).bytes;
        await store.appendEvent(key, userEvent('large', 'x'.repeat(EVENT_MAX_BYTES - rest)));
        const { code, text } = await errorOf(
          store.appendEvent(key, userEvent('large', 'x'.repeat(EVENT_MAX_BYTES - rest + 1))),
        );
        expect(code).toBe('store_refused');
        expect(text.length).toBeLessThan(5_000);
        expect((await store.getSession(key))?.events).toHaveLength(1);
      });

      test('beyond what one answer holds are left out from the oldest, and paged by bytes', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const large = 'x'.repeat(EVENT_MAX_BYTES / 2);
        const count = (2 * SESSION_EVENTS_MAX_BYTES) / EVENT_MAX_BYTES + 10;
        for (let at = 0; at < count; at += 1) await store.appendEvent(key, userEvent(`e${at}`, large));
        const session = await store.getSession(key);
        const kept = session?.events.length ?? 0;
        expect(kept).toBeLessThan(count);
        expect(kept).toBeGreaterThan(count - 13);
        expect(session?.omittedEvents).toBe(count - kept);
        expect(session?.events.at(-1)?.id).toBe(`e${count - 1}`);
        const page = await store.listEvents(key);
        expect(page?.items).toHaveLength((2 * EVENT_PAGE_MAX_BYTES) / EVENT_MAX_BYTES - 1);
        expect(page?.next).toBe(page?.items.length);
      });

      test('beyond the number that one answer holds are left out from the oldest', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const count = SESSION_EVENTS_MAX + 7;
        await store.appendPrepared(
          Array.from({ length: count }, (_, at) => prepareEvent(key, userEvent(`e${at}`, 'x'))),
        );
        const session = await store.getSession(key);
        expect(session?.omittedEvents).toBe(7);
        expect(session?.events[0]?.id).toBe('e7');
        expect(session?.events.at(-1)?.id).toBe(`e${count - 1}`);
      });

      test.each([
        [
          'a loop',
          () => {
            const loop: Record<string, unknown> = {};
            loop['loop'] = loop;
            return { usageMetadata: loop };
          },
        ],
        ['a big integer', () => ({ usageMetadata: { count: 1n } })],
        ['another shape', () => ({ content: { parts: 'none' } })],
        ['no time', () => ({ timestamp: Number.NaN })],
      ])('that hold %s are refused', async (_, change) => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const event = { ...userEvent('e1'), ...change() } as never;
        expect((await errorOf(store.appendEvent(key, event))).code).toBe('store_refused');
      });
    });

    describe('state', () => {
      test('is shared as far as its prefix says', async () => {
        const store = await rig.openFresh();
        const here = sessionKey('CA1');
        const sameUser = sessionKey('CA2');
        const otherUser = sessionKey('CA1', { userId: '+12025550199' });
        const otherApp = sessionKey('CA1', { appName: 'sales' });
        for (const key of [here, sameUser, otherUser, otherApp]) await store.createSession(key);
        await store.appendEvent(
          here,
          changeEvent('e', { own: 1, 'user:name': 'Ada', 'app:rate': 2, 'temp:x': 3 }),
        );
        const stateOf = async (key: SessionKey) => (await store.getSession(key))?.state;
        expect(await stateOf(here)).toEqual({ own: 1, 'user:name': 'Ada', 'app:rate': 2 });
        expect(await stateOf(sameUser)).toEqual({ 'user:name': 'Ada', 'app:rate': 2 });
        expect(await stateOf(otherUser)).toEqual({ 'app:rate': 2 });
        expect(await stateOf(otherApp)).toEqual({});
      });

      test('that is temporary is stored nowhere, not in its event either', async () => {
        const key = sessionKey('CA1');
        const store = await rig.openFresh();
        await store.createSession(key, { 'temp:start': 'secret-temp', kept: 1 });
        await store.appendEvent(key, changeEvent('e', { 'temp:x': 'secret-temp', 'user:y': 2 }));
        expect(JSON.stringify(await store.getSession(key))).not.toContain('temp');
        expect((await collected(store.exportSessions())).join('\n')).not.toContain('temp');
      });

      test('keeps every kind of value, and names that mean something elsewhere', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const delta = JSON.parse(
          '{"null":null,"zero":0,"float":-1.5e-7,"no":false,"empty":"","list":[1,[2]],"deep":{"a":{"__proto__":1}},' +
            '"__proto__":{"polluted":true},"user:__proto__":1,"constructor":2,"big":9007199254740991}',
        ) as Record<string, unknown>;
        await store.appendEvent(key, changeEvent('e', delta));
        const state = (await store.getSession(key))?.state ?? {};
        expect(JSON.stringify(Object.entries(state).sort(byName))).toBe(
          JSON.stringify(Object.entries(delta).sort(byName)),
        );
        expect('polluted' in state).toBe(false);
      });

      test('has room for many keys in one event', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const delta = Object.fromEntries(Array.from({ length: 7_000 }, (_, at) => [`key-${at}`, at]));
        await store.appendEvent(key, changeEvent('e', delta));
        expect((await store.getSession(key))?.state).toEqual(delta);
      });
    });

    describe('artifacts', () => {
      test('have versions from 0, and the newest is the one without a number', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const bytes = [
          new Uint8Array(0),
          Uint8Array.from({ length: 256 }, (_, at) => at),
          Buffer.from('\0\0a'),
        ];
        for (const [at, one] of bytes.entries()) {
          rig.clock.wall += 1_000;
          expect(await store.saveArtifact(key, 'answer.ulaw', one, 'audio/basic')).toBe(at);
        }
        for (const [version, one] of bytes.entries()) {
          const loaded = await store.loadArtifact(key, 'answer.ulaw', version);
          expect(loaded).toMatchObject({ version, mimeType: 'audio/basic' });
          expect(Buffer.from(loaded?.bytes ?? [1]).equals(one)).toBe(true);
        }
        expect((await store.loadArtifact(key, 'answer.ulaw'))?.version).toBe(2);
        expect(await store.loadArtifact(key, 'answer.ulaw', 3)).toBeUndefined();
        expect(await store.loadArtifact(key, 'other')).toBeUndefined();
        expect((await store.getSession(key))?.updatedAtMs).toBe(rig.clock.wall);
        expect((await store.getSession(key))?.state).toEqual({});
      });

      test('with the user prefix are seen from all sessions of the user, others from theirs', async () => {
        const [one, two] = [sessionKey('CA1'), sessionKey('CA2')];
        const store = await rig.withSession(one);
        await store.createSession(two);
        await store.saveArtifact(one, 'user:photo', Buffer.from('a'), 'image/png');
        expect(await store.saveArtifact(two, 'user:photo', Buffer.from('b'), 'image/png')).toBe(1);
        await store.saveArtifact(one, 'note', Buffer.from('c'), 'text/plain');
        const latest = { version: 1, mimeType: 'image/png', bytes: 1 };
        const photo = { name: 'user:photo', latest, versions: 2 };
        const note = { name: 'note', latest: { version: 0, mimeType: 'text/plain', bytes: 1 }, versions: 1 };
        expect((await store.listArtifacts(one)).items).toEqual([note, photo]);
        expect((await store.listArtifacts(two)).items).toEqual([photo]);
        expect(await store.loadArtifact(two, 'note')).toBeUndefined();
      });

      test('are listed page by page, by the bytes of their names', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const names = ['b', 'A', 'a', 'B', 'é', 'z', 'user:a', '日', '😀', '\uff5e'];
        for (const one of names) await store.saveArtifact(key, one, Buffer.from(one), 'text/plain');
        const ordered = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        for (const limit of [1, 3, 10, 100_000]) {
          const listed: string[] = [];
          let after: string | undefined;
          do {
            const page = await store.listArtifacts(key, { limit, ...(after !== undefined && { after }) });
            listed.push(...page.items.map((item) => item.name));
            after = page.next;
          } while (after !== undefined);
          expect(listed).toEqual(ordered);
        }
      });

      test('saved by two servers at once have a version each', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const other = await rig.open();
        await store.createSession(sessionKey('CA2'));
        for (const artifact of ['own', 'user:shared']) {
          const versions = await Promise.all(
            [store, other].flatMap((one, who) =>
              Array.from({ length: 6 }, () =>
                one.saveArtifact(
                  artifact === 'own' || who === 0 ? key : sessionKey('CA2'),
                  artifact,
                  Buffer.from('x'),
                  'text/plain',
                ),
              ),
            ),
          );
          expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, at) => at));
        }
      });

      test('above their bound, or of no session, are refused', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        const large = new Uint8Array(ARTIFACT_MAX_BYTES + 1);
        expect((await errorOf(store.saveArtifact(key, 'a', large, 'a/b'))).code).toBe('store_refused');
        expect(await store.saveArtifact(key, 'a', large.subarray(1), 'a/b')).toBe(0);
        expect((await store.loadArtifact(key, 'a'))?.bytes.byteLength).toBe(ARTIFACT_MAX_BYTES);
        const unknown = store.saveArtifact(sessionKey('none'), 'user:a', new Uint8Array(1), 'a/b');
        expect((await errorOf(unknown)).code).toBe('store_no_session');
        expect((await errorOf(store.saveArtifact(key, 'a', new Uint8Array(1), ''))).code).toBe(
          'store_refused',
        );
      });
    });

    readingContract(rig);
    deletionContract(rig);
    exportContract(rig);
    ledgerContract(rig);
    pendingCallContract(rig);
    memoryContract(rig);
    callRecordContract(rig);

    describe('as a whole', () => {
      test('is there again after it was closed', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        await store.appendEvent(key, changeEvent('e1', { kept: 1 }));
        await store.saveArtifact(key, 'a', Buffer.from('b'), 'a/b');
        const before = await store.getSession(key);
        await store.close();
        const again = await rig.open();
        expect(await again.getSession(key)).toEqual(before);
        expect(await again.appendEvent(key, userEvent('e2'))).toBe(2);
        expect((await again.loadArtifact(key, 'a'))?.version).toBe(0);
      });

      test('refuses what is asked after it was closed, and closes twice', async () => {
        const key = sessionKey('CA1');
        const store = await rig.withSession(key);
        await store.close();
        await store.close();
        const asked = [store.getSession(key), store.appendEvent(key, userEvent('e')), store.listSessions({})];
        for (const { text } of await Promise.all(asked.map(errorOf)))
          expect(text).toContain('the store is closed');
      });

      test('is made by as many servers as start at once', async () => {
        rig.url = await rig.backend.fresh();
        const stores = await Promise.all(Array.from({ length: 4 }, () => rig.open()));
        const made = await Promise.all(stores.map((store) => store.createSession(sessionKey('CA1'))));
        expect(made.filter(Boolean)).toHaveLength(1);
        await Promise.all(stores.map((store) => store.listSessions({})));
      });

      test('refuses a database that a newer version made', async () => {
        const store = await rig.openFresh();
        await store.close();
        await rig.backend.query(
          rig.url,
          `insert into kysely_migration values ('9999-later', '2030-01-01T00:00:00Z')`,
        );
        const { code, text } = await errorOf(rig.open());
        expect(code).toBe('store_unusable');
        expect(text).toContain('newer version');
      });
    });
  });
}
