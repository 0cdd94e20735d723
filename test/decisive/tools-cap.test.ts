/** Decisive script 2: six calls, four at once, and what becomes of the caller's sound meanwhile. Rows A4, A6, G3, X30. */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { answersTo, desk, HeldTool, LIVE_MODELS } from '../support/probe-agents.js';
import { says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

const SIX = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
/** PCM16 at 16 kHz. */
const BYTES_PER_MS = 32;

async function open(modelName: string, maxConcurrentTools?: number) {
  const work = new HeldTool('work');
  const runConfig = maxConcurrentTools === undefined ? {} : { maxConcurrentTools };
  const stage = await Stage.open({ GEMINI_MODEL: modelName }, systemClock, [
    desk({ tools: [work.tool], runConfig }),
  ]);
  return { work, stage };
}

/** Lets run after run end, and sees to it that as many as may are running before the next one does. */
async function workOff(work: HeldTool, cap: number, end?: () => unknown): Promise<void> {
  for (let done = 0; done < SIX.length; done += 1) {
    const running = Math.min(cap, SIX.length - done);
    await waitUntil('as many as may to run', () => work.running === running && work.isWaiting);
    work.letGo(end);
  }
}

describe('six calls of one message', () => {
  it.each([
    ['4 without a word', undefined, 4],
    ['3 where the agent says so', 3, 3],
  ])('A4: run at most at once: %s; all are answered in one frame', async (_what, given, cap) => {
    const { work, stage } = await open('gemini-3.8-live', given);
    const { model, phone, over, callSid } = await stage.call();
    model.toolCall(...SIX.map((id) => ({ id, name: 'work' })));
    await workOff(work, cap);
    await model.waitUntil(() => answersTo(model).length === 1);
    expect(answersTo(model)[0]!.map(({ id }) => id)).toEqual(SIX);
    expect([work.runs, work.peak]).toEqual([6, cap]);
    // Those that throw give their place back too.
    model.toolCall(...SIX.map((id) => ({ id: `${id}b`, name: 'work' })));
    await workOff(work, cap, () => {
      throw new Error('broken');
    });
    await model.waitUntil(() => answersTo(model).length === 2);
    expect(answersTo(model)[1]!.map(({ response }) => response)).toEqual(
      SIX.map(() => ({ error: 'broken' })),
    );
    expect([work.runs, work.peak]).toEqual([12, cap]);
    phone.hangUp();
    await over;
    await stage.ended(callSid);
    await stage.idle();
    await stage.close();
  });

  it.each(LIVE_MODELS)('A6 G3: the caller’s sound meanwhile, %s', async (modelName) => {
    const takesSound = modelName === 'gemini-3.8-live';
    const { work, stage } = await open(modelName);
    const { model, phone, over, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    await waitUntil('sound', () => model.receivedAudio.length > 200 * BYTES_PER_MS);
    model.toolCall(...SIX.map((id) => ({ id, name: 'work' })));
    await waitUntil('four to run', () => work.running === 4);
    const texts = model.receivedTextInputs.length;
    const before = model.receivedAudio.length;
    const beganMs = phone.record().durationMs;
    phone.dtmf('5');
    await waitUntil('two seconds of the call', () => phone.record().durationMs > beganMs + 2_000);
    const during = model.receivedAudio.length - before;
    if (takesSound) expect(during).toBeGreaterThan(1_500 * BYTES_PER_MS);
    else expect([during, model.receivedTextInputs.length]).toEqual([0, texts]);
    await workOff(work, 4);
    await model.waitUntil(() => answersTo(model).length === 1);
    // What waited follows the answer: the key, and the newest second of sound.
    const answeredAt = model.received.findIndex((frame) => 'toolResponse' in frame);
    await model.waitUntil(() => model.receivedTextInputs.some((text) => text.includes('the key "5"')));
    const keyAt = model.received.findIndex((frame) => JSON.stringify(frame).includes('the key'));
    expect(keyAt > answeredAt).toBe(!takesSound);
    says(model, 'All done.');
    await watcher.until('the answer', ({ sealed }) => sealed.includes('done: All done.'));
    phone.hangUp();
    await over;
    await stage.ended(callSid);
    // Nothing is lost that is not counted.
    const droppedMs = 1_000 * (await droppedSeconds(stage));
    const sentMs = 20 * phone.record().pacing.framesSent;
    const gotMs = model.receivedAudio.length / BYTES_PER_MS;
    expect(Math.abs(gotMs + droppedMs - sentMs)).toBeLessThan(250);
    if (takesSound) expect(droppedMs).toBe(0);
    else expect(droppedMs).toBeGreaterThanOrEqual(900);
    await stage.idle();
    await stage.close();
  });
});

async function droppedSeconds(stage: Stage): Promise<number> {
  const text = await (await fetch(`${stage.url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('earshot_audio_dropped_seconds_total{'));
  const inbound = lines.filter((line) => line.includes('direction="inbound"'));
  return inbound.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
