/** Everything that the Live service can send, by the API reference and the SDK's types: each can be rehearsed. */
import { VoiceActivityType } from '@google/genai';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  REHEARSAL_OPEN_CALLS_MAX,
  REHEARSAL_TOOL_WAIT_MAX_MS,
} from '../../../src/model/rehearsal/rehearsal-limits.js';
import { OpenCalls } from '../../../src/model/rehearsal/open-calls.js';
import { type Log, silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { callerSound, type LiveTarget, LiveWire } from './live-wire.js';
import { count, settle } from './rehearsal-client.js';
import { callsIn, declare, saidBy, Stage } from './rehearsal-stage.js';

let stage: Stage;
afterEach(() => stage.close());

function target(): LiveTarget {
  return {
    origin: stage.service.url.replace('http', 'ws'),
    key: 'rehearsal',
    model: 'models/rehearsal',
    until: (condition) => stage.until(condition),
    async pace(ms) {
      stage.clock.advance(ms);
      await settle();
    },
  };
}

/** `a.b` for each field of the message, with those of objects in lists; values of enumerations as `a.b=VALUE`. */
function fieldsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => fieldsOf(one, path));
  if (typeof value === 'string' && /^[A-Z_]{4,}$/.test(value)) return [path, `${path}=${value}`];
  if (typeof value !== 'object' || value === null) return [path];
  const inside = Object.entries(value).flatMap(([key, one]) =>
    fieldsOf(one, path === '' ? key : `${path}.${key}`),
  );
  return path === '' ? inside : [path, ...inside];
}

const CONTENT = [
  'modelTurn.parts.text',
  'modelTurn.parts.thought',
  'modelTurn.parts.inlineData.data',
  'modelTurn.parts.inlineData.mimeType',
  'generationComplete',
  'turnComplete',
  'interrupted',
  'turnCompleteReason=RESPONSE_REJECTED',
  'turnCompleteReason=NEED_MORE_INPUT',
  'waitingForInput',
  'interactionStatus=IN_PROGRESS',
  'interactionStatus=IDLE',
  'interactionStatus=REQUIRES_ACTION',
  'groundingMetadata',
  'urlContextMetadata',
];
const TRANSCRIPTIONS = ['inputTranscription', 'interimInputTranscription', 'outputTranscription'];
const EVERYTHING = [
  'setupComplete.sessionId',
  ...CONTENT.map((field) => `serverContent.${field}`),
  ...TRANSCRIPTIONS.flatMap((name) => [
    `serverContent.${name}.text`,
    `serverContent.${name}.finished`,
    `serverContent.${name}.languageCode`,
  ]),
  'toolCall.functionCalls.id',
  'toolCall.functionCalls.name',
  'toolCall.functionCalls.args',
  'toolCallCancellation.ids',
  'goAway.timeLeft',
  'sessionResumptionUpdate.newHandle',
  'sessionResumptionUpdate.resumable',
  'sessionResumptionUpdate.lastConsumedClientMessageIndex',
  'usageMetadata.promptTokenCount',
  'usageMetadata.responseTokenCount',
  'usageMetadata.thoughtsTokenCount',
  'usageMetadata.toolUsePromptTokenCount',
  'usageMetadata.cachedContentTokenCount',
  'usageMetadata.totalTokenCount',
  'usageMetadata.promptTokensDetails.tokenCount',
  'usageMetadata.responseTokensDetails.tokenCount',
  'voiceActivity.voiceActivityType=ACTIVITY_START',
  'voiceActivity.voiceActivityType=ACTIVITY_END',
  'voiceActivity.audioOffset',
  'voiceActivityDetectionSignal.vadSignalType=VAD_SIGNAL_TYPE_SOS',
  'voiceActivityDetectionSignal.vadSignalType=VAD_SIGNAL_TYPE_EOS',
];

