/** What a watcher writes to: one connection, which may be slower than the stream. */
import type { WireFrame } from './wire-frame.js';

export interface FrameSinkListener {
  /** What was written is on its way; more may be. */
  drained(): void;
  /** The connection has ended, whoever ended it. */
  gone(): void;
}

export interface FrameSink {
  /** The connection has ended before anyone listened. */
  readonly isGone: boolean;
  /** Called once, before anything is written. */
  listen(listener: FrameSinkListener): void;
  /** Writes frames in this order. False: the reader is behind, and nothing may be written before `drained`. */
  write(frames: readonly WireFrame[]): boolean;
  /** Ends the connection after what was written. */
  end(): void;
  /** Ends it at once. */
  cut(): void;
}
