/**
 * The real media socket's door, `ws` and all, on a virtual clock, with a wire in memory in the network's place: a test
 * puts bytes into it in whatever pieces it likes and sees whatever comes out.
 */
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { silentLog } from '../../src/observe/log.js';
import type { CarrierAnomaly } from '../../src/telephony/carrier-anomaly.js';
import { MediaStreamServer } from '../../src/telephony/media-stream-server.js';
import type {
  AcceptedStream,
  AcceptMediaStream,
  MediaStream,
  MediaStreamListener,
} from '../../src/telephony/media-stream.js';
import { scopeOn } from '../support/scopes.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { wireFrame } from './wire-frames.js';

/** Lets everything that waits for the event loop's next turn happen. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The server's end of a TCP connection whose peer is a test. */
export class Wire extends Duplex {
  /** What the server wrote. */
  onBytes: (bytes: Buffer) => void = () => {};
  writtenBytes = 0;
  /** While true nothing that the server writes is taken off its hands. */
  stuck = false;
  #held: (() => void) | undefined;

  constructor() {
    super({ decodeStrings: true });
    this.on('error', () => {});
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writtenBytes += chunk.length;
    this.onBytes(chunk);
    if (this.stuck) this.#held = done;
    else done();
  }

  override _final(done: () => void): void {
    done();
    if (!this.readableEnded && !this.destroyed) this.push(null);
  }

  release(): void {
    this.stuck = false;
    this.#held?.();
    this.#held = undefined;
  }

  feed(bytes: Uint8Array): void {
    if (!this.destroyed && !this.writableEnded) this.push(bytes);
  }

  hangUp(): void {
    if (!this.destroyed && !this.readableEnded) this.push(null);
  }
}

export const STREAM_SID = 'MZ1';
export const START_TEXT = Buffer.from(
  JSON.stringify({
    event: 'start',
    streamSid: STREAM_SID,
    start: { streamSid: STREAM_SID, callSid: 'CA1', customParameters: { token: 't' } },
  }),
);

const HANDSHAKE = {
  host: 'localhost:8080',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** A carrier's sockets at one server. */
export class CarrierDoor {
  readonly clock: VirtualClock;
  readonly server: MediaStreamServer;
  readonly anomalies = new Map<CarrierAnomaly, number>();
  readonly streams: MediaStream[] = [];
  accept: AcceptMediaStream;

  constructor(accept: AcceptMediaStream | MediaStreamListener, clock = new VirtualClock(1_000)) {
    this.clock = clock;
    this.accept = typeof accept === 'function' ? accept : () => this.accepted(accept);
    this.server = new MediaStreamServer({
      publicUrl: undefined,
      authToken: undefined,
      sharedKey: undefined,
      accept: (start, stream, early) => {
        this.streams.push(stream);
        return this.accept(start, stream, early);
      },
      isDraining: () => false,
      clock: this.clock,
      log: silentLog,
      observe: {
        onRefused() {},
        onAnomaly: (kind) => void this.anomalies.set(kind, this.countOf(kind) + 1),
      },
    });
  }

  /** Taken, by a call that is nothing but its listener. */
  accepted(listener: MediaStreamListener): AcceptedStream {
    return { listener, scope: scopeOn(this.clock) };
  }

  countOf(kind: CarrierAnomaly): number {
    return this.anomalies.get(kind) ?? 0;
  }

  /** A socket that was let in and has said nothing. */
  dial(): Wire {
    const wire = new Wire();
    const request = { method: 'GET', url: '/twilio/media', headers: HANDSHAKE, socket: wire };
    this.server.handleUpgrade(request as unknown as IncomingMessage, wire, Buffer.alloc(0));
    return wire;
  }

  /** A socket whose `start` was accepted. */
  async open(): Promise<{ wire: Wire; stream: MediaStream }> {
    const before = this.streams.length;
    const wire = this.dial();
    wire.feed(wireFrame(START_TEXT));
    while (this.streams.length === before) await turn();
    return { wire, stream: this.streams.at(-1)! };
  }

  /** Cuts every socket and waits until all are gone. */
  async shut(wires: readonly Wire[]): Promise<void> {
    for (const wire of wires) wire.destroy();
    while (this.server.openStreams + this.server.unstartedSockets > 0) await turn();
  }
}
