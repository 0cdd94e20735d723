/**
 * The carrier's media socket as the call sees it: Twilio's bidirectional Media Stream, one per call.
 * Media goes through plain method calls, no object a frame; the carrier's implementation is in this folder, that of a web
 * client in src/web/, and the call implements the listener.
 */
import type { SocketScope } from '../call-tap.js';
import type { CallSid, StreamSid } from '../ids.js';

/** What the carrier's `start` said, checked for shape only. */
export interface MediaStreamStart {
  readonly streamSid: StreamSid;
  readonly callSid: CallSid;
  readonly accountSid: string | undefined;
  /** `start.customParameters`; the one-time token travels in `token`. */
  readonly customParameters: Readonly<Record<string, string>>;
}

/** A stream's first messages as they were read, up to and with its `start`; for a recorder. */
export type EarlyMessages = readonly Buffer[];

/** Who hears a stream that was taken, and in whose time. */
export interface AcceptedStream {
  readonly listener: MediaStreamListener;
  readonly scope: SocketScope;
}

export interface MediaStreamListener {
  /** One `media` message. `mulaw` (any length) is a view valid only during this call; `timestampMs` is the
   * carrier's presentation time from stream start. */
  onMedia(mulaw: Uint8Array, timestampMs: number): void;
  onDtmf(digit: string): void;
  onMark(name: string): void;
  /** The carrier said `stop`: the stream stopped or the call ended. */
  onStop(): void;
  /** The socket is gone; called exactly once, last, also after a local close or terminate. */
  onClose(code: number, reason: string): void;
}

export interface MediaStream {
  readonly streamSid: StreamSid;
  readonly callSid: CallSid;
  /** Its caller reads and hears nothing; a carrier's never does. */
  readonly isSilent?: boolean;
  /** Bytes accepted by send… but not yet given to the kernel. */
  readonly bufferedAmount: number;
  /** Sends sound, and right behind it in the same write a mark, if one is named. A no-op once closed. The bytes
   * are copied before the call returns. */
  sendMedia(mulaw: Uint8Array, markName?: string): void;
  sendMark(name: string): void;
  sendClear(): void;
  /** What is sent between these goes out in one write, in order. Never nested; a no-op once closed. */
  cork(): void;
  uncork(): void;
  /** Closes with a WebSocket close handshake, bounded; then terminates. Idempotent. */
  close(): void;
  /** Cuts the socket at once. Idempotent. */
  terminate(): void;
}

/** Decides about a stream whose `start` is well-formed. A refusal closes the socket and says why in the log. */
export type AcceptMediaStream = (
  start: MediaStreamStart,
  stream: MediaStream,
  early: EarlyMessages,
) => AcceptedStream | { readonly refused: string };
