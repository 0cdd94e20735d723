import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Event, NO_ACTIONS } from '../../src/event/event.js';
import type { RunItem } from '../../src/event/run-stream.js';
import { SpokenOrder } from '../../src/event/spoken-order.js';

function event(id: string): Event {
  return { id, invocationId: 'i', author: 'a', timestamp: 0, actions: NO_ACTIONS };
}

function ordered(): { order: SpokenOrder; committed: string[]; hear: (...items: RunItem[]) => void } {
  const committed: string[] = [];
  const order = new SpokenOrder(({ id }) => committed.push(id));
  return { order, committed, hear: (...items) => items.forEach((item) => order.hear(item)) };
}

const opened = (msg: string, before?: string): RunItem => ({ type: 'opened', msg, role: 'user', before });
const sealed = (msg: string): RunItem => ({ type: 'sealed', msg, role: 'user', event: event(msg) });
const unheard = (msg: string): RunItem => ({ type: 'sealed', msg, role: 'model', event: undefined });
const happened = (id: string): RunItem => ({ type: 'event', event: event(id) });

describe('the spoken order', () => {
  it('puts a caller’s message in front of the answer that it caused, though its words came later', () => {
    const { committed, hear } = ordered();
    hear(opened('answer'), opened('question', 'answer'), sealed('answer'));
    expect(committed).toEqual([]);
    hear(sealed('question'));
    expect(committed).toEqual(['question', 'answer']);
  });

  it('puts what happens in the middle of a message behind it', () => {
    const { committed, hear } = ordered();
    hear(opened('m1'), happened('call'), happened('response'));
    expect(committed).toEqual([]);
    hear(sealed('m1'));
    expect(committed).toEqual(['m1', 'call', 'response']);
  });

  it('commits at once what has nothing in front of it', () => {
    const { committed, hear } = ordered();
    hear(happened('call'));
    expect(committed).toEqual(['call']);
  });

  it('never commits a message of which nothing was heard', () => {
    const { committed, hear } = ordered();
    hear(opened('m1'), opened('m2'), sealed('m2'), unheard('m1'));
    expect(committed).toEqual(['m2']);
  });

  it('commits the rest when the run is over, and no fragment', () => {
    const { order, committed, hear } = ordered();
    hear(opened('open'), happened('call'), opened('m2'), sealed('m2'), { type: 'over' });
    expect(committed).toEqual(['call', 'm2']);
    expect(order.waiting).toBe(0);
  });

  it('commits each sealed message once, in the order of places, whatever the order of sealing', () => {
    const property = fc.property(fc.shuffledSubarray([...Array(8).keys()], { minLength: 8 }), (sealing) => {
      const { committed, hear } = ordered();
      for (let index = 0; index < 8; index += 1) hear(opened(`m${index}`));
      for (const index of sealing) hear(sealed(`m${index}`), sealed(`m${index}`));
      expect(committed).toEqual([...Array(8).keys()].map((index) => `m${index}`));
    });
    fc.assert(property, { seed: 4, numRuns: 200 });
  });
});
