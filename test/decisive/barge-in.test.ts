/**
 * Decisive script 5: a barge-in, seen from the phone, from two watchers and in the store. Rows I1, I2, E8, H5.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedMessages } from '../../src/client/index.js';
import { functionCalls, functionResponses } from '../../src/event/event.js';
import { tone } from '../support/call-rig.js';
import type { ScriptedConnection } from '../support/scripted-gemini.js';
import { heardMs, type PlacedCall, saidBy, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** Eight chunks of half a second, a word each. */
const CHUNKS = ['one ', 'two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight'];
const CHUNK_MS = 500;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

function saysAll(model: ScriptedConnection): void {
  for (const chunk of CHUNKS) {
    model.sendAudio(tone(CHUNK_MS));
    model.sendOutputTranscription(chunk);
  }
}

/** A call in which the model's four seconds are cut after a second and a half; `between` happens in the middle. */
async function cutCall(between: (call: PlacedCall) => Promise<void> = async () => {}) {
  const call = await stage.call();
  const watcher = await stage.watch(call.callSid);
  saysAll(call.model);
  await waitUntil('a second of it to be heard', () => heardMs(call.phone) > 1_000);
  await between(call);
  await waitUntil('a second and a half of it to be heard', () => heardMs(call.phone) > 1_500);
  call.model.interrupt();
  call.model.turnComplete();
  call.model.sendAudio(tone(700));
  await waitUntil('the clear', () => call.phone.record().clears.length === 1);
  await watcher.until('the flush', ({ frames }) => frames.some(({ type }) => type === 'flush'));
  const heard = heardMs(call.phone);
  return { ...call, watcher, heard, flush: watcher.of('flush')[0]! };
}

/** Text, as far as it was heard by the phone's own count, give or take a chunk. */
function expectHeard(text: string, heard: number): void {
  const words = text.trim().split(' ');
  expect(CHUNKS.join('').startsWith(text)).toBe(true);
  expect(words.length * CHUNK_MS).toBeGreaterThanOrEqual(heard - 2 * CHUNK_MS);
  expect(words.length * CHUNK_MS).toBeLessThanOrEqual(heard + CHUNK_MS);
}

async function hangUp({ phone, callSid, over }: PlacedCall): Promise<void> {
  phone.hangUp();
  await over;
  await stage.ended(callSid);
}

describe('a barge-in', () => {
  it('I1 E8 H5: clears the line, drops what is late, and flush, page, history and store have the same text', async () => {
    const call = await cutCall();
    expectHeard(call.flush.text, call.heard);
    const cleared = call.phone.record().clears[0]!;
    // Nothing of the cut turn is heard behind it: the stray chunk was dropped.
    call.model.sendInputTranscription('Stop.');
    says(call.model, 'Sorry.', { ms: 300 });
    await call.watcher.until('the next message', ({ sealed }) => sealed.includes('done: Sorry.'));
    expect(heardMs(call.phone) - call.heard).toBeLessThan(500);
    expect(cleared.atMs).toBeGreaterThan(0);
    const [stored] = await stage.events(call.callSid);
    expect(stored).toMatchObject({ interrupted: true, turnComplete: true, author: 'support' });
    expect(saidBy(stored!)).toEqual([`support: ${call.flush.text} —`]);
    expect(storedMessages(call.watcher.page)[0]?.text).toBe(call.flush.text);
    const late = await stage.watch(call.callSid);
    expect(storedMessages(late.page)[0]?.text).toBe(call.flush.text);
    await hangUp(call);
  });

  it('E8: the next history holds the cut text, never the full one', async () => {
    const call = await cutCall();
    await hangUp(call);
    await call.watcher.ended();
    const asked = stage.textModel.asked.length;
    const answer = await stage.run(call.callSid, 'What did you say?');
    expect(answer.status).toBe(200);
    const { told } = stage.textModel.asked[asked]!;
    expect(told).toEqual([
      'user: The conversation has begun.',
      `model: ${call.flush.text}`,
      'user: What did you say?',
    ]);
    expect((await stage.said(call.callSid))[0]).toBe(`support: ${call.flush.text} —`);
  });

  it('E8: the same behind a question of the caller’s', async () => {
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    call.model.sendInputTranscription('Count, please.');
    saysAll(call.model);
    await waitUntil('a second and a half of it to be heard', () => heardMs(call.phone) > 1_500);
    call.model.interrupt();
    call.model.turnComplete();
    await watcher.until('the flush', ({ frames }) => frames.some(({ type }) => type === 'flush'));
    await hangUp(call);
    await watcher.ended();
    const asked = stage.textModel.asked.length;
    await stage.run(call.callSid, 'Go on.');
    expect(stage.textModel.asked[asked]!.told).toEqual([
      'user: Count, please.',
      `model: ${watcher.of('flush')[0]!.text}`,
      'user: Go on.',
    ]);
  });

  it('E8: the model is told with its next text what was heard of its words', async () => {
    const call = await cutCall();
    call.phone.dtmf('5');
    const frame = await call.model.waitFor((each) => JSON.stringify(each).includes('pressed the key'));
    expect(JSON.stringify(frame)).toContain(call.flush.text);
    expect(JSON.stringify(frame)).not.toContain('eight');
    await hangUp(call);
  });

  it('I2: a function called before it is answered once all the same', async () => {
    const call = await cutCall(async ({ model }) => {
      model.toolCall({ id: 'c1', name: 'nobody_has_this' });
      await model.waitFor((frame) => 'toolResponse' in frame);
    });
    call.model.sendInputTranscription('Stop.');
    says(call.model, 'Well.', { ms: 300 });
    await call.watcher.until('the next message', ({ sealed }) => sealed.includes('done: Well.'));
    expect(call.model.received.filter((frame) => 'toolResponse' in frame)).toHaveLength(1);
    const events = await stage.events(call.callSid);
    expect(events.flatMap((event) => functionCalls(event)).map(({ id }) => id)).toEqual(['c1']);
    expect(events.flatMap((event) => functionResponses(event)).map(({ id }) => id)).toEqual(['c1']);
    await hangUp(call);
  });

  it('I7: a call withdrawn after its answer gets no second one', async () => {
    const call = await cutCall(async ({ model }) => {
      model.toolCall({ id: 'c1', name: 'nobody_has_this' });
      await model.waitFor((frame) => 'toolResponse' in frame);
      model.cancelToolCalls('c1');
    });
    call.model.sendInputTranscription('Stop.');
    says(call.model, 'Well.', { ms: 300 });
    await call.watcher.until('the next message', ({ sealed }) => sealed.includes('done: Well.'));
    expect(call.model.received.filter((frame) => 'toolResponse' in frame)).toHaveLength(1);
    await hangUp(call);
  });
});
