import type { LiveServerMessage } from '@google/genai';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { said, SAID_BEFORE } from '../../../src/call/line-texts.js';
import { Chaos, MISBEHAVIOURS } from '../../../src/model/rehearsal/misbehaviour.js';
import { chunks, eventually, order, type RehearsalClient, settle } from './rehearsal-client.js';
import { callsIn, declare, saidBy, Stage } from './rehearsal-stage.js';

let stage: Stage;
afterEach(() => stage.close());

const ANSWER = 'This is the answer, and it goes on for some time.';
const call = { name: 'look_up' };

/** Types a text that is answered with the misbehaviour, and gives it a minute. */
async function misbehaving(one: object, more: object = {}): Promise<RehearsalClient> {
  stage = await Stage.open({
    texts: [
      { contains: 'go', say: ANSWER, call, misbehave: [one] },
      { contains: 'again', say: 'Fine.' },
    ],
    ...more,
  });
  const client = await stage.connect(declare(['look_up']));
  client.session.sendRealtimeInput({ text: 'go' });
  await passes(60_000);
  return client;
}

async function passes(ms: number): Promise<void> {
  await settle();
  const endMs = stage.clock.nowMs() + ms;
  await stage.until(() => stage.clock.nowMs() >= endMs, 500);
  await settle();
}

/** The loudest sample. */
function peak(messages: readonly LiveServerMessage[]): number {
  const pcm = Buffer.concat(chunks(messages));
  let loudest = 0;
  for (let at = 0; at + 1 < pcm.length; at += 2) loudest = Math.max(loudest, Math.abs(pcm.readInt16LE(at)));
  return loudest;
}

