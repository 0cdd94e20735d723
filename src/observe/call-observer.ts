/**
 * What only a call's sound and line know, told to those who measure it; what was said and how it ended they find in the run
 * (`run-observer.ts`). Observers cannot change a call; what they throw is caught and counted by `safeObserver`, and never
 * reaches the audio path.
 */

/** Why sound was not passed on, by whose it was: `inbound` is the caller's, `outbound` the agent's. */
export const DROP_REASONS = {
  inbound: ['backlog_full', 'backlog_age', 'gap_too_long', 'too_fast'],
  outbound: ['queue_full', 'late_turn', 'no_stream'],
} as const;
export type DropReason = (typeof DROP_REASONS)['inbound' | 'outbound'][number];

/** How a caller was to be connected with a human. */
export const HANDOFF_KINDS = ['cold'] as const;
export type HandoffKind = (typeof HANDOFF_KINDS)[number];

/** What came of it. `refused`: the carrier did not do it, and the caller stayed with the agent. */
export const HANDOFF_OUTCOMES = ['completed', 'busy', 'no_answer', 'failed', 'canceled', 'refused'] as const;
export type HandoffOutcome = (typeof HANDOFF_OUTCOMES)[number];

/** Why a call went on to another connection of its model's. */
export const RECONNECT_REASONS = ['lost', 'go_away', 'age', 'stall'] as const;
export type ReconnectReason = (typeof RECONNECT_REASONS)[number];

/** What came of it: the session was resumed, a new one was told what had been said, or there was none to be had. */
export const RECONNECT_OUTCOMES = ['resumed', 'fresh', 'failed'] as const;
export type ReconnectOutcome = (typeof RECONNECT_OUTCOMES)[number];

export interface CallObserver {
  onCallActive(change: 1 | -1): void;
  onCallEnded(callDirection: string, endReason: string, durationMs: number): void;
  /** A call that another server had goes on here. */
  onCallTakenOver(): void;
  onHandoff(kind: HandoffKind, outcome: HandoffOutcome): void;
  onModelReconnect(reason: ReconnectReason, outcome: ReconnectOutcome): void;
  onTurnLatency(latencyMs: number): void;
  onBargeInClear(elapsedMs: number): void;
  onUnderrun(): void;
  onAudioDropped(direction: 'inbound' | 'outbound', reason: DropReason, droppedMs: number): void;
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
