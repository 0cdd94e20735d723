/**
 * One event of a run: what the caller or the model said, what was called and answered, what changed. A run is the
 * sequence of its events, and transcript, history, console and clients are views of that sequence. Fields and meanings are
 * those of Google's Agent Development Kit (https://google.github.io/adk-docs/events/); events never change once made.
 */
import { z } from 'zod';

/** A JSON object that nobody may change. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What the model asks for; `id` joins it to its answer. */
export interface FunctionCall {
  readonly id?: string;
  readonly name: string;
  readonly args?: JsonObject;
}

/** What the call came to. */
export interface FunctionResponse {
  readonly id?: string;
  readonly name: string;
  readonly response?: JsonObject;
}

/** One part of a content, as Gemini's; fields not named here are kept as they are. */
export interface Part {
  readonly text?: string;
  /** The text is the model's thinking, which nobody hears. */
  readonly thought?: boolean;
  readonly functionCall?: FunctionCall;
  readonly functionResponse?: FunctionResponse;
  /** `data` is base64. */
  readonly inlineData?: { readonly mimeType?: string; readonly data?: string };
  readonly fileData?: JsonObject;
  readonly executableCode?: JsonObject;
  readonly codeExecutionResult?: JsonObject;
}

export interface Content {
  /** `user` also for answers to function calls, as Gemini wants them. */
  readonly role?: 'user' | 'model';
  readonly parts?: readonly Part[];
}

export interface EventActions {
  /** State keys by their prefix: none is the session's, `user:`, `app:`, and `temp:`, which lives only as long as the run. */
  readonly stateDelta: JsonObject;
  /** Artifact name to the version that was saved. */
  readonly artifactDelta: Readonly<Record<string, number>>;
  /** Name of the agent that goes on. */
  readonly transferToAgent?: string;
  readonly escalate?: boolean;
}

export interface Transcription {
  readonly text?: string;
  readonly finished?: boolean;
}

export interface Event {
  /** Unique within its session. */
  readonly id: string;
  /** One per run. */
  readonly invocationId: string;
  /** `user`, or the agent's name. */
  readonly author: string;
  /** Seconds since the Unix epoch, fractional. */
  readonly timestamp: number;
  readonly content?: Content;
  /** A fragment: a later event that is not partial holds the whole. Never stored. */
  readonly partial?: boolean;
  readonly turnComplete?: boolean;
  /** The message was cut; its text is what was heard of it. */
  readonly interrupted?: boolean;
  /** Ids of calls in this event whose answers come later. */
  readonly longRunningToolIds?: readonly string[];
  readonly actions: EventActions;
  readonly inputTranscription?: Transcription;
  readonly outputTranscription?: Transcription;
  readonly usageMetadata?: JsonObject;
  readonly errorCode?: string;
  readonly errorMessage?: string;
  readonly finishReason?: string;
}

export const NO_ACTIONS: EventActions = Object.freeze({
  stateDelta: Object.freeze({}),
  artifactDelta: Object.freeze({}),
});

/** Not a record schema: that one would take a key named `__proto__` for a prototype. */
const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'is not an object',
);

const versions = z.custom<Readonly<Record<string, number>>>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((version) => Number.isSafeInteger(version) && Number(version) >= 0),
  'is not a table of versions',
);

const call = z.looseObject({
  id: z.string().exactOptional(),
  name: z.string(),
  args: jsonObject.exactOptional(),
});

const response = z.looseObject({
  id: z.string().exactOptional(),
  name: z.string(),
  response: jsonObject.exactOptional(),
});

const part = z.looseObject({
  text: z.string().exactOptional(),
  thought: z.boolean().exactOptional(),
  functionCall: call.exactOptional(),
  functionResponse: response.exactOptional(),
  inlineData: z
    .looseObject({ mimeType: z.string().exactOptional(), data: z.string().exactOptional() })
    .exactOptional(),
  fileData: jsonObject.exactOptional(),
  executableCode: jsonObject.exactOptional(),
  codeExecutionResult: jsonObject.exactOptional(),
});

const transcription = z.object({
  text: z.string().exactOptional(),
  finished: z.boolean().exactOptional(),
});

/** Reads an event that was stored or sent as JSON; what an event does not have is left out, except inside a part. */
export const eventSchema: z.ZodType<Event> = z.object({
  id: z.string().min(1),
  invocationId: z.string(),
  author: z.string(),
  timestamp: z.number(),
  content: z
    .object({ role: z.enum(['user', 'model']).exactOptional(), parts: z.array(part).exactOptional() })
    .exactOptional(),
  partial: z.boolean().exactOptional(),
  turnComplete: z.boolean().exactOptional(),
  interrupted: z.boolean().exactOptional(),
  longRunningToolIds: z.array(z.string()).exactOptional(),
  actions: z.object({
    stateDelta: jsonObject,
    artifactDelta: versions,
    transferToAgent: z.string().exactOptional(),
    escalate: z.boolean().exactOptional(),
  }),
  inputTranscription: transcription.exactOptional(),
  outputTranscription: transcription.exactOptional(),
  usageMetadata: jsonObject.exactOptional(),
  errorCode: z.string().exactOptional(),
  errorMessage: z.string().exactOptional(),
  finishReason: z.string().exactOptional(),
});

/** The calls that an event asks for, in order. */
export function functionCalls(event: Event): readonly FunctionCall[] {
  return (event.content?.parts ?? []).flatMap(({ functionCall }) => functionCall ?? []);
}

/** The answers that an event brings, in order. */
export function functionResponses(event: Event): readonly FunctionResponse[] {
  return (event.content?.parts ?? []).flatMap(({ functionResponse }) => functionResponse ?? []);
}

/** Whether an answer says that something went wrong: `error: false`, `null` and `''` say that nothing did. */
export function tellsError(answer: FunctionResponse): boolean {
  return Boolean(answer.response?.['error']);
}

/**
 * Whether the agent has said its word: nothing called, nothing answered, no fragment, no program's result at its end. An
 * event with calls whose answers come later is final too, because the run does not wait for them. Final is not the
 * same as last, and a turn ends with `turnComplete` only.
 */
export function isFinalResponse(event: Event): boolean {
  if ((event.longRunningToolIds?.length ?? 0) > 0) return true;
  return (
    functionCalls(event).length === 0 &&
    functionResponses(event).length === 0 &&
    event.partial !== true &&
    event.content?.parts?.at(-1)?.codeExecutionResult === undefined
  );
}
