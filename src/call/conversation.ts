/**
 * One call's conversation: joins the caller's leg and the agent's leg to the model, keeps whose turn it is, the transcript
 * of what was heard and the times that the metrics want. Sound passes straight through the legs; everything else
 * comes from the call's mailbox, one event at a time. Whether the call goes on is the call's business.
 */
import { AgentDecimator } from '../audio/agent-decimator.js';
import { Playout } from '../audio/playout.js';
import type { Utterance } from '../audio/utterance.js';
import type { CallTime } from '../clock.js';
import type { MessageView } from '../console/call-view.js';
import type { RunEvents } from '../event/run-events.js';
import { GREETING_ASKS_MAX } from '../link-limits.js';
import { PROMPT_WAIT_MAX_MS, TRANSCRIBED_BARGE_IN_MIN_MS } from '../limits.js';
import type { LiveConnection } from '../model/live-connection.js';
import type { CallObserver } from '../observe/call-observer.js';
import type { MediaStream } from '../telephony/media-stream.js';
import { AgentLeg } from './agent-leg.js';
import type { AgentMessage } from './agent-message.js';
import { carrierSink } from './carrier-sink.js';
import { CallerLeg, type SoundTee } from './caller-leg.js';
import { ANSWER_IS_DUE, askGreeting, CALLER_IS_BACK, heardOnly, SENTENCE_BROKE_OFF } from './line-texts.js';
import { RecordedClips } from './recorded-clips.js';
import { ModelTexts } from './model-texts.js';
import type { PromptName, Prompts } from './prompts.js';
import { Transcript } from './transcript.js';
import { TurnClock } from './turn-clock.js';
import { WaitingCaller } from './waiting-caller.js';

/** What the conversation tells the call. */
export interface ConversationEvents {
  onAgentSpeaks(): void;
  onPlayoutDrained(): void;
}

export interface ConversationOptions {
  readonly clock: CallTime;
  readonly observer: CallObserver;
  readonly prompts: Prompts;
  readonly greetingProtectionMs: number;
  /** Where everything that happens in the conversation is told. */
  readonly run: RunEvents;
  /** Something was said in this session before: nobody is greeted as a stranger. */
  readonly isContinued?: boolean;
  readonly events: ConversationEvents;
  readonly isLive: () => boolean;
  /** Who else hears the caller. */
  readonly tee: SoundTee;
}

