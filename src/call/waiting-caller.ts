/**
 * The caller's side of a wait: since when they hear nothing, whether they wait for an answer, and what they and the model are told
 * meanwhile. Joins the watch for answers that do not come, the return of a model that was away, and the clip that asks to hold.
 */
import type { Playout } from '../audio/playout.js';
import type { Clock } from '../clock.js';
import type { AgentLeg } from './agent-leg.js';
import { AnswerWatch, type LineNow, type WaitStep } from './answer-watch.js';
import type { CallerLeg } from './caller-leg.js';
import { ModelReturn } from './model-return.js';
import type { RecordedClips } from './recorded-clips.js';

export interface WaitingCallerOptions {
  readonly clock: Clock;
  readonly playout: Pick<Playout, 'isSilent'>;
  readonly agent: Pick<AgentLeg, 'isAudible' | 'isHalfSaid' | 'isShown' | 'current'>;
  readonly caller: Pick<CallerLeg, 'voicedMs' | 'lastVoicedAtMs'>;
  readonly clips: RecordedClips;
  /** There are a line and a model, and nobody is saying goodbye. */
  readonly isConnected: () => boolean;
  /** What is being played is cut. */
  readonly giveWay: () => void;
}

export class WaitingCaller {
  readonly #options: WaitingCallerOptions;
  readonly #watch = new AnswerWatch();
  readonly #return = new ModelReturn();
  /** When something of the agent, or a clip, was last heard; the line began with silence. */
  #heardAtMs: number;
  #isTurnCut = false;

  constructor(options: WaitingCallerOptions) {
    this.#options = options;
    this.#heardAtMs = options.clock.nowMs();
  }

  /** An answer is due, or will be as soon as the model is back. */
  get isDue(): boolean {
    return this.#watch.isDue || this.#return.isOpen;
  }

  /** It has to be looked often: an answer is due, or a function is being carried out (`isToolOut`). */
  isPressing(isToolOut: boolean): boolean {
    return this.#options.isConnected() && (isToolOut || this.#watch.isDue);
  }

  /** The caller hears something now, and not only hush. */
  get hears(): boolean {
    const { playout, clips, agent } = this.#options;
    return !playout.isSilent && (clips.isPlaying || agent.isAudible);
  }

  onDue(): void {
    this.#watch.onDue(this.#options.clock.nowMs());
  }

  onToolCall(): void {
    this.#watch.onToolCall(this.#options.clock.nowMs());
  }

  /** The caller has pressed a key or typed something. */
  onCallerAsks(): void {
    this.#watch.onCallerAsks(this.#options.clock.nowMs());
  }

  /** The caller was understood to say something; it asks for an answer if they said it after the agent. */
  onWords(): void {
    const { lastVoicedAtMs = Number.NEGATIVE_INFINITY } = this.#options.caller;
    if (this.hears || lastVoicedAtMs <= this.#heardAtMs) return;
    this.#watch.onDue(this.#options.clock.nowMs(), lastVoicedAtMs);
  }

  /** The model has stopped what it was saying, because of the caller as it believes; the `turnComplete` of that turn follows. */
  onInterrupted(): void {
    this.#isTurnCut = true;
    this.onDue();
  }

  /** The model has ended a turn in which it said nothing. */
  onEmptyTurn(): void {
    if (!this.#isTurnCut) this.#watch.onEmptyTurn();
    this.#isTurnCut = false;
  }

  onAnswer(): void {
    this.#isTurnCut = false;
    this.#watch.onAnswer();
    // Who reads has it as soon as it comes.
    if (this.#options.agent.isShown) this.onHeard();
  }

  onWholeAnswer(): void {
    this.#watch.onWholeAnswer();
  }

  /** Something was heard up to now, or the line begins now. */
  onHeard(): void {
    this.#heardAtMs = this.#options.clock.nowMs();
  }

  /** Twice a second. */
  onTick(): void {
    if (this.hears) this.onHeard();
  }

  /** What is to be done now. `isToolOut`: the model waits for a function's result; `isWorkOut`: the caller does. */
  step({ isToolOut, isWorkOut }: Pick<LineNow, 'isToolOut' | 'isWorkOut'>): WaitStep | undefined {
    const { clock, caller, agent, isConnected } = this.#options;
    if (!isConnected()) return undefined;
    return this.#watch.look({
      nowMs: clock.nowMs(),
      isSilent: !this.hears,
      heardAtMs: this.#heardAtMs,
      voicedMs: caller.voicedMs,
      voicedAtMs: caller.lastVoicedAtMs ?? Number.NEGATIVE_INFINITY,
      isToolOut,
      isWorkOut,
      isHalfSaid: agent.isHalfSaid,
    });
  }

  /** Who reads has a screen that says so. */
  askToWait(): void {
    const { playout, agent, clips, giveWay } = this.#options;
    if (agent.isShown || clips.isPlaying) return;
    if (!playout.isSilent && !agent.isAudible) giveWay(); // Nobody waits for hush to end.
    this.#return.onHeld();
    clips.play('hold');
  }

  /** Before the agent's leg hears of it. */
  onModelGone(): void {
    const { clock, agent } = this.#options;
    this.#return.onGone({
      nowMs: clock.nowMs(),
      isDue: this.#watch.isDue,
      broken: agent.isHalfSaid ? agent.current : undefined,
    });
    this.#watch.onModelGone();
  }

  /** The caller has asked for something while the model was away. */
  askedMeanwhile(): void {
    this.#return.onAsked();
  }

  /** `waiting`: what could not be told to the model meanwhile. */
  onModelBack(waiting: readonly string[]): void {
    this.#return.onBack(waiting);
  }

  /** What the model that is back is to be asked now, if anything. */
  takeReturn(): string | undefined {
    const { clock, playout, caller, isConnected } = this.#options;
    if (!isConnected()) return undefined;
    return this.#return.take({
      nowMs: clock.nowMs(),
      isSilent: playout.isSilent,
      voicedAtMs: caller.lastVoicedAtMs ?? Number.NEGATIVE_INFINITY,
    });
  }

  /** The conversation goes on without the model's being asked to. Returns what it is still to be told. */
  overtaken(): readonly string[] {
    return this.#return.overtaken();
  }
}
