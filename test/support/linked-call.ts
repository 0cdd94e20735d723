/**
 * A call over real sockets whose model comes and goes, in time that stands still until the test moves it, a frame at a time. While a
 * connection is on its way, time waits for it for a moment: what is measured is the server's own schedule, not the machine.
 */
import assert from 'node:assert/strict';
import type { Agent } from '../../src/agent/agent.js';
import { nextTurn, systemClock } from '../../src/clock.js';
import { FRAME_MS } from '../../src/limits.js';
import type { Phone } from '../../src/replay/phone.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { desk, GREETING } from './probe-agents.js';
import { reconnectsOf } from './reconnects.js';
import type { ScriptedConnection } from './scripted-gemini.js';
import { says, Stage } from './stage.js';
import { passWhile } from './pass-while.js';

/** What a message needs from one end of loopback to the other and on: each of them a turn of the event loop. */
const SETTLED_TURNS = 6;
/** How long time stands still for a message or a connection that may come. */
const PATIENCE_MS = 25;
/** PCM16 at 16 kHz. */
const BYTES_PER_FRAME = 640;
/** Longer than anything that a test waits for. */
const PASS_MAX_MS = 60_000;

export class LinkedCall {
  /** When the connections got their first and their last sound, in milliseconds of the clock. */
  readonly #soundAt = new Map<ScriptedConnection, { first: number; last: number }>();
  readonly #frames = new Map<ScriptedConnection, { seen: number; sound: number }>();

  private constructor(
    readonly clock: VirtualClock,
    readonly stage: Stage,
    readonly phone: Phone,
    readonly over: Promise<unknown>,
  ) {}

  /** The model is connected and asked to greet. */
  static async open(agent: Agent = desk(), environment: Readonly<Record<string, string>> = {}) {
    const clock = new VirtualClock();
    const stage = await Stage.open({ IDLE_REPROMPT_SECONDS: '0', ...environment }, clock, [agent]);
    const { phone, over } = await stage.call({ clock });
    return new LinkedCall(clock, stage, phone, over);
  }

  /** Greeted, with the line silent and a session that can be resumed. */
  static async greeted(agent?: Agent, handle: string | undefined = 'h1') {
    const call = await LinkedCall.open(agent);
    says(call.model, GREETING, { ms: 400 });
    await call.pass(1_000);
    if (handle !== undefined) call.model.sendResumptionHandle(handle);
    await call.pass(100);
    return call;
  }

  get models(): readonly ScriptedConnection[] {
    return this.stage.gemini.connections;
  }

  /** The newest connection. */
  get model(): ScriptedConnection {
    return this.models.at(-1)!;
  }

  /** What the connections were told in words, a list each. */
  get told(): string[][] {
    return this.models.map(({ receivedTextInputs }) => receivedTextInputs);
  }

  /** The handle that each connection was opened with, undefined where a new session was asked for. */
  get handles(): (string | undefined)[] {
    return this.models.map(({ setup }) => {
      const { handle } = (setup?.['sessionResumption'] ?? {}) as { handle?: string };
      return handle;
    });
  }

  instruction(model = this.model): string {
    return JSON.stringify(model.setup?.['systemInstruction'] ?? '');
  }

  soundAt(model: ScriptedConnection): { first: number; last: number } {
    const at = this.#soundAt.get(model);
    if (at === undefined) throw new Error('this connection got no sound');
    return at;
  }

  reconnects(): Promise<string[]> {
    return reconnectsOf(this.stage.url);
  }

  /** Time goes on, a frame at a time, each when what it brings about is done. */
  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += FRAME_MS) await this.#step();
  }

  async passUntil(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
    for (let at = 0; !(await isTrue()); at += FRAME_MS) {
      if (at > PASS_MAX_MS)
        throw new Error(`time passed in vain for ${what}; told: ${JSON.stringify(this.told)}`);
      await this.#step();
    }
  }

  /** The session has this line. */
  async passUntilSaid(line: string): Promise<void> {
    await this.passUntil(line, async () => (await this.stage.said(this.phone.callSid)).includes(line));
  }

  /** Another connection is there, and its setup is done. */
  async passToConnection(count: number): Promise<ScriptedConnection> {
    await this.passUntil(`connection ${count}`, () => {
      return this.models.length >= count && this.model.isReady;
    });
    return this.model;
  }

  /** The call is over, and nothing is left of it: neither in the server nor at the model. */
  async hangUp({ mostOpen = 1 } = {}): Promise<void> {
    this.phone.hangUp();
    await passWhile(
      this.clock,
      Promise.all([this.over, this.stage.ended(this.phone.callSid), this.stage.idle()]),
    );
    assert(
      this.models.every(({ isClosed }) => isClosed),
      'every connection is closed',
    );
    assert(this.stage.gemini.mostOpen <= mostOpen, 'never two connections at once');
  }

  async close(): Promise<void> {
    await passWhile(this.clock, this.stage.close());
  }

  async #step(): Promise<void> {
    const before = this.#soundFrames(this.models.at(-1));
    this.clock.advance(FRAME_MS);
    const model = this.models.at(-1);
    if (model?.isOpen === true && model.isReady) {
      await within(PATIENCE_MS, () => !model.isOpen || this.#soundFrames(model) > before);
    } else if (model?.isOpen !== true) {
      await within(PATIENCE_MS, () => this.model.isOpen && this.model.setup !== undefined);
    }
    for (let turn = 0; turn < SETTLED_TURNS; turn += 1) await nextTurn();
    for (const each of this.models) this.#soundFrames(each);
  }

  /** Frames of the caller's sound that a connection has got by now. */
  #soundFrames(model: ScriptedConnection | undefined): number {
    if (model === undefined) return 0;
    const frames = this.#frames.get(model) ?? { seen: 0, sound: 0 };
    for (; frames.seen < model.received.length; frames.seen += 1) {
      const input = model.received[frames.seen]!['realtimeInput'] as { audio?: { data: string } } | undefined;
      if (input?.audio === undefined) continue;
      frames.sound += Buffer.from(input.audio.data, 'base64').length / BYTES_PER_FRAME;
      const now = this.clock.nowMs();
      this.#soundAt.set(model, { first: this.#soundAt.get(model)?.first ?? now, last: now });
    }
    this.#frames.set(model, frames);
    return frames.sound;
  }
}

/** Real time passes until something is true, for so long at most. */
async function within(ms: number, isTrue: () => boolean): Promise<void> {
  const deadlineMs = systemClock.nowMs() + ms;
  while (!isTrue() && systemClock.nowMs() < deadlineMs) await nextTurn();
}
