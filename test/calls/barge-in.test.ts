import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { ANSWER, CallRig, tone } from '../support/call-rig.js';

describe('when the caller cuts in', () => {
  it('writes clear in the same callback that reads interrupted, before anything else', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_500);
    const before = stream.sent.length;
    model.listener.onInterrupted();
    expect(stream.sent.slice(before)).toEqual(['clear']);
    expect(rig.seen('onBargeInClear')).toHaveLength(1);
    expect(stream.ear.queuedMs).toBe(0);
  });

  it('measures until clear is written, and not what is done with the message behind it', async () => {
    const rig: CallRig = new CallRig({
      deps: {
        openRun: (_call, run) =>
          void run.listen((item) => {
            if (item.type === 'sealed') rig.clock.stall(50);
          }),
      },
    });
    const { model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_500);
    const atMs = rig.clock.nowMs();
    model.listener.onInterrupted();
    expect(rig.clock.nowMs() - atMs).toBe(50);
    expect(rig.seen('onBargeInClear')).toEqual([[0]]);
  });

  it('keeps what was heard, flagged, and not a word more', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    const kept = rig.view(callSid).messages.at(-1)!;
    expect(kept.interrupted).toBe(true);
    expect(ANSWER.startsWith(kept.text)).toBe(true);
    const words = kept.text.split(' ').length;
    expect(words).toBeGreaterThanOrEqual(4);
    expect(words).toBeLessThanOrEqual(7);
    expect(rig.seen('onStreamEnded').at(-1)).toEqual(['interrupted']);
    expect(stream.ear.playedMs).toBeLessThan(1_000 + 1_600);
  });

  it('does not count marks that clear returned as heard', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    const text = rig.view(callSid).messages.at(-1)!.text;
    await rig.advance(3_000);
    expect(rig.view(callSid).messages.at(-1)!.text).toBe(text);
  });

  it('discards late sound and words of that turn, and plays the next turn whole', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    model.listener.onAudio(tone(200));
    model.listener.onOutputTranscription('late');
    model.listener.onTurnComplete(undefined);
    model.listener.onAudio(tone(200));
    const sent = stream.sent.length;
    await rig.advance(600);
    expect(stream.sent.length).toBe(sent);
    const playedMs = stream.ear.playedMs;
    model.say('Go ahead.', 1_000);
    await rig.advance(1_500);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(1_000);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Go ahead.', interrupted: false });
    expect(rig.seen('onAudioDropped').map(([, reason]) => reason)).toEqual(['late_turn', 'late_turn']);
  });

  it('takes an answer to a key or to new words at once, however soon it comes', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    for (const next of [
      () => stream.listener!.onDtmf('5'),
      () => model.listener.onInputTranscription('no, the other'),
    ]) {
      model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
      await rig.advance(1_000);
      model.listener.onInterrupted();
      model.listener.onTurnComplete(undefined);
      next();
      model.say('Here you are.', 1_000);
      await rig.advance(1_500);
      expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Here you are.', interrupted: false });
    }
  });

  it('says interrupted twice, clears once, closes one message and lets no late sound of it through', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    await rig.advance(40);
    const kept = rig.said(callSid);
    model.listener.onInterrupted();
    await rig.advance(200);
    const media = stream.sent.filter((kind) => kind === 'media').length;
    model.listener.onAudio(tone(400));
    model.listener.onOutputTranscription(' seventeen');
    await rig.advance(300);
    expect(stream.sent.filter((kind) => kind === 'media')).toHaveLength(media);
    expect(rig.said(callSid)).toEqual(kept);
    expect(rig.seen('onBargeInClear')).toHaveLength(1);
    expect(rig.seen('onStreamEnded')).toEqual([['done'], ['interrupted']]);
  });

  it('hears the answer to a key from its first sound, though the key itself cut the agent off', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    stream.listener!.onDtmf('5');
    model.listener.onInterrupted();
    model.listener.onAudio(tone(200));
    model.listener.onTurnComplete(undefined);
    const playedMs = stream.ear.playedMs;
    await rig.advance(20);
    model.say('Five it is.', 1_000);
    await rig.advance(1_500);
    expect(stream.ear.playedMs - playedMs).toBeGreaterThanOrEqual(1_000);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Five it is.', interrupted: false });
  });

  it('hears the next turn even when turnComplete of the cut one never comes', async () => {
    const rig = new CallRig();
    const { callSid, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    await rig.advance(1_200);
    model.say('Go ahead.', 1_000);
    await rig.advance(1_500);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Go ahead.', interrupted: false });
  });

  it('clears also when the model has finished and says interrupted after turnComplete', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000);
    await rig.advance(1_000);
    model.listener.onInterrupted();
    expect(stream.sent.at(-1)).toBe('clear');
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ interrupted: true });
    await rig.advance(1_000);
    model.say('Yes?', 500);
    await rig.advance(1_000);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Yes?', interrupted: false });
  });

  it('clears for a transcribed caller while only our queue and the carrier hold sound', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { turnComplete: false });
    await rig.advance(600);
    await rig.speak(stream, 300);
    model.listener.onInputTranscription('wait');
    expect(stream.sent.at(-1)).toBe('clear');
    const messages = rig.view(callSid).messages;
    expect(messages.at(-2)).toMatchObject({ role: 'model', interrupted: true });
    expect(messages.at(-1)).toMatchObject({ role: 'user', text: 'wait' });
  });

  it('does not take late words of the question for a barge-in, and puts them before the answer', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    await rig.speak(stream, 500);
    await rig.frames(stream, 600);
    model.say(ANSWER, 4_000, { turnComplete: false });
    await rig.advance(200);
    model.listener.onInputTranscription('count for me');
    expect(stream.sent).not.toContain('clear');
    await rig.advance(5_000);
    model.listener.onTurnComplete(undefined);
    expect(
      rig
        .view(callSid)
        .messages.slice(-2)
        .map(({ text }) => text),
    ).toEqual(['count for me', ANSWER]);
  });

  it('clears for a new turn of the model while the old one is unplayed', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000);
    await rig.advance(1_000);
    model.say('Something else.', 1_000);
    expect(stream.sent).toContain('clear');
    await rig.advance(1_500);
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({ text: 'Something else.', interrupted: false });
    expect(rig.view(callSid).messages.at(-2)).toMatchObject({ interrupted: true });
  });

  it('lets the second half of a turn with a function call follow the first', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    model.say('Let me look.', 2_000, { generationComplete: true, turnComplete: false });
    model.listener.onToolCall([{ id: '1', name: 'nope', args: {} }]);
    model.listener.onTurnComplete(undefined);
    model.say('Here it is.', 1_000);
    await rig.advance(4_000);
    expect(stream.sent).not.toContain('clear');
    expect(model.responses).toMatchObject([
      { id: '1', name: 'nope', response: { error: expect.any(String) } },
    ]);
  });

  it('tells the model what was heard only with something that is sent anyway', async () => {
    const rig = new CallRig();
    const { stream, model } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_500);
    const texts = model.texts.length;
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(500);
    expect(model.texts).toHaveLength(texts);
    stream.listener!.onDtmf('5');
    expect(model.texts.at(-1)).toContain('heard only this');
    expect(model.texts.at(-1)).toContain('pressed the key "5"');
    stream.listener!.onDtmf('6');
    expect(model.texts.at(-1)).not.toContain('heard only this');
  });

  it('tells the model of both messages when two are cut at once', async () => {
    // A call that is not answered is not spoken to: what comes behind it is another message.
    const runConfig = { autoRespondTools: false };
    const rig = new CallRig({ agent: defineAgent({ name: 'support', instruction: 'Be brief.', runConfig }) });
    const { stream, model } = await rig.greeted();
    model.say('one two three four', 2_000, { turnComplete: false });
    model.listener.onToolCall([{ id: '1', name: 'nope', args: {} }]);
    model.listener.onTurnComplete(undefined);
    model.say('five six seven eight', 2_000);
    await rig.advance(1_000);
    model.listener.onInterrupted();
    await rig.advance(300);
    stream.listener!.onDtmf('1');
    expect(model.texts.at(-1)).toMatch(
      /heard only this[^\n]*"one[^\n]*\n[^\n]*heard nothing[^\n]*\n[^\n]*key "1"/,
    );
  });

  it('keeps an answer that was heard to its end as whole, although its turnComplete is still to come', async () => {
    const rig = new CallRig();
    const { callSid, stream, model } = await rig.greeted();
    model.say('All of this was heard.', 1_000, { turnComplete: false });
    await rig.advance(2_500);
    await rig.speak(stream, 100);
    model.listener.onInterrupted();
    expect(rig.view(callSid).messages.at(-1)).toMatchObject({
      text: 'All of this was heard.',
      interrupted: false,
    });
    expect(rig.seen('onStreamEnded').at(-1)).toEqual(['done']);
  });
});

