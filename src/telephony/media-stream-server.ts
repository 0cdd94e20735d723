/**
 * The media socket's door: decides on the upgrade request itself, before a WebSocket exists, whether a peer may come
 * in (signature or loopback, room, not draining), waits for its `start` and asks the call registry about it. A peer
 * that is turned away is never told why; the log and the observer are.
 */
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type ServerOptions, type WebSocket } from 'ws';
import type { Clock } from '../clock.js';
import { errorText } from '../errors.js';
import { CARRIER_CLOSE_MAX_MS, CARRIER_PAYLOAD_MAX_BYTES, UNSTARTED_SOCKETS_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';
import { CarrierAnomalies, type CarrierAnomaly } from './carrier-anomaly.js';
import { CarrierGate, GATE_REFUSALS, type CarrierTrust } from './carrier-gate.js';
import { MediaFrameReader } from './media-frame-reader.js';
import type { AcceptedStream, AcceptMediaStream, EarlyMessages, MediaStreamStart } from './media-stream.js';
import { TwilioMediaStream } from './twilio-media-stream.js';
import { MEDIA_PATH } from './twiml.js';
import { UnstartedSocket } from './unstarted-socket.js';

/** Why a media socket was turned away: a closed list, fit for a metric label. */
export const MEDIA_REFUSALS = [
  ...GATE_REFUSALS,
  'path',
  'draining',
  'unstartedSockets',
  'notAccepted',
] as const;
export type MediaRefusal = (typeof MEDIA_REFUSALS)[number];

export interface MediaStreamObserver {
  onRefused(reason: MediaRefusal): void;
  onAnomaly(kind: CarrierAnomaly): void;
}

export interface MediaStreamServerOptions extends CarrierTrust {
  /** Owns the tokens; its refusal's text goes to the log only. */
  readonly accept: AcceptMediaStream;
  /** True while no new socket is taken (503). */
  readonly isDraining: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly observe: MediaStreamObserver;
}

/** WebSocket close codes, RFC 6455, 7.4.1. */
const POLICY_VIOLATION = 1008;
const INTERNAL_ERROR = 1011;

// `closeTimeout` is not in the published types yet.
const SERVER_OPTIONS: ServerOptions & { closeTimeout: number } = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: CARRIER_PAYLOAD_MAX_BYTES,
  // Bytes that are not UTF-8 are one bad message, not the end of the call; the parser checks.
  skipUTF8Validation: true,
  // ws waits this long for a peer that sent its close frame and does not hang up.
  closeTimeout: CARRIER_CLOSE_MAX_MS,
};

function hasCode(error: Error): error is Error & { code: unknown } {
  return 'code' in error;
}

