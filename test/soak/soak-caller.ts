/**
 * The caller of one call of the soak: a phone, an ear that knows when it is its turn, and a mouth that follows the plan. A caller who hears no
 * answer asks again, and gives up in the end, as people do.
 */
import { systemClock } from '../../src/clock.js';
import { loadPrompts } from '../../src/call/prompts.js';
import { MULAW_BYTES_PER_MS, MULAW_FRAME_BYTES } from '../../src/limits.js';
import type { PhoneRecord } from '../../src/replay/phone-record.js';
import { Phone } from '../../src/replay/phone.js';
import { pause } from '../support/wait-until.js';
import { type CallPlan, idsOf } from './call-plan.js';
import type { CallerFault } from './fault-catalogue.js';
import { frameKind } from './heard-sound.js';

/** Speech for the caller's mouth: a recorded voice, so that whatever detects voices finds one. */
const VOICE = loadPrompts().apology;
/** How often the caller listens, and how far back: longer than the pause, so that nothing is missed. */
const LISTEN_EVERY_MS = 60;
const LISTEN_BACK_MS = 120;
const LOOK_EVERY_MS = 40;
/** An answer is over when it has ended with its closing tone and nothing has followed for so long. */
const TURN_TAKEN_MS = 400;
const ASKS_AGAIN_AFTER_MS = 8_000;
const ASKS_AGAIN_MAX = 3;
const HELLO_MS = 900;
/** How far somebody is into their words when something happens. */
const MIDWAY_MS = 600;
const DIAL_MAX_MS = 15_000;
const AGENT_ENDS_MAX_MS = 15_000;
const CALL_MAX_MS = 100_000;

export interface CallOutcome {
  readonly plan: CallPlan;
  readonly callSid: string;
  readonly record: PhoneRecord;
  /** When the call was answered, on the machine's clock. */
  readonly answeredAtMs: number;
  /** The caller hung up because nobody answered any more. */
  readonly gaveUp: boolean;
  /** Somebody else ended the call before the caller had come to the end. */
  readonly wasCut: boolean;
  readonly failure: string | undefined;
  readonly notes: readonly string[];
}

export class SoakCaller {
  readonly phone: Phone;
  readonly #plan: CallPlan;
  readonly #startedMs = systemClock.nowMs();
  readonly #notes: string[] = [];
  #isOver = false;
  #gaveUp = false;
  #isDone = false;
  /** What was last audible, when, and when the agent itself was. */
  #lastKind: 'speech' | 'closing' | 'other' | 'silent' = 'silent';
  #heardMs = 0;
  #agentHeardMs = 0;
  #spokeUntilMs = 0;

  constructor(options: { plan: CallPlan; seed: number; url: string }) {
    const { plan, seed, url } = options;
    this.#plan = plan;
    this.phone = new Phone({
      clock: systemClock,
      url,
      agent: plan.agent,
      from: plan.from,
      randomId: idsOf(seed, plan.number),
    });
  }

