/**
 * The agent's voice from the model's chunk to the carrier's frames: decimated, queued and played at the caller's pace.
 * Knows whose turn a chunk belongs to, stops at once when the caller cuts in, and keeps of each message what was
 * heard. Words, metrics and decisions about the call are the conversation's.
 */
import type { AgentDecimator } from '../audio/agent-decimator.js';
import type { Playout } from '../audio/playout.js';
import type { Utterance } from '../audio/utterance.js';
import type { Clock } from '../clock.js';
import {
  AGENT_MESSAGES_MAX,
  LATE_TURN_GRACE_MS,
  LATE_TURN_MAX_MS,
  LATE_WORDS_MAX_MS,
  NEW_TURN_UNPLAYED_MIN_MS,
  TURN_OVERDUE_MS,
  TURN_STUCK_MS,
} from '../limits.js';
import { TOOL_FOLLOW_UP_MAX_MS } from '../tool-limits.js';
import type { CallObserver } from '../observe/call-observer.js';
import { AgentMessage } from './agent-message.js';

export interface AgentLegEvents {
  /** Something that can be heard, or read, has come of a message. */
  onAudible(): void;
  /** A message begins, with sound or with words. */
  onMessageOpened(message: AgentMessage): void;
  /** A message is over: heard to its end, or cut (`interrupted`), or lost with the call. */
  onMessageClosed(message: AgentMessage, interrupted: boolean): void;
}

export interface AgentLegOptions {
  readonly clock: Clock;
  readonly playout: Playout;
  readonly decimator: AgentDecimator;
  readonly observer: CallObserver;
  readonly greetingProtectionMs: number;
  readonly events: AgentLegEvents;
}

/** PCM16 at 24 kHz. */
const PCM24K_BYTES_PER_MS = 48;

export class AgentLeg {
  readonly #options: AgentLegOptions;
  /** Messages not yet closed, in order of play; the last one is the model's current turn. */
  #messages: AgentMessage[] = [];
  /** Sound and words that arrive before this time belong to a turn that was cut. */
  #discardUntilMs = Number.NEGATIVE_INFINITY;
  /** The cut turn's `turnComplete` has not come yet. */
  #awaitsTurnComplete = false;
  /** Text was sent since the last message began. */
  #isAnswerDue = false;
  #greetingStartedAtMs: number | undefined;
  #nextIsGreeting = false;
  /** Messages that a held interruption will cut when its time comes. */
  #held: AgentMessage[] = [];
  /** A function call came since the last message began: what follows continues it, also behind a `turnComplete`. */
  #toolSinceTurn = false;
  /** The message in which functions were called whose results it has not spoken to: it goes on with them, also behind its
   * `turnComplete`. Without an end while a result is missing. */
  #awaited: { readonly message: AgentMessage; untilMs: number; isTurnOver: boolean } | undefined;
  /** The message that was last heard to its end, and closed with that. */
  #lastHeard: AgentMessage | undefined;
  /** Until then words belong to the message whose `turnComplete` has come: the transcription may be late. */
  #lateWordsUntilMs = Number.NEGATIVE_INFINITY;
  /** Whether the next messages are read instead of heard. */
  isShown = false;
  /** When an utterance was last heard to its end. */
  #heardAtMs = Number.POSITIVE_INFINITY;

  constructor(options: AgentLegOptions) {
    this.#options = options;
  }

  /** The next message is the greeting, which is protected for a while. */
  expectGreeting(): void {
    this.#nextIsGreeting = true;
  }

  /** The message of the model's current turn, if it has begun one. */
  get current(): AgentMessage | undefined {
    const last = this.#messages.at(-1);
    return last === undefined || last.turnOver || this.#held.includes(last) ? undefined : last;
  }

  /** A turn that was cut has not had its `turnComplete` yet. */
  get isTurnCut(): boolean {
    return this.#awaitsTurnComplete && this.#options.clock.nowMs() < this.#discardUntilMs;
  }

  /** The message that is being heard or waits to be: the one a late caller transcript belongs in front of. */
  get answering(): AgentMessage | undefined {
    return this.current ?? this.#messages.findLast((message) => !message.isHeard);
  }

