/**
 * What ends, what goes on, and what is left behind. Rows I3, I5, I6, J2, J3, G7, G2, G4, and a store that fails in the middle of a
 * call. I1, I2 and I7 are in `barge-in.test.ts`, J1 in `one-agent-three-modes.test.ts`, J7 in `reassembly.test.ts`.
 */
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { storedMessages } from '../../src/client/index.js';
import { loadPrompts, PROMPT_TEXTS } from '../../src/call/prompts.js';
import { textInput } from '../support/scripted-gemini.js';
import { ScriptedCarrier } from '../support/scripted-carrier.js';
import { heardMs, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

describe('a client that leaves', () => {
  it('I3: on the phone closes the model’s socket', async () => {
    const { phone, over, model, callSid } = await stage.call();
    says(model, 'A long story of many words.', { ms: 5_000, open: true });
    await waitUntil('some of it', () => heardMs(phone) > 300);
    phone.hangUp();
    await model.waitForClose();
    await over;
    await stage.ended(callSid);
    expect((await stage.json(`/calls/${callSid}`)).body['endReason']).toBe('caller_hangup');
  });

  it.each(['/run', '/run_sse'])(
    'I3: from %s stops the model and keeps no half of an answer',
    async (path) => {
      const asked = stage.textModel.asked.length;
      stage.textModel.answer = (one) => one.says('For ever and');
      const reader = stage.read(path, { body: Stage.message(`left ${path}`, 'Tell me.') });
      await waitUntil('the model to be asked', () => stage.textModel.asked.length > asked);
      reader.cut();
      await waitUntil('the model to be left', () => stage.textModel.asked[asked]!.isClosed);
      await stage.idle();
      expect(await stage.said(`left ${path}`)).toEqual(['user: Tell me.']);
    },
  );

  it('I3: as a watcher ends nothing', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const leaver = await stage.watch(callSid);
    const stayer = await stage.watch(callSid);
    leaver.cut();
    says(model, 'Still here.', { ms: 300 });
    await stayer.until('the words', ({ sealed }) => sealed.includes('done: Still here.'));
    expect(model.isClosed).toBe(false);
    phone.hangUp();
    await over;
  });
});

