/**
 * A server process that is asked to stop while it is at work: what goes on, what is refused, and what those who watch are told
 * before the end. Rows I3, I6 and J3, and the laws that nobody sits in unexplained silence and nothing committed is lost.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { sleep, systemClock } from '../../src/clock.js';
import { ServerProcess } from '../support/server-process.js';
import { says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let settings: Readonly<Record<string, string>>;
let stage: Stage;
let running: ServerProcess;

beforeEach(async () => {
  stage = await Stage.around(async (given) => {
    settings = { ...given, PORT: '0' };
    running = new ServerProcess(settings);
    return { url: await running.url(), close: () => running.kill() };
  });
});
afterEach(() => stage.close());

async function askToStop(): Promise<void> {
  running.signal('SIGTERM');
  await waitUntil('the drain', async () => (await fetch(`${stage.url}/readyz`)).status === 503);
}

/** A run by text that has said half of its answer. */
async function halfSaid(sessionId: string) {
  const asked = stage.textModel.asked.length;
  stage.textModel.answer = (one) => one.says('A half ');
  const reader = stage.stream(sessionId, 'Well?');
  await reader.until('the half', ({ frames }) => JSON.stringify(frames).includes('A half'));
  return { reader, model: stage.textModel.asked[asked]! };
}

/** What a new server finds in the store. */
async function storedBy(sessionId: string): Promise<string[]> {
  running = new ServerProcess(settings);
  return Stage.at(await running.url(), stage).said(sessionId);
}

describe('a server that is asked to stop', () => {
  it('lets runs in text finish, refuses new ones, and exits with 0', async () => {
    const { reader, model } = await halfSaid('s1');
    stage.textModel.answer = (one) => one.says('Another half ');
    const whole = stage.run('s2', 'And you?');
    await waitUntil('both runs', () => stage.textModel.asked.length === 2);
    await askToStop();
    for (const path of ['/run', '/run_sse']) {
      const refused = await stage.json(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(Stage.message('s3', 'Me too.')),
      });
      expect(refused).toMatchObject({ status: 503, body: { code: 'server_draining' } });
    }
    const socket = new WebSocket(`${stage.url.replace('http', 'ws')}/run_live`);
    socket.on('open', () => socket.send(JSON.stringify({ type: 'start', userId: 'u', sessionId: 's4' })));
    const refusal = await new Promise((resolve) => {
      socket.on('message', (data: Buffer) => resolve(JSON.parse(data.toString())));
    });
    expect(refusal).toMatchObject({ type: 'error', code: 'server_draining', fatal: true });
    model.answers('and the rest.');
    await reader.ended();
    expect(reader.sealed.at(-1)).toBe('done: A half and the rest.');
    stage.textModel.asked[1]!.answers('and an end.');
    expect(await whole).toMatchObject({
      status: 200,
      body: { messages: [{}, { text: 'Another half and an end.' }] },
    });
    expect(await running.exit).toBe(0);
    expect(await storedBy('s1')).toEqual(['user: Well?', 'support: A half and the rest.']);
  });

  it('tells a call’s watchers its last words when the caller hangs up, and exits with 0', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    says(model, 'one two three four five six', { ms: 3_000, pieces: 6, open: true });
    await watcher.until('the words', ({ frames }) => JSON.stringify(frames).includes('six'));
    await askToStop();
    phone.hangUp();
    await over;
    await watcher.ended();
    expect(watcher.sealed).toHaveLength(1);
    expect(watcher.sealed[0]).toMatch(/^flush: /);
    expect(watcher.of('error')).toEqual([]);
    expect(await running.exit).toBe(0);
  });

  it('cuts what goes on when it is asked twice, and tells everyone what is stored and why, before it exits with 1', async () => {
    const { over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    says(model, 'Hello.', { ms: 200 });
    await watcher.until('the greeting', ({ sealed }) => sealed.includes('done: Hello.'));
    model.sendInputTranscription('A question.');
    says(model, 'one two three four five six', { ms: 6_000, pieces: 6, open: true });
    await watcher.until('the words', ({ frames }) => JSON.stringify(frames).includes('six'));
    const { reader } = await halfSaid('s1');
    const whole = stage.run('s2', 'And you?');
    await waitUntil('all runs', () => stage.textModel.asked.length === 2);
    await askToStop();
    // What comes sooner is taken for the same signal, passed on.
    await sleep(systemClock, 1_100);
    running.signal('SIGTERM');
    await Promise.all([watcher.ended(), reader.ended()]);
    expect(watcher.frames.at(-1)).toMatchObject({ type: 'error', code: 'server_draining', fatal: true });
    expect(watcher.page.messages.filter(({ status }) => status === 'open')).toEqual([]);
    expect(watcher.sealed.slice(0, 2)).toEqual(['done: Hello.', 'done: A question.']);
    expect(watcher.sealed.at(-1)).toMatch(/^flush: /);
    expect(reader.frames.at(-1)).toMatchObject({ type: 'error', code: 'server_draining', fatal: true });
    expect(reader.page.messages.map(({ status }) => status)).toEqual(['done', 'failed']);
    expect(await whole).toMatchObject({ status: 503, body: { code: 'server_draining' } });
    expect(await running.exit).toBe(1);
    await over;
    const told = watcher.sealed.map((each) => each.replace(/^\w+: /, ''));
    const stored = (await storedBy(callSid)).map((each) => each.replace(/^\w+: /, '').replace(/ —$/, ''));
    expect(stored).toEqual(told.filter((text) => text !== ''));
  });
});
