/**
 * A carrier that does as the test says, at any speed: announces a call, opens media sockets, sends what it is told, and loses
 * them. It plays nothing and returns no marks.
 */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { newId } from '../../src/ids.js';
import { readTwiml, type StreamNoun } from '../../src/replay/twiml-reader.js';
import { DEFAULT_FROM, DEFAULT_TO } from '../../src/replay/webhook-params.js';

const sid = (prefix: string): string => prefix + newId().replaceAll('-', '');

export class ScriptedCarrier {
  readonly callSid = sid('CA');
  readonly #url: string;
  #socket: WebSocket | undefined;
  #streamSid = '';
  #sentMs = 0;
  #received = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Messages of the server on the stream that is open. */
  get received(): number {
    return this.#received;
  }

  /** Rings, and opens the stream that is asked for. */
  ring(): Promise<void> {
    return this.#follow('/twilio/voice');
  }

  /** Asks what follows the stream, and opens the next one. */
  goOn(): Promise<void> {
    return this.#follow('/twilio/after');
  }

  /** So many milliseconds of sound, as fast as they can be written; a message is `frameMs` long. */
  media(ms: number, frame: Uint8Array, frameMs = 20): void {
    const payload = Buffer.from(frame).toString('base64');
    for (const end = this.#sentMs + ms; this.#sentMs < end; this.#sentMs += frameMs) {
      this.#send('media', { media: { track: 'inbound', timestamp: String(this.#sentMs), payload } });
    }
  }

  press(digit: string): void {
    this.#send('dtmf', { dtmf: { track: 'inbound_track', digit } });
  }

  /** Reads nothing more of what the server sends. */
  stall(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** The line breaks without a word. */
  break(): void {
    this.#socket?.terminate();
  }

  /** Nothing more comes over the line, and nobody says so. */
  freeze(): void {
    this.#socket?.pause();
  }

  async hangUp(): Promise<void> {
    this.#send('stop', { stop: { callSid: this.callSid } });
    this.#socket?.close(1000);
    await this.#post('/twilio/status', { CallStatus: 'completed' });
  }

  async #follow(path: string): Promise<void> {
    const verbs = readTwiml(await this.#post(path, { CallStatus: 'in-progress' }), path);
    const connect = verbs.find((verb) => verb.kind === 'connect');
    if (connect === undefined) throw new Error(`${path} asks for no stream`);
    await this.#open(connect.stream);
  }

  async #open(noun: StreamNoun): Promise<void> {
    const socket = new WebSocket(noun.url);
    socket.on('message', () => (this.#received += 1));
    socket.on('error', () => {});
    await once(socket, 'open');
    this.#socket = socket;
    this.#streamSid = sid('MZ');
    this.#sentMs = 0;
    socket.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
    this.#send('start', {
      start: {
        accountSid: 'AC0',
        callSid: this.callSid,
        streamSid: this.#streamSid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: noun.parameters,
      },
    });
  }

  #send(event: string, content: object): void {
    this.#socket?.send(JSON.stringify({ event, streamSid: this.#streamSid, ...content }));
  }

  async #post(path: string, more: Readonly<Record<string, string>>): Promise<string> {
    const params = {
      CallSid: this.callSid,
      AccountSid: 'AC0',
      From: DEFAULT_FROM,
      To: DEFAULT_TO,
      Direction: 'inbound',
      ...more,
    };
    const response = await fetch(`${this.#url}${path}`, {
      method: 'POST',
      body: new URLSearchParams(params),
    });
    return response.text();
  }
}
