/** The model's connection is lost, or about to end, and the call goes on (J4 to J6, X4, C27 to C31). */
import { describe, expect, it } from 'vitest';
import { defineAgent, defineTool } from '../../src/index.js';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import {
  CONNECTION_AGE_GRACE_MS,
  CONNECTION_AGE_MAX_MS,
  HOLD_AFTER_MS,
  RECONNECT_DELAYS_MS,
  RECONNECT_MAX_MS,
} from '../../src/link-limits.js';
import { ANSWER, CallRig, type FakeModel, NOTHING_LEFT, type RigOptions } from '../support/call-rig.js';

const BACK = 'Your connection to the caller was lost for a moment';
const IDLE_OFF: RigOptions = { deps: { idleRepromptMs: 0 } };

const backs = (model: FakeModel): string[] => model.texts.filter((text) => text.includes(BACK));
const greetings = (rig: CallRig): number =>
  rig.models.flatMap(({ texts }) => texts).filter((text) => text.includes('word for word')).length;
const holds = (rig: CallRig, callSid: Parameters<CallRig['view']>[0]): number =>
  rig.view(callSid).messages.filter(({ text }) => text === PROMPT_TEXTS.hold).length;

/** A greeted call whose model can be resumed from here. */
async function resumable(options: RigOptions = IDLE_OFF) {
  const rig = new CallRig(options);
  const call = await rig.greeted();
  await rig.advance(1_000);
  call.model.listener.onSessionResumptionUpdate('h1', true);
  return { rig, ...call, newest: (): FakeModel => rig.models.at(-1)! };
}