describe('a failure', () => {
  it('J3 G7: of the model’s connection for good is a fatal frame with no message left open, and the heard part is kept', async () => {
    const { over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    says(model, 'one two three four five six', { ms: 600, pieces: 6, open: true });
    await watcher.until('the words', ({ frames }) => JSON.stringify(frames).includes('six'));
    stage.gemini.script.handshake = { httpStatus: 503 };
    model.terminate();
    await over;
    stage.gemini.script.handshake = 'accept';
    await watcher.ended();
    // Told at once, then the apology, and the fatal error is the last word.
    expect(watcher.of('error')).toMatchObject([
      { code: 'model_lost', fatal: false },
      { code: 'model_lost', fatal: true },
    ]);
    expect(watcher.frames.at(-1)).toMatchObject({ type: 'error', fatal: true });
    expect(watcher.sealed.at(-1)).toBe(`done: ${PROMPT_TEXTS.apology}`);
    expect(watcher.page.messages.filter(({ status }) => status === 'open')).toEqual([]);
    expect(watcher.page.isOver).toBe(true);
    const texts = (await stage.said(callSid)).map((line) => line.replace(/^\w+: /, '').replace(/ —$/, ''));
    expect(storedMessages(watcher.page).map(({ text }) => text)).toEqual(texts);
    expect((await stage.events(callSid)).map(({ errorCode }) => errorCode)).toContain('model_lost');
  }, 40_000);

  it.each(['RESPONSE_REJECTED', 'MALFORMED_FUNCTION_CALL'])(
    'J2: of one turn (%s) is told, explained to the caller, and a normal turn follows',
    async (turnCompleteReason) => {
      const { phone, over, model, callSid } = await stage.call();
      const watcher = await stage.watch(callSid);
      says(model, 'Hello.', { ms: 200 });
      await watcher.until('the greeting', ({ sealed }) => sealed.includes('done: Hello.'));
      model.sendInputTranscription('Something bad.');
      model.turnComplete({ turnCompleteReason });
      await watcher.until('the error', ({ frames }) => frames.some(({ type }) => type === 'error'));
      expect(watcher.of('error')).toMatchObject([{ code: turnCompleteReason, fatal: false }]);
      await model.waitFor((frame) => JSON.stringify(frame).includes('could not be given'));
      says(model, 'I cannot answer that.', { ms: 300 });
      await watcher.until('its words', ({ sealed }) => sealed.includes('done: I cannot answer that.'));
      says(model, 'Anything else?', { ms: 300 });
      await watcher.until('a turn behind it', ({ sealed }) => sealed.includes('done: Anything else?'));
      expect(watcher.page.isOver).toBe(false);
      phone.hangUp();
      await over;
      await watcher.ended();
      const events = await stage.events(callSid);
      expect(events.filter(({ errorCode }) => errorCode === turnCompleteReason)).toHaveLength(1);
    },
  );

  it('J2: of a function is told and the call goes on', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    model.toolCall({ id: 'c1', name: 'nobody_has_this' });
    await watcher.until('the error', ({ frames }) => JSON.stringify(frames).includes('"state":"error"'));
    says(model, 'I cannot do that.', { ms: 300 });
    await watcher.until('a turn behind it', ({ sealed }) => sealed.includes('done: I cannot do that.'));
    expect(watcher.page.isOver).toBe(false);
    phone.hangUp();
    await over;
  });

  it('of the store is told to watchers and the log, the call goes on, and nothing is lost once it is mended', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    says(model, 'Before.', { ms: 300 });
    await watcher.until('it', ({ sealed }) => sealed.includes('done: Before.'));
    const database = new Database(join(stage.folder, 'earshot.db'));
    database.exec(`CREATE TRIGGER broken BEFORE INSERT ON event BEGIN SELECT RAISE(FAIL, 'broken'); END`);
    const before = heardMs(phone);
    stage.textModel.answer = (asked) => asked.answers('Late.');
    const run = stage.run('slowly', 'Well?');
    const chat = stage.stream('slowly by chat', 'Well?');
    await chat.until('the failure', ({ frames }) => frames.some(({ type }) => type === 'error'));
    model.sendInputTranscription('Are you there?');
    says(model, 'Meanwhile.', { ms: 600 });
    await watcher.until('the failure', ({ frames }) => frames.some(({ type }) => type === 'error'));
    expect(watcher.of('error')[0]).toMatchObject({ code: 'store_failed', fatal: false });
    expect(JSON.stringify(stage.errors)).toContain('events are not being stored');
    expect(heardMs(phone) - before).toBeGreaterThan(500);
    // Deltas go on; nothing is called complete that is not stored.
    expect(JSON.stringify(watcher.of('delta'))).toContain('Meanwhile.');
    expect(watcher.sealed).not.toContain('done: Meanwhile.');
    expect(await stage.said(callSid)).toEqual(['support: Before.']);
    model.sendInputTranscription('Still?');
    says(model, 'And still.', { ms: 300 });
    phone.dtmf('1');
    await model.waitFor((frame) => JSON.stringify(frame).includes('pressed the key'));
    database.exec('DROP TRIGGER broken');
    database.close();
    await watcher.until('all', ({ sealed }) => sealed.includes('done: And still.'));
    // Told late is not failed: who asks again would run everything twice.
    expect(await run).toMatchObject({
      status: 200,
      body: { messages: [{ text: 'Well?' }, { text: 'Late.' }] },
    });
    await chat.ended();
    expect(chat.sealed).toEqual(['done: Well?', 'done: Late.']);
    expect(await stage.said(callSid)).toEqual([
      'support: Before.',
      'user: Are you there?',
      'support: Meanwhile.',
      'user: Still?',
      'support: And still.',
    ]);
    phone.hangUp();
    await over;
  });
});

