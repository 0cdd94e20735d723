/**
 * One message of the agent on its way to the caller's ear: the handle that `Playout.startUtterance` gives out, and
 * the playout's own record of it. Handles stay readable after their utterance is over.
 */
import { MULAW_BYTES_PER_MS } from '../limits.js';

export interface Utterance {
  /** Counts up from 1 within a call. */
  readonly id: number;
  /** No more sound is taken: it was ended, cleared or displaced by the next one. */
  readonly ended: boolean;
  /** Sound was refused because too much was waiting; no more of this utterance is taken. */
  readonly refused: boolean;
  /** Sound accepted so far. */
  readonly acceptedMs: number;
  /** Sound given to the carrier so far, without padding. */
  readonly sentMs: number;
}

/** The playout's record; only the playout writes it. */
export class UtteranceRecord implements Utterance {
  readonly id: number;
  ended = false;
  refused = false;
  acceptedBytes = 0;
  sentBytes = 0;
  /** Ended, and its last sound and the mark behind it were sent. */
  sealed = false;
  /** It never ran dry for want of sound. */
  clean = true;
  /** The start buffer has already grown for the gap that is being refilled. */
  refilling = false;
  /** Since when a whole frame has been waiting without a break. */
  soundSinceMs = 0;
  /** Positions (see HeardPosition) of its first sound and behind its last, padding included. */
  startMs = 0;
  endMs = 0;
  /** When a carrier without delay has played what was sent of it. */
  playedOutAtMs = 0;
  lastMark = 0;
  /** Set for good once it is heard to the end or was cut. */
  finalHeardMs: number | undefined;

  constructor(id: number) {
    this.id = id;
  }

  get acceptedMs(): number {
    return this.acceptedBytes / MULAW_BYTES_PER_MS;
  }

  get sentMs(): number {
    return this.sentBytes / MULAW_BYTES_PER_MS;
  }

  get waitingBytes(): number {
    return this.acceptedBytes - this.sentBytes;
  }

  /** Sound of this utterance heard, when the call's sound is heard up to `positionMs`. */
  heardAt(positionMs: number): number {
    if (this.finalHeardMs !== undefined) return this.finalHeardMs;
    if (this.sentBytes === 0) return 0;
    return Math.max(0, Math.min(positionMs - this.startMs, this.sentMs));
  }
}
