/**
 * Notices that the caller waits for words that do not come: they spoke, pressed or were cut off, a function is slow, or the
 * model stopped in the middle of a sentence. The caller hears a clip, then the model is asked again, then it is left for
 * another connection. Nothing of this happens while nobody waits: silence alone is the idle watch's business, and noise on
 * the line, or a word thrown in while the agent speaks, is no question.
 */
import {
  ANSWER_HOLD_AGAIN_MS,
  ANSWER_HOLD_MS,
  ANSWER_NUDGE_MS,
  ANSWER_RECONNECT_MS,
  EMPTY_TURN_NUDGE_MS,
  MUTE_CONNECTIONS_MAX,
  TOOL_HOLD_AGAIN_MS,
  VOICED_HOLD_MIN_MS,
  VOICED_MIN_MS,
  VOICED_PAUSE_MAX_MS,
  WAIT_BREATH_MS,
  WAIT_MAX_MS,
} from '../link-limits.js';

/** The line as it is at one moment. */
export interface LineNow {
  readonly nowMs: number;
  /** Nothing that can be heard is played. */
  readonly isSilent: boolean;
  /** When something was last heard of the agent, or of a clip. */
  readonly heardAtMs: number;
  /** Voiced sound of the caller's in this call, and when it was last so. */
  readonly voicedMs: number;
  readonly voicedAtMs: number;
  /** A function is being carried out, and the model waits for it. */
  readonly isToolOut: boolean;
  /** The same, also for a connection that is gone: the caller waits, and the model could say something. */
  readonly isWorkOut: boolean;
  /** The model has begun to say something and has not said that it was all. */
  readonly isHalfSaid: boolean;
}

/** What is to be done about it: the clip, a word to the model, another connection, or the end. */
export type WaitStep = 'hold' | 'nudge' | 'reconnect' | 'giveUp';

export class AnswerWatch {
  /** Since when the caller waits, whatever was asked of the model meanwhile; undefined while nobody does. */
  #waitsSinceMs: number | undefined;
  /** Since when the model owes an answer: it was asked last then. */
  #dueSinceMs: number | undefined;
  /** Since when this connection's model has owed one. */
  #owedSinceMs: number | undefined;
  /** It is surely a person who waits, not only sound. */
  #isSure = false;
  #nudgedAtMs: number | undefined;
  #heldTimes = 0;
  /** The model has ended its turn without a word. */
  #isTurnEmpty = false;
  #voicedSeenMs = 0;
  #stretchMs = 0;
  #muteConnections = 0;
  /** Something of this connection's could be heard. */
  #hasSpoken = false;

  /** The caller waits for an answer. */
  get isDue(): boolean {
    return this.#dueSinceMs !== undefined;
  }

  /** Text was sent that the model has to answer, a result was given, or it was interrupted. `waitsSinceMs`: the caller may have
   * waited before, as when their words are understood later than said. */
  onDue(nowMs: number, waitsSinceMs = nowMs): void {
    this.#waitsSinceMs ??= waitsSinceMs;
    this.#owedSinceMs ??= nowMs;
    this.#dueSinceMs = nowMs;
    this.#isSure = true;
    this.#isTurnEmpty = false;
  }

  /** The caller has done something that asks for an answer, as who speaks does: they wait anew. */
  onCallerAsks(nowMs: number): void {
    this.#waitsSinceMs = nowMs;
    this.#heldTimes = 0;
  }

