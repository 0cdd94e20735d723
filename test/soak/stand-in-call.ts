/**
 * The model's part in one call of the soak, over all its connections: it greets when it is asked to, answers what the caller says, texts and the
 * results of tools, takes a barge-in for what it is, issues handles, and strikes once where the plan says. It has a clock and lines
 * and no socket of its own.
 */
import type { Clock, Timer } from '../../src/clock.js';
import { type CallPlan, type PlannedTool, WAITING_TOOL } from './call-plan.js';
import type { Death, ModelFault, Moment } from './fault-catalogue.js';
import { chunkMessage, type ChunkSound, CHUNKS_MS, CLOSING_MS } from './model-sound.js';

/** One connection, as the model holds it. */
export interface ModelLine {
  readonly isOpen: boolean;
  send(message: object | Buffer): void;
  close(code: number, reason: string): void;
  /** Ends without a close frame. */
  cut(): void;
  reset(): void;
}

export interface StandInCallOptions {
  readonly plan: CallPlan;
  readonly clock: Clock;
  /** What it did that matters when something went wrong. */
  readonly tell: (what: string) => void;
}

/** The service commits the end of speech after so much silence, and its beginning after so much sound. */
const SPEECH_END_MS = 700;
const SPEECH_MIN_MS = 120;
const BARGE_IN_MS = 160;
/** Sound is made about three times as fast as it is played. */
const STEP_MS = 60;
const TURN_END_MS = 40;
const LISTENING_AFTER_MS = 800;
const TOOL_UNDER_WAY_MS = 400;
const SECOND_DEATH_MS = 200;
/** A connection that is to be dropped at a time far off is dropped then, before its time, as it happens in the field. */
const EARLY_DROP_MS = 6_000;
const REASONS: Readonly<Record<number, string>> = {
  1000: '',
  1007: 'Request contains an invalid argument.',
  1008: 'Operation is not implemented, or supported, or enabled.',
  1011: 'Internal error encountered.',
};

/** What is known of one connection. */
interface Session {
  readonly line: ModelLine;
  mute: 'no' | 'to-speech' | 'all';
  loudMs: number;
  quietMs: number;
  isSpokenTo: boolean;
  speaking: Timer | undefined;
  playedUntilMs: number;
  /** A text that came while it spoke. */
  asked: boolean;
  waitsForTool: boolean;
}

export class StandInCall {
  readonly #plan: CallPlan;
  readonly #clock: Clock;
  readonly #tell: (what: string) => void;
  readonly #sessions = new Map<ModelLine, Session>();
  readonly #timers = new Set<Timer>();
  /** The caller's turn that is being answered; -1 is the greeting. */
  #turn = -1;
  #answers = 0;
  #calls = 0;
  #connections = 0;
  #handles = 0;
  #refusedUpTo = 0;
  #hasStruck = false;
  #hasUsedSlowTool = false;
  #afterDeath: 'dies' | 'mute' | undefined;

  constructor(options: StandInCallOptions) {
    this.#plan = options.plan;
    this.#clock = options.clock;
    this.#tell = options.tell;
  }

  get connections(): number {
    return this.#connections;
  }

  get hasStruck(): boolean {
    return this.#hasStruck;
  }

