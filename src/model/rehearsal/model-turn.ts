/**
 * One turn of the rehearsal model, from thinking to `turnComplete`: a row of steps (thoughts, filler, speech, function
 * calls, what their results bring), then `generationComplete`, and the end when, by its own estimate, everything has
 * been heard. The profile says how the model behaves, the reply's misbehaviour what goes wrong.
 */
import type { Clock, Timer } from '../../clock.js';
import { REHEARSAL_TOOL_WAIT_MAX_MS } from './rehearsal-limits.js';
import type { DialogueCall } from './dialogue.js';
import type { SpokenReply } from './dialogue-step.js';
import type { ExtraMessage } from './extra-message.js';
import type { Misbehaviour, MisbehaviourKind, PointMisbehaviour, TurnPoint } from './misbehaviour.js';
import type { ModelProfile } from './model-profile.js';
import type { OpenCall } from './open-calls.js';
import { type Sentence, sentencesOf, SpeechStream, type SpeechStreamDeps } from './speech-stream.js';
import type { TokenMeter } from './token-meter.js';

/** From the end of the caller's turn to the first sound; the real service takes 300 to 800 ms. */
const THINK_MS = 300;
/** Between the `turnComplete`s of one answer. */
const NEXT_COMPLETE_MS = 300;

export interface ModelTurnDeps extends Omit<SpeechStreamDeps, 'messages' | 'nearSilence' | 'stutterMs'> {
  readonly clock: Clock;
  readonly profile: ModelProfile;
  readonly tokens: TokenMeter;
  /** The calls that may be sent, none for functions that were not declared. */
  readonly openCalls: (wishes: readonly DialogueCall[], depth: number) => readonly OpenCall[];
  /** Sends them in one `toolCall`. The answer may come before this returns. */
  readonly sendCalls: (calls: readonly OpenCall[]) => void;
  /** A call was not answered in time and is given up. */
  readonly onUnanswered: (id: string) => void;
  /** Sends what a dialogue wrote, as it stands. */
  readonly sendMessage: (message: object) => void;
  /** Carries out what concerns the connection; it may be closed then, and the turn cancelled. */
  readonly misbehave: (misbehaviour: PointMisbehaviour) => void;
  /** Sends `content` with `turnComplete`, and the usage. */
  readonly completeTurn: (content: object) => void;
  /** Everything has been heard; the turn is over, and completed unless it was told not to be. */
  readonly onOver: () => void;
}

type Step = (next: () => void) => void;

export class ModelTurn {
  readonly #deps: ModelTurnDeps;
  readonly #misbehaves: ReadonlyMap<MisbehaviourKind, Misbehaviour>;
  readonly #atPoints: readonly PointMisbehaviour[];
  /** Not sent yet; each is sent once, though a turn may speak several times. */
  #messages: readonly ExtraMessage[];
  readonly #speech: SpeechStream;
  readonly #steps: Step[] = [];
  readonly #awaited = new Set<string>();
  #timer: Timer | undefined;
  #ended = false;
  #isCompleted = false;
  /** Words were said in the message that is open. */
  #hasWords = false;
  /** A call was sent that the model waits for in silence. */
  #isBlocked = false;
  /** What goes on when all awaited calls are answered. */
  #answered: (() => void) | undefined;
  /** Content of the last message, which the completion goes along with. */
  #held: object = {};
  #completesLeft: number;

