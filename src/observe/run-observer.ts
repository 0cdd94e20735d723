/**
 * What is counted of a run, whatever its mode; told by `RunMetrics`, which reads the run's stream. One observer is one
 * mode's. Observers cannot change a run; what they throw is caught and counted.
 */
import type { AgentTurn, StreamOutcome } from '../event/run-stream.js';

/** `sse`: answered as it goes; `none`: answered when it is over. */
export const TEXT_MODES = ['sse', 'none'] as const;
export type TextMode = (typeof TEXT_MODES)[number];
/** `bidi`: on a line, both ways at once. */
export const RUN_MODES = ['bidi', ...TEXT_MODES] as const;
export type RunMode = (typeof RUN_MODES)[number];

export const TOOL_OUTCOMES = ['done', 'error'] as const;
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];

export interface RunObserver {
  /** On a line a message of the agent has begun; in text an answer is asked for. */
  onStreamStarted(): void;
  /** Of such a stream, at most once: from the turn's start until it was forwarded. */
  onFirstEvent(turn: AgentTurn['kind'], waitMs: number): void;
  /** Between two deltas of one message; `tool` when a function call came between. */
  onDeltaGap(cause: 'model' | 'tool', gapMs: number): void;
  /** Once a stream. */
  onStreamEnded(outcome: StreamOutcome): void;
  /** A function call was answered. */
  onToolCall(tool: string, outcome: ToolOutcome): void;
  onTokens(direction: 'input' | 'output', modality: string, tokens: number): void;
}
