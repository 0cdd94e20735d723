import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { SharedValues } from '../../src/tool/shared-state.js';
import { TimeUp } from '../../src/tool/within-time.js';
import { SHARED_KEYS_MAX, SHARED_WAIT_MS } from '../../src/tool-limits.js';

function shared() {
  const clock = new VirtualClock();
  const values = new SharedValues(clock);
  const controller = new AbortController();
  return { clock, values, controller, mine: values.for(controller.signal) };
}

describe('what the tools of a run share', () => {
  it('is seen by all of them, and waited for until another one sets it', async () => {
    const { values, mine, clock } = shared();
    const other = values.for(new AbortController().signal);
    const both = Promise.all([mine.waitFor('token'), mine.waitFor('token', { timeoutMs: 5 })]);
    other.set('token', { a: 1 });
    expect(await both).toEqual([{ a: 1 }, { a: 1 }]);
    expect(mine.get('token')).toEqual({ a: 1 });
    expect(await mine.waitFor('token')).toEqual({ a: 1 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('is waited for no longer than said, and no longer than the tool lives', async () => {
    const { clock, mine, controller } = shared();
    const short = mine.waitFor('a', { timeoutMs: 10 });
    const usual = mine.waitFor('a');
    clock.advance(10);
    await expect(short).rejects.toThrow('nobody set a within 0.01 s');
    // The tool's own time is not up.
    await expect(short).rejects.not.toBeInstanceOf(TimeUp);
    clock.advance(SHARED_WAIT_MS - 10);
    await expect(usual).rejects.toThrow('30 s');
    const stopped = mine.waitFor('a');
    controller.abort(new Error('the call was withdrawn'));
    await expect(stopped).rejects.toThrow('withdrawn');
    await expect(mine.waitFor('a')).rejects.toThrow('withdrawn');
    expect(clock.pendingTimers).toBe(0);
  });

  it('has bounds', async () => {
    const { mine } = shared();
    for (const timeoutMs of [0, 300_001, NaN, -1])
      await expect(mine.waitFor('a', { timeoutMs })).rejects.toThrow('timeoutMs must be 1 to 300000');
    expect(() => mine.set('', 1)).toThrow(RangeError);
    expect(() => mine.get('é'.repeat(129))).toThrow('1 to 256 bytes');
    expect(() => mine.get(5 as never)).toThrow(RangeError);
    mine.set('é'.repeat(128), 0);
    for (let index = 1; index < SHARED_KEYS_MAX; index += 1) mine.set(`k${index}`, index);
    expect(() => mine.set('one more', 1)).toThrow('1024 keys already');
    mine.set('k1', 'changed');
    expect(mine.get('k1')).toBe('changed');
  });
});
