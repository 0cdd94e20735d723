import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Permits } from '../../src/tool/permits.js';
import { fuzzed } from '../fuzz/seed.js';
import { settled } from './tool-stage.js';

const signal = (): AbortSignal => new AbortController().signal;

describe('permits', () => {
  it('are given to so many at once, and then in the order of asking', async () => {
    const permits = new Permits(2);
    const order: number[] = [];
    const backs = new Map<number, () => void>();
    const all = [0, 1, 2, 3, 4].map(async (index) => {
      const giveBack = await permits.take(signal());
      order.push(index);
      backs.set(index, giveBack!);
    });
    await settled();
    expect(order).toEqual([0, 1]);
    expect(permits.waiting).toBe(3);
    backs.get(1)?.();
    await settled();
    expect(order).toEqual([0, 1, 2]);
    backs.get(0)?.();
    backs.get(2)?.();
    await Promise.all(all);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('are given back once, however often', async () => {
    const permits = new Permits(1);
    const giveBack = await permits.take(signal());
    giveBack?.();
    giveBack?.();
    await permits.take(signal());
    void permits.take(signal());
    expect(permits.waiting).toBe(1);
  });

  it('are not given to who has left, before or while waiting', async () => {
    const permits = new Permits(1);
    expect(await permits.take(AbortSignal.abort())).toBeUndefined();
    const giveBack = await permits.take(signal());
    const leaving = new AbortController();
    const left = permits.take(leaving.signal);
    const stays = permits.take(signal());
    leaving.abort();
    expect(await left).toBeUndefined();
    expect(permits.waiting).toBe(1);
    giveBack?.();
    expect(await stays).toBeTypeOf('function');
  });

  it('never leak, whoever comes, goes and leaves', async () => {
    const steps = fc.array(fc.record({ do: fc.constantFrom('take', 'give', 'abort'), pick: fc.nat(20) }), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), steps, async (count, todo) => {
        const permits = new Permits(count);
        const held: (() => void)[] = [];
        const waiting: AbortController[] = [];
        let peak = 0;
        for (const step of todo) {
          if (step.do === 'take') {
            const controller = new AbortController();
            waiting.push(controller);
            void permits.take(controller.signal).then((giveBack) => {
              if (giveBack !== undefined) held.push(giveBack);
              peak = Math.max(peak, held.length);
            });
          } else if (step.do === 'give') held.splice(step.pick % (held.length + 1), 1)[0]?.();
          else waiting[step.pick % (waiting.length + 1)]?.abort();
          await Promise.resolve();
          await Promise.resolve();
          await Promise.resolve();
        }
        expect(peak).toBeLessThanOrEqual(count);
        for (const controller of waiting) controller.abort();
        for (const giveBack of held) giveBack();
        expect(permits.waiting).toBe(0);
        for (let index = 0; index < count; index += 1)
          expect(await permits.take(signal())).toBeTypeOf('function');
      }),
      fuzzed(300),
    );
  });
});
