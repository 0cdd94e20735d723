/**
 * One carrier socket whose `start` was accepted: Twilio's side of a call's sound. Incoming frames go from the socket's
 * bytes to the listener in one plain call, outgoing ones from the caller of `sendMedia` to the socket in one write.
 * A socket gone silent is found by pings and cut. After a local `close` or `terminate` the listener hears nothing more
 * but `onClose`, and afterwards no timer is left.
 */
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { SocketTap } from '../call-tap.js';
import type { CallTime, Clock, Timer } from '../clock.js';
import { errorText } from '../errors.js';
import type { CallSid, StreamSid } from '../ids.js';
import {
  CARRIER_CLOSE_MAX_MS,
  CARRIER_CONTROL_UNSENT_MAX_BYTES,
  CARRIER_MESSAGES_PER_SECOND_MAX,
  CARRIER_PING_INTERVAL_MS,
  CARRIER_RATE_DEBT_MAX,
  CARRIER_SILENCE_MAX_MS,
  CARRIER_UNSENT_MAX_BYTES,
} from '../limits.js';
import type { Log } from '../observe/log.js';
import type { CarrierAnomalies } from './carrier-anomaly.js';
import { parseCarrierMessage, plainMarkName, type CarrierMessage } from './carrier-message.js';
import type { MediaFrameReader } from './media-frame-reader.js';
import type { AcceptedStream, MediaStream, MediaStreamListener, MediaStreamStart } from './media-stream.js';
import { OutgoingFrames, textsOf } from './outgoing-frames.js';

/** While the rate is exceeded only messages this small are looked into: key presses, marks and `stop` are. */
const CONTROL_BYTES_MAX = 1024;
/** WebSocket close codes, RFC 6455, 7.4.1. */
const NORMAL = 1000;
const POLICY_VIOLATION = 1008;
const INTERNAL_ERROR = 1011;

export interface TwilioMediaStreamParts {
  readonly ws: WebSocket;
  /** The socket under `ws`, as the upgrade handed it over. */
  readonly socket: Duplex;
  readonly start: MediaStreamStart;
  /** Shared by the server's streams: they read one message at a time. */
  readonly reader: MediaFrameReader;
  readonly anomalies: CarrierAnomalies;
  readonly clock: Clock;
  readonly log: Log;
}

export class TwilioMediaStream implements MediaStream {
  readonly streamSid: StreamSid;
  readonly callSid: CallSid;
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #reader: MediaFrameReader;
  readonly #anomalies: CarrierAnomalies;
  /** The server's, until a call takes the stream and its time is the call's. */
  #clock: Clock;
  #time: CallTime | undefined;
  #tap: SocketTap | undefined;
  /** What was done while the stream was being accepted, when nobody knew yet who taps it; undefined afterwards. */
  #untold: ((tap: SocketTap) => void)[] | undefined = [];
  readonly #log: Log;
  readonly #frames: OutgoingFrames;
  readonly #sidBytes: Uint8Array;
  #listener: MediaStreamListener | undefined;
  /** `over` once we have closed or cut the socket: nothing more is sent or heard. */
  #over = false;
  #stopped = false;
  #watchdog: Timer | undefined;
  #closeTimer: Timer | undefined;
  #heardAtMs: number;
  /** Token bucket of messages; below zero it is debt. */
  #tokens = CARRIER_MESSAGES_PER_SECOND_MAX;
  #tokensAtMs: number;
  #corked = false;
  /** Frames sent while corked. */
  #waiting = '';

  constructor(parts: TwilioMediaStreamParts) {
    this.streamSid = parts.start.streamSid;
    this.callSid = parts.start.callSid;
    this.#ws = parts.ws;
    this.#socket = parts.socket;
    this.#reader = parts.reader;
    this.#anomalies = parts.anomalies;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#frames = new OutgoingFrames(this.streamSid);
    this.#sidBytes = Buffer.from(this.streamSid);
    this.#heardAtMs = parts.clock.nowMs();
    this.#tokensAtMs = this.#heardAtMs;
  }

