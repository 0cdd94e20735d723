/**
 * Decisive script 9: the frames of a real call, told to the client in every order that a network can bring them in; what it shows
 * is what the store has, in its order. Rows G5, G6, G9, H1, H2, H3, H4, H5, J7.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ClientState,
  connectEvents,
  type Frame,
  initialState,
  reduce,
  restart,
  storedMessages,
} from '../../src/client/index.js';
import type { FrameReader } from '../support/frame-reader.js';
import { heardMs, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** All keys that a client may ever see, by type. */
const KEYS: Readonly<Record<Frame['type'], readonly string[]>> = {
  delta: ['type', 'seq', 'msg', 'role', 'text'],
  tool: ['type', 'seq', 'msg', 'callId', 'name', 'state'],
  done: ['type', 'seq', 'msg', 'role', 'text'],
  flush: ['type', 'seq', 'msg', 'text'],
  error: ['type', 'seq', 'msg', 'code', 'message', 'fatal'],
  heartbeat: ['type', 'seq'],
  ready: ['type', 'seq'],
  history: ['type', 'seq', 'messages'],
};

let stage: Stage;
/** A call with a cut message, a function and messages of both sides; and a watcher who came in the middle of a message. */
let watcher: FrameReader;
let latecomer: FrameReader;
let stored: string[];
let callSid: string;

beforeAll(async () => {
  stage = await Stage.open();
  const call = await stage.call();
  ({ callSid } = call);
  const { model, phone } = call;
  watcher = await stage.watch(callSid);
  says(model, 'Hello, how can I help?', { ms: 600, pieces: 3 });
  await watcher.until('the greeting', ({ sealed }) => sealed.length === 1);
  model.sendInputTranscription('Where is ');
  model.sendInputTranscription('my order?');
  says(model, 'Let me see ', { ms: 400, open: true });
  model.toolCall({ id: 'c1', name: 'nobody_has_this', args: { secret: 'argument-of-the-call' } });
  await model.waitFor((frame) => 'toolResponse' in frame);
  says(model, 'what I can find out about it for you today.', { ms: 3_000, pieces: 6, open: true });
  const before = heardMs(phone);
  await waitUntil('some of it to be heard', () => heardMs(phone) > before + 1_400);
  latecomer = await stage.watch(callSid);
  model.interrupt();
  model.turnComplete();
  await watcher.until('the flush', ({ frames }) => frames.some(({ type }) => type === 'flush'));
  model.sendInputTranscription('Never mind.');
  says(model, 'As you like.', { ms: 300 });
  await watcher.until('the end', ({ sealed }) => sealed.includes('done: As you like.'));
  phone.hangUp();
  await call.over;
  await watcher.ended();
  await latecomer.ended();
  stored = (await stage.said(callSid)).map((line) => line.replace(/^\w+: /, '').replace(/ —$/, ''));
});
afterAll(() => stage.close());

const shown = (state: Pick<ClientState, 'messages'>): string[] =>
  storedMessages(state).map(({ text }) => text);
const page = (frames: readonly Frame[], from: ClientState = initialState): ClientState =>
  frames.reduce<ClientState>((state, frame) => reduce(state, frame), from);

