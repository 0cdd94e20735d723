/**
 * What is stored of a run, read over HTTP while it happens and afterwards. Rows E1 to E6, E9, E10; E7 is in `killed-server.test.ts`,
 * E8 in `barge-in.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { initialState, reduce, storedMessages, type ClientState } from '../../src/client/index.js';
import {
  type Event,
  eventSchema,
  functionCalls,
  functionResponses,
  isFinalResponse,
} from '../../src/event/event.js';
import { TRANSCRIPT_MAX_CHARS } from '../../src/limits.js';
import { tone } from '../support/call-rig.js';
import { saidBy, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

/** What an event is, in a word or its words. */
function kindOf(event: Event): string {
  const [call] = functionCalls(event);
  const [response] = functionResponses(event);
  if (call !== undefined) return `calls ${call.name}`;
  if (response !== undefined) return `answers ${response.name}`;
  return saidBy(event)[0] ?? event.errorCode ?? 'nothing';
}

describe('the events of a session', () => {
  it('E1 E6: are the same prefix at every read, and none of a message in the middle', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    const reads: (readonly Event[])[] = [];
    await stage.begun(callSid);
    for (const words of ['one two three.', 'four five six.']) {
      model.sendInputTranscription('Next?');
      says(model, words, { ms: 400, pieces: 2, open: true });
      await watcher.until('words', ({ frames }) => JSON.stringify(frames).includes(words.slice(0, 4)));
      reads.push(await stage.events(callSid));
      model.generationComplete();
      model.turnComplete();
      await watcher.until('the whole', ({ sealed }) => sealed.includes(`done: ${words}`));
      reads.push(await stage.events(callSid));
    }
    phone.hangUp();
    await over;
    await watcher.ended();
    const all = await stage.events(callSid);
    expect(reads.map(({ length }) => length)).toEqual([0, 2, 2, 4]);
    for (const read of reads) expect(all.slice(0, read.length)).toEqual(read);
    expect(all.every(({ partial }) => partial !== true)).toBe(true);
  });

  it('E2: have the fields of an event, ids of their own, and one invocation a run', async () => {
    const { phone, over, model, callSid } = await stage.call();
    await stage.begun(callSid);
    model.sendInputTranscription('Hello?');
    says(model, 'Hello.', { ms: 200 });
    model.toolCall({ id: 'c1', name: 'nobody_has_this' });
    await waitUntil('the events', async () => (await stage.events(callSid)).length === 4);
    phone.hangUp();
    await over;
    await stage.ended(callSid);
    await waitUntil(
      'the session to be free',
      async () => (await stage.run(callSid, 'And now?')).status === 200,
    );
    const session = await stage.session(callSid);
    expect(session).toMatchObject({ id: callSid, appName: 'support', state: {} });
    for (const event of session.events) expect(eventSchema.parse(event)).toEqual(event);
    expect(new Set(session.events.map(({ id }) => id)).size).toBe(session.events.length);
    const runs = session.events.map(({ invocationId }) => invocationId);
    expect(new Set(runs.slice(0, 4)).size).toBe(1);
    expect(new Set(runs).size).toBe(2);
    expect(new Set(session.events.map(({ author }) => author))).toEqual(new Set(['user', 'support']));
  });

  it('E3: say which of them is the agent’s word: no function, no fragment; later ones change nothing', async () => {
    stage.textModel.answer = (asked) => {
      if (asked.told.at(-1)?.includes('[response]') === true) return asked.answers('It is', ' there.');
      return asked.calls('nobody_has_this', 'c1');
    };
    await stage.run('e3', 'Where?');
    const events = await stage.events('e3');
    const final = events.filter((event) => event.author === 'support' && isFinalResponse(event));
    expect(final.map((event) => kindOf(event))).toContain('support: It is there.');
    expect(final.flatMap((event) => [...functionCalls(event), ...functionResponses(event)])).toEqual([]);
  });

  it('E4 E5: hold each message as its deltas together are, and a page overwrites, never adds', async () => {
    stage.textModel.answer = (asked) => asked.answers('One ', 'two ', 'three.');
    const chat = stage.stream('e4', 'Count.');
    await chat.ended();
    const deltas = chat.of('delta').map(({ text }) => text);
    expect(deltas.join('')).toBe('One two three.');
    expect((await stage.said('e4')).at(-1)).toBe('support: One two three.');
    const withoutDeltas = chat.frames
      .filter(({ type }) => type !== 'delta')
      .reduce<ClientState>((state, frame) => reduce(state, frame), initialState);
    expect(storedMessages(withoutDeltas)).toEqual(storedMessages(chat.page));
  });

  it('E4: hold each message as its deltas together are, however long it is', async () => {
    const pieces = Array.from({ length: 70 }, (_, at) => `${at} `.padEnd(1_000, 'words '));
    stage.textModel.answer = (asked) => asked.answers(...pieces);
    const chat = stage.stream('e4 long', 'Tell me everything.');
    await chat.ended();
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    for (const piece of pieces) model.sendInputTranscription(piece);
    model.sendAudio(tone(400));
    for (const piece of pieces) model.sendOutputTranscription(piece);
    model.generationComplete();
    model.turnComplete();
    await watcher.until('all messages', ({ sealed }) => sealed.length === 3);
    phone.hangUp();
    await over;
    for (const [reader, session] of [
      [chat, 'e4 long'],
      [watcher, callSid],
    ] as const) {
      const whole = reader.of('done').map(({ msg, text }) => {
        const deltas = reader.of('delta').filter((delta) => delta.msg === msg);
        return { text, told: deltas.map((delta) => delta.text).join('') };
      });
      expect(whole.every(({ text, told }) => told === text || told === '')).toBe(true);
      expect(whole.filter(({ told }) => told.length >= TRANSCRIPT_MAX_CHARS).length).toBeGreaterThan(0);
      expect((await stage.events(session)).map(({ content }) => content?.parts?.[0]?.text)).toEqual(
        whole.map(({ text }) => text),
      );
    }
  });

  it('E9: hold a function’s call and answer while the run goes on', async () => {
    let goOn: () => void = () => {};
    stage.textModel.answer = (asked) => {
      if (asked.told.at(-1)?.includes('[response]') !== true) return asked.calls('nobody_has_this', 'c1');
      return void (goOn = () => asked.answers('There', ' is none.'));
    };
    const asked = stage.textModel.asked.length;
    const chat = stage.stream('e9', 'Try it.');
    await waitUntil('the second round', () => stage.textModel.asked.length === asked + 2);
    await chat.until('the chip', ({ frames }) => frames.filter(({ type }) => type === 'tool').length === 2);
    expect((await stage.events('e9')).map((event) => kindOf(event))).toEqual([
      'user: Try it.',
      'calls nobody_has_this',
      'answers nobody_has_this',
    ]);
    goOn();
    await chat.ended();
    expect((await stage.said('e9')).at(-1)).toBe('support: There is none.');
  });

  it('E10: stand in spoken order: functions behind the message they came in, a late question before its answer', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    await stage.begun(callSid);
    model.sendInputTranscription('Where is ');
    says(model, 'Let me ', { ms: 300, open: true });
    model.toolCall({ id: 'c1', name: 'nobody_has_this' });
    await watcher.until('the chip, at once', ({ frames }) => frames.some(({ type }) => type === 'tool'));
    expect(await stage.events(callSid)).toEqual([]);
    model.sendInputTranscription('my order?');
    says(model, 'see.', { ms: 300 });
    await watcher.until('the whole', ({ sealed }) => sealed.includes('done: Let me see.'));
    expect((await stage.events(callSid)).map((event) => kindOf(event))).toEqual([
      'user: Where is my order?',
      'support: Let me see.',
      'calls nobody_has_this',
      'answers nobody_has_this',
    ]);
    phone.hangUp();
    await over;
  });
});
