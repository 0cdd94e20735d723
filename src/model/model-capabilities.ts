/**
 * What each live model takes and refuses, by name: a setup field that a model does not know kills the call (close
 * code 1007), and a message it does not expect can too (1008). The rows of Google's models are Google's documents and
 * what others reported; each names its source. `docs/models.md` tells the same to operators.
 */

/** Optional fields of the setup message that some model refuses or does not heed. */
export type RefusableSetupField =
  'thinkingConfig' | 'languageCode' | 'proactivity' | 'enableAffectiveDialog' | 'historyConfig';

export interface ModelCapabilities {
  /** The row that was found, e.g. `gemini-3.8-live`; `unknown` for the safe set. */
  readonly family: string;
  /** How the model behaves while a function call is open, as this server sets it up. */
  readonly toolBehavior: 'BLOCKING' | 'NON_BLOCKING';
  /** Whether each function declaration states `behavior`, because the model takes the field. */
  readonly declaresToolBehavior: boolean;
  /** Whether caller audio may be sent while a function call is open; always true where no call blocks. */
  readonly audioDuringBlockingTools: boolean;
  /**
   * Whether a function response may state `scheduling`; it has a meaning only where calls do not block
   * (ai.google.dev/gemini-api/docs/live-api/tools). `willContinue`, the other field of such models, is sent to none: it
   * keeps the call open, and a model withdraws its open calls when the caller cuts in, so that every barge-in would end
   * a monitor. What follows the first response is told in a pause, as text.
   */
  readonly responseScheduling: boolean;
  /** Where a declaration's schema goes: as JSON schema, or as the OpenAPI subset that the SDK derives from it. */
  readonly functionSchema: 'parametersJsonSchema' | 'parameters';
  /** How text that wants an answer is sent. The greeting is asked for this way too: no model speaks first by itself
   * (github.com/googleapis/python-genai/issues/1533), and a bare "." yields an empty turn. */
  readonly textInput: 'clientContent' | 'realtimeInput';
  /** Whether pictures may be sent as `realtimeInput.video`. Every live model of Google's takes them
   * (ai.google.dev/gemini-api/docs/live-guide); of a name that is not known nobody can say. */
  readonly imageInput: boolean;
  /** The thinking that setup asks for; undefined leaves the field out. */
  readonly thinking: { readonly budget: 0 } | { readonly level: 'LOW' } | undefined;
  /** What ends a model turn: its `turnComplete`, or the one that comes with `interactionStatus` IDLE. */
  readonly turnEnd: 'turnComplete' | 'interactionIdle';
  /**
   * A way to add context that neither makes the model speak nor stops it. There is none that is safe today:
   * `clientContent` cuts off running speech, and with `turnComplete: false` the server waits for more before it
   * answers anybody; `realtimeInput.text` is a turn of its own; `contextUpdate` replaces the whole instruction and is
   * not confirmed on the Developer API. What the model must learn waits for the next tool response or text turn.
   */
  readonly silentContext: 'none';
  /** Setup must hold none of these. */
  readonly refusedSetupFields: readonly RefusableSetupField[];
}

/** Which of Google's two doors; they differ in what they take. */
export type GeminiService = 'developer' | 'vertex';

/** Never sent by this server: opt-in extras of single models, refused by most, and one that the SDK drops. */
const EXTRAS: readonly RefusableSetupField[] = ['proactivity', 'enableAffectiveDialog', 'historyConfig'];

/**
 * What every known model takes. Unknown names get exactly this: no thinking, no declared behaviour, tools treated as
 * blocking. Native audio models choose the language themselves and do not support `languageCode`
 * (ai.google.dev/gemini-api/docs/live-guide), so the instruction names it.
 */
const SAFE_SET: ModelCapabilities = {
  family: 'unknown',
  toolBehavior: 'BLOCKING',
  declaresToolBehavior: false,
  audioDuringBlockingTools: false,
  responseScheduling: false,
  functionSchema: 'parametersJsonSchema',
  textInput: 'clientContent',
  imageInput: false,
  thinking: undefined,
  turnEnd: 'turnComplete',
  silentContext: 'none',
  refusedSetupFields: ['thinkingConfig', 'languageCode', ...EXTRAS],
};

/**
 * ai.google.dev/gemini-api/docs/models/gemini-3.8-live: thinking config must be left out, proactive audio cannot be
 * switched off, affective dialog is gone from the API, `clientContent` is open all session with explicit roles. Tools
 * are NON_BLOCKING by default; BLOCKING exists, but any input then cancels the call (Vertex migration guide), and a
 * phone line never stops sending. The behaviour is stated all the same, since defaults have changed before
 * (github.com/livekit/agents/issues/7302).
 */
