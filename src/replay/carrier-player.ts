/**
 * The carrier's side of outbound sound: a queue that is played to the caller in real time, 8 bytes a millisecond, in
 * the order of arrival. What the caller hears is written to a track at the place where it is heard; sound is written
 * when it arrives and erased again when `clear` drops it before its time. A mark comes back when everything before it
 * has been played, at once if nothing is queued, and by `clear`.
 * Source: Twilio's "Media Streams - WebSocket messages" (media, mark and clear sent to Twilio).
 */
import type { Clock, Timer } from '../clock.js';
import { CARRIER_QUEUE_MAX_MS, MULAW_BYTES_PER_MS } from '../limits.js';
import { msOf, positionOf, type SoundTrack } from './sound-track.js';

/** A stretch of time in which the queue was never empty. Positions are bytes since the call was answered. */
export interface PlayedStretch {
  readonly start: number;
  end: number;
  /** `dry`: the queue ran empty; `cleared`: the server emptied it; `cut`: the stream or the call ended. */
  endedBy: 'dry' | 'cleared' | 'cut';
}

export interface ClearRecord {
  readonly atMs: number;
  /** Sound that was queued and will never be heard. */
  readonly droppedMs: number;
  readonly marksReturned: number;
}

interface PendingMark {
  readonly name: string;
  readonly due: number;
}

export interface CarrierPlayerOptions {
  readonly clock: Clock;
  /** When the call was answered, on `clock`. */
  readonly answeredAtMs: number;
  readonly heard: SoundTrack;
  /** Called for each mark in order; not from within `addMark` or `clear` for an older stream. */
  readonly returnMark: (name: string) => void;
}

export class CarrierPlayer {
  readonly #options: CarrierPlayerOptions;
  readonly #stretches: PlayedStretch[] = [];
  readonly #clears: ClearRecord[] = [];
  #pending: PendingMark[] = [];
  #markTimer: Timer | undefined;
  #queueEnd = 0;
  #overflowMs = 0;
  #marksPlayed = 0;
  #cutMs = 0;

  constructor(options: CarrierPlayerOptions) {
    this.#options = options;
  }

  get stretches(): readonly PlayedStretch[] {
    return this.#stretches;
  }

  get clears(): readonly ClearRecord[] {
    return this.#clears;
  }

  /** Sound dropped because more than ten minutes waited. */
  get overflowMs(): number {
    return this.#overflowMs;
  }

  /** Sound that was still queued when a stream ended. */
  get cutMs(): number {
    return this.#cutMs;
  }

  /** Marks returned because the sound before them was played (or none was queued). */
  get marksPlayed(): number {
    return this.#marksPlayed;
  }

  /** Sound that is queued and not yet played. */
  get queuedMs(): number {
    return msOf(Math.max(0, this.#queueEnd - this.#now()));
  }

  /** Queues sound. The bytes are copied. Returns false if it was dropped because too much waits already. */
  play(mulaw: Uint8Array): boolean {
    const now = this.#now();
    if (this.#queueEnd - now + mulaw.length > CARRIER_QUEUE_MAX_MS * MULAW_BYTES_PER_MS) {
      this.#overflowMs += msOf(mulaw.length);
      return false;
    }
    const start = Math.max(now, this.#queueEnd);
    const last = this.#stretches.at(-1);
    this.#queueEnd = start + mulaw.length;
    this.#options.heard.write(start, mulaw);
    if (last !== undefined && last.end === start && last.endedBy === 'dry') last.end = this.#queueEnd;
    else if (mulaw.length > 0) this.#stretches.push({ start, end: this.#queueEnd, endedBy: 'dry' });
    return true;
  }

  /** Returns `name` once everything queued so far has been played. */
  addMark(name: string): void {
    this.#pending.push({ name, due: this.#queueEnd });
    this.#returnDueMarks();
  }

  /** Empties the queue and returns every pending mark. */
  clear(): void {
    this.#returnDueMarks();
    const droppedMs = this.#drop('cleared');
    const marks = this.#takePending();
    this.#clears.push({ atMs: msOf(this.#now()), droppedMs, marksReturned: marks.length });
    for (const mark of marks) this.#options.returnMark(mark.name);
  }

  /** The stream or the call is over: what is queued is not heard, and no mark comes back. */
  cut(): void {
    this.#takePending();
    this.#cutMs += this.#drop('cut');
  }

  #now(): number {
    return positionOf(this.#options.clock.nowMs() - this.#options.answeredAtMs);
  }

  #drop(endedBy: 'cleared' | 'cut'): number {
    const now = this.#now();
    const dropped = Math.max(0, this.#queueEnd - now);
    const last = this.#stretches.at(-1);
    if (dropped > 0 && last !== undefined) {
      this.#options.heard.eraseFrom(now);
      this.#queueEnd = now;
      last.end = now;
      last.endedBy = endedBy;
    }
    return msOf(dropped);
  }

  #takePending(): PendingMark[] {
    this.#markTimer?.cancel();
    this.#markTimer = undefined;
    const pending = this.#pending;
    this.#pending = [];
    return pending;
  }

  #returnDueMarks(): void {
    const now = this.#now();
    for (let head = this.#pending[0]; head !== undefined && head.due <= now; head = this.#pending[0]) {
      this.#pending.shift();
      this.#marksPlayed += 1;
      this.#options.returnMark(head.name);
    }
    this.#markTimer?.cancel();
    this.#markTimer = undefined;
    const [next] = this.#pending;
    if (next !== undefined) {
      this.#markTimer = this.#options.clock.setTimer(msOf(next.due - now), () => this.#returnDueMarks());
    }
  }
}