  /** The setup of a new connection has come. */
  open(line: ModelLine, handle: string | undefined): void {
    this.#connections += 1;
    this.#tell(`connection ${this.#connections}, ${handle === undefined ? 'fresh' : `resumes ${handle}`}`);
    if (this.#refuses(line, handle) || this.#reach('before-setup', line)) return;
    const { fault } = this.#plan;
    const delayMs = fault.model?.kind === 'slow-setup' && !this.#hasStruck ? fault.model.delayMs : 0;
    if (delayMs > 0) this.#strike(`a setup of ${delayMs} ms`);
    if (delayMs > 0) this.#later(delayMs, () => this.#begin(line));
    else this.#begin(line);
  }

  onSound(line: ModelLine, { ms, isLoud }: { ms: number; isLoud: boolean }): void {
    const session = this.#sessions.get(line);
    if (session === undefined) return;
    if (!isLoud) {
      session.quietMs += ms;
      if (session.quietMs >= SPEECH_END_MS && session.loudMs > 0) this.#onSpeechEnd(session);
      return;
    }
    const before = session.loudMs;
    session.loudMs += ms;
    session.quietMs = 0;
    if (before < BARGE_IN_MS && session.loudMs >= BARGE_IN_MS) this.#onSpeech(session);
  }

  onText(line: ModelLine, text: string): void {
    const session = this.#sessions.get(line);
    if (session === undefined || session.mute === 'all') return;
    if (text.includes('word for word')) this.#greet(session);
    else if (session.speaking === undefined) this.#answer(session);
    else session.asked = true;
  }

  onToolResponse(line: ModelLine): void {
    const session = this.#sessions.get(line);
    if (session === undefined || session.mute === 'all') return;
    session.waitsForTool = false;
    if (this.#turn >= this.#plan.faultTurn && this.#reach('after-tool-response', line)) return;
    if (session.speaking === undefined) this.#answer(session);
    else session.asked = true;
  }

  onClosed(line: ModelLine): void {
    const session = this.#sessions.get(line);
    if (session === undefined) return;
    session.speaking?.cancel();
    this.#sessions.delete(line);
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel();
    for (const { speaking } of this.#sessions.values()) speaking?.cancel();
    this.#timers.clear();
    this.#sessions.clear();
  }

  #begin(line: ModelLine): void {
    if (!line.isOpen) return;
    line.send({ setupComplete: {} });
    const session: Session = {
      line,
      mute: this.#afterDeath === 'mute' ? 'all' : 'no',
      loudMs: 0,
      quietMs: 0,
      isSpokenTo: false,
      speaking: undefined,
      playedUntilMs: 0,
      asked: false,
      waitsForTool: false,
    };
    this.#sessions.set(line, session);
    const { model } = this.#plan.fault;
    if (this.#afterDeath === 'dies' && model?.kind === 'death') {
      this.#later(SECOND_DEATH_MS, () => this.#die(line, model.how));
    }
    if (this.#afterDeath !== undefined)
      this.#tell(`this one ${this.#afterDeath === 'mute' ? 'is mute' : 'dies'}, too`);
    this.#afterDeath = undefined;
    this.#later(0, () => this.#reach('after-setup', line));
  }

  /** Handles from before a death that is to be followed by a refusal are worth nothing. */
  #refuses(line: ModelLine, handle: string | undefined): boolean {
    const { model } = this.#plan.fault;
    const next = model?.kind === 'death' ? model.next : undefined;
    if (handle === undefined || typeof next !== 'object') return false;
    if (Number(/\d+$/.exec(handle)?.[0] ?? 0) > this.#refusedUpTo) return false;
    this.#tell(`refused to resume with ${next.refuses}`);
    line.close(next.refuses, REASONS[next.refuses] ?? '');
    return true;
  }

  // What the caller does.

  #onSpeech(session: Session): void {
    session.isSpokenTo = true;
    if (this.#turn + 1 >= this.#plan.faultTurn && this.#reach('caller-speaks', session.line)) return;
    const isHeard = session.speaking !== undefined || session.playedUntilMs > this.#clock.nowMs();
    if (!isHeard || session.mute === 'all') return;
    session.speaking?.cancel();
    session.speaking = undefined;
    session.asked = false;
    session.playedUntilMs = 0;
    session.line.send({ serverContent: { interrupted: true } });
    session.line.send({ serverContent: { turnComplete: true } });
    const { model } = this.#plan.fault;
    const isLast =
      model?.kind === 'mute' && model.after === 'interrupted' && this.#turn + 1 >= this.#plan.faultTurn;
    if (isLast && this.#strike('mute after interrupted')) session.mute = 'all';
  }

  #onSpeechEnd(session: Session): void {
    const wasSpeech = session.loudMs >= SPEECH_MIN_MS;
    session.loudMs = 0;
    session.isSpokenTo = false;
    if (!wasSpeech || session.mute !== 'no') return;
    this.#turn += 1;
    session.line.send({
      serverContent: {
        inputTranscription: { text: `Question ${this.#turn + 1} of call ${this.#plan.number}.` },
      },
    });
    if (this.#goesMute(session)) return;
    const tool = this.#toolOfTurn();
    if (tool === undefined) this.#answer(session);
    else this.#call(session, tool);
  }

  #goesMute(session: Session): boolean {
    const { fault, faultTurn } = this.#plan;
    if (fault.model?.kind !== 'mute' || fault.model.after === 'interrupted' || this.#turn < faultTurn)
      return false;
    if (!this.#strike(`mute: ${fault.model.after}`)) return false;
    session.mute = fault.model.after === 'nudged' ? 'to-speech' : 'all';
    return true;
  }

  // What the model does.

  #toolOfTurn(): PlannedTool | undefined {
    const { fault, faultTurn, turns } = this.#plan;
    if (fault.toolMs !== undefined && this.#turn >= faultTurn && !this.#hasUsedSlowTool) {
      this.#hasUsedSlowTool = true;
      return { name: WAITING_TOOL, args: { ms: fault.toolMs } };
    }
    return turns[this.#turn]?.tool;
  }

  #call(session: Session, { name, args }: PlannedTool): void {
    session.waitsForTool = true;
    this.#sendCall(session, name, args);
    this.#later(TOOL_UNDER_WAY_MS, () => {
      if (session.waitsForTool) this.#reach('tool-runs', session.line);
    });
  }

  #sendCall({ line }: Session, name: string, args: PlannedTool['args']): void {
    this.#calls += 1;
    const id = `call-${this.#plan.number}-${this.#calls}`;
    line.send({ toolCall: { functionCalls: [{ id, name, args }] } });
  }

  #greet(session: Session): void {
    const text = `Greeting of call ${this.#plan.number} in so many words.`;
    this.#speak(session, { text, ms: this.#plan.greetingMs, moment: 'greeting', sound: 'speech' });
  }

