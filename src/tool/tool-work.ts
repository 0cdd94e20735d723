/**
 * What becomes of one function call, apart from the protocol around it: guards, handler, ledger and workers behind one
 * method, so that a replay can put what was recorded in their place.
 */
import type { EventActions, FunctionCall } from '../event/event.js';
import type { ModelUpdate } from './model-updates.js';
import type { Response } from './tool-result.js';

export interface CallOutcome {
  /** `pending`: settled later, by id. `streaming`: values follow. Both are answered at once, in a frame of their own. */
  readonly kind: 'done' | 'pending' | 'streaming';
  readonly response: Response;
  readonly actions: EventActions;
  /** The handler was begun: something may have been done. */
  readonly ran: boolean;
  /** The conversation ends with it. */
  readonly endInvocation: boolean;
}

/** What comes of a call beside its answer, and after it. */
export interface WorkListener {
  /** For the model, at the next pause. */
  update(update: ModelUpdate): void;
  /** A streaming tool was stopped, or is over: what it said last is not told any more, if `isStopped`. */
  ended(name: string, isStopped: boolean): void;
  /** A streaming tool that is over by itself: what it said last is not told any more. */
  forget(name: string): void;
  /** A streaming tool has ended the conversation. */
  ends(): void;
  /** State or artifacts were changed with no answer to tell it. Resolves when it is told. Never rejects. */
  changed(actions: EventActions): Promise<void>;
  /** The result of a call that was answered as pending, in an event with this id; false: the run is over, and it is not told. */
  settled(functionCall: CallRef, outcome: CallOutcome, eventId?: string): boolean;
  /** What a call has come to that was told as given up: withdrawn, or too slow. False: the run is over, and it is not told. */
  late(functionCall: CallRef, outcome: CallOutcome): boolean;
}

export type CallRef = Required<Pick<FunctionCall, 'id' | 'name'>>;

export interface WorkCall extends CallRef {
  readonly args: Readonly<Record<string, unknown>>;
}

export interface ToolWork {
  /** Never throws or rejects. Ends soon after `signal` aborts, whatever the handler does. What is known at once is returned
   * at once, so that it stands in front of whatever the model sends next. */
  carryOut(call: WorkCall, signal: AbortSignal): CallOutcome | Promise<CallOutcome>;
  /** Whether the call is answered before its work is over, as far as its declaration says. */
  isLongRunning(name: string): boolean;
  /** Copies of the caller's sound are wanted: 20 ms of PCM16 at 16 kHz. Not kept. */
  readonly wantsSound: boolean;
  onSound(pcm16k: Uint8Array): void;
  onImage(mimeType: string, image: Uint8Array): void;
  counts(): Readonly<Record<string, number>>;
  /** What a call without a result, the very object that was handed in, has changed and nobody has told. */
  takeActions(call: WorkCall): EventActions;
  /** The run ends now: what goes on behind its answer has changed so much. Whatever changes from here on is told by `tellLate`. */
  leave(): readonly EventActions[];
  /** Stores what changed behind the end of the run, as an event of its session. Never rejects. */
  tellLate(actions: EventActions): Promise<void>;
  /** Stores what a call has come to behind the end of the run, as an event of its session. Never rejects. */
  tellLateResult(call: CallRef, outcome: CallOutcome): Promise<void>;
  /** The run is over: streaming tools are stopped, what was begun is told to stop. Resolves when they have ended, or had their time. */
  close(): Promise<void>;
}
