/**
 * One web client of a live conversation, from its socket's opening to its end. What it sends is untrusted: each message is
 * bounded in size and rate, and one that makes no sense is answered with an error frame and changes nothing else. A
 * socket that closes properly ends the conversation; one that is lost may come back. After the end no timer is left.
 */
import type { WebSocket } from 'ws';
import type { Clock, Timer } from '../clock.js';
import { errorText } from '../errors.js';
import {
  CARRIER_PING_INTERVAL_MS,
  CARRIER_SILENCE_MAX_MS,
  STREAM_START_TIMEOUT_MS,
  WEB_EARLY_MAX_BYTES,
  WEB_MESSAGES_DEBT_MAX,
  WIRE_SOCKET_UNSENT_MAX_BYTES,
} from '../limits.js';
import type { Log } from '../observe/log.js';
import type { Broadcast } from '../wire/broadcast.js';
import { LiveSocketSink } from '../wire/live-socket-sink.js';
import {
  bulkOf,
  type ClientMessage,
  readClientMessage,
  soundBytesIn,
  type StartMessage,
} from './client-message.js';
import { ClientRates } from './client-rates.js';
import { IncomingSound } from './incoming-sound.js';
import type { LiveLine, OpenedLive, OpenLive, RefusedLive } from './live-runs.js';
import { WebMediaStream } from './web-media-stream.js';

/** WebSocket close codes, RFC 6455, 7.4.1, and the registry behind it. */
const ABNORMAL = 1006;
const POLICY_VIOLATION = 1008;
const TRY_AGAIN_LATER = 1013;
const GOING_AWAY = 1001;
/** What another server, or this one later, may not refuse. */
const MAY_COME_BACK: ReadonlySet<string> = new Set(['run_refused', 'server_draining']);

export interface LiveClientParts {
  readonly ws: WebSocket;
  readonly clock: Clock;
  readonly log: Log;
  readonly open: OpenLive;
  /** It has its conversation: another client of the same one gives way. */
  readonly onJoined: (callSid: string) => void;
  readonly onGone: () => void;
  readonly onSoundDropped: (ms: number) => void;
}

/** What a client has once it has joined its conversation. */
interface Joined {
  readonly line: LiveLine;
  readonly broadcast: Broadcast;
  readonly stream: WebMediaStream;
  readonly sound: IncomingSound | undefined;
}

export class LiveClient {
  readonly #parts: LiveClientParts;
  readonly #rates: ClientRates;
  #state: 'unstarted' | 'opening' | 'joined' | 'over' = 'unstarted';
  #joined: Joined | undefined;
  #wasHungUp = false;
  /** What had been read from the network before it was paused, WEB_EARLY_MAX_BYTES at most. */
  #early: (readonly [data: Buffer, isBinary: boolean])[] = [];
  #earlyBytes = 0;
  #startTimer: Timer;
  #watchdog: Timer | undefined;
  #heardAtMs: number;
  #faults = 0;
  #texts = 0;
  /** It sent what is no WebSocket, or too long a message, and was closed for that. */
  #brokeProtocol = false;

