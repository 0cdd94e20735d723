/**
 * What a run in text tells those who measure it. Observers cannot change a run; what they throw is caught and counted.
 * Calls tell the same by `CallObserver`, under the mode `bidi`.
 */
import type { StreamOutcome } from './call-observer.js';

/** `sse`: answered as it goes; `none`: answered when it is over. */
export const TEXT_MODES = ['sse', 'none'] as const;
export type TextMode = (typeof TEXT_MODES)[number];

export interface RunObserver {
  /** A message was received that asks for an answer. */
  onRunStarted(mode: TextMode): void;
  /** Of the answer, from the message's receipt. Once a run. */
  onRunFirstEvent(mode: TextMode, waitMs: number): void;
  onRunDeltaGap(mode: TextMode, cause: 'model' | 'tool', gapMs: number): void;
  /** Once a run. */
  onRunEnded(mode: TextMode, outcome: StreamOutcome): void;
}
