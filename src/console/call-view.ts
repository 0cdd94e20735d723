/**
 * What the console may see of calls and do to them: plain data, never the calls themselves.
 */
import type { CallSid } from '../ids.js';

export interface MessageView {
  readonly msg: string;
  readonly role: 'user' | 'model';
  /** What was said; of an interrupted message only what the caller heard. */
  readonly text: string;
  readonly interrupted: boolean;
}

export interface CallView {
  readonly callSid: CallSid;
  readonly agent: string;
  readonly callDirection: string;
  readonly state: string;
  readonly turn: 'listening' | 'thinking' | 'speaking';
  readonly endReason: string | null;
  /** ISO 8601, when the call was announced. */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly messages: readonly MessageView[];
}

export interface CallBook {
  /** Live calls first, then ended ones, newest first. */
  list(): readonly CallView[];
  find(callSid: string): CallView | undefined;
  /** False when there is no such call in progress. */
  hangUp(callSid: string): boolean;
  readonly draining: boolean;
  /** Whether another call would be taken now. */
  readonly hasRoom: boolean;
  /** What is alive, for leak hunting: all zero when no call is. */
  counts(): Readonly<Record<string, number>>;
}
