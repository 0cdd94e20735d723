/** A rehearsal service on a clock of the test's, with a dialogue of its own and a voice that costs no time. */
import type { LiveConnectConfig, LiveServerMessage } from '@google/genai';
import { type FrameKind, parseDialogue } from '../../../src/model/rehearsal/dialogue.js';
import {
  type RehearsalService,
  startRehearsalService,
} from '../../../src/model/rehearsal/rehearsal-service.js';
import type { SpeechSynthesizer } from '../../../src/model/rehearsal/speech-synthesizer.js';
import { type Log, silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { connectClient, count, type RehearsalClient, spokenWords, until } from './rehearsal-client.js';

/** 50 ms of a tone for each letter. */
export const toneSynthesizer: SpeechSynthesizer = {
  speak: (_, text) =>
    Promise.resolve(Int16Array.from({ length: text.length * 1_200 }, (_value, n) => 6_000 * Math.sin(n / 8))),
  close: () => Promise.resolve(),
};

const PLAIN = {
  disclosure: 'I rehearse.',
  turns: [{ say: 'First of the turns, which is long enough to be cut.' }],
  interruptions: [{ say: 'Stopped.' }],
  otherText: { say: 'Other.' },
};

export class Stage {
  readonly clock: VirtualClock;
  readonly service: RehearsalService;

  private constructor(clock: VirtualClock, service: RehearsalService) {
    this.clock = clock;
    this.service = service;
  }

  /** `changes` are laid over a dialogue that says as little as it can. */
  static async open(changes: object, options: { frames?: FrameKind; log?: Log } = {}): Promise<Stage> {
    const clock = new VirtualClock();
    const dialogue = parseDialogue({ ...PLAIN, ...changes }, 'test.json');
    const service = await startRehearsalService({
      clock,
      log: silentLog,
      synthesizer: toneSynthesizer,
      seed: 3,
      dialogue,
      ...options,
    });
    return new Stage(clock, service);
  }

  /** Closes everything; a timer that is left is an error. */
  async close(): Promise<void> {
    await this.service.close();
    if (this.clock.pendingTimers > 0)
      throw new Error(`${this.clock.pendingTimers} timers are left after the service closed`);
  }

  connect(config: LiveConnectConfig = {}, model?: string): Promise<RehearsalClient> {
    return connectClient(this.service.url, config, model);
  }

  until(condition: () => boolean, stepMs = 20): Promise<void> {
    return until(this.clock, condition, stepMs);
  }

  /** Types a text and waits for what is named; everything that came since. */
  async say(client: RehearsalClient, text: string, awaited = 'turnComplete'): Promise<LiveServerMessage[]> {
    const from = client.messages.length;
    client.session.sendRealtimeInput({ text });
    await this.until(() => count(client.messages.slice(from), awaited) > 0 || client.closes.length > 0);
    return client.messages.slice(from);
  }
}

/** Declares functions by name, with `behavior` for all where it is given. */
export function declare(names: readonly string[], more: object = {}): LiveConnectConfig {
  return { tools: [{ functionDeclarations: names.map((name) => ({ name, description: name, ...more })) }] };
}

/** What was said, without the disclosure in front. */
export function saidBy(messages: readonly LiveServerMessage[]): string {
  return spokenWords(messages).replace(/^I rehearse\. ?/, '');
}

export function callsIn(messages: readonly LiveServerMessage[]) {
  return messages.flatMap(({ toolCall }) => toolCall?.functionCalls ?? []);
}
