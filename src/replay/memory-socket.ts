/**
 * The server's end of a connection that never was on a network: Node's HTTP server and `ws` take it for a socket. What
 * they write is handed over at once; what the other side says is fed in.
 */
import { Duplex } from 'node:stream';

type Written = (error?: Error | null) => void;
interface Chunk {
  readonly chunk: Buffer | string;
  readonly encoding: BufferEncoding;
}

function bytesOf({ chunk, encoding }: Chunk): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
}

export interface MemorySocketListener {
  onWritten(bytes: Buffer): void;
  /** The server has ended or cut its side. Exactly once. */
  onGone(): void;
  /** Either of these has thrown. The server, from within whose write it was called, hears nothing of it. */
  onFault(error: unknown): void;
}

export class MemorySocket extends Duplex {
  /** Webhooks are taken from the machine itself without a signature. */
  readonly remoteAddress = '127.0.0.1';
  readonly #listener: MemorySocketListener;
  #gone = false;
  #reads = true;
  /** A write that the other side has not read. */
  #unread: (() => void) | undefined;

  constructor(listener: MemorySocketListener) {
    super({ decodeStrings: false });
    this.#listener = listener;
  }

  /** What the other side sends. */
  feed(bytes: Buffer): void {
    if (!this.destroyed) this.push(bytes);
  }

  /** The other side stops reading, and what is written piles up here; or it reads again. */
  setReads(reads: boolean): void {
    this.#reads = reads;
    const unread = this.#unread;
    if (!reads) return;
    this.#unread = undefined;
    if (!this.destroyed) unread?.();
  }

  /** The other side ends the connection. */
  hangUp(): void {
    if (!this.destroyed && !this.readableEnded) this.push(null);
  }

  // What Node's HTTP and ws call on a net.Socket and a connection in memory has no use for.
  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }

  override _read(): void {
    // Data is pushed as it is fed.
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Written): void {
    this.#hand(bytesOf({ chunk, encoding }), done);
  }

  override _writev(chunks: readonly Chunk[], done: Written): void {
    this.#hand(Buffer.concat(chunks.map((chunk) => bytesOf(chunk))), done);
  }

  override _final(done: Written): void {
    this.#tellGone();
    done();
  }

  override _destroy(error: Error | null, done: Written): void {
    this.#tellGone();
    done(error);
  }

  #hand(bytes: Buffer, done: Written): void {
    const read = (): void => {
      this.#tell(() => this.#listener.onWritten(bytes));
      done();
    };
    if (this.#reads) read();
    else this.#unread = read;
  }

  #tellGone(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#tell(() => this.#listener.onGone());
  }

  #tell(what: () => void): void {
    try {
      what();
    } catch (error) {
      this.#listener.onFault(error);
    }
  }
}
