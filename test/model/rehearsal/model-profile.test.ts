import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { MODEL_PROFILES, modelProfile } from '../../../src/model/rehearsal/model-profile.js';
import { answerToSetup, count, eventually, order } from './rehearsal-client.js';
import { saidBy, Stage } from './rehearsal-stage.js';

let stage: Stage;
afterEach(() => stage.close());

async function answerTo(profile: unknown, setup: object): Promise<string> {
  stage = await Stage.open({ profile });
  return answerToSetup(stage.service.url, { model: 'models/gemini-3.8-live', ...setup });
}
const TAKEN = '{"setupComplete":{"sessionId":"rehearsal-session-1"}}';
const generation = (generationConfig: object) => ({ generationConfig });

describe('a profile', () => {
  it('is a row of the table, the row of 3.8 unless another is named, or a row with changes', async () => {
    stage = await Stage.open({});
    expect(modelProfile()).toBe(MODEL_PROFILES['3.8']);
    expect(modelProfile('2.5')).toBe(MODEL_PROFILES['2.5']);
    expect(modelProfile({ like: '3.1', turnCompletes: 2 })).toEqual({
      ...MODEL_PROFILES['3.1'],
      turnCompletes: 2,
    });
    expect(modelProfile({ messages: 'single' })).toEqual({ ...MODEL_PROFILES['3.8'], messages: 'single' });
  });
});

describe('setup is refused as the model refuses it', () => {
  it.each([
    ['3.8', generation({ thinkingConfig: { thinkingLevel: 'LOW' } }), /^1007 Thinking config/],
    ['3.8', generation({ enableAffectiveDialog: true }), /^1007 Affective/],
    ['3.8', { proactivity: { proactiveAudio: false } }, /^1007 Proactive/],
    ['3.8', generation({ responseModalities: ['TEXT'] }), /^1007 .*TEXT/],
    ['3.8', generation({ responseMimeType: 'a/b' }), /^1007 .*responseMimeType/],
    ['3.8', { tools: [{ codeExecution: {} }] }, /^1007 .*codeExecution/],
    ['3.8', { tools: [{ functionDeclarations: [{ name: 'a' }, { name: 'a' }] }] }, /^1007 Duplicate/],
    [
      '3.8',
      { tools: [{ functionDeclarations: [{ name: '1 a' }] }] },
      /^1007 Invalid value at 'setup\.tools\[0\]/,
    ],
    ['3.8', { sessionResumption: { transparent: true } }, /^1007 Transparent/],
    ['3.8', { explicitVadSignal: true }, /^1007 Explicit/],
    ['3.8', { model: 'models/gemini-2.5-flash' }, /^1008 .*is not found for API version/],
    ['extended-thinking', {}, /^1007 Thinking level/],
    ['3.1', { proactivity: { proactiveAudio: true } }, /^1007 Proactive/],
  ])('%s: %j', async (profile, setup, answer) => {
    expect(await answerTo(profile, setup)).toMatch(answer);
  });

  it.each([
    ['3.8', { proactivity: { proactiveAudio: true } }],
    [{ vertexFields: 'optional' }, { explicitVadSignal: true, sessionResumption: { transparent: true } }],
    ['extended-thinking', generation({ thinkingConfig: { thinkingLevel: 'LOW' } })],
    ['extended-thinking', { model: 'models/rehearsal' }],
    ['2.5', generation({ thinkingConfig: { thinkingBudget: 0 }, enableAffectiveDialog: true })],
    [
      '3.8',
      {
        ...generation({
          responseModalities: ['AUDIO'],
          temperature: 1,
          mediaResolution: 'MEDIA_RESOLUTION_LOW',
        }),
        systemInstruction: { role: 'user', parts: [{ text: 'x' }] },
        tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: 'a', behavior: 'BLOCKING' }] }],
        realtimeInputConfig: {
          automaticActivityDetection: {
            startOfSpeechSensitivity: 'START_SENSITIVITY_LOW',
            silenceDurationMs: 500,
          },
          activityHandling: 'NO_INTERRUPTION',
          turnCoverage: 'TURN_INCLUDES_ONLY_ACTIVITY',
        },
        inputAudioTranscription: {},
        outputAudioTranscription: { languageCodes: ['en-US'] },
        contextWindowCompression: { triggerTokens: '25600', slidingWindow: { targetTokens: '12800' } },
        historyConfig: { initialHistoryInClientContent: true },
        safetySettings: [],
        labels: { a: 'b' },
      },
    ],
  ] as [unknown, object][])('and taken: %j: %j', async (profile, setup) => {
    expect(await answerTo(profile, setup)).toBe(TAKEN);
  });

  it.each([
    [[{ role: 'system', parts: [{ text: 'x' }] }], /valid role/],
    [[{ parts: [{ text: 'x' }] }], /valid role/],
  ])('and content: %j', async (turns, reason) => {
    stage = await Stage.open({});
    const client = await stage.connect();
    client.session.conn.send(JSON.stringify({ clientContent: { turns } }));
    await eventually(() => client.closes.length === 1);
    expect(client.closes[0]).toMatchObject({ code: 1007, reason: expect.stringMatching(reason) });
  });
});

