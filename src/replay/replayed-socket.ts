/**
 * One WebSocket of a replayed call, seen from the other side: the phone's media stream, for which the server is the
 * server, or a connection to the model, for which it is the client. Says what the fixture's lines say, and notes what
 * the server writes.
 */
import type { SocketLine } from '../fixture/fixture-format.js';
import { MemorySocket } from './memory-socket.js';
import {
  acceptKey,
  binaryFrame,
  closeFrame,
  FrameReader,
  pongFrame,
  type Side,
  textFrame,
} from './websocket-wire.js';

const HEAD_END = '\r\n\r\n';
/** Any 16 bytes will do for a replay. */
const CLIENT_KEY = Buffer.alloc(16).toString('base64');

export interface ReplayedSocketOptions {
  /** Who we are: the carrier is a client of the server, the model is a server to it. */
  readonly side: Side;
  /** Notes an outgoing line's content. */
  readonly note: (content: Partial<SocketLine>) => void;
  readonly toLine: (text: string) => Partial<SocketLine>;
  /** Something happened that may not be over. */
  readonly onActivity: () => void;
  readonly onFault: (error: unknown) => void;
}

export class ReplayedSocket {
  readonly socket: MemorySocket;
  readonly #options: ReplayedSocketOptions;
  readonly #reader: FrameReader;
  /** The HTTP head that comes first; undefined once it is whole. */
  #head: string | undefined = '';
  #clientKey = '';
  #closing = false;
  #hungUp = false;

  constructor(options: ReplayedSocketOptions) {
    this.#options = options;
    const { note, toLine, side } = options;
    this.#reader = new FrameReader({
      onText: (text) => note(toLine(text)),
      onPing: (payload) => this.socket.feed(pongFrame(payload, side)),
      onClose: (code) => {
        if (!this.#closing) note({ close: code });
        this.#closing = true;
      },
    });
    this.socket = new MemorySocket({
      onWritten: (bytes) => this.#written(bytes),
      onGone: () => {
        options.onActivity();
        if (!this.#closing && !this.#hungUp) note({ cut: true });
        this.#closing = true;
      },
      onFault: options.onFault,
    });
  }

  /** The phone asks for a media stream. */
  ask(path: string): void {
    this.socket.feed(
      Buffer.from(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Key: ${CLIENT_KEY}\r\nSec-WebSocket-Version: 13${HEAD_END}`,
      ),
    );
  }

  /** The other side's part of a line. Returns false where there is nobody to hear it. */
  say(line: SocketLine): boolean {
    const { side } = this.#options;
    if (this.socket.destroyed) return line.close !== undefined || line.cut !== undefined;
    if (line.open !== undefined) this.socket.feed(this.#acceptance());
    else if (line.leg === 'model' && line.refused !== undefined) this.#refuse(line.refused);
    else if (line.message !== undefined) this.socket.feed(textFrame(JSON.stringify(line.message), side));
    else if (line.text !== undefined) this.socket.feed(textFrame(line.text, side));
    else if (line.bytes !== undefined) {
      this.socket.feed(binaryFrame(Buffer.from(line.bytes, 'base64'), side));
    } else if (line.close !== undefined) this.#close(line.close, line.reason ?? '');
    else if (line.cut !== undefined) this.#hangUp();
    else if (line.reads !== undefined) this.socket.setReads(line.reads);
    return true;
  }

  /** The replay is over: nobody waits for the rest of a closing handshake. */
  end(): void {
    this.#hungUp = true;
    this.socket.destroy();
  }

  #acceptance(): Buffer {
    return Buffer.from(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Accept: ${acceptKey(this.#clientKey)}${HEAD_END}`,
    );
  }

  #refuse(status: number): void {
    this.#hungUp = true;
    this.socket.feed(
      Buffer.from(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\nConnection: close${HEAD_END}`),
    );
  }

  #close(code: number, reason: string): void {
    this.#closing = true;
    this.socket.feed(closeFrame(code, reason, this.#options.side));
    this.#hangUp();
  }

  #hangUp(): void {
    this.#hungUp = true;
    this.socket.hangUp();
  }

  #written(bytes: Buffer): void {
    if (this.#head === undefined) {
      this.#reader.read(bytes);
      return;
    }
    this.#options.onActivity();
    this.#head += bytes.toString('latin1');
    const end = this.#head.indexOf(HEAD_END);
    if (end === -1) return;
    const rest = Buffer.from(this.#head.slice(end + HEAD_END.length), 'latin1');
    this.#clientKey = /^sec-websocket-key: (.+)$/im.exec(this.#head)?.[1]?.trim() ?? '';
    this.#headRead(this.#head);
    this.#head = undefined;
    if (rest.length > 0) this.#reader.read(rest);
  }

  /** The model is asked for a socket; the phone is answered with one, or with a refusal. */
  #headRead(head: string): void {
    if (this.#options.side === 'server') this.#options.note({ connect: true });
    else if (!head.startsWith('HTTP/1.1 101')) {
      this.#closing = true;
      this.#options.note({ cut: true });
    }
  }
}
