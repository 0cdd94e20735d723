/**
 * A caller with a carrier: a Twilio look-alike that drives a server through its real doors. It posts the voice
 * webhook, follows the TwiML that comes back as Twilio would, carries sound both ways over the media socket, posts
 * status callbacks, and keeps both sides of the call on one timeline. It is an independent implementation of the
 * carrier, written from Twilio's documentation, and shares nothing with the server that it calls.
 * It cannot speak the words of `<Say>` (the caller hears silence for about as long), nor transfer a call.
 */
import type { Clock, Timer } from '../clock.js';
import { errorText, TelephonyError } from '../errors.js';
import { newId } from '../ids.js';
import {
  CALLER_SOUND_MAX_MS,
  MULAW_BYTES_PER_MS,
  PHONE_CALL_MAX_MS,
  PHONE_DOCUMENTS_MAX,
  PHONE_PLAY_MAX_BYTES,
  PHONE_WARNINGS_MAX,
  TWIML_MAX_BYTES,
} from '../limits.js';
import { CarrierDoors } from './carrier-doors.js';
import { CarrierPlayer } from './carrier-player.js';
import type { CarrierSpeech, EndedBy, Pacing, PhoneRecord, StreamRecord } from './phone-record.js';
import { PhoneStream, type StreamEnd } from './phone-stream.js';
import { decodeWav } from './sound-file.js';
import { positionOf, SoundTrack } from './sound-track.js';
import { readTwiml, type HttpMethod, type StreamNoun, type Verb } from './twiml-reader.js';
import {
  DEFAULT_FROM,
  DEFAULT_TO,
  statusParams,
  streamStatusParams,
  voiceParams,
  type CallIdentity,
} from './webhook-params.js';

export interface PhoneOptions {
  readonly clock: Clock;
  /** Origin at which the server can be reached, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Origin for which requests are signed, where the server has a PUBLIC_URL. Default: `url`. */
  readonly publicUrl?: string | undefined;
  /** With it every request and every upgrade is signed. */
  readonly authToken?: string | undefined;
  readonly accountSid?: string | undefined;
  /** Calls `/twilio/voice/:agent` instead of `/twilio/voice`. */
  readonly agent?: string | undefined;
  /** The caller's number and the number called; the defaults are reserved for fiction. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Voice parameters to add or replace; an empty string removes one. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** What the caller says from the first frame on: mu-law at 8 kHz. More can follow by `say`. */
  readonly voice?: Uint8Array | undefined;
  /** Keys that the caller presses, timed from the opening of the first stream. */
  readonly keys?: readonly TimedKey[];
  /** Draws a UUID; ids are made of it. */
  readonly randomId?: () => string;
}

export interface TimedKey {
  readonly atMs: number;
  readonly digit: string;
}

export type PhoneState = 'idle' | 'dialing' | 'connecting' | 'talking' | 'listening' | 'ended';

/** Where the call goes on: another document, or nowhere. */
interface NextDocument {
  readonly url: string;
  readonly method: HttpMethod;
}

