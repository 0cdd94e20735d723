/**
 * Reads what a client of the Live protocol sends, as strictly as the real service: one known key a frame, no unknown
 * fields, and a refusal whose text goes into the close frame. Says what was sent, decides nothing.
 */
import { z } from 'zod';

const part = z.strictObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  inlineData: z.looseObject({ mimeType: z.string(), data: z.string() }).optional(),
  fileData: z.looseObject({}).optional(),
  functionCall: z.looseObject({ name: z.string() }).optional(),
  functionResponse: z.looseObject({ name: z.string() }).optional(),
  videoMetadata: z.looseObject({}).optional(),
});
const content = z.strictObject({ role: z.string().optional(), parts: z.array(part).optional() });
/** A proto3 int64 is a string in JSON; a number is taken too. */
const int64 = z.union([z.string().regex(/^\d{1,18}$/), z.number().int().nonnegative()]);
const empty = z.looseObject({});

const functionDeclaration = z.looseObject({
  name: z.string().regex(/^[a-zA-Z_][\w.:-]{0,127}$/),
  description: z.string().optional(),
  behavior: z.enum(['UNSPECIFIED', 'BLOCKING', 'NON_BLOCKING']).optional(),
  parameters: empty.optional(),
  parametersJsonSchema: z.unknown().optional(),
});
const tools = z.array(z.looseObject({ functionDeclarations: z.array(functionDeclaration).optional() }));

const generationConfig = z.looseObject({
  responseModalities: z.array(z.enum(['TEXT', 'AUDIO', 'IMAGE', 'VIDEO'])).optional(),
  speechConfig: z
    .looseObject({
      voiceConfig: z
        .looseObject({ prebuiltVoiceConfig: z.looseObject({ voiceName: z.string().optional() }).optional() })
        .optional(),
      languageCode: z.string().optional(),
    })
    .optional(),
  thinkingConfig: z
    .looseObject({ thinkingLevel: z.string().optional(), thinkingBudget: z.number().optional() })
    .optional(),
  enableAffectiveDialog: z.boolean().optional(),
  temperature: z.number().min(0).max(2).optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  maxOutputTokens: z.number().int().positive().optional(),
  seed: z.number().int().optional(),
  mediaResolution: z.string().optional(),
});

const sensitivity = (edge: 'START' | 'END') =>
  z.enum([`${edge}_SENSITIVITY_UNSPECIFIED`, `${edge}_SENSITIVITY_HIGH`, `${edge}_SENSITIVITY_LOW`]);
const realtimeInputConfig = z.strictObject({
  automaticActivityDetection: z
    .strictObject({
      disabled: z.boolean().optional(),
      startOfSpeechSensitivity: sensitivity('START').optional(),
      endOfSpeechSensitivity: sensitivity('END').optional(),
      silenceDurationMs: z.number().int().nonnegative().optional(),
      prefixPaddingMs: z.number().int().nonnegative().optional(),
    })
    .optional(),
  activityHandling: z
    .enum(['ACTIVITY_HANDLING_UNSPECIFIED', 'START_OF_ACTIVITY_INTERRUPTS', 'NO_INTERRUPTION'])
    .optional(),
  turnCoverage: z
    .enum([
      'TURN_COVERAGE_UNSPECIFIED',
      'TURN_INCLUDES_ONLY_ACTIVITY',
      'TURN_INCLUDES_ALL_INPUT',
      'TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO',
    ])
    .optional(),
});

