/**
 * A web client's voice on its way into the call: from its format to mu-law, with the times that a carrier would have stated.
 * Sound that is further ahead of real time than a network gives back after a stall is left out, and counted.
 */
import type { Clock } from '../clock.js';
import { WEB_SOUND_AHEAD_MAX_MS, WEB_TOLD_AGAIN_MS } from '../limits.js';
import type { MediaStreamListener } from '../telephony/media-stream.js';
import { RateBucket } from './rate-bucket.js';
import { inwardFilter, soundMs, type SoundFilter, type SoundFormat } from './sound-format.js';

/** Milliseconds of sound in a second, with room for a client whose clock is fast. */
const REAL_TIME = 1_020;

export class IncomingSound {
  readonly #format: SoundFormat;
  readonly #filter: SoundFilter;
  readonly #listener: MediaStreamListener;
  readonly #ahead: RateBucket;
  readonly #telling: RateBucket;
  readonly #onDropped: (ms: number) => void;
  #positionMs = 0;

  constructor(options: {
    readonly format: SoundFormat;
    readonly clock: Clock;
    readonly listener: MediaStreamListener;
    readonly onDropped: (ms: number) => void;
  }) {
    const { clock } = options;
    this.#format = options.format;
    this.#filter = inwardFilter(options.format);
    this.#listener = options.listener;
    this.#onDropped = options.onDropped;
    this.#ahead = new RateBucket({ clock, burst: WEB_SOUND_AHEAD_MAX_MS, perSecond: REAL_TIME });
    this.#telling = new RateBucket({ clock, burst: 1, perSecond: 1000 / WEB_TOLD_AGAIN_MS });
  }

  /** Takes a piece of any length, which it does not keep. False: it came too fast and was left out. */
  take(sound: Uint8Array): boolean {
    const ms = soundMs(this.#format, sound.length);
    if (!this.#ahead.take(ms)) {
      this.#onDropped(ms);
      return false;
    }
    // A copy: the filter's result lasts until the next use of any filter, and the call has filters of its own.
    const mulaw = Uint8Array.from(this.#filter.push(sound));
    if (mulaw.length > 0) this.#listener.onMedia(mulaw, this.#positionMs);
    this.#positionMs += ms;
    return true;
  }

  /** Leaves a piece out that nobody has looked into; it is counted all the same. */
  leaveOut(byteLength: number): void {
    this.#onDropped(soundMs(this.#format, byteLength));
  }

  /** Whether the client is told now that sound was left out: now and then is enough. */
  mayTell(): boolean {
    return this.#telling.take(1);
  }

  release(): void {
    this.#filter.release();
  }
}
