import type { LiveServerMessage } from '@google/genai';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { answerToSetup, eventually, order, type RehearsalClient, settle } from './rehearsal-client.js';
import { saidBy, Stage } from './rehearsal-stage.js';

let stage: Stage;
afterEach(() => stage.close());

const plainSetup = { model: 'models/rehearsal' };

async function passes(ms: number): Promise<void> {
  await settle();
  const endMs = stage.clock.nowMs() + ms;
  await stage.until(() => stage.clock.nowMs() >= endMs, 100);
  await settle();
}

function isComplete(messages: readonly LiveServerMessage[]): boolean {
  return messages.some(({ setupComplete }) => setupComplete !== undefined);
}

/** The newest handle of a conversation that is idle. */
async function handleOf({ messages }: RehearsalClient): Promise<string> {
  const newest = () => messages.at(-1)?.sessionResumptionUpdate?.newHandle ?? '';
  await eventually(() => newest() !== '');
  return newest();
}

/** A conversation that was left, and what it can be resumed with. */
async function leftHandle(): Promise<string> {
  const client = await stage.connect({ sessionResumption: {} });
  const handle = await handleOf(client);
  client.session.close();
  await eventually(() => stage.service.connections === 0);
  return handle;
}

/** A client that does not wait for `setupComplete`, as the SDK does. */
async function impatient() {
  const messages: LiveServerMessage[] = [];
  const closes: number[] = [];
  const webSocket = new WebSocket(`${stage.service.url.replace('http', 'ws')}/x.BidiGenerateContent?key=k`);
  webSocket.on('message', (data: Buffer) => void messages.push(JSON.parse(data.toString('utf8'))));
  webSocket.on('close', (code) => void closes.push(code));
  await once(webSocket, 'open');
  webSocket.send(JSON.stringify({ setup: { ...plainSetup, outputAudioTranscription: {} } }));
  webSocket.send(JSON.stringify({ realtimeInput: { text: 'Hello?' } }));
  return { messages, closes, webSocket };
}

describe('a setup that takes its time', () => {
  it('is complete after the delay, and what came meanwhile is answered then', async () => {
    stage = await Stage.open({ setup: { delayMs: 800 } });
    const { messages, webSocket } = await impatient();
    await eventually(() => stage.clock.pendingTimers === 1);
    await passes(700);
    expect(messages).toEqual([]);
    await passes(200);
    expect(isComplete(messages)).toBe(true);
    await passes(3_000);
    expect(saidBy(messages)).toBe('Other.');
    webSocket.terminate();
  });

  it('goes wrong behind the delay, and leaves no timer when the client goes before', async () => {
    stage = await Stage.open({ setup: { delayMs: 500, misbehave: [{ do: 'close', code: 1011 }] } });
    const refused = await impatient();
    await passes(400);
    expect(refused.closes).toEqual([]);
    await passes(200);
    expect(refused.closes).toEqual([1011]);
    expect(refused.messages).toEqual([]);
    const left = await impatient();
    await passes(100);
    left.webSocket.terminate();
    await eventually(() => stage.service.connections === 0);
    expect(stage.clock.pendingTimers).toBe(0);
  });

  it('concerns the connections that are named, and no other', async () => {
    stage = await Stage.open({
      setup: { misbehave: [{ do: 'close', code: 1011 }], from: 2, connections: 2 },
    });
    const met: string[] = [];
    for (let connection = 1; connection <= 4; connection += 1) {
      met.push((await answerToSetup(stage.service.url, plainSetup)).slice(0, 15));
    }
    const complete = '{"setupComplete';
    expect(met).toEqual([complete, '1011 Internal e', '1011 Internal e', complete]);
  });

  it('can go wrong a while after it was complete', async () => {
    stage = await Stage.open({ setup: { misbehave: [{ do: 'close', code: 1006, afterSeconds: 5 }] } });
    const client = await stage.connect();
    await passes(4_900);
    expect(isComplete(client.messages)).toBe(true);
    expect(client.closes).toEqual([]);
    await passes(200);
    expect(client.closes[0]?.code).toBe(1006);
  });
});

describe('resumption told to misbehave', () => {
  it.each([
    [1007, '1007 Invalid session resumption handle.'],
    [1011, '1011 Internal error encountered.'],
  ])('refuses the conversation’s first tries with %i, and then takes it', async (refuse, met) => {
    stage = await Stage.open({ resumption: { refuse, times: 2 } });
    const handle = await leftHandle();
    const setup = { ...plainSetup, sessionResumption: { handle } };
    expect(await answerToSetup(stage.service.url, setup)).toBe(met);
    expect(await answerToSetup(stage.service.url, setup)).toBe(met);
    expect(await answerToSetup(stage.service.url, setup)).toMatch(/^\{"setupComplete"/);
    expect(await answerToSetup(stage.service.url, plainSetup)).toMatch(/^\{"setupComplete"/);
  });

  it('counts one conversation by itself, through every handle that it was given', async () => {
    stage = await Stage.open({
      resumption: { misbehave: [{ do: 'close', code: 1007, afterSeconds: 1 }], times: 2 },
    });
    for (let conversation = 0; conversation < 2; conversation += 1) {
      let handle = await leftHandle();
      for (const dies of [true, true, false]) {
        const client = await stage.connect({ sessionResumption: { handle } });
        handle = await handleOf(client);
        await passes(1_100);
        expect(client.closes.map(({ code }) => code)).toEqual(dies ? [1007] : []);
        client.session.close();
        await eventually(() => stage.service.connections === 0);
      }
    }
  });

  it('is mute once it was resumed, and a fresh session is not', async () => {
    stage = await Stage.open({ resumption: { misbehave: [{ do: 'mute', afterSeconds: 0 }] } });
    const resumed = await stage.connect({ sessionResumption: { handle: await leftHandle() } });
    await passes(100);
    expect(isComplete(resumed.messages)).toBe(true);
    resumed.session.sendRealtimeInput({ text: 'Hello?' });
    const fresh = await stage.connect();
    fresh.session.sendRealtimeInput({ text: 'Hello?' });
    await passes(10_000);
    expect(order(resumed.messages).join(' ')).not.toContain('audio');
    expect(saidBy(fresh.messages)).toBe('Other.');
    resumed.session.close();
    fresh.session.close();
  });

  it('never gives a handle out', async () => {
    stage = await Stage.open({ resumption: { handles: false } });
    const client = await stage.connect({ sessionResumption: {} });
    await stage.say(client, 'Hello?');
    await passes(5_000);
    const updates = client.messages.flatMap(({ sessionResumptionUpdate }) => sessionResumptionUpdate ?? []);
    expect(updates.length).toBeGreaterThan(2);
    expect(updates.every(({ resumable, newHandle = '' }) => resumable !== true && newHandle === '')).toBe(
      true,
    );
    client.session.close();
  });
});