/** The fields of `setup` that the service knows; what is inside those that do not concern it is not looked at. */
const setupSchema = z.strictObject({
  model: z.string().min(1),
  generationConfig: generationConfig.optional(),
  systemInstruction: content.optional(),
  tools: tools.optional(),
  realtimeInputConfig: realtimeInputConfig.optional(),
  inputAudioTranscription: empty.optional(),
  outputAudioTranscription: empty.optional(),
  sessionResumption: z
    .strictObject({ handle: z.string().optional(), transparent: z.boolean().optional() })
    .optional(),
  contextWindowCompression: z
    .strictObject({
      triggerTokens: int64.optional(),
      slidingWindow: z.strictObject({ targetTokens: int64.optional() }).optional(),
    })
    .optional(),
  proactivity: z.looseObject({ proactiveAudio: z.boolean().optional() }).optional(),
  historyConfig: z.strictObject({ initialHistoryInClientContent: z.boolean().optional() }).optional(),
  explicitVadSignal: z.boolean().optional(),
  safetySettings: z.array(empty).optional(),
  translationConfig: empty.optional(),
  avatarConfig: empty.optional(),
  labels: empty.optional(),
});
const blob = z.strictObject({ mimeType: z.string(), data: z.string() });
const realtimeInputSchema = z.strictObject({
  audio: blob.optional(),
  video: blob.optional(),
  text: z.string().optional(),
  audioStreamEnd: z.boolean().optional(),
  activityStart: empty.optional(),
  activityEnd: empty.optional(),
});
const functionResponse = z.strictObject({
  id: z.string().optional(),
  name: z.string().optional(),
  response: z.record(z.string(), z.unknown()).optional(),
  scheduling: z.enum(['SCHEDULING_UNSPECIFIED', 'SILENT', 'WHEN_IDLE', 'INTERRUPT']).optional(),
  willContinue: z.boolean().optional(),
  parts: z.array(empty).optional(),
});
const frameSchema = z.strictObject({
  setup: setupSchema.optional(),
  clientContent: z
    .strictObject({ turns: z.array(content).optional(), turnComplete: z.boolean().optional() })
    .optional(),
  realtimeInput: realtimeInputSchema.optional(),
  toolResponse: z.strictObject({ functionResponses: z.array(functionResponse).optional() }).optional(),
  contextUpdate: z
    .strictObject({
      systemInstruction: content.optional(),
      tools: z.strictObject({ tools: tools.optional() }).optional(),
    })
    .optional(),
});

export type LiveSetupFrame = z.infer<typeof setupSchema>;
export type RealtimeInputFrame = z.infer<typeof realtimeInputSchema>;
export type ClientContentFrame = NonNullable<ClientFrame['clientContent']>;
export type FunctionResponseFrame = z.infer<typeof functionResponse>;
export type ToolsFrame = z.infer<typeof tools>;
export type ClientFrame = z.infer<typeof frameSchema>;
type ContentFrame = z.infer<typeof content>;

/** The frame, or the reason for closing with 1007. */
export function readClientFrame(json: string): { frame: ClientFrame } | { refusal: string } {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { refusal: 'Invalid JSON payload received.' };
  }
  if (typeof value === 'object' && value !== null && hasMediaChunks(value)) {
    return { refusal: 'realtime_input.media_chunks is deprecated. Use audio, video, or text instead.' };
  }
  const parsed = frameSchema.safeParse(value);
  if (!parsed.success) return { refusal: refusalText(parsed.error) };
  const keys = Object.keys(parsed.data);
  if (keys.length !== 1) return { refusal: `Request must hold one message type, not ${keys.length}.` };
  return { frame: parsed.data };
}

/** The words of one content; pieces are apart by a space. */
export function textOfContent(from: ContentFrame | undefined): string {
  return from?.parts?.map(({ text }) => text ?? '').join(' ') ?? '';
}

/** Older SDKs' `sendRealtimeInput({ media })`. */
function hasMediaChunks(frame: object): boolean {
  const input: unknown = 'realtimeInput' in frame ? frame.realtimeInput : undefined;
  return typeof input === 'object' && input !== null && 'mediaChunks' in input;
}

/** In the words in which Google's JSON front end complains about a field. */
function refusalText(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'Invalid JSON payload received.';
  const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  const at = place.length === 0 ? '' : ` at '${place.join('').replace(/^\./, '')}'`;
  if (issue.code === 'unrecognized_keys') {
    return `Invalid JSON payload received. Unknown name "${issue.keys[0] ?? ''}"${at}: Cannot find field.`;
  }
  return `Invalid value${at}.`;
}