const GEMINI_3_8_LIVE: ModelCapabilities = {
  ...SAFE_SET,
  family: 'gemini-3.8-live',
  imageInput: true,
  toolBehavior: 'NON_BLOCKING',
  declaresToolBehavior: true,
  audioDuringBlockingTools: true,
  responseScheduling: true,
};

/**
 * ai.google.dev/gemini-api/docs/live-api/thinking: tools are asynchronous only, and one request may bring several
 * `turnComplete`s; the work is done at `interactionStatus` IDLE. Without a thinking level setup is refused with 1007;
 * with JSON schemas one integrator saw calls spoken as text (aiden-firmware issue 708). LOW,
 * because a caller waits.
 */
const GEMINI_3_8_EXTENDED: ModelCapabilities = {
  ...GEMINI_3_8_LIVE,
  family: 'gemini-3.8-live-extended-thinking',
  functionSchema: 'parameters',
  thinking: { level: 'LOW' },
  turnEnd: 'interactionIdle',
  refusedSetupFields: ['languageCode', ...EXTRAS],
};

/**
 * ai.google.dev/gemini-api/docs/models/gemini-3.1-flash-live-preview: tools are synchronous only and take no declared
 * behaviour; proactivity and affective dialog are unsupported. Early documents close `clientContent` after the first
 * turn (1007 without `historyConfig`), so text goes by `realtimeInput`. Thinking defaults to minimal, which is right.
 */
const GEMINI_3_1_FLASH_LIVE: ModelCapabilities = {
  ...SAFE_SET,
  family: 'gemini-3.1-flash-live',
  imageInput: true,
  textInput: 'realtimeInput',
};

/**
 * ai.google.dev/gemini-api/docs/live-api/tools: BLOCKING unless declared otherwise, and stated here. Audio that
 * arrives while a blocking call is open closes the connection with 1008 (github.com/googleapis/js-genai/issues/1236).
 * A thinking budget of 0 switches thinking off.
 */
const GEMINI_2_5_NATIVE_AUDIO: ModelCapabilities = {
  ...SAFE_SET,
  family: 'gemini-2.5-flash-native-audio',
  imageInput: true,
  declaresToolBehavior: true,
  thinking: { budget: 0 },
  refusedSetupFields: ['languageCode', ...EXTRAS],
};

/**
 * The same model on Vertex, generally available: without thinking
 * (docs.cloud.google.com/vertex-ai/generative-ai/docs/models/gemini/2-5-flash-live-api), while sessions with a
 * language code are seen to run (github.com/livekit/livekit/issues/4338).
 */
const GEMINI_LIVE_2_5_VERTEX: ModelCapabilities = {
  ...GEMINI_2_5_NATIVE_AUDIO,
  family: 'gemini-live-2.5-flash-native-audio',
  thinking: undefined,
  refusedSetupFields: ['thinkingConfig', ...EXTRAS],
};

/**
 * The embedded stand-in (`src/model/rehearsal/`), which has this one name. It takes every optional field, heeds none
 * and is asked for none. Its turn waits for the function's response, and it listens to the caller meanwhile.
 */
const REHEARSAL: ModelCapabilities = {
  ...SAFE_SET,
  family: 'rehearsal',
  audioDuringBlockingTools: true,
  imageInput: true,
};

/** A name matches a row when it is equal to it or goes on with `-`; the longest row wins. */
const ROWS: readonly ModelCapabilities[] = [
  GEMINI_3_8_EXTENDED,
  GEMINI_3_8_LIVE,
  GEMINI_3_1_FLASH_LIVE,
  GEMINI_2_5_NATIVE_AUDIO,
  GEMINI_LIVE_2_5_VERTEX,
  REHEARSAL,
].toSorted((a, b) => b.family.length - a.family.length);

/** The bare name: without `models/`, `publishers/google/models/` or a Vertex project path. */
export function bareModelName(modelName: string): string {
  return modelName.slice(modelName.lastIndexOf('/') + 1);
}

/** The row for a model name; the safe set, `family: 'unknown'`, for a name that no row matches. */
export function modelCapabilities(
  modelName: string,
  service: GeminiService = 'developer',
): ModelCapabilities {
  const bare = bareModelName(modelName);
  const row = ROWS.find(({ family }) => bare === family || bare.startsWith(`${family}-`)) ?? SAFE_SET;
  if (service !== 'vertex') return row;
  // Vertex does not take `realtimeInput.text` (vertex-ai-samples, live_api/client_server_messages.md), and LiveKit's
  // plugin leaves `scheduling` out there.
  return { ...row, textInput: 'clientContent', responseScheduling: false };
}
