/**
 * A call to a rehearsal model with a fault, in time that stands still until the test moves it. Server, model and phone are real, between
 * them are sockets; the model speaks in the soak's tones, so that the phone's sound tells what was heard of it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nextTurn, sleep } from '../../src/clock.js';
import { loadPrompts } from '../../src/call/prompts.js';
import { defineAgent, defineTool } from '../../src/index.js';
import { FRAME_MS } from '../../src/limits.js';
import { parseDialogue } from '../../src/model/rehearsal/dialogue.js';
import { type RehearsalService, startRehearsalService } from '../../src/model/rehearsal/rehearsal-service.js';
import type { SpeechSynthesizer } from '../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { Phone } from '../../src/replay/phone.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { lineSoundsOf } from '../soak/call-checks.js';
import type { LineSounds } from '../soak/silences.js';
import { answerPcm } from '../soak/model-sound.js';
import { reconnectsOf } from './reconnects.js';
import { Stage } from './stage.js';
import { pause, waitUntil } from './wait-until.js';
import { passWhile } from './pass-while.js';

const FOLDER = join(PACKAGE_ROOT, 'fixtures', 'agents', 'faults');
const GREETING = 'Hello, this is a rehearsal of a fault.';
const MS_PER_LETTER = 50;
/** Sentences of the faults' dialogues that are not the last of what is said. */
const NOT_LAST = /^(This is a long|It goes on|I rehearse|I have stopped|Sorry|And this)/;
/** What a message needs from one end of loopback to the other, through the server and on. */
const SETTLED_TURNS = 8;
/** The caller waits so long behind an answer before asking again. */
const POLITE_MS = 1_500;
const PASS_MAX_MS = 90_000;

const tones: SpeechSynthesizer = {
  speak: async (_, text) => {
    const pcm = answerPcm(Math.max(400, text.length * MS_PER_LETTER), !NOT_LAST.test(text));
    return new Int16Array(new Uint8Array(pcm).buffer);
  },
  close: async () => {},
};

/** A second of a recorded voice. */
export const QUESTION = loadPrompts().apology.subarray(0, 9_600);

export class RehearsedCall {
  private constructor(
    readonly clock: VirtualClock,
    readonly stage: Stage,
    readonly phone: Phone,
    readonly over: Promise<unknown>,
    readonly service: RehearsalService,
  ) {}

  /** A call to the fault of this name, with `changes` laid over its dialogue. */
  static async open(fault: string, changes: object = {}): Promise<RehearsedCall> {
    const clock = new VirtualClock();
    const file = join(FOLDER, `${fault}.rehearsal.json`);
    const service = await startRehearsalService({
      clock,
      log: silentLog,
      synthesizer: tones,
      dialogue: parseDialogue({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...changes }, file),
    });
    const slowLookup = defineTool({
      name: 'slow_lookup',
      description: 'Looks something up, slowly.',
      async execute() {
        await sleep(clock, 6_000);
        return { status: 'found', message: 'It is found.' };
      },
    });
    const agent = defineAgent({
      name: fault,
      instruction: 'Rehearse.',
      greeting: GREETING,
      tools: [slowLookup],
    });
    const surroundings = {
      GOOGLE_GEMINI_BASE_URL: service.url,
      GEMINI_MODEL: 'rehearsal',
      IDLE_REPROMPT_SECONDS: '0',
    };
    const stage = await Stage.open(surroundings, clock, [agent]);
    const phone = new Phone({ clock, url: stage.url });
    const over = phone.call().catch((error: unknown) => error);
    return new RehearsedCall(clock, stage, phone, over, service);
  }

  get sounds(): LineSounds {
    return (
      lineSoundsOf(this.phone.record()) ?? { openedAtMs: 0, endedAtMs: 0, agent: [], clips: [], caller: [] }
    );
  }

  get isOver(): boolean {
    return this.phone.state === 'ended';
  }

  /** One frame, and what follows from it. */
  async step(): Promise<void> {
    this.clock.advance(FRAME_MS);
    for (let turn = 0; turn < SETTLED_TURNS; turn += 1) await nextTurn();
  }

  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += FRAME_MS) await this.step();
  }

  /** Until it is so, or the call is over; looked at each fifth of a second. */
  async passUntil(what: string, isTrue: () => boolean): Promise<void> {
    for (let at = 0; !this.isOver && !isTrue(); at += 200) {
      if (at > PASS_MAX_MS)
        throw new Error(`time passed in vain for ${what}: ${JSON.stringify(this.sounds)}`);
      await this.pass(200);
      await pause(1);
    }
  }

  /** The caller speaks, once the agent's answer is over or in the middle of it. */
  ask(): void {
    this.phone.say(QUESTION);
  }

  /** The agent has been heard to the end of an answer behind `sinceMs`, and the line has been quiet for a moment. */
  async passToAnswer(sinceMs: number): Promise<void> {
    await this.passUntil('an answer', () => {
      const { agent, clips, endedAtMs } = this.sounds;
      const last = agent.at(-1);
      if (last === undefined || !last.isWhole || last.fromMs < sinceMs) return false;
      const heardMs = Math.max(last.toMs, clips.at(-1)?.toMs ?? 0);
      return endedAtMs - heardMs > POLITE_MS;
    });
  }

  /** The agent is in the middle of saying something that began behind `sinceMs`. */
  async passToSpeech(sinceMs: number, spokenMs: number): Promise<void> {
    await this.passUntil('speech', () => {
      const last = this.sounds.agent.at(-1);
      return (
        last !== undefined &&
        last.toMs >= this.sounds.endedAtMs - 300 &&
        last.toMs - Math.max(sinceMs, last.fromMs) > spokenMs
      );
    });
  }

  reconnects(): Promise<string[]> {
    return reconnectsOf(this.stage.url);
  }

  /** The call is over, and nothing is left of it: neither in the server nor at the model. */
  async hangUp(): Promise<void> {
    this.phone.hangUp();
    const ended = Promise.all([this.over, this.stage.ended(this.phone.callSid), this.stage.idle()]);
    await passWhile(this.clock, ended);
    await waitUntil('no connection at the model', () => this.service.connections === 0);
  }

  async close(): Promise<void> {
    await passWhile(this.clock, this.stage.close());
    await passWhile(this.clock, this.service.close());
  }
}