describe('a turn told to misbehave', () => {
  it.each([
    [{ do: 'noTurnComplete' }, 'audio toolCall generationComplete'],
    [{ do: 'noTurnComplete', generationComplete: false }, 'audio toolCall'],
    [{ do: 'emptyTurn', reason: 'RESPONSE_REJECTED' }, 'turnComplete'],
    [{ do: 'waitForInput' }, 'turnComplete'],
    [{ do: 'silent' }, ''],
    [{ do: 'cutShort' }, 'audio generationComplete turnComplete'],
    [{ do: 'callMidSpeech' }, 'audio toolCall audio generationComplete turnComplete'],
    [{ do: 'phantomInterrupted' }, 'interrupted audio toolCall generationComplete turnComplete'],
    [{ do: 'repeatCall', times: 2 }, 'audio toolCall generationComplete turnComplete'],
    [{ do: 'mute', at: 'afterSpeech' }, 'audio'],
  ])('%j sends %s', async (one, expected) => {
    const client = await misbehaving(one);
    expect(order(client.messages).join(' ')).toBe(expected);
    client.session.close();
  });

  it.each(['emptyTurn', 'cutShort'])('%s tells why the turn was refused', async (kind) => {
    const client = await misbehaving({ do: kind, reason: 'GENERATED_AUDIO_SAFETY' });
    const ends = client.messages.flatMap(({ serverContent }) =>
      serverContent?.turnComplete === true ? [serverContent.turnCompleteReason] : [],
    );
    expect(ends).toEqual(['GENERATED_AUDIO_SAFETY']);
    client.session.close();
  });

  it('says everything twice, stutters, or is near silent for the full length', async () => {
    expect(saidBy((await misbehaving({ do: 'repeatSpeech' })).messages)).toBe(
      `${ANSWER} I rehearse. ${ANSWER}`,
    );
    await stage.close();
    const plain = chunks((await misbehaving({ do: 'stutter', ms: 900 })).messages);
    await stage.close();
    const near = await misbehaving({ do: 'nearSilence' });
    expect(Buffer.concat(chunks(near.messages))).toHaveLength(Buffer.concat(plain).length);
    expect(peak(near.messages)).toBeLessThan(10);
    expect(peak(near.messages)).toBeGreaterThan(0);
  });

  it('tells why a turn is empty or waits for more', async () => {
    const rejected = await misbehaving({ do: 'emptyTurn', reason: 'RESPONSE_REJECTED' });
    expect(rejected.messages.at(-1)?.serverContent).toMatchObject({
      turnCompleteReason: 'RESPONSE_REJECTED',
    });
    await stage.close();
    const waiting = await misbehaving({ do: 'waitForInput' });
    expect(waiting.messages.at(-1)?.serverContent).toMatchObject({ waitingForInput: true });
  });

  it('leaks text that is no speech', async () => {
    const { messages } = await misbehaving({ do: 'leakText', text: 'tool_code' });
    const parts = messages.flatMap(({ serverContent }) => serverContent?.modelTurn?.parts ?? []);
    expect(parts.filter(({ text }) => text !== undefined)).toEqual([{ text: 'tool_code' }]);
  });

  it('completes late, and not when it is interrupted before', async () => {
    const client = await misbehaving({ do: 'lateTurnComplete', seconds: 300 });
    expect(order(client.messages).at(-1)).toBe('generationComplete');
    client.session.sendRealtimeInput({ text: 'again' });
    await passes(300_000);
    expect(order(client.messages).slice(-5).join(' ')).toBe(
      'interrupted turnComplete audio generationComplete turnComplete',
    );
    expect(callsIn(client.messages)).toHaveLength(1);
  });

  it('does once what it is told to do once, and never when the conversation goes on', async () => {
    const texts = [{ contains: 'go', say: ANSWER, misbehave: [{ do: 'emptyTurn', once: true }] }];
    stage = await Stage.open({ texts });
    const first = await stage.connect({ sessionResumption: {} });
    expect(saidBy(await stage.say(first, 'go'))).toBe('');
    expect(saidBy(await stage.say(first, 'go'))).toBe(ANSWER);
    await eventually(() => first.messages.at(-1)?.sessionResumptionUpdate?.resumable === true);
    const handle = first.messages.at(-1)?.sessionResumptionUpdate?.newHandle ?? '';
    first.session.close();
    await eventually(() => stage.service.connections === 0);
    const systemInstruction = `${SAID_BEFORE}\n${said('user', 'go')}`;
    for (const config of [{ sessionResumption: { handle } }, { systemInstruction }]) {
      const later = await stage.connect(config);
      expect(saidBy(await stage.say(later, 'go'))).toBe(ANSWER);
      later.session.close();
    }
    expect(saidBy(await stage.say(await stage.connect(), 'go'))).toBe('');
  });

  it('is silent for one turn only', async () => {
    const client = await misbehaving({ do: 'silent' });
    client.session.sendRealtimeInput({ text: 'again' });
    await passes(10_000);
    expect(saidBy(client.messages)).toBe('Fine.');
  });

  it.each([
    ['mute', 'interrupted turnComplete', 0],
    ['close', 'interrupted turnComplete', 1],
    ['phantomInterrupted', 'interrupted turnComplete interrupted audio generationComplete turnComplete', 0],
  ])('does it once it was interrupted: %s', async (kind, expected, closes) => {
    const misbehave = [{ do: kind, at: 'interrupted', ...(kind === 'close' ? { code: 1011 } : {}) }];
    stage = await Stage.open({
      texts: [
        { contains: 'go', say: ANSWER, misbehave },
        { contains: 'again', say: 'Fine.' },
      ],
    });
    const client = await stage.connect();
    client.session.sendRealtimeInput({ text: 'go' });
    await passes(1_000);
    const from = client.messages.length;
    client.session.sendRealtimeInput({ text: 'again' });
    await passes(10_000);
    expect(order(client.messages.slice(from)).join(' ')).toBe(expected);
    expect(client.closes).toHaveLength(closes);
  });

  it.each([
    [true, [{ code: 1011, reason: expect.stringMatching(/Deadline expired/) }]],
    [false, []],
  ])('says goAway, the drop behind it: %s', async (thenDrop, closes) => {
    const client = await misbehaving({ do: 'goAway', timeLeftSeconds: 40, thenDrop });
    const told = client.messages.flatMap(({ goAway }) => goAway?.timeLeft ?? []);
    expect(told).toEqual(['40s']);
    expect(client.closes).toEqual(closes);
  });
});

