import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildLiveConnectConfig } from '../../src/model/gemini-setup.js';
import { bareModelName, modelCapabilities } from '../../src/model/model-capabilities.js';
import type { LiveSetup } from '../../src/model/live-connection.js';
import type { JsonObject } from '../support/scripted-gemini.js';
import { GeminiFixture } from './gemini-fixture.js';

const MODELS = [
  'gemini-3.8-live',
  'gemini-3.8-live-extended-thinking',
  'gemini-3.1-flash-live-preview',
  'gemini-2.5-flash-native-audio-preview-12-2025',
  'gemini-live-2.5-flash-native-audio',
  'gemini-9-live-of-tomorrow',
  'rehearsal',
];

const FULL_SETUP: LiveSetup = {
  agentName: 'support',
  instruction: 'You are a telephone agent.',
  voice: 'Kore',
  languageCode: 'de-DE',
  functionDeclarations: [
    {
      name: 'look_up_order',
      description: 'Finds an order.',
      parametersJsonSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { order_id: { type: 'string' } },
        required: ['order_id'],
        additionalProperties: false,
      },
    },
  ],
  resumptionHandle: 'handle-1',
};

describe('the setup frame', () => {
  let fixture: GeminiFixture;
  beforeEach(async () => {
    fixture = await GeminiFixture.start();
  });
  afterEach(() => fixture.stop());

  async function setupOf(modelName: string, setup: LiveSetup = FULL_SETUP): Promise<JsonObject> {
    const { peer } = await fixture.open({ modelName, setup });
    return peer.setup!;
  }

  it.each(MODELS)(
    'of %s asks for both transcriptions, compression, resumption and audio',
    async (modelName) => {
      const setup = await setupOf(modelName);
      expect(setup).toMatchObject({
        model: `models/${modelName}`,
        inputAudioTranscription: {},
        outputAudioTranscription: {},
        contextWindowCompression: { triggerTokens: '32000', slidingWindow: { targetTokens: '16000' } },
        sessionResumption: { handle: 'handle-1' },
      });
      const { generationConfig, systemInstruction } = setup as Record<string, JsonObject>;
      expect(generationConfig?.['responseModalities']).toEqual(['AUDIO']);
      expect(generationConfig?.['speechConfig']).toMatchObject({
        voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } },
      });
      expect(JSON.stringify(systemInstruction)).toContain('You are a telephone agent.');
    },
  );

  it.each(MODELS)('of %s holds no field that the model refuses', async (modelName) => {
    const setup = JSON.stringify(await setupOf(modelName));
    const { refusedSetupFields } = modelCapabilities(modelName);
    expect(refusedSetupFields.length).toBeGreaterThan(0);
    for (const field of refusedSetupFields) expect(setup).not.toContain(`"${field}"`);
  });

  it.each(MODELS)('of %s gives the language one way or the other', async (modelName) => {
    const setup = JSON.stringify(await setupOf(modelName));
    expect(setup).toMatch(/"languageCode":"de-DE"|Speak German \(Germany\) \(de-DE\)/);
  });

  it.each([
    ['gemini-3.8-live', 'NON_BLOCKING', undefined],
    ['gemini-3.8-live-extended-thinking', 'NON_BLOCKING', { thinkingLevel: 'LOW' }],
    ['gemini-3.1-flash-live-preview', undefined, undefined],
    ['gemini-2.5-flash-native-audio-preview-12-2025', 'BLOCKING', { thinkingBudget: 0 }],
    ['gemini-live-2.5-flash-native-audio', 'BLOCKING', undefined],
    ['gemini-9-live-of-tomorrow', undefined, undefined],
  ])('of %s declares tools as %s and thinking as %j', async (modelName, behavior, thinkingConfig) => {
    const setup = await setupOf(modelName);
    const [tool] = setup['tools'] as { functionDeclarations: JsonObject[] }[];
    expect(tool?.functionDeclarations[0]?.['behavior']).toBe(behavior);
    expect((setup['generationConfig'] as JsonObject)['thinkingConfig']).toEqual(thinkingConfig);
  });

  it('gives extended thinking an OpenAPI schema, the others JSON schema as it stands', async () => {
    const schemas = await Promise.all(
      ['gemini-3.8-live-extended-thinking', 'gemini-3.8-live'].map(async (modelName) => {
        const [tool] = (await setupOf(modelName))['tools'] as { functionDeclarations: JsonObject[] }[];
        return tool?.functionDeclarations[0];
      }),
    );
    expect(schemas[0]?.['parameters']).toEqual({
      type: 'OBJECT',
      properties: { order_id: { type: 'STRING' } },
      required: ['order_id'],
    });
    expect(schemas[0]).not.toHaveProperty('parametersJsonSchema');
    expect(schemas[1]?.['parametersJsonSchema']).toEqual(
      FULL_SETUP.functionDeclarations[0]?.parametersJsonSchema,
    );
    expect(schemas[1]).not.toHaveProperty('parameters');
  });

  it('leaves out what the agent does not say, and asks for handles all the same', async () => {
    const bare = { instruction: '', voice: undefined, languageCode: undefined, functionDeclarations: [] };
    const { peer } = await fixture.open({ setup: bare });
    expect(peer.setup).not.toHaveProperty('tools');
    expect(peer.setup).not.toHaveProperty('systemInstruction');
    expect(peer.setup?.['generationConfig']).toEqual({ responseModalities: ['AUDIO'] });
    expect(peer.setup?.['sessionResumption']).toEqual({});
  });

  it('is built afresh for each connect: the SDK changes nothing that is ours', async () => {
    const before = JSON.stringify(FULL_SETUP);
    for (const modelName of MODELS) {
      const first = await setupOf(modelName);
      expect(await setupOf(modelName)).toEqual(first);
    }
    expect(JSON.stringify(FULL_SETUP)).toBe(before);
    const capabilities = modelCapabilities('gemini-3.8-live');
    expect(buildLiveConnectConfig(FULL_SETUP, capabilities)).not.toBe(
      buildLiveConnectConfig(FULL_SETUP, capabilities),
    );
  });

  it('survives a language code that nobody knows', () => {
    const setup = { ...FULL_SETUP, languageCode: 'not a code' };
    const config = buildLiveConnectConfig(setup, modelCapabilities('gemini-3.8-live'));
    expect(JSON.stringify(config.systemInstruction)).toContain('Speak not a code unless');
  });
});

