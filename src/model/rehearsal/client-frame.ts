/**
 * Reads what a client of the Live protocol sends, as strictly as the real service: one known key a frame, no unknown
 * fields, and a refusal whose text goes into the close frame. Says what was sent, decides nothing.
 */
import { z } from 'zod';

const content = z.object({
  role: z.string().optional(),
  parts: z.array(z.object({ text: z.string().optional() })).optional(),
});
const activityDetection = z.looseObject({
  disabled: z.boolean().optional(),
  silenceDurationMs: z.number().int().nonnegative().optional(),
  prefixPaddingMs: z.number().int().nonnegative().optional(),
});
const empty = z.looseObject({});

/** The fields of `setup` that the service knows; what is inside those that do not concern it is not looked at. */
const setupSchema = z.strictObject({
  model: z.string().min(1),
  generationConfig: z
    .looseObject({
      speechConfig: z
        .looseObject({
          voiceConfig: z
            .looseObject({
              prebuiltVoiceConfig: z.looseObject({ voiceName: z.string().optional() }).optional(),
            })
            .optional(),
        })
        .optional(),
    })
    .optional(),
  systemInstruction: content.optional(),
  tools: z
    .array(z.looseObject({ functionDeclarations: z.array(z.looseObject({ name: z.string() })).optional() }))
    .optional(),
  realtimeInputConfig: z
    .looseObject({
      automaticActivityDetection: activityDetection.optional(),
      activityHandling: z.string().optional(),
    })
    .optional(),
  inputAudioTranscription: empty.optional(),
  outputAudioTranscription: empty.optional(),
  sessionResumption: z.looseObject({ handle: z.string().optional() }).optional(),
  contextWindowCompression: empty.optional(),
  proactivity: empty.optional(),
  historyConfig: empty.optional(),
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
const frameSchema = z.strictObject({
  setup: setupSchema.optional(),
  clientContent: z
    .strictObject({ turns: z.array(content).optional(), turnComplete: z.boolean().optional() })
    .optional(),
  realtimeInput: realtimeInputSchema.optional(),
  toolResponse: z
    .strictObject({ functionResponses: z.array(z.looseObject({ id: z.string().optional() })).optional() })
    .optional(),
  contextUpdate: empty.optional(),
});

export type LiveSetupFrame = z.infer<typeof setupSchema>;
export type RealtimeInputFrame = z.infer<typeof realtimeInputSchema>;
export type ClientFrame = z.infer<typeof frameSchema>;

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
