/**
 * Carries out what `transition` decides, one effect at a time. What an effect leads to comes back to the call as an event; only
 * `finish` is the call's own.
 */
import type { RunEvents } from '../event/run-events.js';
import { HOLD_AFTER_MS, HOLD_AGAIN_MS } from '../link-limits.js';
import type { WaitStep } from './answer-watch.js';
import { delayOf } from './call-delays.js';
import type { CallLine } from './call-line.js';
import type { CallEffect, CallTimer } from './call-state.js';
import type { CallTimers } from './call-timers.js';
import type { Conversation } from './conversation.js';
import type { EndReason } from './end-reason.js';
import type { IdleWatch } from './idle-watch.js';
import { ANSWER_REFUSED, CALL_MUST_END, TRANSFER_FAILED } from './line-texts.js';
import type { ModelLink } from './model-link.js';

export interface CallEffectsOptions {
  readonly conversation: Conversation;
  readonly idle: IdleWatch;
  readonly line: CallLine;
  readonly link: ModelLink;
  readonly timers: Pick<CallTimers<CallTimer>, 'arm' | 'disarm'>;
  /** Told that input is taken once the agent is asked to greet: of a conversation whose client waits for that. */
  readonly tellReady: RunEvents | undefined;
  readonly greeting: string | undefined;
  /** 0: no limit. */
  readonly callMaxMs: number;
  readonly cutLine: () => void;
  readonly transfer: () => void;
  /** There was no stream to close any more. */
  readonly onNoStream: () => void;
  /** The model has said nothing on one connection after another. */
  readonly onMute: () => void;
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
      case 'reconnect':
        return link.reconnect();
      case 'goOn':
        return conversation.goOn(this.#options.greeting);
      case 'hold':
        return this.#hold();
      case 'arm':
        return this.arm(effect.timer);
      case 'disarm':
        return timers.disarm(effect.timer);
      case 'endTurn':
        return conversation.onGenerationComplete();
      case 'askFarewell':
        return conversation.tell(CALL_MUST_END);
      case 'transfer':
        return this.#options.transfer();
      case 'tellTransferFailed':
        return conversation.ask(TRANSFER_FAILED);
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

  /** The model gave no answer, and the caller heard none: a greeting is asked for again, of anything else it says so. */
  explainRefusal(): void {
    const { conversation, greeting } = this.#options;
    if (conversation.awaitsGreeting) conversation.greet(greeting);
    else conversation.ask(ANSWER_REFUSED);
  }

  #greet(): void {
    const { conversation, idle, tellReady, greeting } = this.#options;
    idle.start();
    tellReady?.ready();
    conversation.greet(greeting);
  }

  /** What is being said is heard out first; then the caller is asked to wait, and after a while again. */
  #hold(): void {
    const { conversation, timers } = this.#options;
    const isSilent = !conversation.waits.hears;
    if (isSilent) conversation.waits.askToWait();
    timers.arm('hold', conversation.unplayedMs + (isSilent ? HOLD_AGAIN_MS : HOLD_AFTER_MS));
  }

  /** What is to be done about an answer that does not come. */
  onWait(step: WaitStep): void {
    const { conversation, link, greeting } = this.#options;
    switch (step) {
      case 'hold':
        return conversation.waits.askToWait();
      case 'nudge':
        return conversation.askAgain(greeting);
      case 'reconnect':
        return link.onStall();
      case 'giveUp':
        return this.#options.onMute();
    }
  }
}