describe('the frames of a call', () => {
  it('G5: have the keys of the allow-list and no other, and nothing of arguments, results or names of agents', () => {
    for (const { frame } of [...watcher.read, ...latecomer.read]) {
      expect(Object.keys(frame)).toEqual(KEYS[frame.type]);
    }
    const all = watcher.read.map(({ json }) => json).join('\n');
    expect(all).not.toMatch(/argument-of-the-call|There is no tool|support|actions|invocation/);
  });

  it('G6: are numbered without a hole, with the number as their id, and tell each message to its end', () => {
    expect(watcher.read.map(({ id }) => id)).toEqual(watcher.frames.map(({ seq }) => seq));
    const numbers = watcher.frames.map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
    expect(new Set(watcher.frames.map(({ type }) => type))).toEqual(
      new Set(['history', 'delta', 'tool', 'done', 'flush']),
    );
    expect(watcher.of('tool').map(({ name, state }) => `${name} ${state}`)).toEqual([
      'nobody_has_this running',
      'nobody_has_this error',
    ]);
    for (const { msg, text } of watcher.of('done')) {
      const deltas = watcher.of('delta').filter((delta) => delta.msg === msg);
      expect(deltas.map((delta) => delta.text).join('')).toBe(text);
    }
  });

  it('H1 H5: make the page that the store has, each text word for word', () => {
    const texts = shown(watcher.page);
    expect(texts).toEqual(stored);
    expect(watcher.page.messages.filter(({ status }) => status === 'open')).toEqual([]);
    expect(watcher.page.messages.filter(({ status }) => status === 'cut')).toHaveLength(1);
    const cut = watcher.page.messages.find(({ status }) => status === 'cut')!;
    expect(cut.text).toMatch(/^Let me see what/);
    expect(cut.text).not.toContain('today');
  });

  it('H1: told to someone who came in the middle of a message, they make the same page', () => {
    expect(shown(latecomer.page)).toEqual(stored);
  });

  it('H3: told twice each, they change nothing', () => {
    const twice = watcher.frames.flatMap((frame) => [frame, frame]);
    expect(page(twice).messages).toEqual(watcher.page.messages);
    expect(page(watcher.frames, watcher.page).messages).toEqual(watcher.page.messages);
  });

  it('H2: do not change a message that is sealed, by done or by flush', () => {
    const late = [...watcher.of('done'), ...watcher.of('flush')].map(({ msg }, at): Frame => {
      return { type: 'delta', seq: 10_000 + at, msg, role: 'model', text: ' too late' };
    });
    expect(page(late, watcher.page).messages).toEqual(watcher.page.messages);
  });

  it('G9: of two messages at once do not mix', () => {
    const [one, two] = ['one', 'two'].map((msg, at) =>
      watcher.frames.map((frame): Frame => {
        const renamed = 'msg' in frame ? { ...frame, msg: `${msg} ${frame.msg}` } : frame;
        return { ...renamed, seq: frame.seq * 2 + at };
      }),
    );
    const mixed = one!.flatMap((frame, at) => [frame, two![at]!]).filter(({ type }) => type !== 'history');
    const { messages } = page(mixed);
    for (const whose of ['one ', 'two ']) {
      expect(shown({ messages: messages.filter(({ msg }) => msg.startsWith(whose)) })).toEqual(stored);
    }
    expect(shown({ messages })).toEqual(stored.flatMap((text) => [text, text]));
  });

  it('H4: converge over two connections with numbers of their own, and in any order near their own', () => {
    const one = page(watcher.frames);
    const two = page(latecomer.frames);
    expect(shown(one)).toEqual(shown(two));
    const swapped = watcher.frames.flatMap((_, at) =>
      at % 2 === 0 ? watcher.frames.slice(at, at + 2).toReversed() : [],
    );
    expect(page(swapped).messages).toEqual(watcher.page.messages);
  });

  it('J7: cut in the middle of a message and told anew by a history, leave no fragment', () => {
    const middle = watcher.frames.findLastIndex(({ type }) => type === 'delta');
    const cut = page(watcher.frames.slice(0, middle));
    const fragment = restart(cut);
    expect(fragment.messages.every(({ status }) => status !== 'open')).toBe(true);
    expect(shown(page(latecomer.frames, fragment))).toEqual(stored);
  });

  it('J7 G4: are told from where a client left, or anew, by Last-Event-ID, and end with 204', async () => {
    const half = watcher.read[Math.floor(watcher.read.length / 2)]!;
    const rest = await stage.watch(callSid, { headers: { 'Last-Event-ID': String(half.id) } });
    await rest.ended();
    const seen = watcher.frames.filter(({ seq }) => seq <= half.id);
    expect(page([...seen, ...rest.frames]).messages).toEqual(watcher.page.messages);
    const unknown = await stage.watch(callSid, { headers: { 'Last-Event-ID': '999999' } });
    await unknown.ended();
    expect(unknown.frames[0]?.type).toBe('history');
    expect(shown(unknown.page)).toEqual(stored);
    const all = stage.read(`/calls/${callSid}/stream`, {
      headers: { 'Last-Event-ID': String(watcher.lastId) },
    });
    await all.until('an answer', ({ status }) => status !== undefined);
    expect(all.status).toBe(204);
  });

  it('H5: make the same page through the shipped client, whose socket is cut again and again', async () => {
    const { phone, over, model, callSid: other } = await stage.call();
    const cuts: AbortController[] = [];
    const connection = connectEvents({
      url: `${stage.url}/calls/${other}/stream`,
      retryFirstMs: 1,
      attemptsMax: 100,
      fetch: (input, init) => {
        const cut = new AbortController();
        cuts.push(cut);
        return fetch(input, { ...init, signal: AbortSignal.any([cut.signal, init?.signal ?? cut.signal]) });
      },
    });
    for (const words of ['one two three', 'four five six', 'seven eight nine']) {
      model.sendInputTranscription(`${words}?`);
      says(model, `${words}.`, { ms: 300, pieces: 3, open: true });
      await waitUntil('words', () => connection.state.messages.some(({ text }) => text.startsWith(words)));
      cuts.at(-1)?.abort();
      model.generationComplete();
      model.turnComplete();
      await waitUntil('the store', async () => (await stage.said(other)).includes(`support: ${words}.`));
    }
    phone.hangUp();
    await over;
    const texts = (await stage.said(other)).map((line) => line.replace(/^\w+: /, ''));
    await waitUntil('the page', () => storedMessages(connection.state).length === texts.length);
    expect(shown(connection.state)).toEqual(texts);
    connection.close();
    await connection.ended;
  });
});
