/**
 * Decisive script 8: whoever does not read delays nobody else, and costs a bounded amount of memory. Rows G1, K1, K2, K3, K4, K5.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectEvents, storedMessages } from '../../src/client/index.js';
import { loadPrompts } from '../../src/call/prompts.js';
import { tone } from '../support/call-rig.js';
import { ScriptedCarrier } from '../support/scripted-carrier.js';
import { ServerProcess } from '../support/server-process.js';
import { heardMs, says, Stage } from '../support/stage.js';
import { pause, waitUntil } from '../support/wait-until.js';

const MB = 2 ** 20;
const SHORT = 'And one short one.';

let stage: Stage;
beforeAll(async () => {
  // A process of its own, so that its memory is nobody else's.
  stage = await Stage.around(async (settings) => {
    const server = new ServerProcess({ ...settings, PORT: '0' });
    return { url: await server.url(), close: () => server.kill() };
  });
});
afterAll(() => stage.close());

const memory = async (): Promise<number> => (await stage.metric('process_resident_memory_bytes')) ?? 0;
const droppedSeconds = async (): Promise<number> => {
  const series = (reason: string) =>
    stage.metric(`earshot_audio_dropped_seconds_total{direction="inbound",reason="${reason}"}`);
  const [full = 0, age = 0] = await Promise.all([series('backlog_full'), series('backlog_age')]);
  return full + age;
};

describe('a watcher that does not read', () => {
  it('K1 K2 K3: stalls only itself; phone and reader go on, and both watchers get the right text', async () => {
    const { phone, over, model, callSid } = await stage.call();
    // As a page reads: where it falls behind for good on a busy machine, it is told anew.
    const reader = connectEvents({ url: `${stage.url}/calls/${callSid}/stream`, retryFirstMs: 1 });
    const shown = (): string[] => storedMessages(reader.state).map(({ text }) => text);
    const stalled = await stage.watch(callSid);
    stalled.stall();
    const before = await memory();
    const heardBefore = heardMs(phone);
    // Ten thousand deltas, far more than sockets and the log hold, while the sound of it plays.
    model.sendAudio(tone(6_000));
    for (let batch = 0; batch < 100; batch += 1) {
      for (let at = 0; at < 100; at += 1) model.sendOutputTranscription(`${'x'.repeat(600)} `);
      await pause(20);
    }
    await waitUntil('the caller to hear on', () => heardMs(phone) > heardBefore + 1_000);
    expect((await memory()) - before).toBeLessThan(100 * MB);
    model.generationComplete();
    model.turnComplete();
    await waitUntil('the end of the message', () => shown().length === 1);
    says(model, SHORT, { ms: 200 });
    await waitUntil('the next', () => shown().includes(SHORT));
    expect(stalled.sealed).toEqual([]);
    stalled.resume();
    await waitUntil('the stalled one to catch up or be cut', () => {
      return stalled.isEnded || stalled.sealed.includes(`done: ${SHORT}`);
    });
    // A client that was cut comes back with the number it has, and is told anew.
    const back = stalled.isEnded
      ? await stage.watch(callSid, { headers: { 'Last-Event-ID': String(stalled.lastId) } })
      : stalled;
    await back.until('the rest', ({ page }) => storedMessages(page).length === 2);
    const stored = (await stage.events(callSid)).map(({ content }) => content?.parts?.[0]?.text);
    expect(storedMessages(back.page).map(({ text }) => text)).toEqual(stored);
    expect(shown()).toEqual(stored);
    expect(stored[1]).toBe(SHORT);
    reader.close();
    phone.hangUp();
    await over;
  });
});

describe('a model that does not read', () => {
  it('K4 K5: costs old sound, which is counted, and never a key or a text', async () => {
    const carrier = new ScriptedCarrier(stage.url);
    const index = stage.gemini.connections.length;
    await carrier.ring();
    const model = await stage.gemini.connection(index);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    says(model, 'Hello.', { ms: 200 });
    const speech = loadPrompts().apology.subarray(0, 4_000);
    const [memoryBefore, droppedBefore] = [await memory(), await droppedSeconds()];
    model.pause();
    // A minute of speech, and more until what the kernel keeps for the model's socket is full; half a second a message, or the
    // carrier would be too fast.
    const keys = ['1', '2', '3'];
    for (let minute = 0; keys.length > 0 && minute < 10; minute += 1) {
      for (let second = 0; second < 60; second += 1) {
        carrier.media(1_000, speech, 500);
        await pause(2);
      }
      if (minute === 0 || (await droppedSeconds()) > droppedBefore + 20) carrier.press(keys.shift()!);
    }
    // The line breaks and comes back: a text that asks the model for words.
    carrier.break();
    await carrier.goOn();
    await waitUntil('sound to be dropped', async () => (await droppedSeconds()) > droppedBefore + 5);
    expect((await memory()) - memoryBefore).toBeLessThan(60 * MB);
    model.resume();
    await model.waitFor((frame) => JSON.stringify(frame).includes('The line was interrupted'));
    const texts = model.receivedTextInputs.slice(1);
    expect(texts.map((text) => /key "(\d)"|line was interrupted/.exec(text)?.[1] ?? 'back')).toEqual([
      '1',
      '2',
      '3',
      'back',
    ]);
    await carrier.hangUp();
  });
});

describe('the two directions', () => {
  it('G1: a model that stopped reading is still heard by the caller', async () => {
    const { phone, over, model } = await stage.call();
    model.pause();
    model.sendAudio(tone(600));
    model.generationComplete();
    model.turnComplete();
    await waitUntil('the sound to be heard', () => heardMs(phone) > 400);
    expect(model.isClosed).toBe(false);
    model.resume();
    phone.hangUp();
    await over;
  });

  it('G1: a carrier that stopped reading is still heard by the model', async () => {
    const carrier = new ScriptedCarrier(stage.url);
    const index = stage.gemini.connections.length;
    await carrier.ring();
    const model = await stage.gemini.connection(index);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    carrier.stall();
    model.sendAudio(tone(2_000));
    const before = model.receivedAudio.length;
    carrier.media(400, loadPrompts().apology.subarray(0, 160));
    carrier.press('9');
    await model.waitFor((frame) => JSON.stringify(frame).includes('pressed the key'));
    expect(model.receivedAudio.length - before).toBeGreaterThanOrEqual(400 * 32 - 640);
    carrier.resume();
    await carrier.hangUp();
  });
});