describe('messages', () => {
  it('are bundled on 3.1: the last sound, its words, and the end in one, before it has been heard', async () => {
    stage = await Stage.open({ profile: '3.1' });
    const client = await stage.connect({}, 'rehearsal');
    const messages = await stage.say(client, 'Hello?');
    const { serverContent, usageMetadata } = messages.at(-1) ?? {};
    expect(serverContent).toMatchObject({ generationComplete: true, turnComplete: true });
    expect(serverContent?.modelTurn?.parts?.[0]?.inlineData).toBeDefined();
    expect(serverContent?.outputTranscription?.text).toBeDefined();
    expect(usageMetadata).toBeDefined();
    expect(saidBy(messages)).toBe('Other.');
    // The caller cuts in on what is still being heard: the turn does not complete twice.
    const cut = await stage.say(client, 'Hello again?');
    expect(order(cut).join(' ')).toMatch(/^interrupted audio/);
    expect(count(client.messages, 'turnComplete')).toBe(2);
    client.session.close();
  });

  it('hold one part each on 2.5', async () => {
    stage = await Stage.open({ profile: '2.5' });
    const client = await stage.connect();
    const messages = await stage.say(client, 'Hello?');
    await eventually(() => client.messages.some(({ usageMetadata }) => usageMetadata !== undefined));
    const contents = [...messages, client.messages.at(-1)].map((message) =>
      Object.keys({ ...message?.serverContent, ...(message?.usageMetadata && { usage: 1 }) }),
    );
    expect(contents.filter((keys) => keys.length > 1)).toEqual([]);
    client.session.close();
  });

  it('are several turnCompletes on extended thinking, of which only the last says IDLE', async () => {
    stage = await Stage.open({
      profile: 'extended-thinking',
      texts: [{ contains: 'hi', say: 'Yes.', thought: 'Hm.' }],
    });
    const client = await stage.connect({}, 'rehearsal');
    client.session.sendRealtimeInput({ text: 'hi' });
    await stage.until(() => count(client.messages, 'turnComplete') === 3);
    const contents = client.messages.flatMap(({ serverContent }) => serverContent ?? []);
    const status = contents.flatMap(({ interactionStatus }) => interactionStatus ?? []);
    expect(status).toEqual(['IN_PROGRESS', 'IN_PROGRESS', 'IDLE']);
    const thoughts = contents
      .flatMap(({ modelTurn }) => modelTurn?.parts ?? [])
      .filter(({ thought }) => thought);
    expect(thoughts).toEqual([{ text: 'Hm.', thought: true }]);
    client.session.close();
  });
});

describe('history', () => {
  it('is seeded without an answer until its turnComplete', async () => {
    stage = await Stage.open({});
    const client = await stage.connect();
    client.session.close();
    const webSocket = new WebSocket(`${stage.service.url.replace('http', 'ws')}/x.BidiGenerateContent?key=k`);
    const received: string[] = [];
    webSocket.on('message', (data: Buffer) => received.push(data.toString()));
    await once(webSocket, 'open');
    const setup = { model: 'models/rehearsal', historyConfig: { initialHistoryInClientContent: true } };
    const turns = [
      { role: 'user', parts: [{ text: 'Hi.' }] },
      { role: 'model', parts: [{ text: 'Hello.' }] },
    ];
    for (const frame of [{ setup }, { clientContent: { turns, turnComplete: true } }])
      webSocket.send(JSON.stringify(frame));
    webSocket.send(JSON.stringify({ realtimeInput: { text: 'And now?' } }));
    await stage.until(() => received.some((json) => json.includes('turnComplete')));
    expect(received.filter((json) => json.includes('turnComplete'))).toHaveLength(1);
    webSocket.terminate();
  });
});

describe('pictures', () => {
  it('are taken and paid for, other video is refused', async () => {
    stage = await Stage.open({});
    const client = await stage.connect();
    client.session.sendRealtimeInput({ video: { mimeType: 'image/jpeg', data: '' } });
    const messages = await stage.say(client, 'Hello?');
    const details = messages.flatMap(({ usageMetadata }) => usageMetadata?.promptTokensDetails ?? []);
    expect(details.map(({ modality }) => modality)).toContain('VIDEO');
    const film = { mimeType: 'video/mp4', data: '' };
    client.session.conn.send(JSON.stringify({ realtimeInput: { video: film } }));
    await eventually(() => client.closes.length === 1);
    expect(client.closes[0]?.code).toBe(1007);
  });
});
