/**
 * One bidirectional media stream as Twilio runs it: opens the socket, says `connected` and `start`, sends the
 * caller's sound as 20 ms frames on an absolute schedule, obeys `media`, `mark` and `clear`, and says `stop` when the
 * call ends. Message shapes are Twilio's documented ones (every number a string but the two of `mediaFormat`); what
 * the server sends is held against Twilio's rules and reported as the warning or error that Twilio would log.
 */
import type { WebSocket } from 'ws';
import type { Clock, Timer } from '../clock.js';
import { errorText, TelephonyError } from '../errors.js';
import {
  FRAME_MS,
  MULAW_FRAME_BYTES,
  PHONE_CATCH_UP_MAX_MS,
  PHONE_CLOSE_TIMEOUT_MS,
  PHONE_UPGRADE_TIMEOUT_MS,
} from '../limits.js';
import type { CarrierPlayer } from './carrier-player.js';
import type { Pacing } from './phone-record.js';
import { msOf, positionOf, type SoundTrack } from './sound-track.js';

export interface PhoneStreamOptions {
  readonly clock: Clock;
  readonly answeredAtMs: number;
  readonly url: string;
  readonly streamSid: string;
  readonly callSid: string;
  readonly accountSid: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly said: SoundTrack;
  readonly player: CarrierPlayer;
  readonly warn: (warning: string) => void;
}

export interface StreamEnd {
  readonly code: number;
  readonly reason: string;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

export class PhoneStream {
  readonly #options: PhoneStreamOptions;
  readonly #pacing: Pacing;
  readonly #socket: WebSocket;
  readonly #frame = new Uint8Array(MULAW_FRAME_BYTES);
  #sequence = 0;
  #chunk = 0;
  #openedAt = 0;
  #frameIndex = 0;
  #frameTimer: Timer | undefined;
  #closeTimer: Timer | undefined;
  #started = false;
  #stopped = false;

  constructor(options: PhoneStreamOptions, socket: WebSocket, pacing: Pacing) {
    this.#options = options;
    this.#socket = socket;
    this.#pacing = pacing;
  }