const transcription = { text: 'word', finished: true, languageCode: 'en-US' };
const WRITTEN = [
  { inputTranscription: transcription, outputTranscription: transcription },
  { interimInputTranscription: transcription, interactionStatus: 'REQUIRES_ACTION' },
  { groundingMetadata: { webSearchQueries: ['word'] } },
  { urlContextMetadata: { urlMetadata: [] } },
].map((serverContent) => ({ message: { serverContent } }));
const CALL = { name: 'look_up', args: { order: '1' }, thenSay: 'Found.' };
const TEXTS = [
  { contains: 'think', say: 'Thought of.', thought: 'A thought.' },
  { contains: 'look', say: 'I look.', call: CALL },
  { contains: 'write', say: 'Written.', messages: WRITTEN },
  {
    contains: 'bill',
    say: 'Billed.',
    messages: [{ message: { usageMetadata: { cachedContentTokenCount: 9 } } }],
  },
  { contains: 'reject', misbehave: [{ do: 'emptyTurn', reason: 'RESPONSE_REJECTED' }] },
  { contains: 'wait', misbehave: [{ do: 'waitForInput' }] },
  { contains: 'leave', say: 'Soon.', misbehave: [{ do: 'goAway', thenDrop: false }] },
];

describe('the rehearsal can send', () => {
  it('everything that a server message may hold', async () => {
    const profile = { like: '3.8', vertexFields: 'optional', turnCompletes: 2, interactionStatus: true };
    stage = await Stage.open({ profile, texts: TEXTS });
    const wire = await LiveWire.begin(target(), {
      ...(declare(['look_up']) as object),
      explicitVadSignal: true,
      sessionResumption: { transparent: true },
    });
    const ask = async (text: string, awaited = 'turnComplete') => {
      const from = wire.messages.length;
      wire.ask(text);
      await wire.since(from, () => count(wire.messages.slice(from), awaited) > 0);
      await stage.until(
        () => wire.messages.at(-1)?.sessionResumptionUpdate !== undefined || awaited !== 'turnComplete',
      );
    };
    for (const { contains } of TEXTS) await ask(contains);
    const [call] = callsIn(wire.messages);
    const response = { id: call?.id, name: 'look_up', response: { status: 'here' } };
    wire.send({ toolResponse: { functionResponses: [response] } });
    await ask('look', 'toolCall');
    await ask('other', 'interrupted');
    await wire.speak(callerSound('order-question', 26_000, 31_500));
    await wire.since(
      0,
      ({ voiceActivity }) => voiceActivity?.voiceActivityType === VoiceActivityType.ACTIVITY_END,
    );
    const sent = new Set(wire.messages.flatMap((message) => fieldsOf(message)));
    expect(EVERYTHING.filter((field) => !sent.has(field))).toEqual([]);
    await wire.close();
  });

  it('a message where it belongs, once, though the turn speaks again about a result', async () => {
    const messages = [
      { at: 'afterSpeech', message: { serverContent: { groundingMetadata: {} } } },
      { at: 'afterTurnComplete', message: { voiceActivity: {} } },
    ];
    const results = [{ of: 'look_up', say: 'Found.', messages: [{ message: { goAway: {} } }] }];
    const texts = [{ contains: 'look', say: 'I look.', call: { name: 'look_up' }, messages }];
    stage = await Stage.open({ profile: { turnCompleteAwaitsTools: true }, texts, results });
    const client = await stage.connect(declare(['look_up']));
    const [call] = callsIn(await stage.say(client, 'look', 'toolCall'));
    const response = { id: call!.id!, name: 'look_up', response: {} };
    client.session.sendToolResponse({ functionResponses: [response] });
    await stage.until(() => client.messages.some(({ voiceActivity }) => voiceActivity !== undefined));
    const kinds = client.messages.flatMap((message) => {
      if (message.serverContent?.groundingMetadata !== undefined) return 'grounding';
      if (message.serverContent?.turnComplete === true) return 'turnComplete';
      return Object.keys(message).filter((key) => key !== 'serverContent' && key !== 'setupComplete');
    });
    expect(kinds).toEqual(['grounding', 'toolCall', 'goAway', 'turnComplete', 'voiceActivity']);
    expect(saidBy(client.messages)).toBe('I look. Found.');
    client.session.close();
  });
});