  /** Sound of the model, straight from its socket; `pcm24k` is not kept. */
  onAudio(pcm24k: Uint8Array): void {
    if (this.#isLate()) {
      this.#options.observer.onAudioDropped('outbound', 'late_turn', pcm24k.length / PCM24K_BYTES_PER_MS);
      return;
    }
    this.#endOverdueTurn();
    const message = this.current ?? this.#openTurn();
    this.#onFollowUp();
    if (message.isShown) return this.#options.events.onAudible();
    const mulaw = this.#options.decimator.push(pcm24k);
    if (mulaw.length === 0) return;
    message.firstSoundAtMs ??= this.#options.clock.nowMs();
    message.push(mulaw);
    // Full-length sound in which nothing is heard was seen of live models (google-gemini/gemini-live-api-examples issue 40).
    if (!message.isAudible) message.isAudible = isAudible(mulaw);
    if (message.isAudible) this.#options.events.onAudible();
  }

  /** The message that words of the model belong to; undefined if their turn was cut. */
  messageForWords(): AgentMessage | undefined {
    if (this.#isLate()) return undefined;
    this.#endOverdueTurn();
    const { current } = this;
    if (current !== undefined) return current;
    // Only sound makes an unheard message give way: words behind its `turnComplete` may be its own, late.
    const last = this.#messages.at(-1);
    const isUnheard = last?.turnOver === true && !last.isHeard && !this.#held.includes(last);
    if (isUnheard || this.#options.clock.nowMs() < this.#lateWordsUntilMs) return last ?? this.#lastHeard;
    return this.#openTurn();
  }

  /** The model has no more sound in this generation: the tail of the filter follows and the utterance ends. */
  onGenerationComplete(): void {
    const message = this.current;
    if (message === undefined) return;
    if (!message.soundEnded) {
      const tail = this.#options.decimator.flush();
      if (tail.length > 0) message.pushTail(tail);
    }
    message.endSound();
    if (message.isShown) this.#heardAtMs = this.#options.clock.nowMs();
  }

  onTurnComplete(): void {
    if (this.#awaitsTurnComplete) {
      this.#awaitsTurnComplete = false;
      const graceMs = this.#isAnswerDue ? 0 : LATE_TURN_GRACE_MS;
      this.#discardUntilMs = this.#options.clock.nowMs() + graceMs;
      return;
    }
    this.onGenerationComplete();
    const message = this.current;
    if (message === undefined) return;
    const awaited = this.#awaited;
    if (awaited?.message === message) {
      // A second one behind the results is that of a turn without a word.
      if (awaited.isTurnOver && awaited.untilMs !== Infinity) return this.endFollowUp();
      awaited.isTurnOver = true;
      return;
    }
    message.turnOver = true;
    this.#lateWordsUntilMs = this.#options.clock.nowMs() + LATE_WORDS_MAX_MS;
    this.#closeHeard();
  }

  /** The caller's next turn has reached the model: behind the cut turn's `turnComplete` nothing is late any more. */
  onCallerTurn(): void {
    if (!this.#awaitsTurnComplete) this.#discardUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Text was sent that the model answers. It cuts the model's turn, and the answer may follow at once. */
  onAsked(): void {
    this.endFollowUp();
    this.#isAnswerDue = true;
    this.onCallerTurn();
  }

  /** The caller typed something: what is being said gives way, as it does to a voice. */
  giveWay(): void {
    if (this.#messages.length === 0) return;
    const { current } = this;
    const isTurnOver = current === undefined;
    const lateWordsUntilMs = this.#lateWordsUntilMs;
    this.interrupt(current !== undefined && !current.isGenerated);
    // The answer may begin with words, and at once: they are not late words of a turn that was over.
    if (isTurnOver) this.#lateWordsUntilMs = lateWordsUntilMs;
  }

  /** `isAwaited`: the model is given a result, and will have something to say about it. */
  onToolCall(isAwaited: boolean): void {
    this.#toolSinceTurn = true;
    const { current } = this;
    if (isAwaited && current !== undefined)
      this.#awaited = { message: current, untilMs: Infinity, isTurnOver: false };
  }

  /** The model was given results. What it says from now on may be about them: behind the `turnComplete` of a cut turn nothing is
   * late any more. */
  onAnswered(): void {
    this.#isAnswerDue = true;
    this.onCallerTurn();
  }

  /** No result is missing any more. */
  onToolsAnswered(): void {
    const awaited = this.#awaited;
    if (awaited?.untilMs === Infinity) awaited.untilMs = this.#options.clock.nowMs() + TOOL_FOLLOW_UP_MAX_MS;
  }

  /** The turn of the open message is over, and it goes on with the results of its functions. */
  get isPaused(): boolean {
    return this.#awaited?.isTurnOver === true;
  }

  /** Twice a second. */
  onTick(): void {
    if (this.#options.clock.nowMs() >= (this.#awaited?.untilMs ?? Infinity)) this.endFollowUp();
    this.#endOverdueTurn(TURN_STUCK_MS);
  }

  /** What comes next is another message. */
  endFollowUp(): void {
    const awaited = this.#awaited;
    this.#awaited = undefined;
    if (awaited?.isTurnOver !== true) return;
    awaited.message.turnOver = true;
    this.#closeHeard();
  }

  /**
   * The caller cut in. Flips the playout before anything else: the queue is dropped and `clear` written, unless the
   * greeting is protected; then the interruption waits. `modelStopped`: the model itself said `interrupted`, so what
   * still arrives of its turn is late. Returns whether `clear` was written now.
   */
  interrupt(modelStopped: boolean): boolean {
    const nowMs = this.#options.clock.nowMs();
    const protectedUntilMs = this.#protectedUntilMs();
    const isProtected = nowMs < protectedUntilMs;
    const held = isProtected && this.#options.playout.clearAt(protectedUntilMs);
    if (!isProtected) this.#options.playout.clear();
    this.#options.decimator.reset();
    if (modelStopped) {
      this.#discardRest(nowMs);
      // Some late words may be discarded now: none behind them may join the message, or it would have a hole.
      this.#lateWordsUntilMs = Number.NEGATIVE_INFINITY;
    } else this.#lateWordsUntilMs = nowMs + LATE_WORDS_MAX_MS;
    if (held) this.#held = [...this.#messages];
    else this.#closeAll(true);
    return !held;
  }

  /** A held interruption was carried out (`cleared`), or its sound had finished by itself. */
  onHoldOver(): void {
    const held = this.#held;
    this.#held = [];
    for (const message of held) this.#close(message, !message.isHeardWhole);
  }

  /** The first sound of `utterance` went out. Returns the message it belongs to; a clip belongs to none. */
  onFirstSent(utterance: Utterance): AgentMessage | undefined {
    const message = this.#messages.find((candidate) => candidate.has(utterance));
    if (message?.isGreeting === true) this.#greetingStartedAtMs ??= this.#options.clock.nowMs();
    return message;
  }

  onUtteranceHeard(): void {
    this.#heardAtMs = this.#options.clock.nowMs();
    this.#closeHeard();
  }

  /** `utterance` is of a message that can be heard. */
  isAudibleIn(utterance: Utterance): boolean {
    return this.#messages.some((message) => message.isAudible && message.has(utterance));
  }

  /** What is being played can be heard: it is not all hush. */
  get isAudible(): boolean {
    return !this.#messages.every((message) => message.isHeard || !message.isAudible);
  }

  /** The model has begun to say something, and has not said that it was all. */
  get isHalfSaid(): boolean {
    const { current } = this;
    return current !== undefined && current.hasSound && !current.soundEnded && !this.isPaused;
  }

  /** The model does not go on with what it has begun: the message is as it is. */
  endHalfSaid(): void {
    if (!this.isHalfSaid || this.current === undefined) return;
    const { current } = this;
    current.brokenBy = 'loss';
    this.onGenerationComplete();
    current.turnOver = true;
    this.#closeHeard();
  }

  /** Something unheard is still to be played, and the model has generated all of it. */
  get isOnlyPlaying(): boolean {
    const last = this.#messages.at(-1);
    return last !== undefined && last.soundEnded && !this.#options.playout.isSilent;
  }

  /** The model is gone (`lost`: not by our doing): its open turn is over as it stands, and what was made of it is
   * played. */
  onModelGone(lost: boolean): void {
    this.#awaitsTurnComplete = false;
    this.#awaited = undefined;
    const message = this.current;
    if (message === undefined) return;
    if (!message.isGenerated) message.brokenBy = lost ? 'loss' : 'us';
    this.onGenerationComplete();
    message.turnOver = true;
    this.#closeHeard();
  }

  /** The line is gone: what was not heard never will be. */
  abandon(): void {
    this.#held = [];
    if (this.current !== undefined) this.#discardRest(this.#options.clock.nowMs());
    this.#closeAll(true);
  }

  /** `turnComplete` is sometimes missing: a turn whose sound ended and was heard a second ago is over when something follows; and
   * after a while also where nothing does, for there would be no pause any more. */
  #endOverdueTurn(overdueMs = TURN_OVERDUE_MS): void {
    const message = this.current;
    if (message === undefined || !message.hasSound || !message.soundEnded || !message.isHeard) return;
    if (this.#toolSinceTurn || this.#options.clock.nowMs() - this.#heardAtMs < overdueMs) return;
    message.turnOver = true;
    this.#closeHeard();
  }

  /** The model speaks: behind its results that is what the message was kept open for. */
  #onFollowUp(): void {
    if (this.#awaited !== undefined && this.#awaited.untilMs !== Infinity) this.#awaited = undefined;
  }

  #isLate(): boolean {
    if (this.#options.clock.nowMs() < this.#discardUntilMs) return true;
    this.#awaitsTurnComplete = false;
    return false;
  }

  #discardRest(nowMs: number): void {
    const turnIsOpen =
      this.current !== undefined || (this.#awaitsTurnComplete && nowMs < this.#discardUntilMs);
    this.#awaitsTurnComplete = turnIsOpen;
    this.#discardUntilMs = nowMs + (turnIsOpen ? LATE_TURN_MAX_MS : LATE_TURN_GRACE_MS);
  }

  /** A new turn. While sound of the turn before is still unplayed the caller must have spoken: it gives way; but not
   * to the second half of a turn with a function call, nor for a last bit. */
  #openTurn(): AgentMessage {
    const { playout, events } = this.#options;
    const last = this.#messages.at(-1);
    const isContinuation = this.#toolSinceTurn || this.#held.length > 0;
    if (last !== undefined && !isContinuation && playout.unplayedMs() > NEW_TURN_UNPLAYED_MIN_MS) {
      this.interrupt(false);
    }
    this.#toolSinceTurn = false;
    this.#isAnswerDue = false;
    // More than anybody would listen to: it gives way, so that what is heard is never closed as unheard.
    if (this.#messages.length >= AGENT_MESSAGES_MAX) this.interrupt(false);
    if (this.#messages.length >= AGENT_MESSAGES_MAX) this.#closeOldest();
    const message = new AgentMessage({
      playout,
      isGreeting: this.#nextIsGreeting,
      isShown: this.isShown,
    });
    this.#nextIsGreeting = false;
    this.#messages.push(message);
    events.onMessageOpened(message);
    return message;
  }

  #protectedUntilMs(): number {
    if (this.#greetingStartedAtMs === undefined) return Number.NEGATIVE_INFINITY;
    return this.#greetingStartedAtMs + this.#options.greetingProtectionMs;
  }

  #closeHeard(): void {
    const heard = this.#messages.filter(
      (message) => message.turnOver && message.soundEnded && message.isHeard,
    );
    for (const message of heard) this.#close(message, false);
  }

  #closeAll(interrupted: boolean): void {
    const open = this.#messages.slice();
    for (const message of open) this.#close(message, interrupted && !message.isHeardWhole);
  }

  #closeOldest(): void {
    const oldest = this.#messages[0];
    if (oldest !== undefined) this.#close(oldest, !oldest.isHeardWhole);
  }

  #close(message: AgentMessage, interrupted: boolean): void {
    const at = this.#messages.indexOf(message);
    if (at < 0) return;
    this.#messages.splice(at, 1);
    if (this.#awaited?.message === message) this.#awaited = undefined;
    this.#lastHeard = interrupted ? undefined : message;
    this.#options.events.onMessageClosed(message, interrupted);
  }
}

/** About 38 dB under full scale: speech on a telephone line is far above in each word, hush and hum are below. */
const AUDIBLE_MAGNITUDE = 32;
/** Every so many samples one is looked at: half a millisecond of a loud sound is enough. */
const AUDIBLE_STEP = 4;

/** Mu-law's code is its magnitude on a logarithmic scale, inverted, below the sign. */
function isAudible(mulaw: Uint8Array): boolean {
  for (let at = 0; at < mulaw.length; at += AUDIBLE_STEP)
    if ((~(mulaw[at] ?? 0xff) & 0x7f) >= AUDIBLE_MAGNITUDE) return true;
  return false;
}
