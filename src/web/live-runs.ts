/**
 * What a web client's socket wants of the conversations behind it. Whoever joins the parts provides it.
 */
import type { SocketScope } from '../call-tap.js';
import type { MediaStream, MediaStreamListener } from '../telephony/media-stream.js';
import type { Broadcast } from '../wire/broadcast.js';

export interface LiveCaller {
  readonly userId: string;
  readonly sessionId: string;
}

/** A client's way into its conversation. */
export interface LiveLine {
  /** Names the conversation; a client that comes back to it gets the same. */
  readonly callSid: string;
  readonly listener: MediaStreamListener;
  readonly scope: SocketScope;
  /** The model is there already. */
  readonly isReady: boolean;
  /** Takes what the user typed. False: too much waits, or it is over. */
  type(text: string): boolean;
  /** Gives the model a picture. False: there is no model now, or it takes none. */
  show(mimeType: string, image: Uint8Array): boolean;
}

export interface OpenedLive {
  readonly line: LiveLine;
  readonly broadcast: Broadcast;
  /** What the client has to be told once it is there; the conversation goes on. */
  readonly fault?: { readonly code: string; readonly message: string } | undefined;
}

/** `code` and `refused` are for the client. */
export interface RefusedLive {
  readonly code: string;
  readonly refused: string;
}

/** Joins the caller's conversation if one is going on, or begins one. */
export type OpenLive = (caller: LiveCaller, stream: MediaStream) => Promise<OpenedLive | RefusedLive>;