describe('the frames of a service', () => {
  async function kindsOf(changes: object, frames?: 'binary' | 'text' | 'mixed'): Promise<string> {
    stage = await Stage.open(changes, frames === undefined ? {} : { frames });
    const webSocket = new WebSocket(`${stage.service.url.replace('http', 'ws')}/x.BidiGenerateContent?key=k`);
    await once(webSocket, 'open');
    let kinds = '';
    let isDone = false;
    webSocket.on('message', (data, isBinary) => {
      kinds += isBinary ? 'b' : 't';
      isDone ||= (data as Buffer).includes('turnComplete');
    });
    webSocket.send('{"setup":{"model":"models/rehearsal","outputAudioTranscription":{}}}');
    webSocket.send('{"realtimeInput":{"text":"word for word: \\"A sentence of some length, in pieces.\\""}}');
    await stage.until(() => isDone);
    webSocket.terminate();
    await stage.close();
    return kinds;
  }

  it.each([
    [undefined, undefined, /^b+$/],
    [undefined, 'text', /^t+$/],
    ['text', undefined, /^t+$/],
    ['binary', 'text', /^b+$/],
    ['mixed', 'text', /tb|bt/],
    [undefined, 'mixed', /tb|bt/],
  ] as const)('are %s by the dialogue, %s by the service', async (ofDialogue, ofService, expected) => {
    const changes = ofDialogue === undefined ? {} : { frames: ofDialogue };
    const kinds = await kindsOf(changes, ofService);
    expect(kinds).toMatch(expected);
    expect(await kindsOf(changes, ofService)).toBe(kinds);
  });
});

describe('a call that is forgotten', () => {
  it('is told in the log; the turn goes on, and the newest can still be answered', async () => {
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_, message) => void warnings.push(message) };
    const calls = Array.from({ length: 8 }, () => ({ name: 'look_up', thenSay: 'Found.' }));
    const misbehave = [{ do: 'repeatCall', times: 5 }];
    stage = await Stage.open({ texts: [{ contains: 'look', say: 'I look.', calls, misbehave }] }, { log });
    const client = await stage.connect(declare(['look_up']));
    for (let turn = 0; turn < 2; turn += 1) await stage.say(client, 'look');
    const made = callsIn(client.messages);
    expect(made).toHaveLength(2 * 6 * 8);
    expect(warnings).toHaveLength(made.length - REHEARSAL_OPEN_CALLS_MAX);
    expect(new Set(warnings)).toEqual(new Set(['the rehearsal forgets a call that was not answered']));
    const answerTo = ({ id }: { id?: string | undefined } = {}) =>
      client.session.sendToolResponse({ functionResponses: [{ id: id!, name: 'look_up', response: {} }] });
    answerTo(made[0]);
    answerTo(made.at(-1));
    await stage.until(() => count(client.messages, 'turnComplete') === 3);
    expect(saidBy(client.messages)).toBe('I look.I look.Found.');
    client.session.close();
  });

  it.each([
    ['by number', 0, REHEARSAL_OPEN_CALLS_MAX],
    ['by age', REHEARSAL_TOOL_WAIT_MAX_MS + 1, 0],
  ])('is told once to whoever may wait for it: %s', (_, laterMs, more) => {
    const clock = new VirtualClock();
    const forgotten: string[] = [];
    const calls = new OpenCalls(clock, ({ id }) => void forgotten.push(id));
    const wish = { name: 'look_up', args: {}, at: 'end' } as const;
    const oldest = calls.open(wish, true, 0);
    clock.advance(laterMs);
    for (let n = 0; n < more; n += 1) calls.open(wish, true, 0);
    expect([calls.count, calls.count]).toEqual([more, more]);
    expect(forgotten).toEqual([oldest.id]);
    expect(calls.get(oldest.id)).toBeUndefined();
  });
});
