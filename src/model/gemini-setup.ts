/**
 * The setup of one Gemini Live connection, built from what the agent wants and what the model takes. It promises a
 * fresh object each time, sharing nothing with the agent's own: the SDK rewrites what it is given.
 */
import {
  Behavior,
  Modality,
  ThinkingLevel,
  type FunctionDeclaration as SdkFunctionDeclaration,
  type LiveConnectConfig,
  type SpeechConfig,
} from '@google/genai';
import type { FunctionDeclaration, LiveSetup } from './live-connection.js';
import type { ModelCapabilities } from './model-capabilities.js';

/**
 * Every turn bills the whole context again, audio as audio, so the window is kept far below the model's 131,072
 * tokens. Sound is 25 to 32 tokens a second and the caller's never stops: 32,000 tokens are about 15 minutes of a call,
 * and what is kept is about the last seven. The instruction always stays. Compression also lifts the 15-minute limit
 * on audio sessions (ai.google.dev/gemini-api/docs/live-session). Strings, because the wire's int64 is one in JSON.
 */
const COMPRESSION_TRIGGER_TOKENS = '32000';
const COMPRESSION_TARGET_TOKENS = '16000';

/** The config of one connect; both transcriptions, compression and resumption are always asked for. */
export function buildLiveConnectConfig(setup: LiveSetup, capabilities: ModelCapabilities): LiveConnectConfig {
  const config: LiveConnectConfig = {
    responseModalities: [Modality.AUDIO],
    inputAudioTranscription: {},
    outputAudioTranscription: {},
    contextWindowCompression: {
      triggerTokens: COMPRESSION_TRIGGER_TOKENS,
      slidingWindow: { targetTokens: COMPRESSION_TARGET_TOKENS },
    },
    sessionResumption: setup.resumptionHandle === undefined ? {} : { handle: setup.resumptionHandle },
  };
  const instruction = instructionText(setup, capabilities);
  if (instruction !== '') config.systemInstruction = { role: 'user', parts: [{ text: instruction }] };
  const speechConfig = buildSpeechConfig(setup, capabilities);
  if (speechConfig !== undefined) config.speechConfig = speechConfig;
  const { thinking } = capabilities;
  if (thinking !== undefined) {
    config.thinkingConfig =
      'budget' in thinking ? { thinkingBudget: thinking.budget } : { thinkingLevel: ThinkingLevel.LOW };
  }
  if (setup.functionDeclarations.length > 0) {
    config.tools = [
      { functionDeclarations: setup.functionDeclarations.map((one) => declareFunction(one, capabilities)) },
    ];
  }
  return config;
}

function heedsLanguageCode(capabilities: ModelCapabilities): boolean {
  return !capabilities.refusedSetupFields.includes('languageCode');
}

/** A model that takes no language code is told its language in words. */
function instructionText(setup: LiveSetup, capabilities: ModelCapabilities): string {
  const { instruction, languageCode } = setup;
  if (languageCode === undefined || heedsLanguageCode(capabilities)) return instruction;
  const sentence = `Speak ${languageName(languageCode)} unless the caller asks for another language.`;
  return instruction === '' ? sentence : `${instruction}\n\n${sentence}`;
}

/** `en-US` becomes `American English (en-US)`; a code that Intl does not know stays as it is. */
function languageName(languageCode: string): string {
  try {
    const name = new Intl.DisplayNames(['en'], { type: 'language' }).of(languageCode);
    return name === undefined || name === languageCode ? languageCode : `${name} (${languageCode})`;
  } catch {
    return languageCode;
  }
}

function buildSpeechConfig(setup: LiveSetup, capabilities: ModelCapabilities): SpeechConfig | undefined {
  const speechConfig: SpeechConfig = {};
  if (setup.voice !== undefined) {
    speechConfig.voiceConfig = { prebuiltVoiceConfig: { voiceName: setup.voice } };
  }
  if (setup.languageCode !== undefined && heedsLanguageCode(capabilities)) {
    speechConfig.languageCode = setup.languageCode;
  }
  return Object.keys(speechConfig).length === 0 ? undefined : speechConfig;
}

function declareFunction(
  declaration: FunctionDeclaration,
  capabilities: ModelCapabilities,
): SdkFunctionDeclaration {
  const declared: SdkFunctionDeclaration = { name: declaration.name, description: declaration.description };
  if (capabilities.declaresToolBehavior) {
    declared.behavior = capabilities.toolBehavior === 'BLOCKING' ? Behavior.BLOCKING : Behavior.NON_BLOCKING;
  }
  const schema = structuredClone(declaration.parametersJsonSchema) as Record<string, unknown>;
  if (capabilities.functionSchema === 'parameters') {
    // With `$schema` in it the SDK would move the schema to `parametersJsonSchema` again.
    delete schema['$schema'];
    declared.parameters = schema;
  } else {
    declared.parametersJsonSchema = schema;
  }
  return declared;
}