  /**
   * Waits for the upgrade, calls `onStart` when `start` was sent, and resolves when the socket is closed. A refused
   * or failed upgrade rejects with TelephonyError `phone_failed`.
   */
  run(onStart: () => void): Promise<StreamEnd> {
    const { clock, url } = this.#options;
    return new Promise((resolve, reject) => {
      let failure: TelephonyError | undefined;
      const fail = (why: string, cause?: unknown): void => {
        if (failure !== undefined) return;
        failure = new TelephonyError('phone_failed', `media socket ${url}: ${why}`, { cause });
        this.#socket.terminate();
        reject(failure);
      };
      const timer = clock.setTimer(PHONE_UPGRADE_TIMEOUT_MS, () => {
        fail(`no upgrade within ${PHONE_UPGRADE_TIMEOUT_MS / 1_000} s (31901)`);
      });
      this.#socket.once('unexpected-response', (_request, response) => {
        response.resume();
        fail(`the upgrade was refused with HTTP ${response.statusCode ?? 0} (31920)`);
      });
      this.#socket.on('error', (error) => {
        if (!this.#started) fail(errorText(error), error);
        else this.#options.warn(`media socket: ${errorText(error)} (31924)`);
      });
      this.#socket.once('open', () => {
        timer.cancel();
        this.#start();
        onStart();
      });
      this.#socket.on('message', (data: Buffer, isBinary) =>
        this.#onMessage(data.toString('utf8'), isBinary),
      );
      this.#socket.once('close', (code, reason) => {
        timer.cancel();
        this.#frameTimer?.cancel();
        this.#closeTimer?.cancel();
        this.#options.player.cut();
        if (this.#started) resolve({ code, reason: reason.toString() });
        else fail(`closed before it was open (${code})`);
      });
    });
  }

  sendDigit(digit: string): void {
    if (!this.#live) return;
    this.#send('dtmf', { dtmf: { track: 'inbound_track', digit } });
  }

  sendMark(name: string): void {
    if (!this.#live) return;
    this.#send('mark', { mark: { name } });
  }

  /** The call has ended: `stop`, then the close handshake, bounded. Idempotent. */
  stop(): void {
    if (this.#stopped) return;
    if (!this.#started) {
      this.#stopped = true;
      this.#socket.terminate();
      return;
    }
    if (this.#live) {
      const { accountSid, callSid } = this.#options;
      this.#send('stop', { stop: { accountSid, callSid } });
    }
    this.#stopped = true;
    this.#frameTimer?.cancel();
    this.#options.player.cut();
    this.#socket.close(1000);
    this.#closeTimer = this.#options.clock.setTimer(PHONE_CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
  }

  /** Cuts the socket without `stop` or a close frame, as a broken network would. */
  breakOff(): void {
    this.#socket.terminate();
  }

  get #live(): boolean {
    return this.#started && !this.#stopped && this.#socket.readyState === this.#socket.OPEN;
  }

  #start(): void {
    const { streamSid, callSid, accountSid, parameters, clock, answeredAtMs } = this.#options;
    this.#started = true;
    this.#openedAt = positionOf(clock.nowMs() - answeredAtMs);
    this.#socket.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
    this.#send('start', {
      start: {
        accountSid,
        streamSid,
        callSid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: parameters,
      },
    });
    this.#scheduleFrame();
  }

  #send(event: string, fields: object): void {
    this.#sequence += 1;
    const message = {
      event,
      sequenceNumber: String(this.#sequence),
      ...fields,
      streamSid: this.#options.streamSid,
    };
    this.#socket.send(JSON.stringify(message));
  }

  /** When frame `index` is complete and due, in milliseconds on the clock: always from the start, never from now. */
  #dueMs(index: number): number {
    return this.#options.answeredAtMs + msOf(this.#openedAt) + (index + 1) * FRAME_MS;
  }

  #scheduleFrame(): void {
    const delayMs = this.#dueMs(this.#frameIndex) - this.#options.clock.nowMs();
    this.#frameTimer = this.#options.clock.setTimer(delayMs, () => this.#sendDueFrames());
  }

  #sendDueFrames(): void {
    const now = this.#options.clock.nowMs();
    const lateMs = now - this.#dueMs(this.#frameIndex);
    // A timer may fire a fraction of a millisecond early; the frame then waits for the next turn.
    if (lateMs >= 0) this.#pacing.latenessMaxMs = Math.max(this.#pacing.latenessMaxMs, lateMs);
    if (lateMs > PHONE_CATCH_UP_MAX_MS) {
      const skipped = Math.floor(lateMs / FRAME_MS);
      this.#frameIndex += skipped;
      this.#pacing.framesSkipped += skipped;
    }
    while (this.#live && this.#dueMs(this.#frameIndex) <= now) this.#sendFrame();
    if (this.#live) this.#scheduleFrame();
  }

  #sendFrame(): void {
    this.#options.said.readInto(this.#frame, this.#openedAt + this.#frameIndex * MULAW_FRAME_BYTES);
    this.#chunk += 1;
    this.#send('media', {
      media: {
        track: 'inbound',
        chunk: String(this.#chunk),
        timestamp: String(this.#frameIndex * FRAME_MS),
        payload: Buffer.from(this.#frame).toString('base64'),
      },
    });
    this.#frameIndex += 1;
    this.#pacing.framesSent += 1;
  }

  #onMessage(text: string, isBinary: boolean): void {
    if (this.#stopped) return;
    if (isBinary) return this.#options.warn('a binary message was ignored (31950)');
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return this.#options.warn('a message that is not JSON was ignored (31951)');
    }
    const problem = this.#obey(message);
    if (problem !== undefined) this.#options.warn(`${problem} (31951)`);
  }

  /** Carries out one message; returns what is wrong with it, if anything, and then does nothing. */
  #obey(message: unknown): string | undefined {
    if (!isRecord(message)) return 'a message that is no object was ignored';
    const { event, streamSid } = message;
    if (event !== 'media' && event !== 'mark' && event !== 'clear') return 'an unknown event was ignored';
    if (streamSid !== this.#options.streamSid) return `${event} with a wrong streamSid was ignored`;
    const { player } = this.#options;
    if (event === 'clear') {
      if (!hasExactly(message, ['event', 'streamSid'])) return 'clear with extra fields was ignored';
      player.clear();
      return undefined;
    }
    const inner = message[event];
    const field = event === 'media' ? 'payload' : 'name';
    if (
      !hasExactly(message, ['event', 'streamSid', event]) ||
      !isRecord(inner) ||
      !hasExactly(inner, [field])
    ) {
      return `${event} with missing or extra fields was ignored`;
    }
    const value = inner[field];
    if (typeof value !== 'string') return `${event} whose ${field} is no string was ignored`;
    if (event === 'mark') {
      player.addMark(value);
      return undefined;
    }
    if (value.length % 4 !== 0 || !BASE64.test(value)) return 'media that is not base64 was ignored';
    if (!player.play(Buffer.from(value, 'base64')))
      this.#options.warn('over ten minutes queued, dropped (31931)');
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasExactly(record: Record<string, unknown>, keys: readonly string[]): boolean {
  return Object.keys(record).length === keys.length && keys.every((key) => Object.hasOwn(record, key));
}
