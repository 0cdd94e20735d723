import { describe, expect, it } from 'vitest';
import { ANSWER, CallRig, tone } from '../support/call-rig.js';

const protectedFor = { deps: { greetingProtectionMs: 3_000 } };

describe('when the model’s messages come in odd orders', () => {
  it('late words after turnComplete belong to the sound that is playing and do not cut it', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('one two three four five six', 4_000);
    await rig.advance(300);
    model.listener.onOutputTranscription(' seven');
    expect(stream.sent).not.toContain('clear');
    await rig.advance(5_000);
    expect(rig.said(callSid).at(-1)).toBe('model: one two three four five six seven');
  });

  it.each([
    ['is held', 3_000, 2_000],
    ['comes when all was heard', 0, 200],
  ])(
    'late words after an interrupted that %s leave no hole in the message',
    async (_how, greetingProtectionMs, ms) => {
      const rig = new CallRig({ deps: { greetingProtectionMs } });
      const { callSid, model } = await rig.call();
      model.say('one two three four', ms);
      await rig.advance(300);
      model.listener.onInterrupted();
      model.listener.onOutputTranscription(' five');
      await rig.advance(120);
      model.listener.onOutputTranscription(' six');
      await rig.advance(3_000);
      expect(rig.said(callSid)).toEqual(['model: one two three four']);
    },
  );

  it('words without any sound are not kept as heard', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.listener.onOutputTranscription('You never heard this.');
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    await rig.advance(500);
    expect(rig.said(callSid)).toEqual(['model: Hello, how can I help?']);
  });

  it('a turn without generationComplete is heard to its end all the same', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    const playedMs = stream.ear.playedMs;
    model.say('This is the answer.', 1_010, { generationComplete: false });
    await rig.advance(1_500);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(1_010);
    expect(rig.view(callSid)).toMatchObject({ turn: 'listening' });
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: 'This is the answer.',
      interrupted: false,
    });
    expect(rig.seen('onStreamEnded').at(-1)).toEqual(['done']);
  });

  it.each([
    ['at once', 0],
    ['after all before it was heard', 1_500],
  ])(
    'sound after generationComplete, %s, is played behind the rest in the same message',
    async (_when, ms) => {
      const rig = new CallRig();
      const { callSid, stream, model } = await rig.greeted();
      const playedMs = stream.ear.playedMs;
      model.say('First half,', 1_000, { turnComplete: false });
      await rig.advance(ms);
      model.listener.onAudio(tone(1_000));
      model.listener.onOutputTranscription(' second half.');
      model.listener.onTurnComplete(undefined);
      await rig.advance(3_000);
      expect(stream.sent).not.toContain('clear');
      expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(2_000);
      expect(rig.said(callSid).slice(1)).toEqual(['model: First half, second half.']);
      expect(rig.seen('onStreamEnded')).toEqual([['done'], ['done']]);
    },
  );

  it('without turnComplete two turns stay two messages, in their order', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    for (const count of ['one', 'two']) {
      await rig.speak(stream, 400);
      model.listener.onInputTranscription(`Question ${count}.`);
      model.say(`Answer ${count}.`, 1_000, { turnComplete: false });
      await rig.advance(4_000);
    }
    expect(rig.said(callSid).slice(1)).toEqual([
      'user: Question one.',
      'model: Answer one.',
      'user: Question two.',
      'model: Answer two.',
    ]);
    expect(rig.seen('onStreamStarted')).toHaveLength(3);
  });

  it('a message heard to its end is whole also when the caller hangs up before its turnComplete', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('All heard.', 1_000, { turnComplete: false });
    await rig.advance(3_000);
    stream.listener!.onStop();
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'All heard.', interrupted: false });
    expect(rig.seen('onStreamEnded').at(-1)).toEqual(['done']);
  });
});

describe('when the caller’s words come in odd orders', () => {
  it('those after a heard message whose turnComplete is late come behind it', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.call();
    model.say('How can I help?', 1_000, { turnComplete: false });
    await rig.advance(1_500);
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('A');
    model.listener.onTurnComplete(undefined);
    model.listener.onInputTranscription(' refund');
    model.say('Sure.', 500);
    await rig.advance(1_000);
    expect(rig.said(callSid)).toEqual(['model: How can I help?', 'user: A refund', 'model: Sure.']);
  });

  it('those that cut in, transcribed before interrupted, are one message behind the one that they cut', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    await rig.speak(stream, 400);
    model.listener.onInputTranscription('Count for me.');
    await rig.frames(stream, 600);
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('Wait,');
    model.listener.onInterrupted();
    model.listener.onInputTranscription(' stop.');
    model.listener.onTurnComplete(undefined);
    expect(rig.said(callSid).slice(1)).toEqual([
      'user: Count for me.',
      expect.stringMatching(/^model: one two/),
      'user: Wait, stop.',
    ]);
  });

  it('those over the protected greeting come behind it', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 2_500, { generationComplete: false, turnComplete: false });
    await rig.advance(600);
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('Hi there');
    await rig.advance(500);
    expect(rig.said(callSid)).toEqual([expect.stringMatching(/^model: one/), 'user: Hi there']);
  });

  it('those of a question that are transcribed long after it do not cut its answer', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    await rig.speak(stream, 500);
    await rig.frames(stream, 600);
    model.say(ANSWER, 8_000, { turnComplete: false });
    await rig.frames(stream, 1_200);
    model.listener.onInputTranscription('count for me');
    expect(stream.sent).not.toContain('clear');
  });

  it('those of a cough, late, do not take away the answer to it', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 5_000, { generationComplete: false, turnComplete: false });
    await rig.advance(500);
    await rig.speak(stream, 300);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.frames(stream, 400);
    model.say('As I said.', 1_000);
    await rig.frames(stream, 200);
    model.listener.onInputTranscription('hi');
    await rig.advance(5_000);
    expect(rig.said(callSid)).toContain('model: As I said.');
  });

  it('an interrupted of nothing does not break them in two', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('I want');
    model.listener.onInterrupted();
    model.listener.onInputTranscription(' a refund');
    expect(rig.said(callSid).at(-1)).toBe('user: I want a refund');
    expect(rig.seen('onBargeInClear')).toEqual([]);
  });
});

describe('late words', () => {
  it('of a message that is still being heard neither cut it nor open another', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('one two three four five six', 4_000);
    await rig.advance(700);
    model.listener.onOutputTranscription(' seven');
    await rig.advance(4_000);
    expect(stream.sent).not.toContain('clear');
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: 'one two three four five six seven',
      interrupted: false,
    });
    expect(rig.seen('onStreamStarted')).toHaveLength(2);
  });

  it('of a message that a transcribed caller cut are not put into the next answer', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('alpha bravo charlie delta', 4_000, { turnComplete: false });
    await rig.advance(600);
    await rig.speak(stream, 400);
    model.listener.onInputTranscription('stop');
    expect(stream.sent).toContain('clear');
    model.listener.onOutputTranscription(' echo foxtrot');
    await rig.advance(1_500);
    model.say('Sure.', 1_000);
    await rig.advance(1_500);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ role: 'model', text: 'Sure.' });
    expect(rig.seen('onStreamStarted')).toHaveLength(3);
  });
});