  /** Places the call and resolves when it is over. */
  async run(onTalking: () => void): Promise<CallOutcome> {
    let failure: string | undefined;
    const over = this.phone
      .call()
      .catch((error: unknown) => {
        failure = error instanceof Error ? error.message : String(error);
      })
      .finally(() => (this.#isOver = true));
    const listening = this.#listen();
    await this.#follow(onTalking);
    this.#isDone ||= this.#isOver && this.#plan.endsBy === 'agent';
    const wasCut = this.#isOver && !this.#isDone;
    this.phone.hangUp();
    const answeredAtMs = systemClock.nowMs() - this.phone.elapsedMs;
    await Promise.all([over, listening]);
    return {
      plan: this.#plan,
      callSid: this.phone.callSid,
      record: this.phone.record(),
      answeredAtMs,
      gaveUp: this.#gaveUp,
      wasCut,
      failure,
      notes: this.#notes,
    };
  }

  get elapsedMs(): number {
    return Math.round(this.phone.elapsedMs);
  }

  async #follow(onTalking: () => void): Promise<void> {
    const plan = this.#plan;
    const { caller } = plan.fault;
    if (caller?.kind === 'hang-up' && caller.while === 'ringing') {
      await pause(plan.turns[0]?.pauseMs ?? 0);
      return this.#finish('hangs up while it rings');
    }
    if (!(await this.#until(() => this.phone.state === 'talking', DIAL_MAX_MS))) return;
    onTalking();
    if (caller?.kind === 'hang-up' && caller.while === 'greeting') {
      await this.#hears();
      return this.#finish('hangs up in the greeting');
    }
    for (const index of plan.turns.keys()) {
      if (!(await this.#hearsOut())) return;
      const struck = index === plan.faultTurn ? caller : undefined;
      if (!(await this.#takesTurn(index, struck))) return;
    }
    if (!(await this.#hearsOut())) return;
    if (plan.endsBy === 'agent') await this.#until(() => false, AGENT_ENDS_MAX_MS);
    else await pause(plan.turns[0]?.pauseMs ?? 0);
    this.#finish('has come to the end');
  }

  /** Says one thing, with whatever happens meanwhile. Returns false when the call is over. */
  async #takesTurn(index: number, struck: CallerFault | undefined): Promise<boolean> {
    const { pauseMs, callerMs } = this.#plan.turns[index]!;
    const happens = struck !== undefined && 'while' in struck ? struck.while : undefined;
    if (happens === 'listening' && !(await this.#losesLine())) return false;
    await this.#until(() => false, pauseMs);
    this.#say(callerMs);
    if (happens === 'caller-speaks') {
      await this.#until(() => false, MIDWAY_MS);
      if (!(await this.#suffers(struck))) return false;
    }
    await this.#until(() => systemClock.nowMs() >= this.#spokeUntilMs, callerMs + 100);
    if (happens === 'waiting') {
      await this.#until(() => false, MIDWAY_MS / 2);
      return this.#suffers(struck);
    }
    if (happens === 'agent-speaks') return (await this.#hears()) && this.#suffers(struck);
    if (struck?.kind === 'barge-in' || this.#plan.bargesInAt === index) {
      if (!(await this.#hears())) return !this.#isOver;
      this.#note('cuts in');
      this.#say(HELLO_MS);
    }
    return !this.#isOver;
  }

  async #suffers(struck: CallerFault | undefined): Promise<boolean> {
    if (struck?.kind === 'line-drop') return this.#losesLine();
    this.#finish(`hangs up: ${struck !== undefined && 'while' in struck ? struck.while : ''}`);
    return false;
  }

  /** The media socket breaks, and the carrier goes on with the document. */
  async #losesLine(): Promise<boolean> {
    this.#note('the line breaks');
    this.phone.breakStream();
    await this.#until(() => this.phone.state !== 'talking', DIAL_MAX_MS);
    return this.#until(() => this.phone.state === 'talking', DIAL_MAX_MS);
  }

  /** The agent is heard, and is midway in its words. */
  async #hears(): Promise<boolean> {
    const sinceMs = Math.max(this.#spokeUntilMs, systemClock.nowMs());
    const isHeard = (): boolean => this.#lastKind === 'speech' && this.#heardMs > sinceMs;
    if (!(await this.#until(isHeard, ASKS_AGAIN_AFTER_MS))) return false;
    await this.#until(() => false, MIDWAY_MS);
    return !this.#isOver;
  }

  /** The agent has been heard out. Returns false when the call is over, or the caller has had enough. */
  async #hearsOut(): Promise<boolean> {
    for (let asked = 0; asked <= ASKS_AGAIN_MAX; asked += 1) {
      const sinceMs = Math.max(this.#spokeUntilMs, systemClock.nowMs() - TURN_TAKEN_MS);
      const isMyTurn = (): boolean =>
        this.#lastKind === 'closing' &&
        this.#heardMs > sinceMs &&
        systemClock.nowMs() - this.#heardMs >= TURN_TAKEN_MS;
      const isLong = (): boolean =>
        systemClock.nowMs() - Math.max(sinceMs, this.#agentHeardMs) > ASKS_AGAIN_AFTER_MS;
      await this.#until(() => isMyTurn() || isLong(), CALL_MAX_MS);
      if (this.#isOver) return false;
      if (isMyTurn()) return true;
      if (asked === ASKS_AGAIN_MAX || systemClock.nowMs() - this.#startedMs > CALL_MAX_MS) break;
      this.#note('asks again');
      this.#say(HELLO_MS);
    }
    this.#gaveUp = true;
    this.#note('gives up');
    return false;
  }

  #say(ms: number): void {
    const nowMs = systemClock.nowMs();
    this.phone.say(VOICE.subarray(0, ms * MULAW_BYTES_PER_MS));
    this.#spokeUntilMs = Math.max(nowMs, this.#spokeUntilMs) + ms;
  }

  #finish(why: string): void {
    // A call that was over before is no end of the caller's.
    if (this.#isOver) return;
    this.#isDone = true;
    this.#note(why);
  }

  #note(what: string): void {
    this.#notes.push(`${this.elapsedMs} caller: ${what}`);
  }

  async #listen(): Promise<void> {
    const bytes = LISTEN_BACK_MS * MULAW_BYTES_PER_MS;
    const target = { heard: new Uint8Array(bytes), said: new Uint8Array(bytes) };
    while (!this.#isOver) {
      await pause(LISTEN_EVERY_MS);
      this.phone.readRecent(target, LISTEN_BACK_MS);
      const kind = this.#newestKind(target.heard);
      if (kind === undefined) continue;
      const nowMs = systemClock.nowMs();
      this.#heardMs = nowMs;
      if (kind !== 'other') this.#agentHeardMs = nowMs;
      this.#lastKind = kind;
    }
  }

  /** What the newest sound is. Where a tone begins or ends within a frame, that frame is no tone, and the one before it tells. */
  #newestKind(heard: Uint8Array): 'speech' | 'closing' | 'other' | undefined {
    for (let at = heard.length - MULAW_FRAME_BYTES; at >= 0; at -= MULAW_FRAME_BYTES) {
      const kind = frameKind(heard.subarray(at, at + MULAW_FRAME_BYTES));
      if (kind === 'silent') continue;
      if (kind !== 'other') return kind;
      // At the far end of what is looked at, it was heard the time before.
      if (at === 0) return undefined;
      const before = frameKind(heard.subarray(at - MULAW_FRAME_BYTES, at));
      return before === 'silent' ? kind : before;
    }
    return undefined;
  }

  /** Whether it came true before the call was over and the time was up. */
  async #until(isTrue: () => boolean, maxMs: number): Promise<boolean> {
    const deadlineMs = systemClock.nowMs() + maxMs;
    while (!this.#isOver && !isTrue() && systemClock.nowMs() < deadlineMs)
      await pause(Math.min(LOOK_EVERY_MS, Math.max(1, deadlineMs - systemClock.nowMs())));
    return !this.#isOver && isTrue();
  }
}
