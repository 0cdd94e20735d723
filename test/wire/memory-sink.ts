/** A connection in memory that stops reading when told to, with a client's reducer at its other end. */
import { initialState, reduce, type ClientState } from '../../src/client/index.js';
import type { FrameSink, FrameSinkListener } from '../../src/wire/frame-sink.js';
import type { WireFrame } from '../../src/wire/wire-frame.js';

export class MemorySink implements FrameSink {
  /** What has been read of it. */
  readonly frames: WireFrame[] = [];
  state: ClientState;
  isGone = false;
  /** It ended in order. */
  hasEnded = false;
  writes = 0;
  #unread: WireFrame[] = [];
  #isStalled = false;
  #listener: FrameSinkListener | undefined;

  constructor(state: ClientState = initialState) {
    this.state = state;
  }

  /** Frames that are written and not read. */
  get unread(): number {
    return this.#unread.length;
  }

  listen(listener: FrameSinkListener): void {
    this.#listener = listener;
  }

  write(frames: readonly WireFrame[]): boolean {
    if (this.isGone) throw new Error('written to a connection that is gone');
    this.writes += 1;
    this.#unread.push(...frames);
    if (!this.#isStalled) this.#read();
    return !this.#isStalled;
  }

  stall(): void {
    this.#isStalled = true;
  }

  resume(): void {
    this.#isStalled = false;
    this.#read();
    if (!this.isGone) this.#listener?.drained();
  }

  end(): void {
    this.hasEnded = true;
    this.#read();
    this.cut();
  }

  /** What was written and not read is lost. */
  cut(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.#unread = [];
    this.#listener?.gone();
  }

  #read(): void {
    for (const frame of this.#unread) {
      this.frames.push(frame);
      this.state = reduce(this.state, JSON.parse(frame.json));
    }
    this.#unread = [];
  }
}