  /** `disclosure` is spoken in front of the reply; `depth` counts the results that led to it. */
  constructor(deps: ModelTurnDeps, reply: SpokenReply, { disclosure = '', depth = 0 } = {}) {
    this.#deps = deps;
    this.#misbehaves = new Map(reply.misbehave.map((one) => [one.do, one]));
    this.#atPoints = reply.misbehave.filter((one): one is PointMisbehaviour => 'at' in one);
    this.#messages = reply.messages;
    this.#completesLeft = deps.profile.turnCompletes;
    const stutter = this.#misbehaves.get('stutter');
    this.#speech = new SpeechStream({
      ...deps,
      messages: deps.profile.messages,
      nearSilence: this.#misbehaves.has('nearSilence'),
      stutterMs: stutter?.do === 'stutter' ? stutter.ms : undefined,
    });
    this.#plan(reply, sentencesOf(disclosure, true), depth);
    this.#after(THINK_MS, () => this.#run());
  }

  get spoke(): boolean {
    return this.#speech.spoke;
  }

  /** Cut off before anything of it was said; a turn that keeps silent on purpose has had its time. */
  get isLost(): boolean {
    return !this.spoke && !this.#misbehaves.has('silent');
  }

  get disclosureHeard(): boolean {
    return this.#speech.disclosureHeard;
  }

  get soundSentMs(): number {
    return this.#speech.soundSentMs;
  }

  /** `turnComplete` was sent, though not everything has been heard. */
  get isCompleted(): boolean {
    return this.#isCompleted;
  }

  awaits(id: string): boolean {
    return this.#awaited.has(id);
  }

  /** An awaited call was answered; what is said about the result, at `depth`, is said in this turn. */
  functionAnswered(id: string, reply: SpokenReply | undefined, depth: number): void {
    if (this.#ended || !this.#awaited.delete(id)) return;
    if (reply !== undefined) {
      const begin: Step = (next) => {
        this.#messages = [...this.#messages, ...reply.messages];
        this.#sendMessagesAt('start');
        next();
      };
      this.#steps.push(begin, ...this.#replySteps(reply, [], depth));
    }
    this.#goOnIfAnswered();
  }

  /** Stops at once; nothing more is sent and onOver is not called. Idempotent. */
  cancel(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#speech.cancel();
  }

  /** The end of a turn that was cancelled because it was cut off has been told; the connection may be closed then. */
  wasInterrupted(): void {
    this.#pass('interrupted');
  }

  #plan(reply: SpokenReply, disclosure: readonly Sentence[], depth: number): void {
    const { filler } = this.#deps.profile;
    this.#steps.push(this.#point('start'));
    const empty = this.#misbehaves.get('emptyTurn');
    if (empty?.do === 'emptyTurn')
      this.#steps.push(() => this.#completeEmpty({ turnCompleteReason: empty.reason }));
    if (this.#misbehaves.has('waitForInput')) {
      this.#steps.push(() =>
        this.#completeEmpty({ waitingForInput: true, turnCompleteReason: 'NEED_MORE_INPUT' }),
      );
    }
    // Nothing follows this step, ever: the next input finds a turn to interrupt.
    if (this.#misbehaves.has('silent')) this.#steps.push(() => {});
    if (filler !== '') this.#steps.push(this.#filler(filler));
    this.#steps.push(...this.#replySteps(reply, disclosure, depth));
  }

  #replySteps({ say, calls, thought }: SpokenReply, disclosure: readonly Sentence[], depth: number): Step[] {
    const spoken = [...disclosure, ...sentencesOf(say)];
    const placeOf = (call: DialogueCall) => {
      if (this.#misbehaves.has('callMidSpeech')) return 'middle';
      return call.at === 'middle' && spoken.length === 0 ? 'end' : call.at;
    };
    const callsAt = (place: DialogueCall['at']) => calls.filter((call) => placeOf(call) === place);
    return [
      ...(thought === undefined ? [] : [this.#thought(thought)]),
      this.#call(callsAt('start'), depth),
      this.#say(
        this.#misbehaves.has('repeatSpeech') ? [...spoken, ...spoken] : spoken,
        callsAt('middle'),
        depth,
      ),
      this.#point('afterSpeech'),
      this.#call(callsAt('end'), depth),
      this.#awaitAnswers,
    ];
  }

  #run(): void {
    if (this.#ended) return;
    const step = this.#steps.shift();
    if (step === undefined) return this.#generated();
    step(() => this.#run());
  }

  #point(point: TurnPoint): Step {
    return (next) => {
      this.#reach(point);
      next();
    };
  }

  #reach(point: TurnPoint): void {
    if (!this.#ended) this.#sendMessagesAt(point);
    for (const one of this.#atPoints) {
      if (!this.#ended && one.at === point) this.#deps.misbehave(one);
    }
  }

  /** A point behind the turn's end. */
  #pass(point: TurnPoint): void {
    this.#sendMessagesAt(point);
    for (const one of this.#atPoints) if (one.at === point) this.#deps.misbehave(one);
  }

  #sendMessagesAt(point: TurnPoint): void {
    const due = this.#messages.filter(({ at }) => at === point);
    this.#messages = this.#messages.filter(({ at }) => at !== point);
    for (const { message } of due) this.#deps.sendMessage(message);
  }

  #thought(text: string): Step {
    return (next) => {
      this.#flushHeld();
      this.#deps.tokens.addThought(text);
      this.#deps.sendContent({ modelTurn: { parts: [{ text, thought: true }] } });
      next();
    };
  }

  /** A small answer of its own, with its own completion, in front of the real one. */
  #filler(filler: string): Step {
    return (next) =>
      this.#speech.speak(sentencesOf(filler), {
        goesOn: false,
        holdLast: false,
        onHalf: () => {},
        done: () => {
          this.#deps.sendContent({ generationComplete: true });
          this.#after(this.#speech.unheardMs, () => {
            if (this.#completesLeft > 1) this.#complete({});
            else this.#hasWords = true;
            next();
          });
        },
      });
  }

  #say(spoken: readonly Sentence[], callsInMiddle: readonly DialogueCall[], depth: number): Step {
    return (next) => {
      this.#flushHeld();
      let isPast = false;
      const passMiddle = () => {
        if (isPast) return;
        isPast = true;
        this.#reach('midSpeech');
        if (!this.#ended) this.#sendCalls(callsInMiddle, depth);
      };
      const goesOn = this.#hasWords;
      this.#hasWords ||= spoken.length > 0;
      this.#speech.speak(spoken, {
        goesOn,
        holdLast: this.#isBundled && this.#awaited.size === 0 && this.#nothingAtPoints,
        onHalf: () => {
          passMiddle();
          if (this.#ended) return;
          if (this.#misbehaves.has('cutShort')) this.#cutShort();
          else if (this.#isBlocked) this.#pauseUntilAnswered();
        },
        done: (held) => {
          this.#held = held;
          // Speech that could not be made has no middle.
          passMiddle();
          next();
        },
      });
    };
  }

  get #nothingAtPoints(): boolean {
    return this.#atPoints.length === 0 && this.#messages.length === 0;
  }

  get #isBundled(): boolean {
    const { messages, turnCompletes } = this.#deps.profile;
    return messages === 'bundled' && turnCompletes === 1;
  }

  #call(wishes: readonly DialogueCall[], depth: number): Step {
    return (next) => {
      this.#sendCalls(wishes, depth);
      if (wishes.length > 0 && this.#isBlocked) this.#awaitAnswers(next);
      else next();
    };
  }

  #sendCalls(wishes: readonly DialogueCall[], depth: number): void {
    if (wishes.length === 0) return;
    this.#flushHeld();
    const repeat = this.#misbehaves.get('repeatCall');
    const times = 1 + (repeat?.do === 'repeatCall' ? repeat.times : 0);
    for (let time = 0; time < times; time += 1) {
      const calls = this.#deps.openCalls(wishes, depth);
      for (const { id, blocking } of calls) {
        this.#isBlocked ||= blocking;
        if (blocking || this.#deps.profile.turnCompleteAwaitsTools) this.#awaited.add(id);
      }
      if (calls.length > 0) this.#deps.sendCalls(calls);
    }
    this.#reach('afterToolCall');
  }

  readonly #awaitAnswers: Step = (next) => {
    if (this.#ended) return;
    if (this.#awaited.size === 0) return next();
    this.#flushHeld();
    this.#answered = next;
    this.#after(REHEARSAL_TOOL_WAIT_MAX_MS, () => this.#giveUp());
  };

  #pauseUntilAnswered(): void {
    this.#speech.pause();
    this.#awaitAnswers(() => this.#speech.resume());
  }

  #giveUp(): void {
    this.#deps.log.warn({ calls: this.#awaited.size }, 'no function response came; the rehearsal goes on');
    for (const id of this.#awaited) this.#deps.onUnanswered(id);
    this.#awaited.clear();
    this.#goOnIfAnswered();
  }

  #goOnIfAnswered(): void {
    if (this.#awaited.size > 0) return;
    this.#isBlocked = false;
    const goOn = this.#answered;
    if (goOn === undefined) return;
    this.#answered = undefined;
    this.#timer?.cancel();
    goOn();
  }

  #cutShort(): void {
    this.#speech.cancel();
    this.#steps.length = 0;
    this.#generated();
  }

  #flushHeld(): void {
    if (Object.keys(this.#held).length > 0) this.#deps.sendContent(this.#held);
    this.#held = {};
  }

  #completeEmpty(content: object): void {
    this.#completesLeft = 1;
    this.#complete(content);
    this.#over();
  }

  #generated(): void {
    const isHeld = Object.keys(this.#held).length > 0;
    if (isHeld && !this.#misbehaves.has('noTurnComplete') && !this.#misbehaves.has('lateTurnComplete')) {
      // Bundled: the completion comes long before the speech has been heard.
      this.#complete({ ...this.#held, generationComplete: true });
      return this.#after(this.#speech.unheardMs, () => this.#over());
    }
    this.#flushHeld();
    if (this.#saysGenerated) this.#deps.sendContent({ generationComplete: true });
    const late = this.#misbehaves.get('lateTurnComplete');
    const lateMs = late?.do === 'lateTurnComplete' ? late.seconds * 1_000 : 0;
    this.#after(this.#speech.unheardMs + lateMs, () => {
      this.#reach('beforeTurnComplete');
      if (!this.#ended) this.#completeAll();
    });
  }

  get #saysGenerated(): boolean {
    const missing = this.#misbehaves.get('noTurnComplete');
    return missing?.do !== 'noTurnComplete' || missing.generationComplete;
  }

  #completeAll(): void {
    if (this.#misbehaves.has('noTurnComplete')) return this.#over();
    const cut = this.#misbehaves.get('cutShort');
    this.#complete(cut?.do === 'cutShort' && cut.reason ? { turnCompleteReason: cut.reason } : {});
    if (this.#completesLeft > 0) this.#after(NEXT_COMPLETE_MS, () => this.#completeAll());
    else this.#over();
  }

  #complete(content: object): void {
    this.#completesLeft -= 1;
    const isLast = this.#completesLeft <= 0;
    const interactionStatus = isLast ? 'IDLE' : 'IN_PROGRESS';
    this.#isCompleted = isLast;
    this.#deps.completeTurn(
      this.#deps.profile.interactionStatus ? { ...content, interactionStatus } : content,
    );
  }

  #over(): void {
    if (this.#ended) return;
    this.#sendMessagesAt('afterTurnComplete');
    this.#ended = true;
    this.#deps.onOver();
    for (const one of this.#atPoints) if (one.at === 'afterTurnComplete') this.#deps.misbehave(one);
  }

  #after(delayMs: number, fire: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      fire();
    });
  }
}
