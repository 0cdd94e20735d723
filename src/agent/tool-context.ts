/**
 * What a tool, a plugin and a callback may know and do: one context for every tool, in every mode.
 */
import type { Event } from '../event/event.js';
import type { AgentContext, RunConfig } from './agent.js';

/** A tool's private copy of the caller's input: bounded, the oldest goes first. */
export interface InputStream extends AsyncIterable<InputFrame> {
  /** Empties it and returns the newest frame; undefined if there is none. */
  drainLatest(): InputFrame | undefined;
}

/** 20 ms of the caller: PCM16 little-endian mono at 16 kHz, 640 bytes; or a picture of a web client. */
export interface InputFrame {
  readonly mimeType: string;
  readonly data: Uint8Array;
}

/** Values that all tools of one run see; gone with it. */
export interface SharedState {
  get(key: string): unknown;
  /** Keys have at most 256 bytes. */
  set(key: string, value: unknown): void;
  /** Resolves with the value as soon as there is one; rejects after `timeoutMs` (1 to 300,000; 30,000 without it), or when
   * the tool is stopped. */
  waitFor(key: string, options?: { readonly timeoutMs?: number }): Promise<unknown>;
}

export interface LoadedArtifact {
  readonly version: number;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

/** What a tool can do with the line. In text modes there is none, and each answers `unavailable`. */
export interface ToolCallControl {
  /** Hangs up when what the agent is saying has been heard. */
  hangUp(): LineAnswer;
  /** Connects the caller with a human when the farewell has been heard: up to 3 s for it to begin, then its last mark. */
  transfer(): LineAnswer;
}

export type LineAnswer =
  | { readonly kind: 'accepted' }
  /** `why` is for the model. */
  | { readonly kind: 'unavailable'; readonly why: string };

/** What is kept of this caller for later calls of the same app; each throws for a caller who is not known. */
export interface MemoryAccess {
  /** Returns how many of the facts were new. */
  remember(entity: string, facts: readonly string[]): Promise<number>;
  /** True: it is new. */
  relate(source: string, relation: string, target: string): Promise<boolean>;
}

export interface ToolContext extends AgentContext {
  /** Committed events of the session, then those of this run, oldest first; the newest of a long session. The last one is
   * `partial` while the caller is saying it. */
  readonly events: readonly Event[];
  readonly runConfig: RunConfig;
  /** Aborted when the call is withdrawn or times out, and when the run is over. */
  readonly signal: AbortSignal;
  /** Read and written by key. `user:` keys are the user's, `app:` keys the app's, `temp:` keys are gone with the run. Changes
   * are kept with the event that tells the result. */
  readonly state: Record<string, unknown>;
  readonly shared: SharedState;
  readonly memory: MemoryAccess;
  /** Of a streaming tool that declares it; undefined otherwise. */
  readonly inputStream: InputStream | undefined;
  readonly callControl: ToolCallControl;
  /** Set true: the conversation ends as soon as the result is kept and what is being said was heard. */
  endInvocation: boolean;
  /** What this caller may do; throws where the agent's `runConfig` wires no `userScopes`. */
  userScopes(): readonly string[];
  /** Null for one that is not there; throws where the agent's `runConfig` wires no `getSecret`. */
  getSecret(name: string): Promise<string | null>;
  /** Text that the agent is told when neither side is speaking: the outcome of work that was only begun. */
  followUp(text: string): void;
  /** Returns the version, from 0. */
  saveArtifact(name: string, bytes: Uint8Array, mimeType: string): Promise<number>;
  /** The newest version without `version`; undefined for one that is not there. */
  loadArtifact(name: string, version?: number): Promise<LoadedArtifact | undefined>;
}
