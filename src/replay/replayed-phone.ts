/**
 * The carrier of a replayed call: posts its webhooks, opens its media streams, and says on them what the fixture's lines
 * say, with the token that the server gave out in place of the file's. Where it plays marks it returns them by itself,
 * as Twilio does when the sound before them has been heard.
 */
import type { Server } from 'node:http';
import type { Clock } from '../clock.js';
import type { FixtureLine, SocketLine } from '../fixture/fixture-format.js';
import { jsonObject, phoneOutput } from '../fixture/outgoing-line.js';
import { Redaction } from '../fixture/redaction.js';
import { MEDIA_PATH } from '../telephony/twiml.js';
import { CarrierPlayer } from './carrier-player.js';
import { formOf, ReplayedRequest } from './replayed-request.js';
import { ReplayedSocket } from './replayed-socket.js';
import { SoundTrack } from './sound-track.js';

type PhoneLine = Extract<FixtureLine, { leg: 'phone' }>;
type Note = (dir: 'in' | 'out', content: Partial<PhoneLine>) => void;

export interface ReplayedPhoneOptions {
  readonly http: Server;
  readonly clock: Clock;
  readonly playsMarks: boolean;
  /** As in the recording that is replayed. */
  readonly hidesDigits: boolean;
  readonly note: Note;
  readonly onActivity: () => void;
  readonly onFault: (error: unknown) => void;
}

interface Stream {
  readonly socket: ReplayedSocket;
  readonly player: CarrierPlayer | undefined;
  readonly conn: number;
  streamSid: unknown;
}

export class ReplayedPhone {
  /** Makes what the server writes comparable: its tokens are new each time. */
  readonly redaction: Redaction;
  callSid = '';
  readonly #options: ReplayedPhoneOptions;
  readonly #streams: Stream[] = [];

  constructor(options: ReplayedPhoneOptions) {
    this.#options = options;
    this.redaction = new Redaction({ hidesDigits: options.hidesDigits });
  }

  /** Returns false where there is nobody to hear it. */
  say(line: PhoneLine): boolean {
    if (line.post !== undefined) return this.#post(line.post, line.params ?? {});
    if (line.open !== undefined) return this.#open();
    const stream = this.#streams[(line.conn ?? 1) - 1];
    if (stream === undefined) return false;
    if (line.message !== undefined)
      return stream.socket.say({ ...line, message: this.#said(stream, line.message) });
    if (line.close !== undefined || line.cut !== undefined) stream.player?.cut();
    return stream.socket.say(line);
  }

  /** The replay is over. */
  end(): void {
    for (const { socket, player } of this.#streams) {
      player?.cut();
      socket.end();
    }
  }

  #post(path: string, params: NonNullable<PhoneLine['params']>): boolean {
    const { http, note, onActivity, onFault } = this.#options;
    // Orders are for the call that the fixture is about: its first.
    if (typeof params['CallSid'] === 'string') this.callSid ||= params['CallSid'];
    const request = new ReplayedRequest({
      onAnswer: ({ status, body }) => note('out', { answer: { status, xml: this.redaction.xml(body) } }),
      onActivity,
      onFault,
    });
    http.emit('connection', request.socket);
    request.send('POST', path, 'application/x-www-form-urlencoded', formOf(params));
    return true;
  }

  #open(): boolean {
    const { http, note, onActivity, onFault, playsMarks } = this.#options;
    const conn = this.#streams.length + 1;
    const player = playsMarks ? this.#makePlayer(conn) : undefined;
    const socket = new ReplayedSocket({
      side: 'client',
      toLine: (text) => {
        if (player !== undefined) obey(player, text);
        return phoneOutput(text, (words) => this.redaction.text(words));
      },
      note: (line: Partial<SocketLine>) => {
        if (line.sound === undefined) onActivity();
        note('out', { ...(conn > 1 && { conn }), ...line } as Partial<PhoneLine>);
      },
      onActivity,
      onFault,
    });
    this.#streams.push({ socket, player, conn, streamSid: undefined });
    http.emit('connection', socket.socket);
    socket.ask(MEDIA_PATH);
    return true;
  }

  /** The carrier's message as the server is to get it. */
  #said(stream: Stream, message: Record<string, unknown>): Record<string, unknown> {
    if (message['event'] === 'dtmf') this.redaction.key('');
    if (message['event'] === 'stop') stream.player?.cut();
    const { start } = message as {
      start?: { streamSid?: unknown; customParameters?: Record<string, unknown> };
    };
    if (start === undefined) return message;
    stream.streamSid = start.streamSid;
    const token = start.customParameters?.['token'];
    if (typeof token !== 'string') return message;
    const customParameters = { ...start.customParameters, token: this.redaction.tokenBehind(token) };
    return { ...message, start: { ...start, customParameters } };
  }

  #makePlayer(conn: number): CarrierPlayer {
    const { clock, note } = this.#options;
    return new CarrierPlayer({
      clock,
      answeredAtMs: clock.nowMs(),
      heard: new SoundTrack(),
      // Not from within the message that asks for it.
      returnMark: (name) =>
        void clock.setTimer(0, () => {
          const stream = this.#streams[conn - 1];
          const message = { event: 'mark', streamSid: stream?.streamSid, mark: { name } };
          note('in', { ...(conn > 1 && { conn }), message });
          stream?.socket.say({ at: 0, leg: 'phone', dir: 'in', message });
        }),
    });
  }
}

/** What the carrier does with a message of the server's. What is no message is noted like all else, and not obeyed. */
function obey(player: CarrierPlayer, text: string): void {
  const message = jsonObject(text) as
    { event?: string; media?: { payload: string }; mark?: { name: string } } | undefined;
  if (message === undefined) return;
  if (message.media !== undefined) player.play(Buffer.from(message.media.payload, 'base64'));
  else if (message.mark !== undefined) player.addMark(message.mark.name);
  else if (message.event === 'clear') player.clear();
}
