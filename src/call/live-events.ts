/**
 * The model's callbacks on their way into a call: sound and `interrupted` go straight to the conversation, everything
 * else through the call's mailbox.
 */
import type { FunctionCall, LiveClose, LiveListener, UsageMetadata } from '../model/live-connection.js';
import type { CallEvent } from './call-state.js';

/** Control events that the conversation handles; the rest is the call's. */
export type ConversationEvent =
  | { readonly type: 'mark'; readonly name: string }
  | { readonly type: 'dtmf'; readonly digit: string }
  | { readonly type: 'typed'; readonly text: string }
  | { readonly type: 'inputTranscription'; readonly text: string }
  | { readonly type: 'outputTranscription'; readonly text: string }
  | { readonly type: 'generationComplete' }
  | { readonly type: 'turnComplete'; readonly reason: string | undefined }
  | { readonly type: 'toolCall'; readonly functionCalls: readonly FunctionCall[] }
  | { readonly type: 'toolCallCancellation'; readonly ids: readonly string[] }
  /** Something came of a tool. */
  | { readonly type: 'toolHappened'; readonly run: () => void }
  | { readonly type: 'usageMetadata'; readonly usage: UsageMetadata };

export interface LiveEventsCall {
  post(event: CallEvent | ConversationEvent): void;
  guard(run: () => void): void;
  fault(error: unknown): void;
  onGoAway(timeLeftMs: number): void;
  onSessionResumptionUpdate(newHandle: string | undefined, resumable: boolean): void;
}

export interface LiveEventsConversation {
  onAgentAudio(pcm24k: Uint8Array): void;
  onInterrupted(): void;
}

/** What it throws is caught here or by the caller of the listener; either way it ends this call only. */
export function liveListener(
  call: LiveEventsCall,
  conversation: LiveEventsConversation,
  onClose: (close: LiveClose) => void,
): LiveListener {
  const post = (event: CallEvent | ConversationEvent): void => call.guard(() => call.post(event));
  return {
    onInterrupted() {
      call.guard(() => conversation.onInterrupted());
      post({ type: 'interrupted' });
    },
    onAudio(pcm24k) {
      try {
        conversation.onAgentAudio(pcm24k);
      } catch (error) {
        call.fault(error);
      }
    },
    onInputTranscription: (text) => post({ type: 'inputTranscription', text }),
    onOutputTranscription: (text) => post({ type: 'outputTranscription', text }),
    onGenerationComplete: () => post({ type: 'generationComplete' }),
    onTurnComplete: (reason) => post({ type: 'turnComplete', reason }),
    onToolCall: (functionCalls) => post({ type: 'toolCall', functionCalls }),
    onToolCallCancellation: (ids) => post({ type: 'toolCallCancellation', ids }),
    onGoAway: (timeLeftMs) => call.guard(() => call.onGoAway(timeLeftMs)),
    onSessionResumptionUpdate: (newHandle, resumable) => call.onSessionResumptionUpdate(newHandle, resumable),
    onUsageMetadata: (usage) => post({ type: 'usageMetadata', usage }),
    onClose: (close) => call.guard(() => onClose(close)),
  };
}
