/**
 * The text model as a run sees it: one answer at a time, as pieces while it is made. Names are Gemini's.
 */
import type { FunctionCall, FunctionDeclaration, UsageMetadata } from './live-connection.js';

/** One part of a content, as Gemini's; what a model's part holds beside its text must come back to it as it was. */
export type TextPart = Readonly<Record<string, unknown>>;

export interface TextContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly TextPart[];
}

export interface TextRequest {
  readonly instruction: string;
  /** The history and, last, what is to be answered. */
  readonly contents: readonly TextContent[];
  readonly functionDeclarations: readonly FunctionDeclaration[];
}

/** Told once each, in the order in which they come. */
export type TextPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'functionCalls'; readonly functionCalls: readonly FunctionCall[] }
  | { readonly type: 'usageMetadata'; readonly usage: UsageMetadata }
  /** The last piece; `parts` are the whole answer as it must stand in the history. */
  | { readonly type: 'end'; readonly finishReason: string; readonly parts: readonly TextPart[] };

/**
 * Asks for an answer. Throws a ModelError `model_unreachable` (worth another try), `model_setup_refused` or
 * `model_connect_timeout`, before the first piece or in the middle; ends early, without an error, when `signal` aborts.
 */
export type GenerateText = (request: TextRequest, signal: AbortSignal) => AsyncIterable<TextPiece>;
