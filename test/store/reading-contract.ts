/**
 * How every store reads long sessions: the newest that are asked for, without holding up anything else.
 */
import { describe, expect, test, vi } from 'vitest';
import { nextTurn } from '../../src/clock.js';
import { EVENT_PAGE_MAX, EVENT_READ_SLICE, EVENT_READ_SLICE_BYTES } from '../../src/limits.js';
import { prepareEvent } from '../../src/store/prepared-event.js';
import type { EventBound } from '../../src/store/store.js';
import type { ContractRig } from './contract-rig.js';
import { errorOf, sessionKey, userEvent } from './store-fixture.js';

export function readingContract(rig: ContractRig): void {
  describe('events of a long session', () => {
    test('are read as far as their bound, the newest of them, whatever it is', async () => {
      const key = sessionKey('CA1');
      const store = await rig.withSession(key);
      const count = 2 * EVENT_READ_SLICE + 50;
      const events = Array.from({ length: count }, (_, at) =>
        // Some larger than a slice.
        prepareEvent(key, userEvent(`e${at}`, 'x'.repeat(at % 101 === 0 ? EVENT_READ_SLICE_BYTES : at % 7))),
      );
      await store.appendPrepared(events);
      const sizes = events.map(({ bytes }) => bytes);
      const sum = (from: number): number => sizes.slice(from).reduce((all, bytes) => all + bytes, 0);
      const numbers = [
        0,
        1,
        EVENT_READ_SLICE - 1,
        EVENT_READ_SLICE,
        EVENT_READ_SLICE + 1,
        count - 1,
        count,
        9_999,
      ];
      const bounds: [bound: EventBound, expected: number][] = [
        ...numbers.map((n): [EventBound, number] => [{ events: n }, Math.min(n, count)]),
        ...[count - 1, count - 40, count - 48, 150, 1, 0].flatMap((from): [EventBound, number][] => [
          [{ bytes: sum(from) }, count - from],
          [{ bytes: sum(from) - 1 }, count - from - 1],
          [{ bytes: sum(from), events: 30 }, Math.min(30, count - from)],
        ]),
        [{ bytes: 0 }, 0],
      ];
      for (const [bound, expected] of bounds) {
        const session = await store.getSession(key, bound);
        expect(session?.events.map(({ id }) => id)).toEqual(
          Array.from({ length: expected }, (_, at) => `e${count - expected + at}`),
        );
        expect(session?.omittedEvents).toBe(count - expected);
      }
      for (const bound of [{ events: -1 }, { bytes: 0.5 }, { events: Number.NaN }])
        expect((await errorOf(store.getSession(key, bound))).code).toBe('store_refused');
    });

    test('are parsed a slice at a time, between which the event loop goes on', async () => {
      const key = sessionKey('CA1');
      const store = await rig.withSession(key);
      await store.appendPrepared(
        Array.from({ length: 10 * EVENT_READ_SLICE }, (_, at) => prepareEvent(key, userEvent(`e${at}`))),
      );
      const reads = [() => store.getSession(key), () => store.listEvents(key, { limit: EVENT_PAGE_MAX })];
      for (const read of reads) {
        const parse = vi.spyOn(JSON, 'parse');
        const inTurns: number[] = [];
        const reading = { isOver: false };
        const count = async (): Promise<void> => {
          while (!reading.isOver) {
            await nextTurn();
            inTurns.push(parse.mock.calls.length);
            parse.mockClear();
          }
        };
        const counting = count();
        await read();
        reading.isOver = true;
        await counting;
        parse.mockRestore();
        expect(inTurns.reduce((sum, turn) => sum + turn, 0)).toBeGreaterThanOrEqual(EVENT_PAGE_MAX);
        expect(Math.max(...inTurns)).toBeLessThanOrEqual(EVENT_READ_SLICE);
      }
    });

    test('are not shown in part where the session is deleted while it is read', async () => {
      const key = sessionKey('CA1');
      const store = await rig.openFresh();
      const other = await rig.open();
      const count = 5 * EVENT_READ_SLICE;
      for (let round = 0; round < 5; round += 1) {
        await store.createSession(key);
        await store.appendPrepared(
          Array.from({ length: count }, (_, at) => prepareEvent(key, userEvent(`e${round}-${at}`))),
        );
        const reading = store.getSession(key);
        for (let turn = 0; turn < 3 * round; turn += 1) await nextTurn();
        const [session] = await Promise.all([reading, other.deleteSession(key)]);
        expect([undefined, count]).toContain(session?.events.length);
      }
    });
  });
}