describe('a model that is lost', () => {
  it('in the middle of its answer is resumed, and goes on behind what was heard of it', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    await rig.speak(stream, 600);
    model.listener.onInputTranscription('Where is my order?');
    model.say('It left the warehouse and', 1_500, { generationComplete: false, turnComplete: false });
    await rig.advance(300);
    model.lose();
    await rig.advance(0);
    expect(rig.models).toHaveLength(2);
    expect(newest().setup.resumptionHandle).toBe('h1');
    expect(newest().setup.instruction).toContain('"Where is my order?"');
    expect(newest().setup.instruction).not.toContain('how can I help');
    expect(backs(newest())).toEqual([]); // What it said is heard out first.
    await rig.advance(1_500);
    expect(backs(newest())).toHaveLength(1);
    expect(backs(newest())[0]).toContain('"It left the warehouse"');
    newest().say('is on its way.', 1_000);
    await rig.advance(2_000);
    expect(rig.said(callSid).slice(-2)).toEqual(['model: It left the warehouse', 'model: is on its way.']);
    expect(rig.seen('onModelReconnect')).toEqual([['lost', 'resumed']]);
    expect(greetings(rig)).toBe(1);
    expect(holds(rig, callSid)).toBe(0);
  });

  it('while nobody waits for it leaves the caller in peace', async () => {
    const { rig, stream, model, newest } = await resumable();
    const playedMs = stream.ear.playedMs;
    model.lose();
    await rig.advance(10_000);
    expect(newest()).not.toBe(model);
    expect(newest().texts).toEqual([]);
    expect(stream.ear.playedMs).toBe(playedMs);
  });

  it('is told to a session that cannot be resumed as it was heard, and done', async () => {
    const look = defineTool({ name: 'look', description: 'Looks.', execute: () => ({ status: 'found' }) });
    const agent = defineAgent({
      name: 'support',
      instruction: 'Be brief.',
      greeting: 'Hello.',
      tools: [look],
    });
    const rig = new CallRig({ ...IDLE_OFF, agent });
    const { stream, model } = await rig.greeted();
    await rig.advance(1_000);
    await rig.speak(stream, 600);
    model.listener.onInputTranscription('Where is my order?');
    model.listener.onToolCall([{ id: 'c1', name: 'look', args: { order: 7 } }]);
    await rig.turns();
    model.say(ANSWER, 8_000, { turnComplete: false });
    await rig.advance(2_000);
    model.listener.onInterrupted();
    await rig.advance(100);
    model.lose();
    await rig.advance(100);
    const { instruction, resumptionHandle } = rig.models.at(-1)!.setup;
    expect(resumptionHandle).toBeUndefined();
    expect(instruction).toContain('User: "Where is my order?"');
    expect(instruction).toContain('You called look({"order":7}), and the result was {"status":"found"}');
    expect(instruction).toContain('You: "one two three');
    expect(instruction).not.toContain('sixteen');
    expect(rig.seen('onModelReconnect')).toEqual([['lost', 'fresh']]);
  });

  it('is tried with the handle, then without it, ever more slowly, and given up with an apology', async () => {
    const { rig, callSid, stream, model } = await resumable();
    rig.loseModel(model);
    const setups = rig.connects;
    await rig.advance(RECONNECT_DELAYS_MS.reduce((sum, ms) => sum + ms, 0) + 100);
    expect(setups.slice(1).map(({ resumptionHandle }) => resumptionHandle)).toEqual([
      'h1',
      'h1',
      undefined,
      undefined,
      undefined,
    ]);
    await rig.advance(12_000);
    expect(stream.closed).toBe(true);
    expect(holds(rig, callSid)).toBeGreaterThan(0);
    expect(rig.view(callSid)).toMatchObject({ endReason: 'model_lost' });
    expect(rig.view(callSid).messages.at(-1)?.text).toBe(PROMPT_TEXTS.apology);
    expect(rig.after(callSid)).toEqual({ kind: 'hangup' });
    expect(rig.seen('onModelReconnect')).toEqual([['lost', 'failed']]);
    expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('is given up in time also where no connect is ever answered', async () => {
    const { rig, callSid, model } = await resumable();
    rig.modelReadyMs = 'never';
    model.lose();
    await rig.advance(RECONNECT_MAX_MS - 100);
    expect(rig.view(callSid).state).toBe('live');
    await rig.advance(12_000);
    expect(rig.view(callSid).endReason).toBe('model_lost');
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('has the caller hear a clip when it takes, again and again, and is asked to go on by itself then', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    const playedMs = stream.ear.playedMs;
    rig.modelReadyMs = 7_000;
    model.lose();
    await rig.advance(HOLD_AFTER_MS - 40);
    expect(stream.ear.playedMs).toBe(playedMs);
    await rig.advance(2_000);
    expect(holds(rig, callSid)).toBe(1);
    await rig.advance(6_500);
    expect(holds(rig, callSid)).toBe(2);
    expect(backs(newest())).toHaveLength(1);
    expect(rig.view(callSid).state).toBe('live');
  });

  it('gets the newest second of what the caller said meanwhile, and asks for the rest', async () => {
    const { rig, stream, model, newest } = await resumable();
    rig.modelReadyMs = 3_000;
    model.lose();
    await rig.speak(stream, 2_000);
    await rig.frames(stream, 1_600);
    expect(newest().audioBytes / 32).toBeGreaterThanOrEqual(1_000);
    expect(newest().audioBytes / 32).toBeLessThan(2_000);
    await rig.advance(1_000);
    expect(backs(newest())[0]).toContain('may not have reached you');
  });

  it('twice at once is not resumed a third time, and for ever is given up', async () => {
    const { rig, callSid, model, newest } = await resumable();
    model.lose();
    await rig.advance(1_000);
    const handles = [newest().setup.resumptionHandle];
    for (let time = 0; time < 5 && rig.view(callSid).state === 'live'; time += 1) {
      newest().listener.onSessionResumptionUpdate(`again${time}`, true);
      newest().lose(1007);
      await rig.advance(3_000);
      handles.push(newest().setup.resumptionHandle);
    }
    expect(handles.slice(0, 2)).toEqual(['h1', undefined]);
    await rig.advance(20_000);
    expect(rig.view(callSid).endReason).toBe('model_lost');
  });

  it('before the caller is there is connected again, and greets once', async () => {
    const rig = new CallRig(IDLE_OFF);
    const { callSid, answer } = rig.ring();
    await rig.settle();
    rig.models[0]!.lose();
    await rig.settle();
    rig.open(callSid, answer);
    await rig.settle();
    expect(rig.models).toHaveLength(2);
    expect(greetings(rig)).toBe(1);
    expect(rig.view(callSid).state).toBe('live');
  });

  it('before it has greeted is asked for the greeting again', async () => {
    const rig = new CallRig(IDLE_OFF);
    await rig.call();
    rig.models[0]!.lose();
    await rig.settle();
    expect(rig.models[1]!.texts.filter((text) => text.includes('word for word'))).toHaveLength(1);
  });

  it('together with the line: both come back, and the caller is told once', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    rig.modelReadyMs = 2_000;
    stream.lose();
    model.lose();
    await rig.advance(500);
    rig.open(callSid, rig.after(callSid));
    await rig.advance(3_000);
    expect(rig.view(callSid).state).toBe('live');
    const told = newest().texts.filter(
      (text) => text.includes('lost for a moment') || text.includes('interrupted'),
    );
    expect(told.length).toBeLessThanOrEqual(1);
    expect(greetings(rig)).toBe(1);
  });

  it('keeps what is typed or pressed meanwhile', async () => {
    const { rig, stream, model, newest } = await resumable();
    rig.modelReadyMs = 1_000;
    model.lose();
    await rig.advance(200);
    stream.listener!.onDtmf('7');
    await rig.advance(2_000);
    expect(newest().texts.join('\n')).toContain('the key "7"');
  });
});

describe('a function that is slow', () => {
  const finished: ((value: unknown) => void)[] = [];
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    execute: () => new Promise((resolve) => finished.push(resolve)),
  });
  const lost: unknown[] = [];
  const agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello.',
    tools: [look],
    onDisconnect: (_ctx, why) => void lost.push(why),
  });

  it.each(['resumed', 'fresh'] as const)(
    'finishes over the loss of the model, and is told once to the one that is %s',
    async (how) => {
      lost.length = 0;
      const { rig, stream, model, newest } = await resumable({ ...IDLE_OFF, agent });
      await rig.speak(stream, 600);
      model.listener.onToolCall([{ id: 'c1', name: 'look', args: {} }]);
      model.say('One moment.', 500);
      await rig.advance(1_200);
      if (how === 'fresh') model.listener.onSessionResumptionUpdate(undefined, false);
      if (how === 'fresh') rig.refuseHandles = true;
      model.lose();
      await rig.advance(1_500);
      expect(newest().setup.instruction).toContain('still being carried out');
      expect(lost).toEqual([]);
      newest().say('I am back, and still looking.', 500);
      await rig.advance(1_500);
      finished.pop()!({ status: 'found' });
      await rig.turns();
      await rig.advance(1_000);
      newest().say('It is found.', 500);
      await rig.advance(10_000);
      const told = newest().texts.filter((text) => text.includes('"status":"found"'));
      expect(told).toHaveLength(1);
      expect(newest().responses).toEqual([]);
      expect(lost).toEqual([{ code: 1011, reason: 'internal error' }]);
      stream.listener!.onStop();
      await rig.advance(1_000);
      expect(lost).toHaveLength(1);
    },
  );

  it('has the caller hear a clip while it takes', async () => {
    const { rig, callSid, model } = await resumable({ ...IDLE_OFF, agent });
    model.listener.onToolCall([{ id: 'c1', name: 'look', args: {} }]);
    await rig.advance(4_500);
    expect(holds(rig, callSid)).toBe(1);
    await rig.advance(9_000);
    expect(holds(rig, callSid)).toBe(2);
  });
});

