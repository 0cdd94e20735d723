/**
 * The times of a call's turns, as the metrics define them: when the turn of each answer began, and when its first sound was
 * on the line. Reads no sound and keeps no words.
 */
import type { CallTime } from '../clock.js';
import type { AgentTurn } from '../event/run-stream.js';
import type { CallObserver } from '../observe/call-observer.js';
import type { AgentMessage } from './agent-message.js';

export interface TurnClockOptions {
  /** What is measured ends when our own work is done, not when the call's time says that it began. */
  readonly clock: Pick<CallTime, 'realMs' | 'nowMs'>;
  readonly observer: CallObserver;
  /** The last voiced caller frame, by the clock; undefined before the first. */
  readonly lastVoicedAtMs: () => number | undefined;
}

export class TurnClock {
  readonly #options: TurnClockOptions;
  #streamStartedAtMs: number | undefined;
  /** Text or a key that the model was sent and that asks for an answer. */
  #askedAtMs: number | undefined;
  /** The answer whose first sound has not gone out, and when the turn that it answers began. */
  #awaited: { readonly message: AgentMessage; readonly startedAtMs: number } | undefined;
  /** The voiced frame that the last answer was counted from: one frame starts at most one turn. */
  #answeredVoiceAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: TurnClockOptions) {
    this.#options = options;
  }

  onStreamStarted(): void {
    this.#streamStartedAtMs = this.#options.clock.nowMs();
  }

  /** The caller asked something other than by voice: a key was sent to the model. */
  onAsked(): void {
    this.#askedAtMs = this.#options.clock.nowMs();
  }

  /** The first event of an agent message is forwarded. Returns what it answers. */
  onMessageOpened(message: AgentMessage): AgentTurn {
    const voicedAtMs = this.#options.lastVoicedAtMs() ?? Number.NEGATIVE_INFINITY;
    const spokenAtMs = voicedAtMs > this.#answeredVoiceAtMs ? voicedAtMs : Number.NEGATIVE_INFINITY;
    const startedAtMs = message.isGreeting
      ? this.#streamStartedAtMs
      : finite(Math.max(spokenAtMs, this.#askedAtMs ?? Number.NEGATIVE_INFINITY));
    this.#askedAtMs = undefined;
    this.#answeredVoiceAtMs = voicedAtMs;
    this.#awaited =
      message.isGreeting || spokenAtMs === Number.NEGATIVE_INFINITY
        ? undefined
        : { message, startedAtMs: spokenAtMs };
    return { kind: message.isGreeting ? 'greeting' : 'reply', startedAtMs };
  }

  /** The first sound of `message` was written to the carrier. */
  onFirstSent(message: AgentMessage): void {
    if (this.#awaited?.message !== message) return;
    this.#options.observer.onTurnLatency(this.#options.clock.realMs() - this.#awaited.startedAtMs);
    this.#awaited = undefined;
  }

  /** `message` is over, perhaps without any of its sound having gone out. */
  onMessageClosed(message: AgentMessage): void {
    if (this.#awaited?.message === message) this.#awaited = undefined;
  }
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}