  constructor(parts: LiveClientParts) {
    this.#parts = parts;
    const { ws, clock } = parts;
    this.#rates = new ClientRates(clock);
    this.#heardAtMs = clock.nowMs();
    this.#startTimer = clock.setTimer(STREAM_START_TIMEOUT_MS, () =>
      this.#refuse({ code: 'start_missing', refused: 'start did not come in time' }),
    );
    ws.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
    ws.on('ping', (data) => this.#pinged(data));
    ws.on('pong', () => this.#counted());
    ws.on('close', (code) => this.#gone(code));
    ws.on('error', (error) => {
      this.#brokeProtocol = Reflect.get(error, 'code')?.toString().startsWith('WS_ERR_') ?? false;
    });
    this.#watch(CARRIER_PING_INTERVAL_MS);
  }

  get isUnstarted(): boolean {
    return this.#state === 'unstarted' || this.#state === 'opening';
  }

  get callSid(): string | undefined {
    return this.#joined?.line.callSid;
  }

  /** Another client has taken the conversation over. */
  giveWay(): void {
    this.#refuse({ code: 'run_conflict', refused: 'another client has taken this conversation over' });
  }

  /** For the server's own shutdown. */
  close(): void {
    this.#parts.ws.close(GOING_AWAY);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    const isTooFast = !this.#counted();
    if (this.#state === 'over') return;
    if (this.#state === 'opening') this.#keep(data, isBinary);
    else if (!isTooFast || this.#joined === undefined || !this.#leftOut(this.#joined, data))
      this.#read(data, isBinary);
  }

  /** Something came, of whatever kind. False: it comes too fast; and far too fast, and the client is hung up. */
  #counted(): boolean {
    this.#heard();
    if (this.#state === 'over') return false;
    const isInTime = this.#rates.messages.spend(1);
    if (this.#rates.messages.left < -WEB_MESSAGES_DEBT_MAX)
      this.#hangUp({ code: 'too_fast', refused: 'messages come far too fast' });
    return isInTime;
  }

  /** Pings count as messages do. Of many, some are answered, which RFC 6455, 5.5.3, allows: a client that does not read piles nothing up. */
  #pinged(data: Buffer): void {
    const { ws } = this.#parts;
    const mayAnswer = this.#counted() && ws.bufferedAmount <= WIRE_SOCKET_UNSENT_MAX_BYTES;
    if (mayAnswer && ws.readyState === ws.OPEN) ws.pong(data);
  }

  /** Until the conversation is open. */
  #keep(data: Buffer, isBinary: boolean): void {
    this.#earlyBytes += data.length;
    if (this.#earlyBytes > WEB_EARLY_MAX_BYTES)
      this.#hangUp({ code: 'too_fast', refused: 'too much came before the conversation was open' });
    else this.#early.push([data, isBinary]);
  }

  /** While messages come too fast bulk goes first, unread: sound is counted, and the client told now and then. Words never go. */
  #leftOut({ sound }: Joined, data: Buffer): boolean {
    const bulk = bulkOf(data);
    if (bulk === undefined) return false;
    if (bulk === 'audio') sound?.leaveOut(soundBytesIn(data));
    if (this.#rates.telling.take(1)) this.#fault('too_fast', `messages come too fast: ${bulk} is left out`);
    return true;
  }

  #read(data: Buffer, isBinary: boolean): void {
    if (this.#state === 'over') return;
    const message = isBinary
      ? ({ type: 'fault', message: 'a message must be text' } as const)
      : readClientMessage(data.toString());
    if (this.#joined !== undefined) {
      if (message.type === 'fault') this.#fault('message_invalid', message.message);
      else this.#take(this.#joined, message);
    } else if (message.type === 'start') this.#open(message);
    else if (message.type === 'fault') this.#refuse({ code: 'message_invalid', refused: message.message });
    else this.#refuse({ code: 'start_missing', refused: 'the first message must be start' });
  }

  #open(start: StartMessage): void {
    const { ws, clock, open, log } = this.#parts;
    this.#startTimer.cancel();
    this.#state = 'opening';
    // What the client sends meanwhile waits, most of it in the network: texts must not be lost.
    ws.pause();
    const { userId, sessionId, audio } = start;
    const stream = new WebMediaStream({ socket: ws, format: audio, clock });
    open({ userId, sessionId }, stream).then(
      (opened) => {
        if ('refused' in opened) this.#refuse(opened);
        else this.#join(opened, stream, start);
        this.#readEarly();
        ws.resume();
      },
      (error: unknown) => {
        log.error({ cause: errorText(error) }, 'a live conversation could not be opened');
        ws.resume();
        this.#refuse({ code: 'internal_error', refused: 'the conversation could not be opened' });
      },
    );
  }

  #readEarly(): void {
    this.#earlyBytes = 0;
    for (const early of this.#early.splice(0)) this.#read(...early);
  }

  #join({ line, broadcast, fault }: OpenedLive, stream: WebMediaStream, { audio }: StartMessage): void {
    const { ws, clock, onSoundDropped, onJoined } = this.#parts;
    stream.begin(line.listener, line.scope.clock);
    if (this.#state === 'over') {
      line.scope.clock.enter();
      // Who was hung up does not come back: the model need not wait.
      if (this.#wasHungUp) line.listener.onStop();
      stream.lost(ABNORMAL);
      return;
    }
    const sound =
      audio &&
      new IncomingSound({ format: audio, clock, listener: line.listener, onDropped: onSoundDropped });
    this.#joined = { line, broadcast, stream, sound };
    this.#state = 'joined';
    onJoined(line.callSid);
    if (!broadcast.watch(new LiveSocketSink(ws))) {
      this.#hangUp({ code: 'run_refused', refused: 'the conversation has too many watchers' });
      return;
    }
    if (fault !== undefined) this.#fault(fault.code, fault.message);
    if (line.isReady) broadcast.publish({ kind: 'ready' });
  }

  #take({ line, sound }: Joined, message: ClientMessage): void {
    switch (message.type) {
      case 'start':
        return this.#fault('message_invalid', 'start has come already');
      case 'text':
        this.#texts += 1;
        if (!this.#rates.texts.take(1)) return this.#refuseText('texts come too fast');
        if (!line.type(message.text)) this.#refuseText('too many texts wait for the model');
        return;
      case 'audio':
        if (sound === undefined) return this.#fault('message_invalid', 'start named no format of audio');
        line.scope.clock.enter();
        if (sound.take(message.sound) || !sound.mayTell()) return;
        return this.#fault('too_fast', 'audio comes faster than it is spoken, and is left out');
      case 'image':
        if (!this.#rates.images.take(1)) {
          // Now and then is enough: pictures that come too fast are no reason to hang up.
          if (this.#rates.telling.take(1)) this.#fault('image_refused', 'images come too fast');
          return;
        }
        if (!line.show(message.mimeType, message.image))
          this.#fault('image_refused', 'the model takes no image now');
        return;
      case 'end':
        line.scope.clock.enter();
        return line.listener.onStop();
    }
  }

  /** A text is never left out in silence: which one it was is told. */
  #refuseText(why: string): void {
    this.#fault('too_fast', `${why}: text ${this.#texts} of this connection is left out`);
  }

  /** Tells what was wrong with a message, and hangs up on a client that sends nothing else. */
  #fault(code: string, message: string): void {
    const { broadcast, stream } = this.#joined ?? {};
    if (!this.#rates.faults.take(1)) return this.#hangUp({ code, refused: 'too many messages were wrong' });
    this.#faults += 1;
    broadcast?.publish({
      kind: 'error',
      msg: `${stream?.streamSid}-${this.#faults}`,
      code,
      message,
      fatal: false,
    });
  }

  /** Ends the conversation for something that the client did. */
  #hangUp(refusal: RefusedLive): void {
    this.#wasHungUp = true;
    this.#refuse(refusal);
    const { line } = this.#joined ?? {};
    line?.scope.clock.enter();
    line?.listener.onStop();
  }

  /** The last frame on this socket. Not one of the conversation, which may go on without it. */
  #refuse({ code, refused }: RefusedLive): void {
    const { ws } = this.#parts;
    if (this.#state === 'over') return;
    const seq = (this.#joined?.broadcast.seq ?? 0) + 1;
    const frame = { type: 'error', seq, msg: 'connection', code, message: refused, fatal: true };
    ws.send(JSON.stringify(frame));
    ws.close(MAY_COME_BACK.has(code) ? TRY_AGAIN_LATER : POLICY_VIOLATION);
    this.#stop();
  }

  #heard(): void {
    this.#heardAtMs = this.#parts.clock.nowMs();
  }

  /** Pings, and cuts a socket from which nothing comes any more. */
  #watch(delayMs: number): void {
    const { ws, clock } = this.#parts;
    this.#watchdog = clock.setTimer(delayMs, () => {
      const leftMs = CARRIER_SILENCE_MAX_MS - (clock.nowMs() - this.#heardAtMs);
      if (leftMs <= 0) {
        ws.terminate();
        return;
      }
      if (ws.readyState === ws.OPEN) ws.ping();
      this.#watch(Math.min(CARRIER_PING_INTERVAL_MS, Math.max(1, leftMs)));
    });
  }

  #stop(): void {
    this.#state = 'over';
    this.#startTimer.cancel();
    this.#watchdog?.cancel();
  }

  #gone(code: number): void {
    this.#stop();
    this.#parts.ws.removeAllListeners('message');
    const joined = this.#joined;
    this.#joined = undefined;
    if (joined !== undefined) {
      const { line, stream, sound } = joined;
      line.scope.clock.enter();
      sound?.release();
      if (code !== ABNORMAL || this.#brokeProtocol) line.listener.onStop();
      stream.lost(code);
    }
    this.#parts.onGone();
  }
}