export class Conversation {
  readonly #clock: CallTime;
  readonly #options: ConversationOptions;
  readonly #playout: Playout;
  readonly #decimator = new AgentDecimator();
  readonly #agent: AgentLeg;
  readonly #caller: CallerLeg;
  readonly #turns: TurnClock;
  readonly #transcript: Transcript;
  readonly #texts = new ModelTexts();
  #stream: MediaStream | undefined;
  readonly #clips: RecordedClips;
  /** What the caller waits for. */
  readonly waits: WaitingCaller;
  #greetingsAsked = 0;
  #messagesBegun = 0;
  #otherActivityAtMs: number;
  #keyPressedAtMs = Number.NEGATIVE_INFINITY;
  /** When the `interrupted` was read that is being carried out, by the machine's clock. */
  #interruptedAtMs: number | undefined;
  /** What is cut now is cut for a tool, not by the caller. */
  #isGivingWay = false;
  /** The call is over: a message that is still open was not cut by the caller. */
  #over = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    const { clock, observer, run } = options;
    this.#transcript = new Transcript(run);
    this.#clock = clock;
    this.#otherActivityAtMs = clock.nowMs();
    this.#playout = new Playout({
      clock,
      sink: carrierSink(
        () => this.#stream,
        () => this.#onClearWritten(),
      ),
      observer: this.#makePlayoutObserver(),
    });
    this.#clips = new RecordedClips({
      playout: this.#playout,
      prompts: options.prompts,
      onHeard: (text, before) => this.#transcript.addRecorded(text, before),
    });
    this.#agent = new AgentLeg({
      clock,
      playout: this.#playout,
      decimator: this.#decimator,
      observer,
      greetingProtectionMs: options.greetingProtectionMs,
      events: {
        onAudible: () => this.waits.onAnswer(),
        onMessageOpened: (message) => this.#onMessageOpened(message),
        onMessageClosed: (message, interrupted) => this.#onMessageClosed(message, interrupted),
      },
    });
    this.#caller = new CallerLeg({ clock, observer, tee: options.tee });
    this.waits = new WaitingCaller({
      clock,
      playout: this.#playout,
      agent: this.#agent,
      caller: this.#caller,
      clips: this.#clips,
      isConnected: () => options.isLive() && this.#stream !== undefined && this.#texts.isConnected,
      giveWay: () => this.giveWay(),
    });
    this.#turns = new TurnClock({
      clock,
      observer,
      lastVoicedAtMs: () => this.#caller.lastVoicedAtMs,
    });
  }

  // --- Sound: straight from one socket to the other --------------------------------------------------------------

  onCallerMedia(mulaw: Uint8Array, timestampMs: number): void {
    this.#caller.onMedia(mulaw, timestampMs);
    this.#playout.nudge();
  }

  onAgentAudio(pcm24k: Uint8Array): void {
    if (this.#stream === undefined)
      this.#options.observer.onAudioDropped('outbound', 'no_stream', pcm24k.length / 48);
    else this.#agent.onAudio(pcm24k);
  }

  /** `interrupted` was read: `clear` is written before anything else happens. */
  onInterrupted(): void {
    this.#interruptedAtMs = this.#playout.isSilent ? undefined : this.#clock.realMs();
    this.#agent.interrupt(true);
    this.#interruptedAtMs = undefined;
    this.#clips.forget();
    this.waits.onInterrupted();
  }

  /** Twice a second. */
  onTick(): void {
    this.#transcript.onTick();
    this.#agent.onTick();
    if (this.#stream !== undefined) this.#caller.onTick();
    this.waits.onTick();
    this.#goOnIfDue();
  }

  // --- The two ends -----------------------------------------------------------------------------------------------

  attachModel(model: LiveConnection): void {
    this.waits.onModelBack(this.#texts.attach(model));
    this.#caller.attachModel(model);
  }

  /** The model is gone; what it said before is still played. */
  detachModel(lost: boolean): void {
    this.waits.onModelGone();
    this.#texts.detach();
    this.#caller.detachModel();
    this.#agent.onModelGone(lost);
  }

  attachStream(stream: MediaStream): void {
    this.#stream = stream;
    this.#agent.isShown = stream.isSilent === true;
    this.#caller.resetStream();
    this.#turns.onStreamStarted();
    this.#otherActivityAtMs = this.#clock.nowMs();
    this.waits.onHeard();
  }

  /** The line is gone: what was not heard by now never will be. */
  detachStream(): void {
    if (this.#stream === undefined) return;
    this.#stream = undefined;
    this.#playout.clear();
    this.#clips.forget();
    this.#agent.abandon();
  }

  /** Whoever has typed something by now is answered instead. */
  greet(greeting: string | undefined): void {
    for (const text of this.waits.overtaken()) this.#texts.note(text);
    const typed = this.#texts.takeTyped();
    if (typed !== undefined) return this.ask(typed);
    if (this.#options.isContinued === true) return this.welcomeBack();
    this.#greetingsAsked += 1;
    this.#agent.expectGreeting();
    this.waits.onDue();
    this.#texts.ask(askGreeting(greeting));
  }

  /** The model is back behind an outage: whoever waits for it is not kept waiting, and nobody is greeted twice. */
  goOn(greeting: string | undefined): void {
    if (this.#texts.hasTyped || this.awaitsGreeting) this.greet(greeting);
    else this.#goOnIfDue();
  }

  /** A model that was to say something and did not is asked once more. */
  askAgain(greeting: string | undefined): void {
    if (this.awaitsGreeting && this.#greetingsAsked < GREETING_ASKS_MAX) return this.greet(greeting);
    const { isHalfSaid } = this.#agent;
    if (isHalfSaid) this.#agent.endHalfSaid();
    else if (!this.#playout.isSilent) this.giveWay(); // Sound in which nothing is heard.
    this.tell(isHalfSaid ? SENTENCE_BROKE_OFF : ANSWER_IS_DUE);
  }

  /** The greeting was asked for and nothing has come. */
  get awaitsGreeting(): boolean {
    return this.#greetingsAsked > 0 && this.#messagesBegun === 0;
  }

  /** A lost line is back. Who reads has lost nothing and sees it all. */
  welcomeBack(): void {
    if (!this.#agent.isShown) this.ask(CALLER_IS_BACK);
  }

  /** Text that the model answers; what it does not know yet goes in front. */
  ask(text: string): void {
    this.waits.onDue();
    this.tell(text);
  }

  /** The same for a text whose answer nobody waits for. */
  tell(text: string): void {
    this.#agent.onAsked();
    this.#otherActivityAtMs = this.#clock.nowMs();
    this.#texts.ask(text);
  }

  /** The model must get neither sound nor text for now; what waited follows when it may. */
  holdInput(isHeld: boolean): void {
    this.#caller.hold(isHeld);
    this.#texts.hold(isHeld);
  }

  /** Something was done, though nobody spoke. */
  noteActivity(): void {
    this.#otherActivityAtMs = this.#clock.nowMs();
  }

  /** What is being said is cut for something that cannot wait. */
  giveWay(): void {
    this.#isGivingWay = true;
    this.#agent.giveWay();
    this.#isGivingWay = false;
  }

  /** Plays a recorded clip behind what is being said; a long wait is cut short first. */
  play(prompt: PromptName): void {
    if (this.#agent.isShown && this.#stream !== undefined) {
      this.#clips.show(prompt);
      return this.#options.events.onPlayoutDrained();
    }
    if (this.#playout.unplayedMs() > PROMPT_WAIT_MAX_MS) {
      this.#playout.clear();
      this.#clips.forget();
      this.#agent.abandon();
    }
    this.#clips.play(prompt);
  }

  /** Whether a recorded clip has told the caller why the call ends. */
  get wasExplained(): boolean {
    return this.#clips.hasExplained;
  }

  close(): void {
    this.#over = true;
    this.#playout.close();
    this.#agent.abandon();
    this.#caller.release();
    this.#decimator.release();
    this.#stream = undefined;
    this.#texts.detach();
    this.#transcript.end();
  }

  // --- Control, from the call's mailbox -----------------------------------------------------------------------------

  onMark(name: string): void {
    this.#playout.onMark(name);
  }

  onKey(text: string): void {
    this.#keyPressedAtMs = this.#clock.nowMs();
    this.waits.onCallerAsks();
    if (!this.#texts.isConnected) {
      this.waits.askedMeanwhile();
      // Before the model is ready it goes in front of the greeting's request.
      return this.#texts.noteKey(text);
    }
    this.#turns.onAsked();
    this.ask(text);
  }

  get mayType(): boolean {
    return this.#texts.mayType;
  }

  /** The caller typed: what is being said is cut, and the model answers. Kept for it where it is not ready. */
  onTyped(text: string): void {
    this.#keyPressedAtMs = this.#clock.nowMs();
    this.waits.onCallerAsks();
    this.#agent.giveWay();
    this.#transcript.addTyped(text);
    this.#turns.onAsked();
    if (this.#texts.isConnected) this.ask(text);
    else this.#texts.typed(text);
  }

  /** The caller's words. Returns whether they cut the agent short: it had generated all of its message, so the model
   * itself may not say `interrupted` any more. */
  onInputTranscription(fragment: string): boolean {
    const isNew = this.#isNewSpeech();
    const answering = this.#agent.answering?.msg;
    const cutsIn = this.#agent.isOnlyPlaying && isNew;
    if (cutsIn) {
      this.#agent.interrupt(false);
      this.#clips.forget();
      this.waits.onDue();
    } else this.waits.onWords();
    if (isNew) this.#agent.endFollowUp();
    this.#agent.onCallerTurn();
    this.#transcript.addCaller(fragment, isNew ? undefined : answering);
    return cutsIn;
  }

  onOutputTranscription(fragment: string): void {
    if (this.#stream === undefined) return;
    const message = this.#agent.messageForWords();
    if (message === undefined) return;
    this.#transcript.agentSaid(message.msg, message.addWords(fragment));
    if (message.isShown) this.waits.onAnswer();
    this.#transcript.amend(message.msg, message.playedText());
  }

  onGenerationComplete(): void {
    this.#agent.onGenerationComplete();
  }

  onTurnComplete(): void {
    this.#agent.onTurnComplete();
  }

  /** `isAwaited`: the model is given a result, and will have something to say about it. */
  onToolCall(isAwaited: boolean): void {
    this.#otherActivityAtMs = this.#clock.nowMs();
    this.waits.onToolCall();
    this.#agent.onToolCall(isAwaited);
  }

  /** The model was given results. */
  onAnswered(): void {
    this.noteActivity();
    this.#agent.onAnswered();
  }

  /** No result is missing any more. */
  onToolsAnswered(): void {
    this.#agent.onToolsAnswered();
  }

  /** What the model should learn with something that is sent anyway; given out once. */
  takeNote(): string | undefined {
    return this.#texts.takeNote();
  }

  // --- What others may know -------------------------------------------------------------------------------------------

  get unplayedMs(): number {
    return this.#playout.unplayedMs();
  }

  get isSilent(): boolean {
    return this.#playout.isSilent;
  }

  /** Messages that the agent has begun in this call. */
  get messagesBegun(): number {
    return this.#messagesBegun;
  }

  /** Whether the model has said something in the turn that is open. */
  get hasSpokenThisTurn(): boolean {
    return !this.#agent.isPaused && (this.#agent.current?.hasSound ?? false);
  }

  /** Whether the model's open turn was cut, and its `turnComplete` is still to come. */
  get isTurnCut(): boolean {
    return this.#agent.isTurnCut;
  }

  get turn(): 'listening' | 'thinking' | 'speaking' {
    if (!this.#playout.isSilent) return 'speaking';
    return this.#agent.current === undefined ? 'listening' : 'thinking';
  }

  callerActiveAtMs(): number {
    return Math.max(this.#caller.lastVoicedAtMs ?? Number.NEGATIVE_INFINITY, this.#keyPressedAtMs);
  }

  /** When either side was last heard, or something was last asked of the model. */
  spokenAtMs(): number {
    return Math.max(this.activeAtMs(), this.callerActiveAtMs());
  }

  activeAtMs(): number {
    if (this.#stream === undefined || !this.#playout.isSilent) return this.#clock.nowMs();
    return Math.max(this.callerActiveAtMs(), this.#otherActivityAtMs);
  }

  textOf(msg: string): string | undefined {
    return this.#transcript.textOf(msg);
  }

  messages(): MessageView[] {
    return this.#transcript.messages();
  }

  #goOnIfDue(): void {
    const text = this.waits.takeReturn();
    if (text !== undefined) this.ask(text);
  }

  /** Late words of the question that is being answered are not a barge-in: the caller spoke since the answer's first
   * sound, or that is long enough ago. */
  #isNewSpeech(): boolean {
    const soundAtMs = this.#agent.answering?.firstSoundAtMs;
    if (soundAtMs === undefined) return false;
    const spokeSince = (this.#caller.lastVoicedAtMs ?? Number.NEGATIVE_INFINITY) > soundAtMs;
    // Nobody's words are late because a function is slow.
    if (this.#agent.isPaused && this.#playout.isSilent) return spokeSince;
    return spokeSince || this.#clock.nowMs() - soundAtMs >= TRANSCRIBED_BARGE_IN_MIN_MS;
  }

  #onMessageOpened(message: AgentMessage): void {
    this.#messagesBegun += 1;
    for (const text of this.waits.overtaken()) this.#texts.note(text);
    message.msg = this.#transcript.openAgent(message, this.#turns.onMessageOpened(message));
    this.#clips.onMessageOpened(message.msg);
    if (!message.isShown) return;
    this.waits.onAnswer();
    this.#options.events.onAgentSpeaks();
  }

  #onMessageClosed(message: AgentMessage, interrupted: boolean): void {
    const text = interrupted ? message.heardText() : message.playedText();
    this.#transcript.closeAgent(message.msg, {
      text,
      interrupted: interrupted || message.lacksItsEnd,
      outcome: message.outcome(interrupted, this.#over || this.#stream === undefined),
    });
    this.#turns.onMessageClosed(message);
    // One that was heard is over with its last sound, however late it is told.
    if (interrupted || message.isShown) this.noteActivity();
    if (!interrupted || text.trim() === message.wholeText().trim()) return;
    const byTool = this.#isGivingWay ? 'tool' : undefined;
    this.#texts.note(heardOnly(text.trim(), byTool ?? (this.#stream === undefined ? 'line' : 'caller')));
  }

  /** Before the books of what was heard are kept: they are no part of the caller's wait. */
  #onClearWritten(): void {
    if (this.#interruptedAtMs === undefined) return;
    this.#options.observer.onBargeInClear(this.#clock.realMs() - this.#interruptedAtMs);
    this.#interruptedAtMs = undefined;
  }

  #makePlayoutObserver() {
    const { observer, events } = this.#options;
    return {
      onFirstSent: (utterance: Utterance) => {
        const message = this.#agent.onFirstSent(utterance);
        if (message === undefined) return;
        this.#turns.onFirstSent(message);
        events.onAgentSpeaks();
      },
      onUnderrun: () => observer.onUnderrun(),
      onUtteranceHeard: (utterance: Utterance) => {
        const isClip = this.#clips.onUtteranceHeard(utterance);
        if (isClip || this.#agent.isAudibleIn(utterance)) this.waits.onHeard();
        this.#agent.onUtteranceHeard();
      },
      onDrained: () => {
        this.#otherActivityAtMs = this.#clock.nowMs();
        events.onPlayoutDrained();
        this.#goOnIfDue();
      },
      onDropped: (ms: number, reason: 'queue_full' | 'over') =>
        observer.onAudioDropped('outbound', reason === 'over' ? 'late_turn' : 'queue_full', ms),
      onHoldOver: () => this.#agent.onHoldOver(),
    };
  }
}
