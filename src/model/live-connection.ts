/**
 * The live model as the call sees it: one connection, sound and text both ways. Names are Gemini Live's.
 * Media goes through plain method calls; the Gemini adapter is in this folder, the call implements the listener.
 */
import type { SocketScope } from '../call-tap.js';
import type { ModelCapabilities } from './model-capabilities.js';

export interface FunctionDeclaration {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly parametersJsonSchema: Readonly<Record<string, unknown>>;
}

export interface FunctionCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** What is wrong with it: it has no name, or arguments that are no object. It is answered, and nothing is run. */
  readonly unreadable?: string;
}

export interface FunctionResponse {
  readonly id: string;
  readonly name: string;
  readonly response: Readonly<Record<string, unknown>>;
  /**
   * The model learns of it and says nothing about it. Only for one whose capabilities have `responseScheduling`; left
   * out, it speaks of the response once it is idle (`WHEN_IDLE`, Gemini's default).
   */
  readonly scheduling?: 'SILENT';
}

/** Tokens of one usage report, by Gemini's modality names (TEXT, AUDIO, IMAGE, VIDEO, DOCUMENT). */
export interface UsageMetadata {
  readonly promptTokens: Readonly<Record<string, number>>;
  readonly responseTokens: Readonly<Record<string, number>>;
  readonly totalTokenCount: number;
}

/** Called synchronously from the socket's read. Within one message the order is: interrupted, content
 * (audio, then transcriptions), completion flags, the rest. What a listener throws ends the call, never the process. */
export interface LiveListener {
  /** `serverContent.interrupted`. */
  onInterrupted(): void;
  /** 24 kHz PCM16 little-endian mono, any length, odd too; a view valid only during this call. */
  onAudio(pcm: Uint8Array): void;
  onInputTranscription(text: string): void;
  onOutputTranscription(text: string): void;
  onGenerationComplete(): void;
  onTurnComplete(reason: string | undefined): void;
  onToolCall(functionCalls: readonly FunctionCall[]): void;
  onToolCallCancellation(ids: readonly string[]): void;
  onGoAway(timeLeftMs: number): void;
  onSessionResumptionUpdate(newHandle: string | undefined, resumable: boolean): void;
  onUsageMetadata(usage: UsageMetadata): void;
  /** The connection is gone. Exactly once, last, and also after a local close (`local` true). */
  onClose(close: LiveClose): void;
}

export interface LiveClose {
  readonly code: number;
  /** The server's own words on the close, at most 123 bytes, secrets masked: about the connection, not the caller. */
  readonly reason: string;
  readonly local: boolean;
}

export interface LiveSetup {
  /** Whose setup it is. Not told to the model; the rehearsal model has a dialogue for each agent. */
  readonly agentName: string;
  readonly instruction: string;
  /** Gemini's prebuilt voice name, e.g. `Kore`. */
  readonly voice: string | undefined;
  /** BCP-47, e.g. `en-US`. */
  readonly languageCode: string | undefined;
  readonly functionDeclarations: readonly FunctionDeclaration[];
  /** A handle to resume, from onSessionResumptionUpdate. */
  readonly resumptionHandle?: string;
}

export interface LiveConnection {
  readonly modelName: string;
  readonly capabilities: ModelCapabilities;
  /** Bytes accepted but not yet given to the kernel. */
  readonly bufferedAmount: number;
  /** One `realtimeInput` with 16 kHz PCM16 little-endian mono; copied before the call returns. A no-op once closed. */
  sendAudio(pcm16k: Uint8Array): void;
  /** One picture as a video frame. False if it was not sent: the model takes none, it is closed, or it reads too slowly. */
  sendImage(mimeType: string, image: Uint8Array): boolean;
  /** Text that the model answers, by the path its capabilities name. */
  sendText(text: string): void;
  sendToolResponse(functionResponses: readonly FunctionResponse[]): void;
  /** Closes the socket at once; onClose follows. Idempotent. */
  close(): void;
}

/** Opens a connection; resolves after `setupComplete`. Rejects with a ModelError on refusal, on a close before setup,
 * after MODEL_CONNECT_TIMEOUT_MS or on abort, and then leaves no socket open and calls no listener method. */
export type ConnectLive = (
  setup: LiveSetup,
  listener: LiveListener,
  signal: AbortSignal,
  scope: SocketScope,
) => Promise<LiveConnection>;
