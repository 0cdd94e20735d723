/**
 * What the call tells those who watch it. Observers cannot change a call; what they throw is caught and counted by
 * `safeObserver`, and never reaches the audio path.
 */

export type StreamOutcome = 'done' | 'interrupted' | 'error' | 'disconnected';
export type DropReason =
  'backlog_full' | 'backlog_age' | 'gap_too_long' | 'queue_full' | 'late_turn' | 'no_stream' | 'not_finite';

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
  onToolCall(tool: string, outcome: 'done' | 'error'): void;
  onTokens(direction: 'input' | 'output', modality: string, tokens: number): void;
}

/** Wraps an observer so that a fault in it is counted, not thrown. */
export function safeObserver(observer: CallObserver, onFault: (error: unknown) => void): CallObserver {
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
