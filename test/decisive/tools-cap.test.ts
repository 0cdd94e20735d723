/**
 * Decisive script 2: six calls of one message, of which so many run at once as may, and what the caller says and hears meanwhile,
 * as each live model takes it. Rows A4, A5, A6, G3, X30.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Clock, sleep, systemClock } from '../../src/clock.js';
import { defineTool } from '../../src/index.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { answersTo, answerTo, desk, HeldTool, LIVE_MODELS } from '../support/probe-agents.js';
import { says, Stage } from '../support/stage.js';
import { SteppedCall } from '../support/stepped-call.js';
import { waitUntil } from '../support/wait-until.js';

const SIX = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
/** Tools of every temper, in worker threads. */
const WORKSHOP = fileURLToPath(new URL('../tool/agents/workshop.ts', import.meta.url));

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
});

/** A tool that takes 300 ms of the call. */
function timed(clock: Clock) {
  const seen = { running: 0, peak: 0, runs: 0 };
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    async execute() {
      seen.runs += 1;
      seen.running += 1;
      seen.peak = Math.max(seen.peak, seen.running);
      await sleep(clock, 300);
      seen.running -= 1;
      return { ok: true };
    },
  });
  return { tool, seen };
}

/** The longest times without anything new for the caller's ear and for the model's, by the call's own clock: the server's
 * schedule, which no load of the machine changes. */
class Gaps {
  toPhoneMs = 0;
  toModelMs = 0;
  #phone = { atMs: 0, seen: 0 };
  #model = { atMs: 0, seen: 0 };

  constructor(readonly call: SteppedCall) {
    this.#phone = { atMs: call.clock.nowMs(), seen: call.carrierFilledMs };
    this.#model = { atMs: call.clock.nowMs(), seen: call.soundFrames };
  }

  async step(): Promise<void> {
    const { call } = this;
    await call.step();
    const atMs = call.clock.nowMs();
    this.toPhoneMs = Math.max(this.toPhoneMs, atMs - this.#phone.atMs);
    this.toModelMs = Math.max(this.toModelMs, atMs - this.#model.atMs);
    if (call.carrierFilledMs > this.#phone.seen) this.#phone = { atMs, seen: call.carrierFilledMs };
    if (call.soundFrames > this.#model.seen) this.#model = { atMs, seen: call.soundFrames };
  }
}

/** What A5 and script 2 allow; a batch of the playout is shorter. */
const GAP_MAX_MS = 100;

describe.each(LIVE_MODELS)('sound while tools run, %s', (modelName) => {
  const takesSound = modelName === 'gemini-3.8-live';

  it('A4 A5: six of 300 ms are answered together after two rounds, and neither ear has waited', async () => {
    const clock = new VirtualClock();
    const { tool, seen } = timed(clock);
    const call = await SteppedCall.open(desk({ tools: [tool] }), modelName, clock);
    const { model } = call;
    says(model, 'Let me look all of that up.', { ms: 3_000, open: true });
    await call.pass(200);
    const beganMs = clock.nowMs();
    const gaps = new Gaps(call);
    model.toolCall(...SIX.map((id) => ({ id, name: 'work' })));
    await waitUntil('four to run', () => seen.running === 4);
    while (answersTo(model).length === 0) await gaps.step();
    expect(clock.nowMs() - beganMs).toBeGreaterThanOrEqual(600);
    expect(clock.nowMs() - beganMs).toBeLessThanOrEqual(700);
    expect(answersTo(model).map((answers) => answers.map(({ id }) => id))).toEqual([SIX]);
    expect(seen).toEqual({ running: 0, peak: 4, runs: 6 });
    expect(gaps.toPhoneMs).toBeLessThan(GAP_MAX_MS);
    if (takesSound) expect(gaps.toModelMs).toBeLessThan(GAP_MAX_MS);
    await call.hangUp();
    await call.close();
  });

  it('A5: two seconds of a busy worker leave no gap in what is heard', async () => {
    const call = await SteppedCall.open(WORKSHOP, modelName);
    const { model, stage, phone } = call;
    const [begun, end] = [join(stage.folder, 'begun'), join(stage.folder, 'end')];
    says(model, 'Let me work that out.', { ms: 4_000, open: true });
    await call.pass(200);
    const stretches = phone.record().stretches.length;
    model.toolCall({ id: 'g1', name: 'grind', args: { file: end, begun } });
    await waitUntil('it to compute', () => existsSync(begun));
    const gaps = new Gaps(call);
    for (let step = 0; step < 100; step += 1) await gaps.step();
    // It computes until now, so that all of this went on beside it.
    writeFileSync(end, '');
    expect((await answerTo(model, 'g1')).response).toEqual({ rounds: expect.any(Number) as unknown });
    expect(gaps.toPhoneMs).toBeLessThan(GAP_MAX_MS);
    if (takesSound) expect(gaps.toModelMs).toBeLessThan(GAP_MAX_MS);
    // The carrier never ran dry.
    expect(phone.record().stretches).toHaveLength(stretches);
    phone.hangUp();
    await call.close();
  });

  it('A6 G3: what the caller says and presses reaches the model meanwhile, or what is newest of it afterwards', async () => {
    const work = new HeldTool('work');
    const call = await SteppedCall.open(desk({ tools: [work.tool] }), modelName);
    const { model, phone, stage } = call;
    const watcher = await stage.watch(phone.callSid);
    model.toolCall(...SIX.map((id) => ({ id, name: 'work' })));
    await waitUntil('four to run', () => work.running === 4);
    const [texts, before] = [model.receivedTextInputs.length, call.soundFrames];
    const gaps = new Gaps(call);
    phone.dtmf('5');
    for (let step = 0; step < 100; step += 1) await gaps.step();
    if (takesSound) await model.waitUntil(() => call.soundFrames - before === 100);
    else expect([call.soundFrames - before, model.receivedTextInputs.length]).toEqual([0, texts]);
    if (takesSound) expect(gaps.toModelMs).toBeLessThan(GAP_MAX_MS);
    await workOff(work, 4);
    await model.waitUntil(() => answersTo(model).length === 1);
    // What waited follows the answer: the key, and the newest second of sound.
    const answeredAt = model.received.findIndex((frame) => 'toolResponse' in frame);
    await model.waitUntil(() => model.receivedTextInputs.some((text) => text.includes('the key "5"')));
    const keyAt = model.received.findIndex((frame) => JSON.stringify(frame).includes('the key'));
    expect(keyAt > answeredAt).toBe(!takesSound);
    await model.waitUntil(() => call.soundFrames - before >= (takesSound ? 100 : 50));
    await call.says('All done.');
    await call.passUntil(() => watcher.sealed.includes('done: All done.'));
    const sentMs = 20 * phone.record().pacing.framesSent;
    await call.hangUp();
    // Nothing is lost that is not counted.
    const droppedMs = 1_000 * (await droppedSeconds(stage));
    const gotMs = 20 * call.soundFrames;
    expect(Math.abs(gotMs + droppedMs - sentMs)).toBeLessThan(100);
    if (takesSound) expect(droppedMs).toBe(0);
    else expect(droppedMs).toBeGreaterThanOrEqual(900);
    await call.close();
  });
});

async function droppedSeconds(stage: Stage): Promise<number> {
  const text = await (await fetch(`${stage.url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('earshot_audio_dropped_seconds_total{'));
  const inbound = lines.filter((line) => line.includes('direction="inbound"'));
  return inbound.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