  #answer(session: Session): void {
    const { fault, faultTurn, number, turns } = this.#plan;
    this.#answers += 1;
    // An answer that was asked for by a text sets right what was wrong with the silence before.
    session.mute = 'no';
    const isStruck = this.#turn >= faultTurn && !this.#hasStruck;
    if (isStruck && fault.model?.kind === 'empty-turn' && this.#strike('an empty turn')) {
      session.line.send({ serverContent: { turnComplete: true } });
      return;
    }
    const isFaint = isStruck && fault.model?.kind === 'near-silent' && this.#strike('a near-silent answer');
    this.#speak(session, {
      text: `Answer ${this.#answers} of call ${number} in so many words.`,
      ms: turns[this.#turn]?.answerMs ?? 1_500,
      moment: 'mid-speech',
      sound: isFaint ? 'faint' : 'speech',
    });
  }

  #speak(
    session: Session,
    {
      text,
      ms,
      moment,
      sound,
    }: { text: string; ms: number; moment: 'greeting' | 'mid-speech'; sound: ChunkSound },
  ): void {
    session.speaking?.cancel();
    const words = text.match(/\S+\s*/g) ?? [];
    const wholeMs = Math.ceil((ms - CLOSING_MS) / 40) * 40;
    const wordMs = wholeMs / words.length;
    let sentMs = 0;
    let told = 0;
    const step = (): void => {
      if (!session.line.isOpen) return;
      let isHalf = false;
      for (let room = STEP_MS * 3; room > 0 && sentMs < wholeMs;) {
        const left = wholeMs - sentMs;
        const chunkMs =
          sentMs === 0 ? CHUNKS_MS[0] : (CHUNKS_MS.findLast((each) => each <= left) ?? CHUNKS_MS[0]);
        this.#sendSound(session, sound, chunkMs);
        isHalf ||= sentMs < wholeMs / 2 && sentMs + chunkMs >= wholeMs / 2;
        sentMs += chunkMs;
        room -= chunkMs;
      }
      const due = words.slice(told, Math.ceil(sentMs / wordMs));
      told += due.length;
      if (due.length > 0)
        session.line.send({ serverContent: { outputTranscription: { text: due.join('') } } });
      if (isHalf && this.#isSpeechStruck(session, moment)) return;
      if (sentMs < wholeMs) session.speaking = this.#clock.setTimer(STEP_MS, step);
      else this.#finish(session, sound);
    };
    session.playedUntilMs = Math.max(session.playedUntilMs, this.#clock.nowMs());
    step();
  }

  #sendSound(session: Session, sound: ChunkSound, ms: (typeof CHUNKS_MS)[number]): void {
    session.line.send(chunkMessage(sound, ms));
    session.playedUntilMs += ms;
  }

  /** In the middle of an answer. Returns true where it goes no further. */
  #isSpeechStruck(session: Session, moment: 'greeting' | 'mid-speech'): boolean {
    const { fault, faultTurn } = this.#plan;
    if (moment === 'greeting') return this.#reach('greeting', session.line);
    if (this.#turn < faultTurn) return false;
    if (fault.model?.kind === 'phantom-interrupted' && this.#strike('a phantom interrupted')) {
      session.speaking = undefined;
      session.playedUntilMs = 0;
      session.line.send({ serverContent: { interrupted: true } });
      session.line.send({ serverContent: { turnComplete: true } });
      return true;
    }
    return this.#reach('mid-speech', session.line);
  }

  #finish(session: Session, sound: ChunkSound): void {
    const { line } = session;
    this.#sendSound(session, sound === 'faint' ? 'faint' : 'closing', CLOSING_MS);
    line.send({ serverContent: { generationComplete: true } });
    session.speaking = this.#clock.setTimer(TURN_END_MS, () => {
      session.speaking = undefined;
      const { fault, faultTurn } = this.#plan;
      const isOpenEnded = fault.model?.kind === 'no-turn-complete' && this.#turn >= faultTurn;
      if (!isOpenEnded || !this.#strike('no turnComplete'))
        line.send({ serverContent: { turnComplete: true } });
      this.#handles += 1;
      const newHandle = `soak-${this.#plan.number}-${this.#handles}`;
      line.send({ sessionResumptionUpdate: { newHandle, resumable: true } });
      if (session.asked) {
        session.asked = false;
        this.#answer(session);
      } else this.#listen(session);
    });
  }

  #listen(session: Session): void {
    const { endsBy, turns } = this.#plan;
    if (endsBy === 'agent' && this.#turn === turns.length - 1) {
      this.#sendCall(session, 'end_call', {});
      return;
    }
    const waitMs = session.playedUntilMs - this.#clock.nowMs() + LISTENING_AFTER_MS;
    this.#later(Math.max(0, waitMs), () => {
      const isQuiet = session.speaking === undefined && !session.isSpokenTo;
      if (isQuiet && this.#turn + 1 >= this.#plan.faultTurn) this.#reach('listening', session.line);
    });
  }

  // What goes wrong.

  /** Strikes if this is where the plan says. Returns true where the line is gone. */
  #reach(moment: Moment, line: ModelLine): boolean {
    const { model } = this.#plan.fault;
    if (model === undefined || !('at' in model) || model.at !== moment || !line.isOpen) return false;
    if (!this.#strike(`${this.#plan.fault.name} on connection ${this.#connections}`)) return false;
    if (model.kind === 'goAway') this.#goAway(line, model);
    else this.#dieFirst(line, model);
    return !line.isOpen;
  }

  #goAway(line: ModelLine, { timeLeftMs, drops }: Extract<ModelFault, { kind: 'goAway' }>): void {
    line.send({ goAway: { timeLeft: `${timeLeftMs / 1_000}s` } });
    if (!drops) return;
    this.#later(Math.min(timeLeftMs, EARLY_DROP_MS), () => {
      if (line.isOpen) this.#tell('dropped what it had announced');
      this.#die(line, 1011);
    });
  }

  #dieFirst(line: ModelLine, { how, next }: Extract<ModelFault, { kind: 'death' }>): void {
    if (typeof next === 'string') this.#afterDeath = next;
    if (typeof next === 'object') this.#refusedUpTo = this.#handles;
    this.#die(line, how);
  }

  #die(line: ModelLine, how: Death): void {
    if (!line.isOpen) return;
    this.#sessions.get(line)?.speaking?.cancel();
    if (how === 'cut') line.cut();
    else if (how === 'reset') line.reset();
    else line.close(how, REASONS[how] ?? '');
  }

  /** True the first time. */
  #strike(what: string): boolean {
    if (this.#hasStruck) return false;
    this.#hasStruck = true;
    this.#tell(what);
    return true;
  }

  #later(ms: number, act: () => void): void {
    const timer = this.#clock.setTimer(ms, () => {
      this.#timers.delete(timer);
      act();
    });
    this.#timers.add(timer);
  }
}