/** About 15 characters a second, as speech synthesis speaks. */
const SAY_MS_PER_CHAR = 65;
const TWIML_TYPES = new Set(['text/xml', 'application/xml', 'text/html']);
const DIGIT = /^[0-9A-D*#]$/;

export class Phone {
  readonly callSid: string;
  readonly #options: PhoneOptions;
  readonly #clock: Clock;
  readonly #doors: CarrierDoors;
  readonly #identity: CallIdentity;
  readonly #randomId: () => string;
  readonly #heard = new SoundTrack();
  readonly #said = new SoundTrack();
  readonly #over = new AbortController();
  readonly #streams: StreamRecord[] = [];
  readonly #carrierSpeech: CarrierSpeech[] = [];
  readonly #warnings: string[] = [];
  readonly #pacing: Pacing = { framesSent: 0, framesSkipped: 0, latenessMaxMs: 0 };
  #warningsMore = 0;
  #state: PhoneState = 'idle';
  #endedBy: EndedBy | undefined;
  #unspoken: Uint8Array[] = [];
  #sayEnd = 0;
  #answeredAtMs: number | undefined;
  #endedAtMs: number | undefined;
  #player: CarrierPlayer | undefined;
  #stream: PhoneStream | undefined;
  #keyTimers: Timer[] = [];

  constructor(options: PhoneOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#doors = new CarrierDoors(options);
    this.#randomId = options.randomId ?? newId;
    this.callSid = this.#newSid('CA');
    this.#identity = {
      callSid: this.callSid,
      accountSid: options.accountSid ?? this.#newSid('AC'),
      from: options.from ?? DEFAULT_FROM,
      to: options.to ?? DEFAULT_TO,
    };
    if (options.voice !== undefined) this.#unspoken.push(options.voice);
  }

  get state(): PhoneState {
    return this.#state;
  }

  /** Milliseconds since the call was answered; 0 before, and standing still after the end. */
  get elapsedMs(): number {
    if (this.#answeredAtMs === undefined) return 0;
    return (this.#endedAtMs ?? this.#clock.nowMs()) - this.#answeredAtMs;
  }

  /** Whether the caller has something left to say. */
  get hasVoiceLeft(): boolean {
    return this.#unspoken.length > 0 || this.#sayEnd > this.#now();
  }

  /**
   * Places the call and resolves with its record once it is over and the last status is posted. Rejects with
   * TelephonyError `phone_failed`, naming what failed where; `record()` still has what was heard until then.
   */
  async call(): Promise<PhoneRecord> {
    if (this.#state !== 'idle') throw new TelephonyError('phone_failed', 'a phone places one call');
    this.#state = 'dialing';
    const limit = this.#clock.setTimer(PHONE_CALL_MAX_MS, () => this.#end('carrier'));
    try {
      await this.#followDocuments();
      this.#end('server');
    } catch (error) {
      // What breaks off because the call has ended already is no failure.
      if (this.#endedBy === undefined) {
        this.#end('failure');
        throw error;
      }
    } finally {
      limit.cancel();
      await this.#postStatus();
    }
    return this.record();
  }

  /** Says `mulaw` (8 kHz) after everything said before; before the first stream opens it waits for that. */
  say(mulaw: Uint8Array): void {
    if (this.#streams.length === 0) this.#unspoken.push(mulaw);
    else this.#speak(mulaw);
  }

  /** Presses a key: 0-9, A-D, * or #. Ignored while no stream is open, as Twilio does. */
  dtmf(digit: string): void {
    if (!DIGIT.test(digit)) throw new TelephonyError('phone_failed', `"${digit}" is no key of a telephone`);
    this.#stream?.sendDigit(digit);
  }

  /** The caller hangs up: `stop`, the socket is closed, status `completed` is posted. Idempotent. */
  hangUp(): void {
    this.#end('caller');
  }

  /** The carrier ends the call, as it does when the server asks for it by REST. Idempotent. */
  endCall(): void {
    this.#end('carrier');
  }

  /** The media socket breaks without `stop` or a close frame; the call goes on behind `<Connect>`. */
  breakStream(): void {
    this.#stream?.breakOff();
  }

  /** What is known so far; sound is copied. */
  record(): PhoneRecord {
    const durationMs = this.elapsedMs;
    const length = positionOf(durationMs);
    return {
      callSid: this.callSid,
      endedBy: this.#endedBy,
      durationMs,
      heard: this.#heard.copy(length),
      said: this.#said.copy(length),
      streams: this.#streams.map((stream) => ({ ...stream })),
      stretches: (this.#player?.stretches ?? []).map((stretch) => ({ ...stretch })),
      clears: [...(this.#player?.clears ?? [])],
      marksPlayed: this.#player?.marksPlayed ?? 0,
      overflowMs: this.#player?.overflowMs ?? 0,
      cutMs: this.#player?.cutMs ?? 0,
      carrierSpeech: [...this.#carrierSpeech],
      pacing: { ...this.#pacing },
      warnings: [...this.#warnings],
      warningsMore: this.#warningsMore,
    };
  }

  /** Copies the sound around `agoMs` ago of both sides, for a level meter. */
  readRecent(target: { heard: Uint8Array; said: Uint8Array }, agoMs: number): void {
    const from = Math.max(0, this.#now() - agoMs * MULAW_BYTES_PER_MS);
    this.#heard.readInto(target.heard, from);
    this.#said.readInto(target.said, from);
  }

  async #followDocuments(): Promise<void> {
    const { agent } = this.#options;
    const path = agent === undefined ? '/twilio/voice' : `/twilio/voice/${encodeURIComponent(agent)}`;
    let next: NextDocument | undefined = { url: this.#doors.publicAddress(path), method: 'POST' };
    for (let count = 0; next !== undefined && !this.#over.signal.aborted; count++) {
      if (count === PHONE_DOCUMENTS_MAX) {
        throw new TelephonyError(
          'phone_failed',
          `${next.url}: over ${PHONE_DOCUMENTS_MAX} documents in one call`,
        );
      }
      const verbs: Verb[] = await this.#fetchDocument(next);
      this.#answer();
      next = await this.#runDocument(verbs, next.url);
    }
  }

  async #fetchDocument(document: NextDocument): Promise<Verb[]> {
    const callStatus = this.#answeredAtMs === undefined ? 'ringing' : 'in-progress';
    const answer = await this.#doors.request({
      ...document,
      params: voiceParams(this.#identity, callStatus, this.#options.parameters ?? {}),
      signal: this.#over.signal,
      bodyMaxBytes: TWIML_MAX_BYTES,
    });
    const where = `${document.method} ${document.url}`;
    const body = Buffer.from(answer.body).toString('utf8');
    if (answer.status !== 200) {
      const said = answer.contentType.startsWith('text/plain') ? `: ${body.trim().slice(0, 200)}` : '';
      throw new TelephonyError(
        'phone_failed',
        `${where}: HTTP ${answer.status} instead of TwiML (11200)${said}`,
      );
    }
    if (!TWIML_TYPES.has(answer.contentType)) {
      throw new TelephonyError('phone_failed', `${where}: "${answer.contentType}" is no TwiML (12300)`);
    }
    return readTwiml(body, where);
  }

  /** Runs the verbs in order; returns the document that replaces this one, or undefined when the call is over. */
  async #runDocument(verbs: readonly Verb[], base: string): Promise<NextDocument | undefined> {
    for (const verb of verbs) {
      if (this.#over.signal.aborted) return undefined;
      this.#state = 'listening';
      switch (verb.kind) {
        case 'say':
          this.#noteSpeech('Say', verb.text);
          await this.#pass(verb.loop * verb.text.length * SAY_MS_PER_CHAR);
          break;
        case 'play':
          await this.#playRecording(new URL(verb.url, base).href, verb.loop);
          break;
        case 'pause':
          await this.#pass(verb.lengthMs);
          break;
        case 'connect': {
          await this.#connect(verb.stream, base);
          if (verb.action === undefined) break;
          return { url: new URL(verb.action, base).href, method: verb.method };
        }
        case 'redirect':
          return { url: new URL(verb.url, base).href, method: verb.method };
        case 'hangup':
        case 'reject':
          return undefined;
      }
    }
    return undefined;
  }

  /** Runs one stream from upgrade to close. */
  async #connect(noun: StreamNoun, base: string): Promise<void> {
    this.#state = 'connecting';
    const url = streamUrl(noun.url, base);
    const streamSid = this.#newSid('MZ');
    const stream = new PhoneStream(
      {
        clock: this.#clock,
        answeredAtMs: this.#answeredAtMs ?? 0,
        url,
        streamSid,
        callSid: this.callSid,
        accountSid: this.#identity.accountSid,
        parameters: noun.parameters,
        said: this.#said,
        player: this.#requirePlayer(),
        warn: (warning) => this.#warn(warning),
      },
      this.#doors.openSocket(url),
      this.#pacing,
    );
    this.#stream = stream;
    const notices: Promise<void>[] = [];
    const notify = (event: string, error?: string): void => {
      if (noun.statusCallback === undefined) return;
      const callback = new URL(noun.statusCallback, base).href;
      const told = { streamSid, name: noun.name, event, error, wallMs: this.#clock.wallMs() };
      notices.push(this.#post(callback, noun.statusCallbackMethod, streamStatusParams(this.#identity, told)));
    };
    try {
      const end = await stream.run(() => {
        notify('stream-started');
        this.#onStreamOpen(streamSid);
      });
      const problem = this.#onStreamClosed(end);
      notify(problem === undefined ? 'stream-stopped' : 'stream-error', problem);
    } finally {
      this.#stream = undefined;
      await Promise.all(notices);
    }
  }

  #onStreamOpen(streamSid: string): void {
    this.#state = 'talking';
    if (this.#streams.length === 0) {
      this.#keyTimers = (this.#options.keys ?? []).map(({ atMs, digit }) =>
        this.#clock.setTimer(atMs, () => this.dtmf(digit)),
      );
    }
    this.#streams.push({
      streamSid,
      openedAtMs: this.elapsedMs,
      closedAtMs: undefined,
      closeCode: undefined,
    });
    for (const mulaw of this.#unspoken.splice(0)) this.#speak(mulaw);
  }

  /** Returns Twilio's error code for an end that was no orderly close. */
  #onStreamClosed(end: StreamEnd): string | undefined {
    const record = this.#streams.at(-1);
    if (record !== undefined) Object.assign(record, { closedAtMs: this.elapsedMs, closeCode: end.code });
    if (this.#endedBy !== undefined || end.code === 1000 || end.code === 1001 || end.code === 1005)
      return undefined;
    const code = end.code === 1006 ? '31903' : '31921';
    this.#warn(`the media socket was closed with ${end.code} ${end.reason}`.trimEnd() + ` (${code})`);
    return code;
  }

  async #playRecording(url: string, loop: number): Promise<void> {
    this.#noteSpeech('Play', url);
    let sound: Uint8Array;
    try {
      const { signal } = this.#over;
      const answer = await this.#doors.request({
        method: 'GET',
        url,
        params: {},
        signal,
        bodyMaxBytes: PHONE_PLAY_MAX_BYTES,
      });
      if (answer.status !== 200) throw new TelephonyError('phone_failed', `HTTP ${answer.status}`);
      sound = decodeWav(answer.body, url);
    } catch (error) {
      // Twilio logs a recording that it cannot play and goes on with the next verb.
      if (!this.#over.signal.aborted) this.#warn(`<Play> ${url}: ${errorText(error)}`);
      return;
    }
    const player = this.#requirePlayer();
    for (let time = 0; time < loop && !this.#over.signal.aborted; time++) {
      player.play(sound);
      await this.#pass(player.queuedMs);
    }
  }

  /** The status of the call, at the address that an operator sets on the number by hand. */
  async #postStatus(): Promise<void> {
    const answered = this.#answeredAtMs !== undefined;
    const callStatus = answered ? 'completed' : this.#endedBy === 'failure' ? 'failed' : 'canceled';
    const times = { durationMs: this.elapsedMs, wallMs: this.#clock.wallMs(), sequence: 0 };
    const url = this.#doors.publicAddress('/twilio/status');
    await this.#post(url, 'POST', statusParams(this.#identity, callStatus, times));
  }

  /** A callback: what goes wrong with it is a warning and changes nothing in the call. */
  async #post(url: string, method: HttpMethod, params: Record<string, string>): Promise<void> {
    try {
      const answer = await this.#doors.request({ method, url, params, bodyMaxBytes: TWIML_MAX_BYTES });
      if (answer.status >= 400) this.#warn(`callback ${url}: HTTP ${answer.status} (11200)`);
    } catch (error) {
      this.#warn(`callback ${errorText(error)} (11200)`);
    }
  }

  #answer(): void {
    if (this.#answeredAtMs !== undefined) return;
    this.#answeredAtMs = this.#clock.nowMs();
    this.#player = new CarrierPlayer({
      clock: this.#clock,
      answeredAtMs: this.#answeredAtMs,
      heard: this.#heard,
      returnMark: (name) => this.#stream?.sendMark(name),
    });
  }

  #requirePlayer(): CarrierPlayer {
    if (this.#player === undefined) throw new TelephonyError('phone_failed', 'the call was never answered');
    return this.#player;
  }

  #speak(mulaw: Uint8Array): void {
    const start = Math.max(this.#now(), this.#sayEnd);
    if (start + mulaw.length > this.#now() + CALLER_SOUND_MAX_MS * MULAW_BYTES_PER_MS) {
      throw new TelephonyError(
        'phone_failed',
        `the caller has over ${CALLER_SOUND_MAX_MS / 60_000} minutes to say`,
      );
    }
    this.#said.write(start, mulaw);
    this.#sayEnd = start + mulaw.length;
  }

  #end(by: EndedBy): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = by;
    this.#endedAtMs = this.#clock.nowMs();
    this.#state = 'ended';
    for (const timer of this.#keyTimers) timer.cancel();
    this.#player?.cut();
    this.#stream?.stop();
    this.#over.abort();
  }

  /** Waits on the clock, or until the call is over. */
  #pass(durationMs: number): Promise<void> {
    const { signal } = this.#over;
    if (signal.aborted || durationMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = this.#clock.setTimer(durationMs, done);
      signal.addEventListener('abort', done);
    });
  }

  #now(): number {
    return positionOf(this.elapsedMs);
  }

  #newSid(prefix: 'CA' | 'MZ' | 'AC'): string {
    return prefix + this.#randomId().replaceAll('-', '');
  }

  #noteSpeech(verb: 'Say' | 'Play', text: string): void {
    this.#carrierSpeech.push({ atMs: this.elapsedMs, verb, text });
  }

  #warn(warning: string): void {
    if (this.#warnings.length < PHONE_WARNINGS_MAX) this.#warnings.push(warning);
    else this.#warningsMore += 1;
  }
}

/** The address of a stream: an absolute one word for word, for it is what Twilio signs; a relative one resolved. */
function streamUrl(url: string, base: string): string {
  if (URL.canParse(url)) return url;
  if (!URL.canParse(url, base))
    throw new TelephonyError('phone_failed', `<Stream url="${url}"> is no URL (31923)`);
  return new URL(url, base).href.replace(/^http/, 'ws');
}
