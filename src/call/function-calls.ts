/**
 * What the model asks the server to do, from its `toolCall` to the response that it is sent: told as events, answered as one group,
 * and with an end of the call where one of them asks for it. Which tools there are, and what they do, is decided behind it.
 */
import type { RunEvents } from '../event/run-events.js';
import type { FunctionCall, LiveConnection } from '../model/live-connection.js';
import { answerTools } from './built-in-tools.js';
import type { Conversation } from './conversation.js';

export interface FunctionCallsOptions {
  readonly conversation: Conversation;
  readonly run: RunEvents;
  readonly model: () => LiveConnection | undefined;
  /** The agent wants to hang up; `spoken`: it has said something that counts as its goodbye. */
  readonly onAgentEnds: (spoken: boolean) => void;
}

export class FunctionCalls {
  readonly #options: FunctionCallsOptions;

  constructor(options: FunctionCallsOptions) {
    this.#options = options;
  }

  /** One group of calls, in the call's mailbox. */
  onToolCall(functionCalls: readonly FunctionCall[]): void {
    const { conversation, run, model, onAgentEnds } = this.#options;
    const spoken = conversation.hasSpokenThisTurn || !conversation.isSilent;
    conversation.onToolCall();
    const { responses, ends } = answerTools(functionCalls, conversation.takeNote());
    run.called(functionCalls);
    run.responded(responses);
    model()?.sendToolResponse(responses);
    if (ends) onAgentEnds(spoken);
  }
}
