/**
 * A media socket between its upgrade and a valid `start`. It may wait a few seconds and send a few kilobytes; then it
 * is closed. Twilio says `connected` and `start` at once, and nothing about the stream is known before `start`.
 */
import { WebSocket } from 'ws';
import type { Clock, Timer } from '../clock.js';
import { CARRIER_CLOSE_MAX_MS, PRE_START_MAX_BYTES, STREAM_START_TIMEOUT_MS } from '../limits.js';
import type { CarrierAnomalies } from './carrier-anomaly.js';
import { parseCarrierMessage } from './carrier-message.js';
import type { EarlyMessages, MediaStreamStart } from './media-stream.js';

/** WebSocket close codes, RFC 6455, 7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

export interface UnstartedSocketParts {
  readonly ws: WebSocket;
  readonly anomalies: CarrierAnomalies;
  readonly clock: Clock;
  /** Called at most once, with the socket's events let go, before its next message is read. */
  readonly onStart: (start: MediaStreamStart, early: EarlyMessages) => void;
  /** Called once when the socket is gone without a `start`. */
  readonly onGone: () => void;
}

export class UnstartedSocket {
  readonly #parts: UnstartedSocketParts;
  #receivedBytes = 0;
  /** Bounded by PRE_START_MAX_BYTES. */
  readonly #early: Buffer[] = [];
  #closing = false;
  #timer: Timer;

  constructor(parts: UnstartedSocketParts) {
    this.#parts = parts;
    this.#timer = parts.clock.setTimer(STREAM_START_TIMEOUT_MS, () => {
      parts.anomalies.note('startTimeout');
      this.#close(POLICY_VIOLATION);
    });
    parts.ws.on('message', this.#onMessage);
    parts.ws.on('close', this.#onClose);
  }

  /** For the server's own shutdown. */
  close(): void {
    this.#close(GOING_AWAY);
  }

  terminate(): void {
    this.#parts.ws.terminate();
  }

  readonly #onMessage = (data: unknown, isBinary: boolean): void => {
    if (this.#closing || !Buffer.isBuffer(data)) return;
    const { anomalies } = this.#parts;
    this.#receivedBytes += data.length;
    if (this.#receivedBytes > PRE_START_MAX_BYTES) {
      anomalies.note('tooMuchBeforeStart');
      this.#close(POLICY_VIOLATION);
      return;
    }
    if (isBinary) {
      anomalies.note('binaryFrame');
      return;
    }
    this.#early.push(data);
    const message = parseCarrierMessage(data, undefined);
    if (message.event === 'start') {
      this.#letGo();
      this.#parts.onStart(message.start, this.#early);
    } else if (message.event === 'anomaly') {
      anomalies.note(message.kind);
      // A start that names no call, or sound that cannot be played, will not get better.
      if (message.kind === 'badStart') this.#close(POLICY_VIOLATION);
    }
  };

  readonly #onClose = (): void => {
    this.#letGo();
    this.#parts.onGone();
  };

  #letGo(): void {
    this.#timer.cancel();
    this.#parts.ws.off('message', this.#onMessage);
    this.#parts.ws.off('close', this.#onClose);
  }

  #close(code: number): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#timer.cancel();
    this.#timer = this.#parts.clock.setTimer(CARRIER_CLOSE_MAX_MS, () => this.#parts.ws.terminate());
    this.#parts.ws.close(code);
  }
}
