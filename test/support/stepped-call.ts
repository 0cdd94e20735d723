/**
 * A call over real sockets whose time stands still until the test moves it, a frame at a time: minutes of it pass in seconds,
 * and what is measured in it is the server's own schedule, however busy the machine is.
 */
import type { Agent } from '../../src/agent/agent.js';
import { nextTurn } from '../../src/clock.js';
import { FRAME_MS, MULAW_BYTES_PER_MS } from '../../src/limits.js';
import type { Phone } from '../../src/replay/phone.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { answerTo } from './probe-agents.js';
import type { JsonObject, ScriptedConnection } from './scripted-gemini.js';
import { says, Stage } from './stage.js';
import { pause } from './wait-until.js';
import { passWhile } from './pass-while.js';

/** What a message needs from one end of loopback to the other and on: each of them a turn of the event loop. */
const SETTLED_TURNS = 6;
/** PCM16 at 16 kHz. */
const BYTES_PER_FRAME = 640;

export class SteppedCall {
  #ids = 0;
  #seen = 0;
  #soundFrames = 0;

  private constructor(
    readonly clock: VirtualClock,
    readonly stage: Stage,
    readonly phone: Phone,
    readonly model: ScriptedConnection,
    readonly over: Promise<unknown>,
  ) {}

  /** Greeted, with the line silent; the agent is a module's path, or the test's own. */
  static async open(agent: Agent | string, modelName: string, clock = new VirtualClock()) {
    const own = typeof agent === 'string' ? [] : [agent];
    const named = typeof agent === 'string' ? { AGENT: agent } : {};
    const stage = await Stage.open(
      { GEMINI_MODEL: modelName, IDLE_REPROMPT_SECONDS: '0', ...named },
      clock,
      own,
    );
    const { phone, model, over } = await stage.call({ clock });
    const call = new SteppedCall(clock, stage, phone, model, over);
    says(model, 'Hello.', { ms: 200 });
    await call.pass(600);
    return call;
  }

  /** Frames of the caller's sound that the model has got. */
  get soundFrames(): number {
    for (; this.#seen < this.model.received.length; this.#seen += 1) {
      const input = this.model.received[this.#seen]!['realtimeInput'] as
        { audio?: { data: string } } | undefined;
      if (input?.audio === undefined) continue;
      this.#soundFrames += Buffer.from(input.audio.data, 'base64').length / BYTES_PER_FRAME;
    }
    return this.#soundFrames;
  }

  /** Until when the carrier has sound to play, in milliseconds of the call. */
  get carrierFilledMs(): number {
    return (this.phone.record().stretches.at(-1)?.end ?? 0) / MULAW_BYTES_PER_MS;
  }

  /** What the model was told by itself, less "Your tool ". */
  get told(): string[] {
    const texts = this.model.receivedTextInputs.filter((text) => text.startsWith('Your tool'));
    return texts.map((text) => text.slice(10));
  }

  /** What `GET /debug/runs` shows. */
  async counts(): Promise<{ streamingTools: unknown; inputStreams: unknown }> {
    const { streamingTools, inputStreams } = (await this.stage.json('/debug/runs')).body;
    return { streamingTools, inputStreams };
  }

  /** The model calls, and is answered before time goes on. */
  async calls(...calls: readonly (readonly [string, JsonObject?])[]): Promise<readonly JsonObject[]> {
    const functionCalls = calls.map(([name, args = {}]) => ({ id: `c${(this.#ids += 1)}`, name, args }));
    this.model.toolCall(...functionCalls);
    const answers = await Promise.all(functionCalls.map(({ id }) => answerTo(this.model, id)));
    return answers.map(({ response }) => response);
  }

  /** Frame by frame, each when the model has got the one before: what was sent to it until then is there, too. */
  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += FRAME_MS) {
      const before = this.soundFrames;
      this.clock.advance(FRAME_MS);
      await this.model.waitUntil(() => this.soundFrames > before);
    }
  }

  /** Time goes on until something is there that other sockets and the store have a part in. */
  async passUntil(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      await this.pass(FRAME_MS);
      await pause(1);
    }
  }

  /** One frame, and what follows from it, for a model that gets no sound meanwhile. */
  async step(): Promise<void> {
    this.clock.advance(FRAME_MS);
    for (let turn = 0; turn < SETTLED_TURNS; turn += 1) await nextTurn();
  }

  /** The model says what it was told, and the caller hears it. */
  async says(words: string, ms = 600): Promise<void> {
    says(this.model, words, { ms });
    await this.pass(ms + 400);
  }

  /** The call is over, and nothing is left of it. */
  async hangUp(): Promise<void> {
    this.phone.hangUp();
    await passWhile(
      this.clock,
      Promise.all([this.over, this.stage.ended(this.phone.callSid), this.stage.idle()]),
    );
  }

  async close(): Promise<void> {
    await passWhile(this.clock, this.stage.close());
  }
}