  /** The model calls a function: it is at work, and owes its answer from now on. How often it may is bounded elsewhere. */
  onToolCall(nowMs: number): void {
    if (this.#owedSinceMs !== undefined) this.#owedSinceMs = nowMs;
    this.#nudgedAtMs = undefined;
  }

  /** The model has ended its turn without a word: nothing will come by itself. Some such turns are meant (a model need not answer
   * everything it hears), so that it is not asked at once. */
  onEmptyTurn(): void {
    if (this.#dueSinceMs !== undefined) this.#isTurnEmpty = true;
  }

  /** The model can be heard, or what it has to say is read. */
  onAnswer(): void {
    this.#forget();
    this.#hasSpoken = true;
  }

  /** The model has said something to its end. What only begins is no sign of life: a model may fall silent behind it each time. */
  onWholeAnswer(): void {
    if (this.#hasSpoken) this.#muteConnections = 0;
  }

  /** Nobody waits for the model any more; also when it is away, for then it is asked when it is back. */
  #forget(): void {
    this.#waitsSinceMs = undefined;
    this.#owedSinceMs = undefined;
    this.#dueSinceMs = undefined;
    this.#isSure = false;
    this.#nudgedAtMs = undefined;
    this.#heldTimes = 0;
    this.#stretchMs = 0;
    this.#isTurnEmpty = false;
  }

  onModelGone(): void {
    // For the caller it is one wait, with the time on both sides.
    const waitsSinceMs = this.#waitsSinceMs;
    this.#forget();
    this.#hasSpoken = false;
    this.#waitsSinceMs = waitsSinceMs;
  }

  /** Twice a second while the model is there, and more often while somebody waits. */
  look(now: LineNow): WaitStep | undefined {
    this.#listen(now);
    if (!now.isSilent) return undefined;
    if (now.isToolOut) return this.#waitForTool(now);
    if (this.#dueSinceMs === undefined && now.isHalfSaid) this.onDue(now.heardAtMs);
    if (this.#dueSinceMs === undefined) return now.isWorkOut ? this.#waitForWork(now) : undefined;
    const step = this.#stepFor(now.nowMs, this.#waitMs(now, this.#dueSinceMs));
    if (step !== undefined) return step;
    const silentSinceMs = Math.max(this.#waitsSinceMs ?? this.#dueSinceMs, now.voicedAtMs, now.heardAtMs);
    const silentMs = now.nowMs - silentSinceMs;
    return this.#isSure ? this.#holdAfter(silentMs, ANSWER_HOLD_AGAIN_MS) : undefined;
  }

  #stepFor(nowMs: number, waitMs: number): WaitStep | undefined {
    if (this.#nudgedAtMs === undefined) {
      if (waitMs < (this.#isTurnEmpty ? EMPTY_TURN_NUDGE_MS : ANSWER_NUDGE_MS)) return undefined;
      this.#nudgedAtMs = nowMs;
      // A connection that is here because the last one was mute has been asked to speak already.
      if (this.#muteConnections === 0) return 'nudge';
    } else if (Math.min(waitMs, nowMs - this.#nudgedAtMs) < ANSWER_RECONNECT_MS) return undefined;
    this.#muteConnections += 1;
    return this.#muteConnections > MUTE_CONNECTIONS_MAX ? 'giveUp' : 'reconnect';
  }

  #waitForTool(now: LineNow): WaitStep | undefined {
    // The model cannot answer before it has the result.
    if (this.#dueSinceMs !== undefined) this.#dueSinceMs = now.nowMs;
    this.#nudgedAtMs = undefined;
    return this.#waitForWork(now);
  }

  #waitForWork({ nowMs, heardAtMs, voicedAtMs }: LineNow): WaitStep | undefined {
    return this.#holdAfter(nowMs - Math.max(heardAtMs, voicedAtMs), TOOL_HOLD_AGAIN_MS);
  }

  /** How long the model has owed an answer: from the end of what the caller said, since it may wait for that. But not for ever, for
   * they may ask again and again, and noise passes for a voice. */
  #waitMs({ nowMs, voicedAtMs }: LineNow, dueSinceMs: number): number {
    const owedMs = nowMs - (this.#owedSinceMs ?? dueSinceMs);
    const isOverlong = owedMs >= WAIT_MAX_MS && nowMs - voicedAtMs >= WAIT_BREATH_MS;
    return isOverlong ? owedMs : nowMs - Math.max(dueSinceMs, voicedAtMs);
  }

  #holdAfter(silentMs: number, againMs: number): WaitStep | undefined {
    if (silentMs < (this.#heldTimes === 0 ? ANSWER_HOLD_MS : againMs)) return undefined;
    this.#heldTimes += 1;
    return 'hold';
  }

  /** The caller's voice, as far as it came while the agent was silent. */
  #listen({ nowMs, isSilent, heardAtMs, voicedMs, voicedAtMs }: LineNow): void {
    const newMs = voicedMs - this.#voicedSeenMs;
    this.#voicedSeenMs = voicedMs;
    if (!isSilent) {
      this.#stretchMs = 0;
      return;
    }
    if (newMs === 0) {
      if (nowMs - voicedAtMs > VOICED_PAUSE_MAX_MS) this.#stretchMs = 0;
      return;
    }
    this.#stretchMs += Math.min(newMs, nowMs - heardAtMs);
    // Who speaks again waits anew.
    this.#heldTimes = 0;
    if (this.#stretchMs < VOICED_MIN_MS) return;
    this.#waitsSinceMs ??= nowMs;
    this.#owedSinceMs ??= nowMs;
    this.#dueSinceMs ??= nowMs;
    if (this.#stretchMs >= VOICED_HOLD_MIN_MS) this.#isSure = true;
  }
}
