/**
 * The fields of a `GenerateContentRequest`, as `@google/genai` 2.32.0 writes them for the Developer API and for Vertex;
 * a field that only one of the two has passes for both. What is inside a field that does not concern a rehearsal is
 * not looked at.
 */
import type { ProtoField, ProtoFields } from './proto-json.js';

const STRING: ProtoField = { kind: 'string' };
const NUMBER: ProtoField = { kind: 'number' };
const INTEGER: ProtoField = { kind: 'integer' };
const BOOL: ProtoField = { kind: 'bool' };
const STRUCT: ProtoField = { kind: 'struct' };
const ANY: ProtoField = { kind: 'any' };
const list = (of: ProtoField): ProtoField => ({ kind: 'list', of });
const message = (fields: ProtoFields): ProtoField => ({ kind: 'message', fields: () => fields });
const enumeration = (name: string, values?: readonly string[]): ProtoField => {
  const type = `google.ai.generativelanguage.v1beta.${name}`;
  return values === undefined ? { kind: 'enum', type } : { kind: 'enum', type, values };
};

const SCHEMA_TYPES = [
  'TYPE_UNSPECIFIED',
  'STRING',
  'NUMBER',
  'INTEGER',
  'BOOLEAN',
  'ARRAY',
  'OBJECT',
  'NULL',
];
const CALLING_MODES = ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'];

const SCHEMA: ProtoField = { kind: 'message', fields: () => SCHEMA_FIELDS };
const SCHEMA_FIELDS: ProtoFields = {
  type: enumeration('Type', SCHEMA_TYPES),
  format: STRING,
  title: STRING,
  description: STRING,
  nullable: BOOL,
  enum: list(STRING),
  items: SCHEMA,
  maxItems: INTEGER,
  minItems: INTEGER,
  properties: { kind: 'map', of: SCHEMA },
  required: list(STRING),
  minProperties: INTEGER,
  maxProperties: INTEGER,
  minLength: INTEGER,
  maxLength: INTEGER,
  pattern: STRING,
  example: ANY,
  anyOf: list(SCHEMA),
  propertyOrdering: list(STRING),
  default: ANY,
  minimum: NUMBER,
  maximum: NUMBER,
};

const PART_FIELDS: ProtoFields = {
  text: STRING,
  thought: BOOL,
  thoughtSignature: STRING,
  inlineData: message({ mimeType: STRING, data: STRING, displayName: STRING }),
  fileData: message({ mimeType: STRING, fileUri: STRING, displayName: STRING }),
  functionCall: message({ id: STRING, name: STRING, args: STRUCT }),
  functionResponse: message({
    id: STRING,
    name: STRING,
    response: STRUCT,
    parts: list(STRUCT),
    willContinue: BOOL,
    scheduling: enumeration('FunctionResponse.Scheduling'),
  }),
  executableCode: STRUCT,
  codeExecutionResult: STRUCT,
  toolCall: STRUCT,
  toolResponse: STRUCT,
  videoMetadata: STRUCT,
  mediaResolution: ANY,
  audioTranscription: STRUCT,
  partMetadata: STRUCT,
  mediaProcessing: ANY,
  speechMetadata: STRUCT,
};
const CONTENT = message({ role: STRING, parts: list(message(PART_FIELDS)) });

const DECLARATION = message({
  name: STRING,
  description: STRING,
  behavior: enumeration('FunctionDeclaration.Behavior'),
  parameters: SCHEMA,
  parametersJsonSchema: ANY,
  response: SCHEMA,
  responseJsonSchema: ANY,
});
const TOOL = message({
  functionDeclarations: list(DECLARATION),
  googleSearch: STRUCT,
  googleSearchRetrieval: STRUCT,
  codeExecution: STRUCT,
  computerUse: STRUCT,
  urlContext: STRUCT,
  fileSearch: STRUCT,
  googleMaps: STRUCT,
  mcpServers: list(STRUCT),
  retrieval: STRUCT,
  enterpriseWebSearch: STRUCT,
  exaAiSearch: STRUCT,
  parallelAiSearch: STRUCT,
});

const GENERATION_CONFIG = message({
  temperature: NUMBER,
  topP: NUMBER,
  topK: NUMBER,
  candidateCount: INTEGER,
  maxOutputTokens: INTEGER,
  stopSequences: list(STRING),
  responseLogprobs: BOOL,
  logprobs: INTEGER,
  presencePenalty: NUMBER,
  frequencyPenalty: NUMBER,
  seed: INTEGER,
  responseMimeType: STRING,
  responseSchema: SCHEMA,
  responseJsonSchema: ANY,
  responseModalities: list(enumeration('GenerationConfig.Modality')),
  mediaResolution: enumeration('GenerationConfig.MediaResolution'),
  speechConfig: STRUCT,
  thinkingConfig: message({
    includeThoughts: BOOL,
    thinkingBudget: INTEGER,
    thinkingLevel: enumeration('ThinkingConfig.ThinkingLevel'),
  }),
  audioTranscriptionConfig: STRUCT,
  imageConfig: STRUCT,
  enableEnhancedCivicAnswers: BOOL,
  routingConfig: STRUCT,
  modelConfig: STRUCT,
  audioTimestamp: BOOL,
});

export const GENERATE_REQUEST_FIELDS: ProtoFields = {
  model: STRING,
  contents: list(CONTENT),
  systemInstruction: CONTENT,
  tools: list(TOOL),
  toolConfig: message({
    functionCallingConfig: message({
      mode: enumeration('FunctionCallingConfig.Mode', CALLING_MODES),
      allowedFunctionNames: list(STRING),
      streamFunctionCallArguments: BOOL,
    }),
    retrievalConfig: STRUCT,
    includeServerSideToolInvocations: BOOL,
  }),
  safetySettings: list(
    message({
      category: enumeration('HarmCategory'),
      threshold: enumeration('SafetySetting.HarmBlockThreshold'),
      method: enumeration('SafetySetting.HarmBlockMethod'),
    }),
  ),
  generationConfig: GENERATION_CONFIG,
  cachedContent: STRING,
  labels: { kind: 'map', of: STRING },
  serviceTier: enumeration('ServiceTier'),
  store: BOOL,
  continuationToken: ANY,
  modelArmorConfig: STRUCT,
  outputConfig: STRUCT,
};