  /** Takes over the socket's events. Called once, before the carrier's next message is read. */
  begin(accepted: AcceptedStream | undefined): void {
    this.#listener = accepted?.listener;
    if (accepted !== undefined) {
      const { clock, tap } = accepted.scope;
      this.#clock = clock;
      this.#time = clock;
      this.#tap = tap;
      this.#heardAtMs = clock.nowMs();
      this.#tokensAtMs = this.#heardAtMs;
      if (tap !== undefined) for (const tell of this.#untold ?? []) tell(tap);
    }
    this.#untold = undefined;
    this.#ws.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
    this.#ws.on('ping', () => this.#heard());
    this.#ws.on('pong', () => this.#heard());
    this.#ws.on('close', (code, reason) => this.#ended(code, reason.toString('utf8')));
    if (!this.#over) this.#watch(CARRIER_PING_INTERVAL_MS);
  }

  get bufferedAmount(): number {
    return this.#ws.bufferedAmount;
  }

  sendMedia(mulaw: Uint8Array, markName?: string): void {
    if (!this.#canSend()) return;
    if (this.#ws.bufferedAmount > CARRIER_UNSENT_MAX_BYTES) {
      // The mark goes with the sound: alone it would come back as heard.
      this.#anomalies.note('unsentOverflow');
      return;
    }
    const media = mulaw.length === 0 ? '' : this.#frames.media(mulaw);
    this.#write(markName === undefined ? media : media + this.#frames.mark(markName));
  }

  sendMark(name: string): void {
    this.#sendControl(this.#frames.mark(name));
  }

  sendClear(): void {
    this.#sendControl(this.#frames.clear());
  }

  close(): void {
    this.closeWith(NORMAL);
  }

  /** Closes with a code from RFC 6455 and without a word; the peer has CARRIER_CLOSE_MAX_MS to answer. */
  closeWith(code: number): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopWatching();
    if (this.#ws.readyState === WebSocket.CLOSED) return;
    this.#tell((tap) => tap.closing(code));
    this.#closeTimer = this.#clock.setTimer(CARRIER_CLOSE_MAX_MS, () => this.#ws.terminate());
    this.#ws.close(code);
  }

  terminate(): void {
    if (!this.#over) this.#tell((tap) => tap.closing(undefined));
    this.#over = true;
    this.#stopWatching();
    this.#ws.terminate();
  }

  #canSend(): boolean {
    return !this.#over && this.#ws.readyState === WebSocket.OPEN && this.#socket.writable;
  }

  cork(): void {
    this.#corked = true;
  }

  uncork(): void {
    this.#corked = false;
    const frames = this.#waiting;
    this.#waiting = '';
    if (this.#canSend()) this.#write(frames);
  }

  /** A peer that left so much unread that even this has no room is gone, whatever it still sends. */
  #sendControl(frames: string): void {
    if (!this.#canSend()) return;
    if (this.#ws.bufferedAmount <= CARRIER_CONTROL_UNSENT_MAX_BYTES) return this.#write(frames);
    this.#anomalies.note('unsentOverflow');
    this.terminate();
  }

  #write(frames: string): void {
    if (this.#corked) {
      this.#waiting += frames;
      return;
    }
    if (frames === '') return;
    if (this.#tap !== undefined || this.#untold !== undefined) {
      for (const text of textsOf(frames)) this.#tell((tap) => tap.sent(text));
    }
    this.#socket.write(frames, 'latin1');
  }

  #tell(say: (tap: SocketTap) => void): void {
    if (this.#tap !== undefined) say(this.#tap);
    else this.#untold?.push(say);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#time?.enter();
    if (this.#over) return;
    this.#tap?.received(data, isBinary);
    this.#heard();
    const inDebt = this.#spendToken();
    if (this.#tokens < -CARRIER_RATE_DEBT_MAX) {
      this.#anomalies.note('overRate');
      this.closeWith(POLICY_VIOLATION);
      return;
    }
    if (isBinary) {
      this.#anomalies.note('binaryFrame');
      return;
    }
    if (inDebt && data.length > CONTROL_BYTES_MAX) {
      this.#anomalies.note('overRate');
      return;
    }
    try {
      this.#read(data, inDebt);
    } catch (error) {
      // A fault in the call behind the listener ends this call, not the process.
      this.#log.error(
        { callSid: this.callSid, cause: errorText(error) },
        'the call failed on a carrier message',
      );
      this.closeWith(INTERNAL_ERROR);
    }
  }

  #read(data: Buffer, inDebt: boolean): void {
    if (this.#reader.read(data, this.#sidBytes)) return this.#deliverMedia(this.#reader.timestampMs, inDebt);
    const mark = plainMarkName(data, this.streamSid);
    if (mark === undefined) this.#deliver(parseCarrierMessage(data, this.streamSid), inDebt);
    else this.#deliverMark(mark);
  }

  #deliverMedia(timestampMs: number, inDebt: boolean): void {
    if (this.#stopped) this.#anomalies.note('afterStop');
    else if (inDebt) this.#anomalies.note('overRate');
    else this.#listener?.onMedia(this.#reader.mulaw, timestampMs);
  }

  #deliverMark(name: string): void {
    if (this.#stopped) this.#anomalies.note('afterStop');
    else this.#listener?.onMark(name);
  }

  #deliver(message: CarrierMessage, inDebt: boolean): void {
    switch (message.event) {
      case 'connected':
      case 'start':
        return;
      case 'anomaly':
        this.#anomalies.note(message.kind);
        return;
      case 'media':
        if (this.#reader.decode(message.payload)) this.#deliverMedia(message.timestampMs, inDebt);
        else this.#anomalies.note('badPayload');
        return;
      case 'dtmf':
        if (this.#stopped) this.#anomalies.note('afterStop');
        else this.#listener?.onDtmf(message.digit);
        return;
      case 'mark':
        return this.#deliverMark(message.name);
      case 'stop':
        if (this.#stopped) this.#anomalies.note('afterStop');
        else {
          this.#stopped = true;
          this.#listener?.onStop();
        }
    }
  }

  /** Takes one message from the bucket; true if there was none left. The clock is read only when it looks empty. */
  #spendToken(): boolean {
    this.#tokens -= 1;
    if (this.#tokens >= 0) return false;
    const nowMs = this.#clock.nowMs();
    const earned = ((nowMs - this.#tokensAtMs) * CARRIER_MESSAGES_PER_SECOND_MAX) / 1000;
    this.#tokensAtMs = nowMs;
    this.#tokens = Math.min(this.#tokens + earned, CARRIER_MESSAGES_PER_SECOND_MAX);
    return this.#tokens < 0;
  }

  #heard(): void {
    this.#heardAtMs = this.#clock.nowMs();
  }

  #watch(delayMs: number): void {
    this.#watchdog = this.#clock.setTimer(delayMs, () => {
      const leftMs = CARRIER_SILENCE_MAX_MS - (this.#clock.nowMs() - this.#heardAtMs);
      if (leftMs <= 0) {
        this.#anomalies.note('silence');
        this.terminate();
        return;
      }
      if (this.#ws.readyState === WebSocket.OPEN) this.#ws.ping();
      this.#watch(Math.min(CARRIER_PING_INTERVAL_MS, Math.max(1, leftMs)));
    });
  }

  #stopWatching(): void {
    this.#watchdog?.cancel();
    this.#watchdog = undefined;
  }

  #ended(code: number, reason: string): void {
    this.#time?.enter();
    this.#tap?.ended(code, reason);
    this.#over = true;
    this.#stopWatching();
    this.#closeTimer?.cancel();
    this.#closeTimer = undefined;
    this.#ws.removeAllListeners('message');
    this.#ws.removeAllListeners('ping');
    this.#ws.removeAllListeners('pong');
    const listener = this.#listener;
    this.#listener = undefined;
    try {
      listener?.onClose(code, reason);
    } catch (error) {
      this.#log.error(
        { callSid: this.callSid, cause: errorText(error) },
        'the call failed on a closed socket',
      );
    }
  }
}