describe('a connection that is about to end', () => {
  it('is left at a pause, resumed, and neither side hears of it', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    const playedMs = stream.ear.playedMs;
    model.listener.onGoAway(50_000);
    await rig.advance(1_000);
    expect(model.closed).toBe(true);
    expect(newest().setup.resumptionHandle).toBe('h1');
    await rig.advance(10_000);
    expect(newest().texts).toEqual([]);
    expect(stream.ear.playedMs).toBe(playedMs);
    expect(rig.said(callSid)).toHaveLength(1);
    expect(rig.seen('onModelReconnect')).toEqual([['go_away', 'resumed']]);
  });

  it('is not left while somebody speaks, waits or has a function carried out, nor with an old handle', async () => {
    const { rig, stream, model, newest } = await resumable();
    model.say(ANSWER, 8_000, { generationComplete: false, turnComplete: false });
    model.listener.onGoAway(50_000);
    await rig.advance(6_000);
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    await rig.advance(4_000);
    expect(newest()).toBe(model); // Its handle is older than its answer.
    model.listener.onSessionResumptionUpdate('h2', true);
    await rig.speak(stream, 600);
    expect(newest()).toBe(model);
    model.listener.onInputTranscription('And now?');
    await rig.advance(1_500);
    expect(newest()).toBe(model); // An answer is due.
    model.say('Now it is well.', 500);
    await rig.advance(800);
    model.listener.onSessionResumptionUpdate('h3', true);
    await rig.advance(1_500);
    expect(newest().setup.resumptionHandle).toBe('h3');
  });

  it('is left at its deadline, whatever happens, and what was being said goes on', async () => {
    const { rig, model, newest } = await resumable();
    for (let second = 0; second < 12; second += 1) {
      if (second === 1) model.listener.onGoAway(10_000);
      if (!model.closed)
        model.say('and then and then', 1_000, { generationComplete: false, turnComplete: false });
      await rig.advance(1_000);
    }
    expect(newest()).not.toBe(model);
    await rig.advance(5_000);
    expect(backs(newest())).toHaveLength(1);
    expect(rig.seen('onModelReconnect')).toEqual([['go_away', 'resumed']]);
  });

  it('is left by its age where the model announces nothing, also one that gives no handle', async () => {
    const rig = new CallRig(IDLE_OFF);
    const { model } = await rig.greeted();
    await rig.advance(CONNECTION_AGE_MAX_MS - 5_000);
    expect(rig.models.at(-1)).toBe(model);
    await rig.advance(CONNECTION_AGE_GRACE_MS);
    expect(rig.models.at(-1)).not.toBe(model);
    expect(rig.models.at(-1)!.setup.instruction).toContain('how can I help');
    expect(rig.seen('onModelReconnect')).toEqual([['age', 'fresh']]);
  });

  it('gives the next one all that the caller said in the gap', async () => {
    const { rig, stream, model, newest } = await resumable();
    rig.modelReadyMs = 400;
    model.listener.onGoAway(50_000);
    await rig.frames(stream, 500);
    expect(model.closed).toBe(true);
    const before = model.audioBytes;
    await rig.speak(stream, 2_000);
    expect(model.audioBytes).toBe(before);
    expect(newest().audioBytes / 32).toBeGreaterThanOrEqual(2_000 - 20);
  });

  it('closes the former socket first, and waits for that, but not for long', async () => {
    const { rig, model, newest } = await resumable();
    model.closesSlowly = true;
    model.listener.onGoAway(50_000);
    await rig.advance(500);
    expect(model.closed).toBe(true);
    expect(newest()).toBe(model);
    await rig.advance(400);
    expect(newest()).not.toBe(model);
  });
});

