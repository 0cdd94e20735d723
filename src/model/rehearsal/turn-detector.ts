/**
 * Finds where the caller's turns begin and end, by the energy of the incoming sound over a floor that follows the
 * line's noise. It hears that somebody speaks, never what is said. Time is counted in sound, not by a clock, so the
 * same sound gives the same turns however fast it arrives.
 */

const FRAME_MS = 20;
/** Takes mains hum and handling rumble out of the energy; a first-order high-pass. */
const HIGH_PASS_HZ = 200;
/** A frame is voiced this far above the floor. Line noise of one frame varies by about 1 dB. */
const VOICED_ABOVE_FLOOR_DB = 8;
/** Quieter than this is never speech, however quiet the line is. */
const VOICED_MIN_DB = -50;
/** The floor is the quietest frame of this long: speech has gaps within it, and noise that begins is learnt by it. */
const FLOOR_WINDOW_FRAMES = 1_600 / FRAME_MS;
/** Levels of speech move; a run of voiced frames flatter than this is noise or a tone that began. */
const SPEECH_RANGE_DB = 4;
/** Unvoiced frames that a beginning may hold: the closure of a stop consonant. */
const START_GAP_FRAMES = 60 / FRAME_MS;

export interface TurnDetectorOptions {
  /** Voiced sound that commits the start of a turn. */
  readonly startMs: number;
  /** Silence that commits the end of a turn. */
  readonly silenceMs: number;
}

export interface TurnListener {
  onTurnStart(): void;
  /** `voicedMs`: from the first voiced frame to the last. */
  onTurnEnd(voicedMs: number): void;
}

export class TurnDetector {
  readonly #startFrames: number;
  readonly #silenceFrames: number;
  readonly #listener: TurnListener;
  readonly #recentDb = new Float64Array(FLOOR_WINDOW_FRAMES).fill(Infinity);
  #recentAt = 0;
  #rateHz = 0;
  #frameSamples = 0;
  #samplesInFrame = 0;
  #energy = 0;
  #highPass = 0;
  #lastIn = 0;
  #lastOut = 0;
  #lowByte = -1;
  #inTurn = false;
  #runFrames = 0;
  #voicedFrames = 0;
  #unvoicedFrames = 0;
  #quietestDb = Infinity;
  #loudestDb = -Infinity;

  constructor({ startMs, silenceMs }: TurnDetectorOptions, listener: TurnListener) {
    this.#startFrames = Math.max(1, Math.round(startMs / FRAME_MS));
    this.#silenceFrames = Math.max(1, Math.round(silenceMs / FRAME_MS));
    this.#listener = listener;
  }

  get inTurn(): boolean {
    return this.#inTurn;
  }

  /** PCM16 little-endian, any length; an odd byte is carried to the next call. */
  push(pcm: Uint8Array, rateHz: number): void {
    if (rateHz !== this.#rateHz) this.#setRate(rateHz);
    let at = 0;
    if (this.#lowByte >= 0 && pcm.length > 0) {
      this.#sample(this.#lowByte | ((pcm[at++] ?? 0) << 8));
      this.#lowByte = -1;
    }
    for (; at + 1 < pcm.length; at += 2) this.#sample((pcm[at] ?? 0) | ((pcm[at + 1] ?? 0) << 8));
    if (at < pcm.length) this.#lowByte = pcm[at] ?? 0;
  }

  /** The caller's sound has stopped coming: an open turn ends now. */
  flush(): void {
    if (this.#inTurn) this.#endTurn();
    this.#resetRun();
    this.#lowByte = -1;
  }

  #setRate(rateHz: number): void {
    this.#rateHz = rateHz;
    this.#frameSamples = Math.round((rateHz * FRAME_MS) / 1_000);
    this.#highPass = Math.exp((-2 * Math.PI * HIGH_PASS_HZ) / rateHz);
    this.#samplesInFrame = 0;
    this.#energy = 0;
    this.#lowByte = -1;
  }

  #sample(unsigned: number): void {
    const sample = ((unsigned << 16) >> 16) / 32_768;
    this.#lastOut = this.#highPass * (this.#lastOut + sample - this.#lastIn);
    this.#lastIn = sample;
    this.#energy += this.#lastOut * this.#lastOut;
    this.#samplesInFrame += 1;
    if (this.#samplesInFrame < this.#frameSamples) return;
    const levelDb = 10 * Math.log10(this.#energy / this.#frameSamples + 1e-10);
    this.#samplesInFrame = 0;
    this.#energy = 0;
    this.#frame(levelDb);
  }

  #frame(levelDb: number): void {
    this.#recentDb[this.#recentAt] = levelDb;
    this.#recentAt = (this.#recentAt + 1) % FLOOR_WINDOW_FRAMES;
    let floorDb = levelDb;
    for (const recentDb of this.#recentDb) if (recentDb < floorDb) floorDb = recentDb;
    if (levelDb > Math.max(VOICED_MIN_DB, floorDb + VOICED_ABOVE_FLOOR_DB)) this.#voicedFrame(levelDb);
    else this.#unvoicedFrame();
  }

  #voicedFrame(levelDb: number): void {
    this.#unvoicedFrames = 0;
    this.#runFrames += 1;
    this.#voicedFrames += 1;
    // The first frame of a run is partly the quiet before it and says nothing about the run's evenness.
    if (this.#voicedFrames > 1) {
      this.#quietestDb = Math.min(this.#quietestDb, levelDb);
      this.#loudestDb = Math.max(this.#loudestDb, levelDb);
    }
    if (this.#inTurn || this.#voicedFrames < this.#startFrames) return;
    if (this.#loudestDb - this.#quietestDb < SPEECH_RANGE_DB) return;
    this.#inTurn = true;
    this.#listener.onTurnStart();
  }

  #unvoicedFrame(): void {
    if (this.#runFrames === 0) return;
    this.#runFrames += 1;
    this.#unvoicedFrames += 1;
    if (this.#inTurn) {
      if (this.#unvoicedFrames >= this.#silenceFrames) this.#endTurn();
    } else if (this.#unvoicedFrames > START_GAP_FRAMES) {
      this.#resetRun();
    }
  }

  #endTurn(): void {
    const voicedMs = (this.#runFrames - this.#unvoicedFrames) * FRAME_MS;
    this.#inTurn = false;
    this.#resetRun();
    this.#listener.onTurnEnd(voicedMs);
  }

  #resetRun(): void {
    this.#runFrames = 0;
    this.#voicedFrames = 0;
    this.#unvoicedFrames = 0;
    this.#quietestDb = Infinity;
    this.#loudestDb = -Infinity;
  }
}
