/**
 * Where the playout puts the agent's sound: the carrier's media stream, as far as sound is concerned.
 */

export interface PlayoutSink {
  /** Sends sound and, in the same write, a mark behind it. `mulaw` is a view valid only during this call. */
  send(mulaw: Uint8Array, markName: string | undefined): void;
  sendMark(name: string): void;
  sendClear(): void;
  /** What is sent between these goes out in one write. Never nested. */
  cork(): void;
  uncork(): void;
  /** Bytes accepted but not yet given to the kernel. */
  readonly bufferedAmount: number;
}