describe('the capability table', () => {
  it.each([
    ['gemini-3.8-live', 'gemini-3.8-live'],
    ['models/gemini-3.8-live', 'gemini-3.8-live'],
    ['publishers/google/models/gemini-3.8-live', 'gemini-3.8-live'],
    ['gemini-3.8-live-001', 'gemini-3.8-live'],
    ['gemini-3.8-live-extended-thinking', 'gemini-3.8-live-extended-thinking'],
    ['gemini-3.8-live-extended-thinking-002', 'gemini-3.8-live-extended-thinking'],
    ['gemini-3.1-flash-live-preview', 'gemini-3.1-flash-live'],
    ['gemini-2.5-flash-native-audio-preview-12-2025', 'gemini-2.5-flash-native-audio'],
    ['gemini-2.5-flash-native-audio-latest', 'gemini-2.5-flash-native-audio'],
    ['gemini-live-2.5-flash-native-audio', 'gemini-live-2.5-flash-native-audio'],
    ['rehearsal', 'rehearsal'],
    ['gemini-3.8-lively', 'unknown'],
    ['gemini-3.8', 'unknown'],
    ['gemini-2.5-flash', 'unknown'],
    ['', 'unknown'],
  ])('finds %j in row %s', (modelName, family) => {
    expect(modelCapabilities(modelName).family).toBe(family);
  });

  it('lets audio flow during tools exactly where no tool blocks, and to the stand-in', () => {
    expect(modelCapabilities('rehearsal').audioDuringBlockingTools).toBe(true);
    for (const modelName of MODELS.filter((name) => name !== 'rehearsal')) {
      const { toolBehavior, audioDuringBlockingTools } = modelCapabilities(modelName);
      expect(audioDuringBlockingTools).toBe(toolBehavior === 'NON_BLOCKING');
    }
  });

  it('schedules responses only where no tool blocks, and not on Vertex', () => {
    for (const modelName of MODELS) {
      const { toolBehavior, responseScheduling } = modelCapabilities(modelName);
      expect(responseScheduling).toBe(toolBehavior === 'NON_BLOCKING');
      expect(modelCapabilities(modelName, 'vertex').responseScheduling).toBe(false);
    }
  });

  it('sends no realtime text to Vertex, which does not take it', () => {
    for (const modelName of MODELS) {
      expect(modelCapabilities(modelName, 'vertex').textInput).toBe('clientContent');
    }
    expect(modelCapabilities('gemini-3.1-flash-live-preview').textInput).toBe('realtimeInput');
  });

  it('asks for thinking only where the model takes it', () => {
    for (const modelName of MODELS) {
      const { thinking, refusedSetupFields } = modelCapabilities(modelName);
      expect(thinking !== undefined && refusedSetupFields.includes('thinkingConfig')).toBe(false);
    }
  });

  it('knows the bare name', () => {
    expect(bareModelName('models/gemini-3.8-live')).toBe('gemini-3.8-live');
    expect(bareModelName('gemini-3.8-live')).toBe('gemini-3.8-live');
  });
});
