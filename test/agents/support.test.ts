import { describe, expect, it } from 'vitest';
import support from '../../agents/support.js';
import type { ToolContext } from '../../src/index.js';
import { argumentsOf, call, context, toolOf } from './tool-rig.js';

const REASON = 'It arrived broken.';

describe('lookup_order', () => {
  it.each(['A-10293', 'a10293', '10293', ' a 1 0 2 9 3 ', 'A_10293'])(
    'finds the order that is said as %j',
    async (said) => {
      const order = await call(support, 'lookup_order', { order_id: said });
      expect(order).toMatchObject({ order_id: 'A-10293', status: 'delivered', total: '$34.90' });
      expect(order['message']).toMatch(/^Order A-10293, .* is delivered\.$/);
    },
  );

  it.each(['A-99999', '12', 'my kettle'])('answers an error for %j', async (said) => {
    expect(await call(support, 'lookup_order', { order_id: said })).toEqual({
      error: expect.stringContaining('There is no order'),
    });
  });
});

describe('process_refund', () => {
  const refund = toolOf(support, 'process_refund');
  const args = (order_id: string) => argumentsOf(refund, { order_id, reason: REASON });

  it('answers what was refunded, and the same for a repeat', async () => {
    const first = await call(support, 'process_refund', { order_id: '10293', reason: REASON });
    expect(first).toEqual({
      status: 'approved',
      refund_id: expect.stringMatching(/^R-[0-9A-F]{8}$/),
      order_id: 'A-10293',
      message: expect.stringContaining('$34.90'),
    });
    expect(await call(support, 'process_refund', { order_id: 'A-10293', reason: 'Again.' })).toEqual(first);
  });

  it('is one deed, however the order was said and whoever asks', () => {
    const key = (said: string, ctx: Partial<ToolContext> = {}) =>
      refund.sideEffect?.key(args(said), context(ctx));
    expect(key('a10293')).toBe(key('A-10293', { userId: '+12025550199', sessionId: 'CA2' }));
    expect(key('A-10293')).not.toBe(key('A-20417'));
    expect(key('A-10293')).not.toBe(key('A-10293', { appName: 'another' }));
  });

  it('never refunds more than the order cost', () => {
    expect(refund.sideEffect?.amount?.(args('A-10293'), context())).toEqual({
      account: 'A-10293',
      amountMinor: 3490,
      limitMinor: 3490,
      currency: 'USD',
    });
  });

  it('is approved by a person above the limit only', () => {
    expect(refund.approval(args('A-10293'), context())).toBe(false);
    expect(refund.approval(args('A-20417'), context())).toBe(true);
  });

  it.each([
    [{ order_id: 'A-10293' }, 'reason'],
    [{ reason: REASON }, 'order_id'],
  ])('does not run with %j', (given, missing) => {
    expect(() => argumentsOf(refund, given)).toThrow(missing);
  });
});

describe('the refund policy', () => {
  const [policy] = support.plugins ?? [];
  const asks = (args: Record<string, unknown>, tool = 'process_refund') =>
    policy?.beforeTool?.({ tool, args, ctx: context() });

  it('lets a refund of a delivered order through, and does not look at other tools', () => {
    expect(asks({ order_id: 'a10293', reason: REASON })).toBeUndefined();
    expect(asks({ order_id: 'A-99999' }, 'lookup_order')).toBeUndefined();
  });

  it.each([
    [{ order_id: 'A-99999', reason: REASON }, 'no order'],
    [{ order_id: 'A-30158', reason: REASON }, 'not delivered'],
    [{ order_id: '40266', reason: REASON }, 'not delivered'],
    [{ order_id: 'A-10293', reason: '  ' }, 'no reason'],
  ])('refuses %j', (args, why) => {
    expect(() => asks(args)).toThrow(why);
  });
});

describe('connect_to_human', () => {
  it('says how long it takes', async () => {
    expect(await call(support, 'connect_to_human', { reason: 'asked for' })).toEqual({
      status: 'transferring',
      queue_position: 1,
      eta_seconds: 30,
      message: expect.any(String),
    });
  });

  it('answers an error that can be spoken about where nobody can be reached', async () => {
    const ctx = context({
      callControl: {
        hangUp: () => ({ kind: 'accepted' }),
        transfer: () => ({ kind: 'unavailable', why: 'there is no telephone line.' }),
      },
    });
    expect(await call(support, 'connect_to_human', { reason: 'asked for' }, ctx)).toEqual({
      error: 'The caller cannot be connected with a person: there is no telephone line.',
    });
  });
});

describe('remember and relate', () => {
  it('keep what was said, and tell how much of it was new', async () => {
    const kept: unknown[] = [];
    const ctx = context({
      memory: {
        remember: async (entity, facts) => kept.push(entity, ...facts) - 2,
        relate: async (...relation) => kept.push(...relation) > 0,
      },
    });
    const fact = { entity: 'caller', facts: ['prefers mornings'] };
    expect(await call(support, 'remember', fact, ctx)).toMatchObject({ status: 'remembered', added: 0 });
    const relation = { source: 'Max', relation: 'dog of', target: 'caller' };
    expect(await call(support, 'relate', relation, ctx)).toMatchObject({ status: 'remembered', added: 1 });
    expect(kept).toEqual(['caller', 'prefers mornings', 'Max', 'dog of', 'caller']);
  });

  it('fail where the caller is not known', async () => {
    const unknown = () => Promise.reject(new Error('nothing is kept of a caller who is not known'));
    const ctx = context({ memory: { remember: unknown, relate: unknown } });
    await expect(call(support, 'remember', { entity: 'caller', facts: ['is here'] }, ctx)).rejects.toThrow(
      'not known',
    );
  });
});