/** Answers an upgrade with plain HTTP and closes the connection. */
function refuseUpgrade(socket: Duplex, status: 403 | 404 | 503): void {
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nCache-Control: no-store\r\n` +
      'Content-Length: 0\r\n\r\n',
  );
}

export class MediaStreamServer {
  readonly #options: MediaStreamServerOptions;
  readonly #gate: CarrierGate;
  readonly #reader = new MediaFrameReader();
  readonly #unstarted = new Set<UnstartedSocket>();
  readonly #streams = new Set<TwilioMediaStream>();
  readonly #server: WebSocketServer;
  #closed = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: MediaStreamServerOptions) {
    this.#options = options;
    this.#gate = new CarrierGate(options);
    this.#server = new WebSocketServer(SERVER_OPTIONS);
  }

  /** Media sockets whose `start` was accepted and that are not closed yet. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Media sockets that have not shown a valid `start`. */
  get unstartedSockets(): number {
    return this.#unstarted.size;
  }

  /** An HTTP server's `upgrade` event for MEDIA_PATH. Takes the socket over in any case. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = request.url ?? '';
    if (url.split('?', 1)[0] !== MEDIA_PATH) return this.#refuse(socket, 404, 'path');
    const reason = this.#gate.refusal(request, url, { kind: 'upgrade' });
    if (reason !== undefined) return this.#refuse(socket, 403, reason);
    if (this.#closed || this.#options.isDraining()) return this.#refuse(socket, 503, 'draining');
    if (this.#unstarted.size >= UNSTARTED_SOCKETS_MAX) return this.#refuse(socket, 503, 'unstartedSockets');
    return this.#server.handleUpgrade(request, socket, head, (ws) => this.#await(ws, socket));
  }

  /**
   * Closes every media socket and takes no more. Resolves when all are gone: CARRIER_CLOSE_MAX_MS at most, after
   * which they are cut.
   */
  async close(): Promise<void> {
    this.#closed = true;
    for (const socket of this.#unstarted) socket.close();
    for (const stream of this.#streams) stream.close();
    if (this.#unstarted.size + this.#streams.size === 0) return;
    await new Promise<void>((resolve) => {
      const previous = this.#onEmpty;
      this.#onEmpty = () => {
        previous?.();
        resolve();
      };
    });
  }

  #refuse(socket: Duplex, status: 403 | 404 | 503, reason: MediaRefusal): void {
    this.#options.observe.onRefused(reason);
    this.#options.log.warn({ reason, status }, 'a media socket was refused');
    refuseUpgrade(socket, status);
  }

  #await(ws: WebSocket, socket: Duplex): void {
    const { clock, log, observe } = this.#options;
    const anomalies = new CarrierAnomalies((kind) => observe.onAnomaly(kind), log);
    ws.on('error', (error) => {
      const oversized = hasCode(error) && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
      const protocol = hasCode(error) && typeof error.code === 'string' && error.code.startsWith('WS_ERR_');
      if (oversized) anomalies.note('oversized');
      else if (protocol) anomalies.note('protocolError');
      else log.info({ ...anomalies.fields, cause: errorText(error) }, 'a carrier socket failed');
    });
    const unstarted = new UnstartedSocket({
      ws,
      anomalies,
      clock,
      onStart: (start, early) => {
        this.#unstarted.delete(unstarted);
        this.#start({ ws, socket, start, anomalies }, early);
      },
      onGone: () => {
        this.#unstarted.delete(unstarted);
        this.#checkEmpty();
      },
    });
    this.#unstarted.add(unstarted);
  }

  #start(
    parts: { ws: WebSocket; socket: Duplex; start: MediaStreamStart; anomalies: CarrierAnomalies },
    early: EarlyMessages,
  ): void {
    const { clock, log } = this.#options;
    const { streamSid, callSid } = parts.start;
    parts.anomalies.fields = { callSid, streamSid };
    const stream = new TwilioMediaStream({ ...parts, reader: this.#reader, clock, log });
    this.#streams.add(stream);
    parts.ws.once('close', () => {
      this.#streams.delete(stream);
      this.#checkEmpty();
    });
    stream.begin(this.#ask(parts.start, stream, early));
  }

  /** Who listens; undefined for a stream that is not wanted, whose socket is being closed. */
  #ask(start: MediaStreamStart, stream: TwilioMediaStream, early: EarlyMessages): AcceptedStream | undefined {
    const { accept, observe, log } = this.#options;
    const { callSid, streamSid } = start;
    try {
      const answer = accept(start, stream, early);
      if (!('refused' in answer)) return answer;
      observe.onRefused('notAccepted');
      log.warn({ callSid, streamSid, cause: answer.refused }, 'a media stream was refused');
      stream.closeWith(POLICY_VIOLATION);
    } catch (error) {
      log.error({ callSid, streamSid, cause: errorText(error) }, 'a media stream could not be taken');
      stream.closeWith(INTERNAL_ERROR);
    }
    return undefined;
  }

  #checkEmpty(): void {
    if (this.#unstarted.size + this.#streams.size > 0) return;
    this.#onEmpty?.();
    this.#onEmpty = undefined;
  }
}
