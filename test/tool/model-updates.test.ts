import { describe, expect, it } from 'vitest';
import { ModelUpdates } from '../../src/tool/model-updates.js';
import { UPDATES_WAITING_MAX } from '../../src/tool-limits.js';

const update = (text: string, replaces?: string, interrupts = false) => ({
  text,
  interrupts,
  ...(replaces !== undefined && { replaces }),
});

describe('what waits for a pause', () => {
  it('is told in order, one at a time, and not while somebody speaks', () => {
    const updates = new ModelUpdates();
    updates.add(update('a'));
    updates.add(update('b'));
    expect(updates.take(false)).toBeUndefined();
    expect([updates.take(true)?.text, updates.take(true)?.text, updates.take(true)]).toEqual([
      'a',
      'b',
      undefined,
    ]);
  });

  it('is of each streaming tool only the newest, in the place of the one before', () => {
    const updates = new ModelUpdates();
    for (const [text, replaces] of [['300', 'stock'], ['note'], ['400', 'stock'], ['900', 'stock']] as const)
      updates.add(update(text, replaces));
    expect([updates.size, updates.take(true)?.text, updates.take(true)?.text]).toEqual([2, '900', 'note']);
  });

  it('does not wait if it interrupts, and stands in front then', () => {
    const updates = new ModelUpdates();
    updates.add(update('calm'));
    updates.add(update('fire', 'alarm', true));
    expect([updates.take(false)?.text, updates.take(false)]).toEqual(['fire', undefined]);
    expect(updates.take(true)?.text).toBe('calm');
  });

  it('is forgotten when its tool was stopped, and altogether at the end', () => {
    const updates = new ModelUpdates();
    updates.add(update('300', 'stock'));
    updates.add(update('loud', 'sound'));
    updates.forget('stock');
    expect([updates.size, updates.take(true)?.text]).toEqual([1, 'loud']);
    updates.add(update('x'));
    updates.clear();
    expect(updates.size).toBe(0);
  });

  it('does not interrupt where it may not yet', () => {
    const updates = new ModelUpdates();
    updates.add(update('fire', 'alarm', true));
    expect(updates.take(false, false)).toBeUndefined();
    expect(updates.take(true, false)?.text).toBe('fire');
  });

  it('is bounded: values go first, then the oldest, and who added it is told', () => {
    const updates = new ModelUpdates();
    expect(updates.add(update('refund approved'))).toBeUndefined();
    updates.add(update('300', 'stock'));
    for (let index = 2; index < UPDATES_WAITING_MAX; index += 1) updates.add(update(`${index}`));
    expect(updates.add(update('x'))?.text).toBe('300');
    expect(updates.add(update('y'))?.text).toBe('refund approved');
    expect([updates.size, updates.take(true)?.text]).toEqual([UPDATES_WAITING_MAX, '2']);
  });
});