describe('the greeting', () => {
  const protectedFor = { deps: { greetingProtectionMs: 3_000 } };

  it('is protected: an interruption is held and carried out when the protection ends', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 5_000, { generationComplete: false, turnComplete: false });
    await rig.advance(800);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    expect(stream.sent).not.toContain('clear');
    await rig.advance(2_000);
    expect(stream.sent).not.toContain('clear');
    await rig.advance(400);
    expect(stream.sent).toContain('clear');
    expect(stream.ear.playedMs).toBeGreaterThanOrEqual(2_900);
    expect(stream.ear.playedMs).toBeLessThanOrEqual(3_100);
    expect(rig.view(callSid).messages).toMatchObject([{ role: 'model', interrupted: true }]);
  });

  it('lets caller sound flow to the model meanwhile', async () => {
    const rig = new CallRig(protectedFor);
    const { stream, model } = await rig.call();
    model.say(ANSWER, 5_000, { turnComplete: false });
    const before = model.audioMessages;
    await rig.speak(stream, 400);
    expect(model.audioMessages - before).toBe(20);
  });

  it('plays the answer to a cough behind the protected part', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 5_000, { generationComplete: false, turnComplete: false });
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(600);
    model.say('As I said.', 1_000);
    await rig.advance(5_000);
    const heardMs = stream.ear.playedMs;
    expect(heardMs).toBeGreaterThanOrEqual(3_900);
    expect(heardMs).toBeLessThanOrEqual(4_100);
    expect(rig.view(callSid).messages.map(({ interrupted }) => interrupted)).toEqual([true, false]);
  });

  it('is protected no longer than it says', async () => {
    const rig = new CallRig(protectedFor);
    const { stream, model } = await rig.call();
    model.say(ANSWER, 5_000, { generationComplete: false, turnComplete: false });
    await rig.advance(3_200);
    model.listener.onInterrupted();
    expect(stream.sent.at(-1)).toBe('clear');
  });

  it('takes with it the unheard answer behind it when the caller cuts in again', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say('Hello, how can I help?', 2_000, { turnComplete: false });
    await rig.advance(500);
    model.listener.onInterrupted();
    model.listener.onTurnComplete(undefined);
    await rig.advance(300);
    model.say('You never hear a word of this.', 2_000);
    await rig.advance(300);
    model.listener.onInterrupted();
    await rig.advance(3_000);
    expect(stream.ear.playedMs).toBeLessThanOrEqual(2_020);
    await rig.advance(1_000);
    expect(rig.said(callSid)).toEqual(['model: Hello, how can I help?']);
    expect(rig.seen('onStreamEnded').map(String).toSorted()).toEqual(['done', 'interrupted']);
  });

  it('keeps only what was heard when the caller hangs up while an interruption is held', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 8_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    await rig.advance(500);
    stream.listener!.onStop();
    await rig.advance(100);
    const { messages } = rig.view(callSid);
    expect(messages).toEqual([expect.objectContaining({ interrupted: true })]);
    expect(ANSWER.startsWith(messages[0]!.text)).toBe(true);
    expect(messages[0]!.text.split(' ').length).toBeLessThanOrEqual(4);
    expect(rig.clock.pendingTimers).toBe(0);
    expect(rig.seen('onStreamEnded')).toEqual([['disconnected']]);
  });

  it('is played on to the end of its protection before the apology for a lost model', async () => {
    const rig = new CallRig(protectedFor);
    const { callSid, stream, model } = await rig.call();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    model.listener.onInterrupted();
    rig.loseModel(model);
    await rig.advance(20_000);
    expect(stream.ear.playedMs).toBeGreaterThan(2_900 + 6_300);
    expect(rig.view(callSid).endReason).toBe('model_lost');
  });

  it('goes on while a key that is pressed into it reaches the model', async () => {
    const rig = new CallRig(protectedFor);
    const { stream, model } = await rig.call();
    model.say(ANSWER, 4_000);
    await rig.advance(500);
    stream.listener!.onDtmf('3');
    expect(model.texts.at(-1)).toContain('"3"');
    expect(stream.sent).not.toContain('clear');
    await rig.advance(4_000);
    expect(stream.ear.playedMs).toBeGreaterThanOrEqual(4_000);
  });
});
