/** Twilio sends a webhook again when it is not sure that it arrived: it is answered alike, and nothing is counted or done twice. */
import { describe, expect, it } from 'vitest';
import { ENDED_CALLS_MAX } from '../../src/limits.js';
import { parseCallSid } from '../../src/ids.js';
import type { VoiceAnswer } from '../../src/telephony/voice-door.js';
import { CallRig } from '../support/call-rig.js';
import { SOME_REQUEST } from '../support/scopes.js';

/** How a call is brought to where the webhook comes, and the webhook. */
const WEBHOOKS: Record<string, (rig: CallRig) => Promise<() => VoiceAnswer | undefined>> = {
  'voice, of a call that is announced': (rig) => Promise.resolve(() => rig.ring('CA7').answer),
  'voice, of a call that is live': async (rig) => {
    const { callSid } = await rig.greeted();
    return () => rig.ring(callSid).answer;
  },
  'voice, of a call that is over': async (rig) => {
    const { callSid, stream } = await rig.greeted();
    stream.listener!.onStop();
    await rig.advance(100);
    return () => rig.ring(callSid).answer;
  },
  'voice, of a call for which there is no room': (rig) => {
    void rig.calls.drain();
    return Promise.resolve(() => rig.ring('CA7').answer);
  },
  'after, of a call whose stream was lost': async (rig) => {
    const { callSid, stream } = await rig.greeted();
    stream.listener!.onClose(1006, '');
    return () => rig.after(callSid);
  },
  'after, of a call that is over': async (rig) => {
    const { callSid, stream } = await rig.greeted();
    stream.listener!.onStop();
    await rig.advance(100);
    return () => rig.after(callSid);
  },
  'after, of a call that nobody knows': (rig) => Promise.resolve(() => rig.after(parseCallSid('CA9')!)),
  'handoff, answered': async (rig) => {
    const { callSid } = await rig.greeted();
    return () => rig.calls.onHandoff(callSid, 'completed', SOME_REQUEST);
  },
  'handoff, not answered': async (rig) => {
    const { callSid, stream } = await rig.greeted();
    stream.listener!.onStop();
    await rig.advance(100);
    return () => rig.calls.onHandoff(callSid, 'no_answer', SOME_REQUEST);
  },
  'handoff, of a call that nobody knows': (rig) =>
    Promise.resolve(() => rig.calls.onHandoff(parseCallSid('CA9')!, 'busy', SOME_REQUEST)),
  'status, completed': async (rig) => {
    const { callSid } = await rig.greeted();
    return () => {
      rig.status(callSid, 'completed');
      return undefined;
    };
  },
};

async function observed(name: string, times: number) {
  const rig = new CallRig();
  const send = await WEBHOOKS[name]!(rig);
  const answers = new Set<string>();
  for (let time = 0; time < times; time += 1) {
    const { token, ...answer } = { token: '', ...send() };
    answers.add(JSON.stringify({ ...answer, hasToken: token !== '' }));
    await rig.advance(100);
  }
  await rig.advance(60_000);
  expect(rig.clock.pendingTimers).toBe(0);
  return { answers: [...answers], observed: rig.observed, models: rig.models.length, hungUp: rig.hungUp };
}

describe('a webhook that comes again', () => {
  it.each(Object.keys(WEBHOOKS))('is answered alike, and counted once: %s', async (name) => {
    const once = await observed(name, 1);
    const thrice = await observed(name, 3);
    expect(thrice).toEqual(once);
  });

  it('is counted for each call, and remembered for as many as calls that ended are', async () => {
    const rig = new CallRig();
    const dialled = (n: number) => rig.calls.onHandoff(parseCallSid(`CA${n}`)!, 'busy', SOME_REQUEST);
    for (let n = 0; n <= ENDED_CALLS_MAX; n += 1) dialled(n);
    expect(rig.seen('onHandoff')).toHaveLength(ENDED_CALLS_MAX + 1);
    for (let n = 1; n <= ENDED_CALLS_MAX; n += 1) dialled(n);
    expect(rig.seen('onHandoff')).toHaveLength(ENDED_CALLS_MAX + 1);
    dialled(0);
    expect(rig.seen('onHandoff')).toHaveLength(ENDED_CALLS_MAX + 2);
  });
});
