/**
 * What a recorder hears of a call: every message at the edge where it enters or leaves the server, on every leg, and
 * nothing in between. Whoever holds a tap calls it right after the call's time has moved (`CallTime.enter`), so that a
 * tap may take `nowMs` for the time of what it hears. A tap must not throw and must not keep the bytes it is shown.
 */
import type { CallTime } from './clock.js';

/** A request of the carrier as it came: the path with its query, and the parameters. */
export interface WebhookRequest {
  readonly path: string;
  readonly params: Readonly<Record<string, string | readonly string[]>>;
}

export interface SocketTap {
  /** The other side has agreed to the WebSocket. */
  opened(): void;
  /** One message as it was read. */
  received(data: string | Buffer, isBinary: boolean): void;
  /** One message as it was written, without the framing. */
  sent(text: string): void;
  /** We began to close, or cut the socket (`code` undefined). */
  closing(code: number | undefined): void;
  /** The other side answered the request for a WebSocket with this HTTP status. */
  refused(httpStatus: number): void;
  /** The socket is gone. 1006: without a close frame. */
  ended(code: number, reason: string): void;
}

export interface RestTap {
  requested(method: string, uri: string, params: Readonly<Record<string, unknown>>): void;
  /** `status` undefined: no answer came. */
  answered(status: number | undefined, body: unknown): void;
}

/** What came in by way of the agent's tools: of a call's session as it began, and of each function call. As JSON. */
export interface CallToolTap {
  /** What is remembered of the caller, for the model's instruction. */
  recalled(text: string | undefined): void;
  outcome(id: string, outcome: object): void;
  settled(call: { readonly id: string; readonly name: string }, outcome: object): void;
  /** What became after all of a call that was told as given up. */
  late(call: { readonly id: string; readonly name: string }, outcome: object): void;
  update(update: object): void;
  /** The update of a tool that was stopped: it is not told any more. */
  forgotten(replaces: string): void;
  /** A streaming tool has ended by itself. */
  over(name: string): void;
  /** A streaming tool has ended the conversation. */
  ends(): void;
  /** What a handler wants of the line, behind its answer. */
  wanted(wish: 'hangUp' | 'transfer'): void;
}

/** What an operator or the server itself orders a call to do. */
export type CallOrder = 'hangup' | 'drainDeadline' | 'abandon';

export interface CallTap {
  webhook(request: WebhookRequest): void;
  webhookAnswered(status: number, xml: string): void;
  /** A media socket was taken; `early` is what it sent up to and with its `start`. */
  carrierOpened(early: readonly Buffer[]): SocketTap | undefined;
  modelConnecting(): SocketTap | undefined;
  readonly rest: RestTap | undefined;
  readonly tools: CallToolTap | undefined;
  ordered(order: CallOrder): void;
  /** The process stood still: what was due at `dueMs` ran only now. */
  stalled(dueMs: number, nowMs: number): void;
  /** Nothing of the call is alive any more. What is left may still be webhooks. */
  finished(endReason: string, messages: readonly HeardMessage[]): void;
}

/** One message of the transcript: what was heard. */
export interface HeardMessage {
  readonly role: 'user' | 'model';
  readonly text: string;
  readonly interrupted: boolean;
}

/** What a socket needs to know of the call that it serves. */
export interface SocketScope {
  readonly clock: CallTime;
  readonly tap: SocketTap | undefined;
}

/** The same for the carrier's REST API. */
export interface RestScope {
  readonly clock: CallTime;
  readonly tap: RestTap | undefined;
}
