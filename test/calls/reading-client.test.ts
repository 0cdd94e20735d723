/** A client who reads the agent's words: for it nothing is played, and nobody is asked to wait. */
import { describe, expect, it } from 'vitest';
import { parseCallSid } from '../../src/ids.js';
import { CallRig, FakeStream, tone } from '../support/call-rig.js';
import { entering } from '../support/scopes.js';

describe('somebody who reads', () => {
  it('waits for nothing while words or sound come, and is asked for no patience', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const stream = new FakeStream(parseCallSid('web-1')!, rig.clock, 1);
    Object.assign(stream, { isSilent: true });
    const line = rig.calls.openWeb({ userId: 'ada', sessionId: 's1' }, stream, []);
    if ('refused' in line) throw new Error(line.refused);
    stream.listener = entering(line.listener, line.scope.clock);
    await rig.settle();
    const model = rig.models[0]!;
    model.say('Hello.', 300);
    await rig.advance(20_000);
    line.type('Tell me a story.');
    for (let second = 0; second < 20; second += 1) {
      model.listener.onAudio(tone(1_000));
      if (second % 4 === 0) model.listener.onOutputTranscription('and then ');
      await rig.advance(1_000);
    }
    expect(model.texts.filter((text) => /hears nothing|broke off/.test(text))).toEqual([]);
    expect(stream.sent).toEqual([]);
    await rig.advance(8_000);
    expect(model.texts.at(-1)).toContain('broke off');
  });
});