describe('a connection told to close', () => {
  const points: readonly [string, string][] = [
    ['start', ''],
    ['midSpeech', 'audio'],
    ['afterSpeech', 'audio'],
    ['afterToolCall', 'audio toolCall'],
    ['beforeTurnComplete', 'audio toolCall generationComplete'],
    ['afterTurnComplete', 'audio toolCall generationComplete turnComplete'],
  ];
  const codes = [1000, 1006, 1007, 1008, 1011];
  const all = points.flatMap(([at, before], row) =>
    codes
      .filter((_, n) => n === row % codes.length || at === 'midSpeech')
      .map((code) => [code, at, before] as const),
  );

  it.each(all)('closes with %i at %s', async (code, at, before) => {
    const client = await misbehaving({ do: 'close', code, at });
    expect(client.closes).toHaveLength(1);
    expect(client.closes[0]?.code).toBe(code);
    expect(order(client.messages).join(' ')).toBe(before);
    expect(stage.clock.pendingTimers).toBe(0);
  });

  it.each(codes)('closes with %i before setupComplete, the first two connections only', async (code) => {
    stage = await Stage.open({ setup: { misbehave: [{ do: 'close', code }], connections: 2 } });
    const url = stage.service.url.replace('http', 'ws');
    for (let connection = 1; connection <= 3; connection += 1) {
      const webSocket = new WebSocket(`${url}/x.BidiGenerateContent?key=k`);
      await once(webSocket, 'open');
      const ends = connection <= 2 ? once(webSocket, 'close') : once(webSocket, 'message');
      webSocket.send('{"setup":{"model":"models/rehearsal"}}');
      expect((await ends)[0]).toEqual(
        connection <= 2 ? code : Buffer.from('{"setupComplete":{"sessionId":"rehearsal-session-3"}}'),
      );
      webSocket.terminate();
    }
  });

  it('lives as long as the dialogue says, and says goAway before', async () => {
    stage = await Stage.open({ life: { seconds: 600, warningSeconds: 60 } });
    const client = await stage.connect();
    await passes(539_000);
    expect(client.messages.some(({ goAway }) => goAway !== undefined)).toBe(false);
    await passes(2_000);
    expect(client.messages.at(-1)?.goAway?.timeLeft).toBe('60s');
    expect(client.closes).toEqual([]);
    await passes(60_000);
    expect(client.closes[0]?.code).toBe(1011);
  });
});

describe('chaos', () => {
  it('draws the same from the same seed and connection, every kind in time, and as often as asked', async () => {
    stage = await Stage.open({});
    const draws = (seed: number, connection: number) => {
      const chaos = new Chaos({ seed, rate: 0.2 }, connection);
      return Array.from({ length: 2_000 }, () => chaos.draw());
    };
    expect(draws(7, 1)).toEqual(draws(7, 1));
    expect(draws(7, 1)).not.toEqual(draws(7, 2));
    expect(draws(7, 1)).not.toEqual(draws(8, 1));
    const drawn = draws(7, 1).flat();
    expect(drawn.length / 2_000).toBeCloseTo(0.2, 1);
    expect(new Set(drawn.map((one) => one.do))).toEqual(new Set(MISBEHAVIOURS));
    const some = new Chaos({ seed: 1, rate: 1, only: ['stutter'] }, 1);
    expect(some.draw()).toEqual([{ do: 'stutter', ms: 800 }]);
  });

  it('plays the same conversation the same way twice, and leaves nothing running', async () => {
    const play = async () => {
      stage = await Stage.open({
        texts: [{ contains: 'go', say: ANSWER, call }],
        chaos: { seed: 11, rate: 0.7 },
      });
      const seen: unknown[] = [];
      for (let connection = 0; connection < 3; connection += 1) {
        const client = await stage.connect(declare(['look_up']));
        for (let turn = 0; turn < 4 && client.closes.length === 0; turn += 1) {
          client.session.sendRealtimeInput({ text: 'go' });
          await passes(20_000);
        }
        seen.push(order(client.messages), [...client.closes], saidBy(client.messages));
        client.session.close();
      }
      return seen;
    };
    const first = await play();
    await stage.close();
    expect(await play()).toEqual(first);
  });
});
