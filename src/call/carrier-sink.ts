/**
 * Where the playout writes: the media stream that the call has at the moment, or nowhere while it has none.
 */
import type { PlayoutSink } from '../audio/playout-sink.js';
import type { MediaStream } from '../telephony/media-stream.js';

/** `onClear` is called when a `clear` was written, before anything else follows from it. */
export function carrierSink(stream: () => MediaStream | undefined, onClear: () => void): PlayoutSink {
  return {
    send: (mulaw, markName) => stream()?.sendMedia(mulaw, markName),
    sendMark: (name) => stream()?.sendMark(name),
    sendClear() {
      stream()?.sendClear();
      onClear();
    },
    cork: () => stream()?.cork(),
    uncork: () => stream()?.uncork(),
    get bufferedAmount(): number {
      return stream()?.bufferedAmount ?? 0;
    },
  };
}