describe('the doors', () => {
  it('G2: take sound as sound and keys as text', async () => {
    const { phone, over, model } = await stage.call({ voice: loadPrompts().apology });
    await waitUntil('sound', () => model.receivedAudio.length > 3_200);
    phone.dtmf('4');
    await model.waitFor((frame) => JSON.stringify(frame).includes('the key \\"4\\"'));
    for (const frame of model.received) {
      const isSound = JSON.stringify(frame).includes('"audio"');
      expect([isSound, textInput(frame) !== undefined]).toEqual([isSound, !isSound]);
    }
    expect(JSON.stringify(model.received)).toContain('audio/pcm;rate=16000');
    phone.hangUp();
    await over;
  });

  it('G4: open no socket on a route of events, and run nothing by GET', async () => {
    for (const path of ['/run_sse', '/run', '/calls/CA1/stream']) {
      const socket = new WebSocket(`${stage.url.replace('http', 'ws')}${path}`);
      const failure = await new Promise((resolve) => {
        socket.on('error', resolve);
        socket.on('open', () => resolve(undefined));
      });
      expect(String(failure)).toMatch(/Unexpected server response: 4\d\d/);
    }
    expect((await stage.json('/run_sse')).status).toBe(404);
  });
});

describe('the end', () => {
  it('I5: of a call’s time is a goodbye, and tells why', async () => {
    const short = await Stage.open({ MAX_CALL_MINUTES: '0.03' });
    try {
      const { over, model, callSid } = await short.call();
      const watcher = await short.watch(callSid);
      says(model, 'Hello.', { ms: 200 });
      await model.waitFor((frame) => JSON.stringify(frame).includes('must end now'));
      says(model, 'Goodbye.', { ms: 300 });
      await over;
      await watcher.ended();
      expect(watcher.sealed.at(-1)).toBe('done: Goodbye.');
      expect((await short.json(`/calls/${callSid}`)).body['endReason']).toBe('max_duration');
      await short.idle();
    } finally {
      await short.close();
    }
  });

  it('I6: of fifty calls by many ways leaves nothing alive', { timeout: 60_000 }, async () => {
    const crowd = await Stage.open();
    try {
      const ways: readonly ((carrier: ScriptedCarrier, at: number) => Promise<unknown>)[] = [
        (carrier) => carrier.hangUp(),
        (carrier) => crowd.json(`/calls/${carrier.callSid}/hangup`, { method: 'POST' }),
        async (_carrier, at) => crowd.gemini.connections[at]?.terminate(),
        async (_carrier, at) => crowd.gemini.connections[at]?.toolCall({ id: 'c1', name: 'end_call' }),
        async (carrier) => carrier.break(),
      ];
      const carriers: ScriptedCarrier[] = [];
      for (let at = 0; at < 50; at += 1) {
        const carrier = new ScriptedCarrier(crowd.url);
        carriers.push(carrier);
        await carrier.ring();
        const model = await crowd.gemini.connection(at);
        await model.waitForSetup();
        model.sendOutputTranscription('Half a');
        await crowd.watch(carrier.callSid);
      }
      for (const [at, carrier] of carriers.entries()) await ways[at % ways.length]!(carrier, at);
      await crowd.gemini.waitForNoSockets();
      await crowd.idle();
      expect(crowd.gemini.connections.every(({ isClosed }) => isClosed)).toBe(true);
      const reasons = await Promise.all(
        carriers.map(async ({ callSid }) => (await crowd.json(`/calls/${callSid}`)).body['endReason']),
      );
      expect(reasons).not.toContain(null);
      expect(new Set(reasons).size).toBe(5);
    } finally {
      await crowd.close();
    }
  });
});
