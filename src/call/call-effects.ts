/**
 * Carries out what `transition` decides, one effect at a time. What an effect leads to comes back to the call as an event; only
 * `finish` is the call's own.
 */
import type { RunEvents } from '../event/run-events.js';
import { GREETING_START_MAX_MS } from '../limits.js';
import { delayOf } from './call-delays.js';
import type { CallLine } from './call-line.js';
import type { CallEffect, CallTimer } from './call-state.js';
import type { CallTimers } from './call-timers.js';
import type { Conversation } from './conversation.js';
import type { EndReason } from './end-reason.js';
import type { IdleWatch } from './idle-watch.js';
import { ANSWER_REFUSED, CALL_MUST_END } from './line-texts.js';
import type { ModelLink } from './model-link.js';

export interface CallEffectsOptions {
  readonly conversation: Conversation;
  readonly idle: IdleWatch;
  readonly line: CallLine;
  readonly link: ModelLink;
  readonly timers: Pick<CallTimers<CallTimer | 'greetingStart'>, 'arm' | 'disarm'>;
  /** Told that input is taken once the agent is asked to greet: of a conversation whose client waits for that. */
  readonly tellReady: RunEvents | undefined;
  readonly greeting: string | undefined;
  /** 0: no limit. */
  readonly callMaxMs: number;
  readonly cutLine: () => void;
  /** There was no stream to close any more. */
  readonly onNoStream: () => void;
  readonly onFinish: (reason: EndReason) => void;
}

export class CallEffects {
  readonly #options: CallEffectsOptions;

  constructor(options: CallEffectsOptions) {
    this.#options = options;
  }

  carryOut(effect: CallEffect): void {
    const { conversation, idle, line, link, timers } = this.#options;
    switch (effect.do) {
      case 'greet':
        return this.#greet();
      case 'dropStream':
        return line.drop();
      case 'welcomeBack':
        idle.start();
        return conversation.welcomeBack();
      case 'arm':
        return this.arm(effect.timer);
      case 'disarm':
        return timers.disarm(effect.timer);
      case 'endTurn':
        return conversation.onGenerationComplete();
      case 'askFarewell':
        return conversation.ask(CALL_MUST_END);
      case 'play':
        return conversation.play(effect.prompt);
      case 'closeModel':
        return link.close();
      case 'cutLine':
        return this.#options.cutLine();
      case 'closeStream':
        if (!line.close()) this.#options.onNoStream();
        return;
      case 'finish':
        return this.#options.onFinish(effect.reason);
    }
  }

  arm(timer: CallTimer): void {
    const { callMaxMs, conversation, timers } = this.#options;
    const delayMs = delayOf(timer, callMaxMs, conversation.unplayedMs);
    if (delayMs !== undefined) timers.arm(timer, delayMs);
  }

  /** Some models ignore a text now and then: the greeting is asked for once more, not left to the idle reprompt. */
  greetAgain(): void {
    const { conversation, greeting } = this.#options;
    if (conversation.awaitsGreeting) conversation.greet(greeting);
  }

  /** The model gave no answer, and the caller heard none: a greeting is asked for again, of anything else it says so. */
  explainRefusal(): void {
    const { conversation } = this.#options;
    if (conversation.awaitsGreeting) this.greetAgain();
    else conversation.ask(ANSWER_REFUSED);
  }

  #greet(): void {
    const { conversation, idle, timers, tellReady, greeting } = this.#options;
    idle.start();
    timers.arm('greetingStart', GREETING_START_MAX_MS);
    tellReady?.ready();
    conversation.greet(greeting);
  }
}