describe('a model that says nothing', () => {
  it('to what the caller said is asked again, and answers', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    await rig.speak(stream, 1_000);
    model.listener.onInputTranscription('Where is my order?');
    await rig.frames(stream, 5_600);
    expect(model.texts.at(-1)).toContain('hears nothing');
    expect(holds(rig, callSid)).toBe(1);
    model.say('Here it is.', 500);
    await rig.advance(20_000);
    expect(newest()).toBe(model);
    expect(model.texts.filter((text) => text.includes('hears nothing'))).toHaveLength(1);
  });

  it('is left however often the caller asks', async () => {
    const { rig, stream, model, newest } = await resumable();
    for (let time = 0; time < 12 && newest() === model; time += 1) {
      await rig.speak(stream, 600);
      await rig.frames(stream, 3_000);
    }
    expect(model.texts.at(-1)).toContain('hears nothing');
    expect(newest()).not.toBe(model);
  });

  it('to that either is left for a new session, and at last the caller hears an apology', async () => {
    const { rig, callSid, stream, model, newest } = await resumable();
    await rig.speak(stream, 1_000);
    await rig.frames(stream, 11_000);
    expect(model.closed).toBe(true);
    expect(newest().setup.resumptionHandle).toBeUndefined();
    expect(backs(newest())).toHaveLength(1);
    await rig.frames(stream, 30_000);
    expect(rig.view(callSid).endReason).toBe('model_lost');
    expect(rig.seen('onModelReconnect')).toEqual([
      ['stall', 'fresh'],
      ['stall', 'fresh'],
    ]);
  });

  it('while nobody waits is not disturbed, however long', async () => {
    const { rig, stream, model, newest } = await resumable();
    await rig.frames(stream, 120_000);
    await rig.speak(stream, 200); // A cough.
    await rig.frames(stream, 20_000);
    expect(newest()).toBe(model);
    expect(model.texts).toHaveLength(1);
  });

  it('but hush of full length is as one that says nothing', async () => {
    const { rig, callSid, stream, model } = await resumable();
    await rig.speak(stream, 1_000);
    model.listener.onInputTranscription('Where is my order?');
    model.listener.onAudio(new Uint8Array(48 * 8_000));
    model.listener.onOutputTranscription('It is on its way.');
    await rig.frames(stream, 4_300);
    expect(holds(rig, callSid)).toBe(1);
    expect(rig.said(callSid).at(-1)).toBe('user: Where is my order?');
    await rig.frames(stream, 2_000);
    expect(model.texts.at(-1)).toContain('hears nothing');
    expect(stream.sent).toContain('clear');
  });

  it('but hush on one connection after another is given up', async () => {
    const { rig, callSid, stream, newest } = await resumable();
    await rig.speak(stream, 1_000);
    for (let second = 0; second < 60 && rig.view(callSid).state === 'live'; second += 1) {
      newest().listener.onAudio(new Uint8Array(48 * 500));
      newest().listener.onGenerationComplete();
      newest().listener.onTurnComplete(undefined);
      await rig.frames(stream, 1_000);
    }
    await rig.frames(stream, 10_000);
    expect(rig.view(callSid).endReason).toBe('model_lost');
  });

  it('after it was interrupted, though nobody spoke, is asked again', async () => {
    const { rig, model } = await resumable();
    model.say(ANSWER, 8_000, { generationComplete: false, turnComplete: false });
    await rig.advance(2_000);
    model.listener.onInterrupted();
    await rig.advance(6_000);
    expect(model.texts.at(-1)).toContain('hears nothing');
  });

  it('any more in the middle of a sentence is asked to go on with it', async () => {
    const { rig, callSid, model } = await resumable();
    model.say('Your order is', 1_000, { generationComplete: false, turnComplete: false });
    await rig.advance(7_000);
    expect(model.texts.at(-1)).toContain('broke off');
    model.say('on its way.', 500);
    await rig.advance(2_000);
    expect(rig.said(callSid).slice(-2)).toEqual(['model: Your order', 'model: on its way.']);
  });

  it('with a turn that is over without a word is asked sooner', async () => {
    const { rig, stream, model } = await resumable();
    await rig.speak(stream, 1_000);
    model.listener.onTurnComplete(undefined);
    await rig.frames(stream, 3_000);
    expect(model.texts.at(-1)).toContain('hears nothing');
  });

  it('in time, and then answers into the clip, is written down behind it', async () => {
    const { rig, callSid, stream, model } = await resumable();
    await rig.speak(stream, 1_000);
    model.listener.onInputTranscription('Where is my order?');
    await rig.frames(stream, 2_900);
    model.say('Here it is.', 500);
    await rig.frames(stream, 3_000);
    expect(rig.view(callSid).messages.map(({ text }) => text)).toEqual([
      'Hello, how can I help?',
      'Where is my order?',
      PROMPT_TEXTS.hold,
      'Here it is.',
    ]);
  });

  it('about a word that was thrown in while it spoke is not asked', async () => {
    const { rig, stream, model } = await resumable();
    model.say(ANSWER, 6_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    await rig.speak(stream, 400);
    model.listener.onInputTranscription('Uh-huh.');
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    const asked = model.texts.length;
    await rig.frames(stream, 14_000);
    expect(model.texts.length).toBe(asked);
  });
});
