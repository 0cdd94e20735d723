/**
 * One server message at a time, from parsed JSON of unknown shape to calls of the listener. Newer models bundle
 * sound, transcription and completion in one message, so the order within it is fixed here: interrupted, sound,
 * transcriptions, completion, then tool calls and the rest. What is odd is reported and skipped, never thrown.
 */
import type { GeminiAudioDecoder } from './gemini-audio-decoder.js';
import type { FunctionCall, LiveListener, UsageMetadata } from './live-connection.js';
import type { ModelCapabilities } from './model-capabilities.js';

/** What was not as documented; a closed list, fit for a metric's label. */
export type GeminiOddity =
  | 'frame_not_json'
  | 'message_unknown'
  | 'audio_not_base64'
  | 'audio_other_format'
  | 'function_call_malformed'
  | 'listener_threw';

type JsonObject = Readonly<Record<string, unknown>>;

/** Top-level keys that are read here, or known and of no use on a phone line. */
const KNOWN_KEYS: ReadonlySet<string> = new Set([
  'setupComplete',
  'serverContent',
  'toolCall',
  'toolCallCancellation',
  'goAway',
  'sessionResumptionUpdate',
  'usageMetadata',
  'voiceActivity',
  'voiceActivityDetectionSignal',
]);

const MODALITIES: ReadonlySet<string> = new Set(['TEXT', 'AUDIO', 'IMAGE', 'VIDEO', 'DOCUMENT']);

const MODEL_SAMPLE_RATE = '24000';

/** Hears nothing: takes the listener's place once a connection is being closed. */
const DEAF_LISTENER: Omit<LiveListener, 'onClose'> = {
  onInterrupted() {},
  onAudio() {},
  onInputTranscription() {},
  onOutputTranscription() {},
  onGenerationComplete() {},
  onTurnComplete() {},
  onToolCall() {},
  onToolCallCancellation() {},
  onGoAway() {},
  onSessionResumptionUpdate() {},
  onUsageMetadata() {},
};

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Whole and exact: sums of such counts stay finite, which a metric's counter insists on. */
function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** protobuf's JSON of a duration, `"50s"` or `"1.5s"`, in milliseconds; 0 for anything else. */
export function parseDurationMs(value: unknown): number {
  const seconds = typeof value === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(value)?.[1] : undefined;
  return seconds === undefined ? 0 : Math.round(Number(seconds) * 1000);
}

/** Whether the sound is 24 kHz PCM16, as it always is unless told otherwise: `audio/pcm;rate=24000`. */
export function isModelPcm(mimeType: string): boolean {
  const [kind, ...parameters] = mimeType.toLowerCase().split(';');
  if (kind?.trim() !== 'audio/pcm') return false;
  const rate = parameters.map((one) => one.trim()).find((one) => one.startsWith('rate='));
  return rate === undefined || rate === `rate=${MODEL_SAMPLE_RATE}`;
}

/** Tokens by modality; a total that comes without details counts as MODALITY_UNSPECIFIED. */
function tokensByModality(details: unknown, total: unknown): Record<string, number> {
  const tokens: Record<string, number> = {};
  for (const detail of listOf(details)) {
    if (!isObject(detail) || count(detail['tokenCount']) === 0) continue;
    const { modality } = detail;
    const name = typeof modality === 'string' && MODALITIES.has(modality) ? modality : 'MODALITY_UNSPECIFIED';
    tokens[name] = (tokens[name] ?? 0) + count(detail['tokenCount']);
  }
  if (Object.keys(tokens).length === 0 && count(total) > 0) tokens['MODALITY_UNSPECIFIED'] = count(total);
  return tokens;
}

/** The Developer API says `response…`, Vertex on the wire `candidates…`. Thinking is billed as text output. */
function readUsage(usage: JsonObject): UsageMetadata {
  const responseTokens = tokensByModality(
    usage['responseTokensDetails'] ?? usage['candidatesTokensDetails'],
    usage['responseTokenCount'] ?? usage['candidatesTokenCount'],
  );
  const thoughts = count(usage['thoughtsTokenCount']);
  if (thoughts > 0) responseTokens['TEXT'] = (responseTokens['TEXT'] ?? 0) + thoughts;
  return {
    promptTokens: tokensByModality(usage['promptTokensDetails'], usage['promptTokenCount']),
    responseTokens,
    totalTokenCount: count(usage['totalTokenCount']),
  };
}

export interface GeminiMessageReaderOptions {
  readonly listener: Omit<LiveListener, 'onClose'>;
  readonly turnEnd: ModelCapabilities['turnEnd'];
  readonly audioDecoder: GeminiAudioDecoder;
  readonly reportOddity: (oddity: GeminiOddity) => void;
}

export class GeminiMessageReader {
  #listener: Omit<LiveListener, 'onClose'>;
  readonly #turnEnd: ModelCapabilities['turnEnd'];
  readonly #audioDecoder: GeminiAudioDecoder;
  readonly #reportOddity: (oddity: GeminiOddity) => void;
  /** The last MIME type seen to be 24 kHz PCM: the same string comes with every chunk. */
  #pcmMimeType = '';
  /** A `turnComplete` that waits for IDLE, and its reason. */
  #heldTurnComplete: { reason: string | undefined } | undefined;

