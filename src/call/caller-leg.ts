/**
 * The caller's voice from the carrier's frame to the model's `realtimeInput`: gaps filled with silence, 8 kHz mu-law to
 * 16 kHz PCM16, one message a frame. While the model is not ready or reads too slowly, sound waits in a backlog in
 * which the newest wins. Notes when the caller was last heard speaking; what that means is the conversation's business.
 */
import { CallerGaps } from '../audio/caller-gaps.js';
import { CallerUpsampler } from '../audio/caller-upsampler.js';
import { VoiceActivity } from '../audio/voice-activity.js';
import type { Clock } from '../clock.js';
import { MODEL_BUFFERED_MAX_BYTES, MULAW_BYTES_PER_MS, MULAW_FRAME_BYTES, MULAW_SILENCE } from '../limits.js';
import { HELD_SOUND_MAX_MS } from '../tool-limits.js';
import type { LiveConnection } from '../model/live-connection.js';
import type { CallObserver } from '../observe/call-observer.js';
import { CallerBacklog } from './caller-backlog.js';

export interface CallerLegOptions {
  readonly clock: Clock;
  readonly observer: CallObserver;
  /** Gets a copy of the caller's sound as it comes in, while it wants one, whether or not the model takes any. */
  readonly tee: SoundTee;
}

/** Who else hears the caller; nothing is copied for it before it asks. */
export interface SoundTee {
  readonly wantsSound: boolean;
  /** PCM16 at 16 kHz; not kept. */
  onSound(pcm16k: Uint8Array): void;
}

const SILENCE = new Uint8Array(MULAW_FRAME_BYTES).fill(MULAW_SILENCE);

export class CallerLeg {
  readonly #clock: Clock;
  readonly #gaps = new CallerGaps();
  readonly #upsampler = new CallerUpsampler();
  readonly #voice = new VoiceActivity();
  readonly #observer: CallObserver;
  readonly #backlog: CallerBacklog;
  readonly #tee: SoundTee;
  /** Of its own: what the model gets may come later, or never. */
  #teeUpsampler: CallerUpsampler | undefined;
  #model: LiveConnection | undefined;
  /** The model must get nothing for now. */
  #isHeld = false;
  #lastVoicedAtMs: number | undefined;
  #voicedMs = 0;
  #hadModel = false;

  constructor(options: CallerLegOptions) {
    this.#clock = options.clock;
    this.#observer = options.observer;
    this.#backlog = new CallerBacklog(options);
    this.#tee = options.tee;
  }

  /** When the caller's last voiced frame came in, by the clock. */
  get lastVoicedAtMs(): number | undefined {
    return this.#lastVoicedAtMs;
  }

  /** Voiced sound of the caller's so far. */
  get voicedMs(): number {
    return this.#voicedMs;
  }

  /** A frame from the carrier, any length; `mulaw` is not kept. */
  onMedia(mulaw: Uint8Array, timestampMs: number): void {
    const nowMs = this.#clock.nowMs();
    this.#feedSilence(this.#gaps.onFrame(timestampMs, mulaw.length, nowMs));
    if (this.#voice.push(mulaw)) {
      this.#lastVoicedAtMs = nowMs;
      this.#voicedMs += mulaw.length / MULAW_BYTES_PER_MS;
    }
    this.#feed(mulaw);
  }

  /** Feeds silence while the carrier sends nothing, so that the model's sense of time goes on. */
  onTick(): void {
    this.#feedSilence(this.#gaps.idleFillMs(this.#clock.nowMs()));
  }

  /** The model takes sound from now on; what waited goes first: of what waited for another connection the newest second, for
   * older words would be answered as if they were new. */
  attachModel(model: LiveConnection): void {
    if (this.#hadModel) this.#backlog.keepNewest(HELD_SOUND_MAX_MS);
    this.#hadModel = true;
    this.#model = model;
    this.#flushBacklog(model);
  }

  /** While held, nothing is sent; afterwards the newest second follows. */
  hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld || this.#model === undefined) return;
    this.#backlog.keepNewest(HELD_SOUND_MAX_MS);
    this.#flushBacklog(this.#model);
  }

  detachModel(): void {
    this.#model = undefined;
  }

  /** The carrier's stream was lost or replaced: its timestamps begin anew. */
  resetStream(): void {
    this.#gaps.reset();
    this.#upsampler.reset();
    this.#teeUpsampler?.reset();
  }

  release(): void {
    const { unfilledMs } = this.#gaps.counts;
    if (unfilledMs > 0) this.#observer.onAudioDropped('inbound', 'gap_too_long', unfilledMs);
    this.#model = undefined;
    this.#backlog.clear();
    this.#upsampler.release();
    this.#teeUpsampler?.release();
    this.#voice.release();
  }

  #feedSilence(fillMs: number): void {
    for (let leftBytes = fillMs * MULAW_BYTES_PER_MS; leftBytes >= 1; leftBytes -= MULAW_FRAME_BYTES) {
      this.#feed(leftBytes >= MULAW_FRAME_BYTES ? SILENCE : SILENCE.subarray(0, leftBytes));
    }
  }

  #feed(mulaw: Uint8Array): void {
    if (this.#tee.wantsSound) {
      this.#teeUpsampler ??= new CallerUpsampler();
      this.#tee.onSound(this.#teeUpsampler.push(mulaw));
    }
    const model = this.#model;
    if (model === undefined || this.#isHeld || model.bufferedAmount > MODEL_BUFFERED_MAX_BYTES) {
      this.#backlog.add(mulaw);
      return;
    }
    if (!this.#backlog.isEmpty) {
      this.#flushBacklog(model);
      if (!this.#backlog.isEmpty) {
        this.#backlog.add(mulaw);
        return;
      }
    }
    this.#send(model, mulaw);
  }

  #send(model: LiveConnection, mulaw: Uint8Array): void {
    model.sendAudio(this.#upsampler.push(mulaw));
  }

  #flushBacklog(model: LiveConnection): void {
    while (model.bufferedAmount <= MODEL_BUFFERED_MAX_BYTES) {
      const mulaw = this.#backlog.takeOldest();
      if (mulaw === undefined) return;
      this.#send(model, mulaw);
    }
  }
}
