import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { TimeUp, withinTime } from '../../src/tool/within-time.js';
import { deferred, settled } from './tool-stage.js';

describe('waiting for somebody else’s code', () => {
  it('ends with what it comes to, and leaves no timer', async () => {
    const clock = new VirtualClock();
    await expect(withinTime(Promise.resolve(5), { clock, delayMs: 100 })).resolves.toBe(5);
    await expect(withinTime(Promise.reject(new Error('no')), { clock, delayMs: 100 })).rejects.toThrow('no');
    // eslint-disable-next-line prefer-promise-reject-errors
    await expect(withinTime(Promise.reject(Object.create(null)), { clock, delayMs: 100 })).rejects.toThrow(
      'no text',
    );
    expect(clock.pendingTimers).toBe(0);
  });

  it('ends when the time is up, and what comes later changes nothing', async () => {
    const clock = new VirtualClock();
    const work = deferred();
    const waiting = withinTime(work.promise, { clock, delayMs: 1_500 });
    clock.advance(1_500);
    work.reject(new Error('too late'));
    await expect(waiting).rejects.toThrow(TimeUp);
    await expect(waiting).rejects.toThrow('more than 1.5 s');
  });

  it('ends with the signal, and takes its listener off', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const waiting = withinTime(deferred().promise, { clock, delayMs: 5, signal: controller.signal });
    controller.abort(new Error('withdrawn'));
    await expect(waiting).rejects.toThrow('withdrawn');
    expect(clock.pendingTimers).toBe(0);
  });

  it('does not begin for a signal that is aborted, and a failure behind it ends no process', async () => {
    const clock = new VirtualClock();
    const work = deferred();
    const waiting = withinTime(work.promise, { clock, delayMs: 5, signal: AbortSignal.abort('over') });
    await expect(waiting).rejects.toThrow('over');
    work.reject(new Error('nobody listens'));
    await settled();
    expect(clock.pendingTimers).toBe(0);
  });
});