  constructor(options: GeminiMessageReaderOptions) {
    this.#listener = options.listener;
    this.#turnEnd = options.turnEnd;
    this.#audioDecoder = options.audioDecoder;
    this.#reportOddity = options.reportOddity;
  }

  /** Calls the listener no more, not even from the rest of the message being read. */
  stop(): void {
    this.#listener = DEAF_LISTENER;
  }

  /** Reads one parsed message. Throws only what the listener throws. */
  read(message: unknown): void {
    if (!isObject(message) || !Object.keys(message).some((key) => KNOWN_KEYS.has(key))) {
      this.#reportOddity('message_unknown');
      return;
    }
    if (isObject(message['serverContent'])) this.#readServerContent(message['serverContent']);
    if (isObject(message['toolCall'])) this.#readToolCall(message['toolCall']);
    if (isObject(message['toolCallCancellation'])) {
      const ids = listOf(message['toolCallCancellation']['ids']).filter(isText);
      if (ids.length > 0) this.#listener.onToolCallCancellation(ids);
    }
    if (isObject(message['goAway'])) this.#listener.onGoAway(parseDurationMs(message['goAway']['timeLeft']));
    if (isObject(message['sessionResumptionUpdate'])) {
      const { newHandle, resumable } = message['sessionResumptionUpdate'];
      this.#listener.onSessionResumptionUpdate(isText(newHandle) ? newHandle : undefined, resumable === true);
    }
    if (isObject(message['usageMetadata'])) {
      this.#listener.onUsageMetadata(readUsage(message['usageMetadata']));
    }
  }

  /** Sound that was found without reading the message it came in. */
  readSound(pcm: Uint8Array): void {
    if (pcm.length > 0) this.#listener.onAudio(pcm);
  }

  #readServerContent(content: JsonObject): void {
    if (content['interrupted'] === true) this.#listener.onInterrupted();
    if (isObject(content['modelTurn'])) this.#readModelTurn(content['modelTurn']);
    const { inputTranscription, outputTranscription } = content;
    if (isObject(inputTranscription) && isText(inputTranscription['text'])) {
      this.#listener.onInputTranscription(inputTranscription['text']);
    }
    if (isObject(outputTranscription) && isText(outputTranscription['text'])) {
      this.#listener.onOutputTranscription(outputTranscription['text']);
    }
    if (content['generationComplete'] === true) this.#listener.onGenerationComplete();
    this.#readTurnComplete(content);
  }

  /** Only inline sound is speech: text parts are thoughts or tool talk, even in audio mode. */
  #readModelTurn(modelTurn: JsonObject): void {
    for (const part of listOf(modelTurn['parts'])) {
      if (!isObject(part) || !isObject(part['inlineData'])) continue;
      const { mimeType, data } = part['inlineData'];
      if (!isText(data)) continue;
      if (!this.#acceptsMimeType(mimeType)) {
        this.#reportOddity('audio_other_format');
        continue;
      }
      const pcm = this.#audioDecoder.decode(data);
      if (pcm === undefined) this.#reportOddity('audio_not_base64');
      else if (pcm.length > 0) this.#listener.onAudio(pcm);
    }
  }

  #acceptsMimeType(mimeType: unknown): boolean {
    if (mimeType === this.#pcmMimeType) return true;
    if (typeof mimeType !== 'string' || !isModelPcm(mimeType)) return false;
    this.#pcmMimeType = mimeType;
    return true;
  }

  #readTurnComplete(content: JsonObject): void {
    const complete = content['turnComplete'] === true;
    const status = content['interactionStatus'];
    if (!complete && (this.#heldTurnComplete === undefined || status !== 'IDLE')) return;
    const { turnCompleteReason } = content;
    const reason = isText(turnCompleteReason) ? turnCompleteReason : this.#heldTurnComplete?.reason;
    // A server that tells no status at all must not hold the turn open for ever.
    if (this.#turnEnd === 'interactionIdle' && status !== 'IDLE' && status !== undefined) {
      this.#heldTurnComplete = { reason };
      return;
    }
    this.#heldTurnComplete = undefined;
    this.#listener.onTurnComplete(reason);
  }

  #readToolCall(toolCall: JsonObject): void {
    const functionCalls: FunctionCall[] = [];
    for (const call of listOf(toolCall['functionCalls'])) {
      const read = functionCall(call);
      // Without an id there is no answering it: the SDK refuses such a response.
      if (read === undefined || read.unreadable !== undefined) this.#reportOddity('function_call_malformed');
      if (read !== undefined) functionCalls.push(read);
    }
    if (functionCalls.length > 0) this.#listener.onToolCall(functionCalls);
  }
}

/** A model waits for the answer of whatever has an id, so that it gets one in any case. */
function functionCall(call: unknown): FunctionCall | undefined {
  if (!isObject(call) || !isText(call['id'])) return undefined;
  const { id, name, args = null } = call;
  if (!isText(name)) return { id, name: 'unnamed', args: {}, unreadable: 'The call names no function.' };
  if (isObject(args)) return { id, name, args };
  if (args === null) return { id, name, args: {} };
  return { id, name, args: {}, unreadable: `The arguments of ${name} are no object.` };
}
