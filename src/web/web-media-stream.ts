/**
 * A web client's ears, as the call sees them: takes the call's mu-law at the caller's pace, sends it in the client's format,
 * and returns each mark when a client that plays at once and in real time has come to it, for a client confirms nothing.
 * A client without sound has no ears: nothing is sent, and its call shows words instead. Frames, and the socket's end,
 * are others' business: closing this ends the call's line only, so that what was last said still reaches the client.
 */
import type { Clock, Timer } from '../clock.js';
import { type CallSid, newId, parseCallSid, parseStreamSid, type StreamSid } from '../ids.js';
import { MARKS_UNRETURNED_MAX, MULAW_BYTES_PER_MS, WEB_SOUND_UNSENT_MAX_BYTES } from '../limits.js';
import type { MediaStream, MediaStreamListener } from '../telephony/media-stream.js';
import { outwardFilter, type SoundFilter, type SoundFormat } from './sound-format.js';

/** What is used of the client's socket. */
export interface SoundSocket {
  readonly bufferedAmount: number;
  readonly readyState: number;
  send(text: string): void;
}

const OPEN = 1;
const NORMAL = 1000;
const CLEAR = '{"type":"clear"}';

interface WaitingMark {
  readonly name: string;
  readonly atMs: number;
}

export class WebMediaStream implements MediaStream {
  readonly streamSid: StreamSid;
  readonly callSid: CallSid;
  readonly isSilent: boolean;
  readonly #socket: SoundSocket;
  readonly #filter: SoundFilter | undefined;
  #clock: Clock;
  #listener: MediaStreamListener | undefined;
  #marks: WaitingMark[] = [];
  #timer: Timer | undefined;
  #playedOutAtMs = 0;
  #isClosed = false;

  /** `clock` is the server's, until a call takes the stream. */
  constructor(options: {
    readonly socket: SoundSocket;
    readonly format: SoundFormat | undefined;
    readonly clock: Clock;
  }) {
    const id = newId();
    this.streamSid = parseStreamSid(`web-${id}`) as StreamSid;
    this.callSid = parseCallSid(`web-${id}`) as CallSid;
    this.isSilent = options.format === undefined;
    this.#filter = options.format && outwardFilter(options.format);
    this.#socket = options.socket;
    this.#clock = options.clock;
  }

  /** The call that hears of marks and of the end, and its time. */
  begin(listener: MediaStreamListener, clock: Clock): void {
    this.#listener = listener;
    this.#clock = clock;
  }

  /** Full where no more sound may be sent: the call then waits with it, and nothing is counted as heard that was not sent. */
  get bufferedAmount(): number {
    const { bufferedAmount } = this.#socket;
    return bufferedAmount > WEB_SOUND_UNSENT_MAX_BYTES ? Number.POSITIVE_INFINITY : bufferedAmount;
  }

  sendMedia(mulaw: Uint8Array, markName?: string): void {
    if (this.#isClosed) return;
    if (mulaw.length > 0) this.#play(mulaw);
    if (markName !== undefined) this.sendMark(markName);
  }

  sendMark(name: string): void {
    if (this.#isClosed || this.#marks.length >= MARKS_UNRETURNED_MAX) return;
    this.#marks.push({ name, atMs: Math.max(this.#playedOutAtMs, this.#clock.nowMs()) });
    if (this.#timer === undefined) this.#arm();
  }

  /**
   * Goes out at once and in the order of the sound, as Twilio's `clear` does: what comes behind it is another message's. The
   * `flush` frame, which waits for the store, says what was heard of the words.
   */
  sendClear(): void {
    if (this.#isClosed) return;
    if (!this.isSilent && this.#socket.readyState === OPEN) this.#socket.send(CLEAR);
    this.#marks = [];
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#playedOutAtMs = this.#clock.nowMs();
    this.#filter?.reset();
  }

  cork(): void {
    // Each message is one write of the socket's own.
  }

  uncork(): void {
    // As above.
  }

  close(): void {
    this.#end(NORMAL, true);
  }

  terminate(): void {
    this.#end(NORMAL, true);
  }

  /** The client's socket has gone. */
  lost(code: number): void {
    this.#end(code, false);
  }

  #play(mulaw: Uint8Array): void {
    const nowMs = this.#clock.nowMs();
    this.#playedOutAtMs = Math.max(this.#playedOutAtMs, nowMs) + mulaw.length / MULAW_BYTES_PER_MS;
    if (this.#filter === undefined || this.#socket.readyState !== OPEN) return;
    const sound = this.#filter.push(mulaw);
    const data = Buffer.from(sound.buffer, sound.byteOffset, sound.byteLength).toString('base64');
    this.#socket.send(`{"type":"audio","data":"${data}"}`);
  }

  #arm(): void {
    const next = this.#marks[0];
    if (next === undefined) return;
    this.#timer = this.#clock.setTimer(next.atMs - this.#clock.nowMs(), () => {
      this.#timer = undefined;
      const nowMs = this.#clock.nowMs();
      while (this.#marks[0] !== undefined && this.#marks[0].atMs <= nowMs) {
        const mark = this.#marks.shift();
        if (mark !== undefined) this.#listener?.onMark(mark.name);
      }
      if (this.#timer === undefined) this.#arm();
    });
  }

  /** The call hears of the end once, and afterwards: it may be in the middle of something. */
  #end(code: number, isOurs: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#marks = [];
    this.#filter?.release();
    const listener = this.#listener;
    this.#listener = undefined;
    if (isOurs) this.#clock.setTimer(0, () => listener?.onClose(code, ''));
    else listener?.onClose(code, '');
  }
}
