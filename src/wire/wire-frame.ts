/** A frame with its number, and what goes over the connections: made once, whatever the number of those that watch. */
import type { Frame } from '../client/frame.js';

export class WireFrame {
  readonly frame: Frame;
  /** The frame as one line of JSON. */
  readonly json: string;
  #event: Buffer | undefined;

  constructor(frame: Frame) {
    this.frame = frame;
    this.json = JSON.stringify(frame);
  }

  get seq(): number {
    return this.frame.seq;
  }

  /** The frame as a server-sent event. Shared: nobody may change these bytes. */
  get event(): Buffer {
    this.#event ??= Buffer.from(`id: ${this.frame.seq}\ndata: ${this.json}\n\n`);
    return this.#event;
  }
}
