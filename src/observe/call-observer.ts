/**
 * What the call tells those who watch it. Observers cannot change a call; what they throw is caught and counted by
 * `safeObserver`, and never reaches the audio path.
 */

/** How a message of the agent ended. */
export const STREAM_OUTCOMES = ['done', 'interrupted', 'error', 'disconnected'] as const;
export type StreamOutcome = (typeof STREAM_OUTCOMES)[number];

/** Why sound was not passed on, by whose it was: `inbound` is the caller's, `outbound` the agent's. */
export const DROP_REASONS = {
  inbound: ['backlog_full', 'backlog_age', 'gap_too_long', 'too_fast'],
  outbound: ['queue_full', 'late_turn', 'no_stream'],
} as const;
export type DropReason = (typeof DROP_REASONS)['inbound' | 'outbound'][number];

export const TOOL_OUTCOMES = ['done', 'error'] as const;
export type ToolOutcome = (typeof TOOL_OUTCOMES)[number];

export interface CallObserver {
  onCallActive(change: 1 | -1): void;
  onCallEnded(callDirection: string, endReason: string, durationMs: number): void;
  onFirstEvent(turn: 'greeting' | 'reply', model: string, waitMs: number): void;
  onDeltaGap(cause: 'model' | 'tool', gapMs: number): void;
  onStreamStarted(): void;
  onStreamEnded(outcome: StreamOutcome): void;
  onTurnLatency(latencyMs: number): void;
  onBargeInClear(elapsedMs: number): void;
  onUnderrun(): void;
  onAudioDropped(direction: 'inbound' | 'outbound', reason: DropReason, droppedMs: number): void;
  onToolCall(tool: string, outcome: ToolOutcome): void;
  onTokens(direction: 'input' | 'output', modality: string, tokens: number): void;
}

/** Wraps an observer so that a fault in it is counted, not thrown. */
export function safeObserver<Observer extends object>(
  observer: Observer,
  onFault: (error: unknown) => void,
): Observer {
  return new Proxy(observer, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        try {
          Reflect.apply(method, target, args);
        } catch (error) {
          onFault(error);
        }
      };
    },
  });
}
