/**
 * The carrier's callbacks on their way into a call: sound goes straight to the conversation, everything else through the
 * call's mailbox. A stream that another one has replaced is heard no more.
 */
import type { MediaStreamListener } from '../telephony/media-stream.js';
import type { CallEvent } from './call-state.js';
import type { ConversationEvent } from './live-events.js';

export interface CarrierEventsParts {
  readonly call: {
    post(event: CallEvent | ConversationEvent): void;
    guard(run: () => void): void;
    fault(error: unknown): void;
  };
  readonly conversation: { onCallerMedia(mulaw: Uint8Array, timestampMs: number): void };
  readonly isCurrent: () => boolean;
  readonly onClosed: (code: number) => void;
}

export function carrierListener({
  call,
  conversation,
  isCurrent,
  onClosed,
}: CarrierEventsParts): MediaStreamListener {
  const post = (event: CallEvent | ConversationEvent): void => {
    if (isCurrent()) call.guard(() => call.post(event));
  };
  return {
    onMedia(mulaw, timestampMs) {
      if (!isCurrent()) return;
      try {
        conversation.onCallerMedia(mulaw, timestampMs);
      } catch (error) {
        call.fault(error);
      }
    },
    onDtmf: (digit) => post({ type: 'dtmf', digit }),
    onMark: (name) => post({ type: 'mark', name }),
    onStop: () => post({ type: 'callerHungUp' }),
    onClose(code) {
      onClosed(code);
      post({ type: 'streamClosed' });
    },
  };
}
