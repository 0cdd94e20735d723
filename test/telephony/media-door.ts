/** A real HTTP server with the media socket's door, and real callers at it, for the tests of this folder. */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import twilio from 'twilio';
import { WebSocket, type RawData } from 'ws';
import { scopeOn } from '../support/scopes.js';
import type { CarrierTrust } from '../../src/telephony/carrier-gate.js';
import { MediaStreamServer } from '../../src/telephony/media-stream-server.js';
import type { MediaStream, MediaStreamListener, MediaStreamStart } from '../../src/telephony/media-stream.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { RecordingLog } from './recording-log.js';

export const TOKEN = 'the-primary-auth-token';
export const SIGNED: CarrierTrust = {
  publicUrl: 'https://example.com',
  authToken: TOKEN,
  sharedKey: undefined,
};
export const LOCAL: CarrierTrust = { publicUrl: undefined, authToken: undefined, sharedKey: undefined };

/** Waits until `holds`, by letting the event loop turn; the test's own time limit is the bound. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Keeps what the carrier said. */
export class RecordingListener implements MediaStreamListener {
  readonly heard: string[] = [];
  readonly media: { mulaw: number[]; timestampMs: number }[] = [];
  failOn: string | undefined;

  onMedia(mulaw: Uint8Array, timestampMs: number): void {
    this.media.push({ mulaw: [...mulaw], timestampMs });
    this.#note('media');
  }

  onDtmf(digit: string): void {
    this.#note(`dtmf ${digit}`);
  }

  onMark(name: string): void {
    this.#note(`mark ${name}`);
  }

  onStop(): void {
    this.#note('stop');
  }

  onClose(code: number, reason: string): void {
    this.#note(`close ${code}${reason}`);
  }

  get closed(): boolean {
    return this.heard.some((line) => line.startsWith('close'));
  }

  #note(line: string): void {
    this.heard.push(line);
    if (this.failOn !== undefined && line.startsWith(this.failOn)) throw new Error('the call is broken');
  }
}

interface TakenStream {
  readonly start: MediaStreamStart;
  readonly stream: MediaStream;
}

export class MediaDoor {
  readonly clock = new VirtualClock();
  readonly log = new RecordingLog();
  readonly listener = new RecordingListener();
  readonly refused: string[] = [];
  readonly anomalies: string[] = [];
  readonly accepted: TakenStream[] = [];
  readonly sockets: Socket[] = [];
  readonly server: MediaStreamServer;
  draining = false;
  accept: (start: MediaStreamStart, stream: MediaStream) => MediaStreamListener | { refused: string } = () =>
    this.listener;
  port = 0;
  readonly #http = createServer();
  readonly #callers: WebSocket[] = [];

  constructor(trust: CarrierTrust) {
    this.server = new MediaStreamServer({
      ...trust,
      accept: (start, stream) => {
        this.accepted.push({ start, stream });
        const answer = this.accept(start, stream);
        return 'refused' in answer ? answer : { listener: answer, scope: scopeOn(this.clock) };
      },
      isDraining: () => this.draining,
      clock: this.clock,
      log: this.log,
      observe: {
        onRefused: (reason) => this.refused.push(reason),
        onAnomaly: (kind) => this.anomalies.push(kind),
      },
    });
    this.#http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.sockets.push(socket as Socket);
      this.server.handleUpgrade(request, socket, head);
    });
  }

  static async open(trust: CarrierTrust): Promise<MediaDoor> {
    const door = new MediaDoor(trust);
    await new Promise<void>((resolve) => {
      door.#http.listen(0, '127.0.0.1', resolve);
    });
    door.port = (door.#http.address() as AddressInfo).port;
    return door;
  }

  async shut(): Promise<void> {
    for (const caller of this.#callers) caller.terminate();
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  /** An upgrade request as bare HTTP: the status of the answer, and 101 if it was let in. */
  knock(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        port: this.port,
        host: '127.0.0.1',
        path,
        headers: {
          Connection: 'Upgrade',
          Upgrade: 'websocket',
          'Sec-WebSocket-Version': '13',
          'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
          ...headers,
        },
      });
      request.on('upgrade', (_response, socket) => {
        socket.destroy();
        resolve({ status: 101, body: '' });
      });
      request.on('response', (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (body += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      });
      request.on('error', reject);
      request.end();
    });
  }

  /** A caller's socket, let in. */
  async dial(headers: Record<string, string> = {}): Promise<Caller> {
    const ws = new WebSocket(`ws://127.0.0.1:${this.port}/twilio/media`, { headers });
    this.#callers.push(ws);
    const caller = new Caller(ws);
    await new Promise((resolve, reject) => {
      ws.once('open', resolve);
      ws.once('error', reject);
    });
    return caller;
  }

  /** A caller whose stream was accepted. */
  async call(): Promise<{ caller: Caller; stream: MediaStream }> {
    const before = this.accepted.length;
    const caller = await this.dial();
    caller.say(START);
    await until(() => this.accepted.length > before);
    const stream = this.accepted.at(-1)?.stream;
    if (stream === undefined) throw new Error('no stream');
    return { caller, stream };
  }
}

export const START = {
  event: 'start',
  sequenceNumber: '1',
  streamSid: 'MZ1',
  start: {
    streamSid: 'MZ1',
    accountSid: 'AC1',
    callSid: 'CA1',
    tracks: ['inbound'],
    mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
    customParameters: { token: 'a-token' },
  },
};

export function media(mulaw: Uint8Array, timestampMs: number): object {
  return {
    event: 'media',
    sequenceNumber: '2',
    media: {
      track: 'inbound',
      chunk: '1',
      timestamp: String(timestampMs),
      payload: Buffer.from(mulaw).toString('base64'),
    },
    streamSid: 'MZ1',
  };
}

export function signature(url = 'wss://example.com/twilio/media'): Record<string, string> {
  return { 'X-Twilio-Signature': twilio.getExpectedTwilioSignature(TOKEN, url, {}) };
}

/** The carrier's end of a media socket. */
export class Caller {
  readonly ws: WebSocket;
  readonly frames: unknown[] = [];
  readonly texts: string[] = [];
  /** The TCP socket under the WebSocket, for what a WebSocket would not do. */
  socket: Socket | undefined;
  closeCode: number | undefined;
  pings = 0;

  constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on('message', (data: RawData, isBinary: boolean) => {
      const text = (data as Buffer).toString('utf8');
      this.texts.push(isBinary ? 'binary' : text);
      this.frames.push(JSON.parse(text));
    });
    ws.on('upgrade', (response: IncomingMessage) => (this.socket = response.socket));
    ws.on('ping', () => (this.pings += 1));
    ws.on('close', (code: number) => (this.closeCode = code));
    ws.on('error', () => {});
  }

  say(message: object | string | Buffer): void {
    const text = typeof message === 'object' && !Buffer.isBuffer(message) ? JSON.stringify(message) : message;
    this.ws.send(text, { binary: false });
  }
}
