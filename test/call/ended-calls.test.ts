/** What is remembered of ended calls, and for how long: their words go when they are deleted, their records stay. */
import { describe, expect, it } from 'vitest';
import { ENDED_WORDS_KEPT_MS } from '../../src/limits.js';
import { CallRig } from '../support/call-rig.js';

const ADA = '+15550100001';
const BOB = '+15550100003';

async function talked(rig: CallRig, callSid: string, from: string, hangsUp = true) {
  const { answer, callSid: sid } = rig.ring(callSid, from);
  await rig.settle();
  const stream = rig.open(sid, answer);
  await rig.settle();
  rig.models.at(-1)!.say('Hello, how can I help?', 1_000);
  await rig.advance(1_500);
  if (hangsUp) stream.listener!.onStop();
  return stream;
}

const words = (rig: CallRig, callSid: string): number => rig.calls.find(callSid)!.messages.length;

describe('the words of ended calls', () => {
  it.each([
    ['a session', { appName: 'support', userId: ADA, sessionId: 'CA1' }, [0, 1, 1]],
    ['a caller in one app', { appName: 'support', userId: ADA }, [0, 0, 1]],
    ['a caller in another app', { appName: 'other', userId: ADA }, [1, 1, 1]],
    ['a caller anywhere', { userId: ADA }, [0, 0, 1]],
    ['what is old', { beforeMs: Number.POSITIVE_INFINITY }, [0, 0, 0]],
    ['what is older', { beforeMs: 0 }, [1, 1, 1]],
  ])('go with the deletion of %s, and nothing else does', async (_what, deleted, left) => {
    const rig = new CallRig();
    await talked(rig, 'CA1', ADA);
    await talked(rig, 'CA2', ADA);
    await talked(rig, 'CA3', BOB);
    rig.calls.forget(deleted);
    expect(['CA1', 'CA2', 'CA3'].map((callSid) => words(rig, callSid))).toEqual(left);
    expect(rig.calls.list().map(({ callSid, endReason }) => `${callSid} ${endReason}`)).toEqual([
      'CA3 caller_hangup',
      'CA2 caller_hangup',
      'CA1 caller_hangup',
    ]);
    expect(rig.after(rig.calls.list()[0]!.callSid as never)).toEqual({ kind: 'hangup' });
  });

  it('are not kept of a call that goes on when they are deleted', async () => {
    const rig = new CallRig();
    const stream = await talked(rig, 'CA1', ADA, false);
    await talked(rig, 'CA2', BOB);
    rig.calls.forget({ userId: ADA });
    stream.listener!.onStop();
    expect([words(rig, 'CA1'), words(rig, 'CA2')]).toEqual([0, 1]);
  });

  it('go by themselves after a day', async () => {
    const rig = new CallRig();
    await talked(rig, 'CA1', ADA);
    rig.clock.advance(ENDED_WORDS_KEPT_MS);
    await talked(rig, 'CA2', ADA);
    expect([words(rig, 'CA1'), words(rig, 'CA2')]).toEqual([0, 1]);
  });
});
