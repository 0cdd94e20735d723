/**
 * What one run of the load has measured. All times are `performance.now()` of the generator's process, in which both
 * ends live, so that differences need no clock to be set. `reset` begins the measured window; what began before it is
 * not counted.
 */

export class Measurements {
  windowStartAt = Infinity;
  frameToModelMs = [];
  interruptedToClearMs = [];
  firstSoundMs = [];
  generatorLagMs = [];

  constructor() {
    this.reset(Infinity);
  }

  reset(now) {
    this.windowStartAt = now;
    this.frameToModelMs = [];
    this.interruptedToClearMs = [];
    this.firstSoundMs = [];
    this.generatorLagMs = [];
    this.dryMs = 0;
    this.dryGaps = 0;
    this.heardMs = 0;
    this.spokenMs = 0;
    this.carrierMessages = 0;
    this.modelMessages = 0;
    this.framesLost = 0;
    this.framesUnknown = 0;
    this.clearsMissed = 0;
    this.clearsUnasked = 0;
    this.turnsCutShort = 0;
    this.mediaWithoutSpeech = 0;
    this.callsDropped = 0;
  }

  addFrameToModel(sentAt, now) {
    if (sentAt >= this.windowStartAt) this.frameToModelMs.push(now - sentAt);
  }

  addInterruptedToClear(interruptedAt, now) {
    if (interruptedAt >= this.windowStartAt) this.interruptedToClearMs.push(now - interruptedAt);
  }

  addFirstSound(sentAt, now) {
    if (sentAt >= this.windowStartAt) this.firstSoundMs.push(now - sentAt);
  }

  /** The carrier's queue was empty from `fromAt` to `now` although there was speech for it. */
  addDry(fromAt, now) {
    const dryMs = now - Math.max(fromAt, this.windowStartAt);
    if (dryMs <= 0) return;
    this.dryMs += dryMs;
    this.dryGaps += 1;
  }

  /** Everything but the raw samples. */
  summary() {
    return {
      frameToModelMs: spread(this.frameToModelMs),
      interruptedToClearMs: spread(this.interruptedToClearMs),
      firstSoundMs: spread(this.firstSoundMs),
      dryMs: round(this.dryMs),
      dryGaps: this.dryGaps,
      heardSeconds: round(this.heardMs / 1000),
      spokenSeconds: round(this.spokenMs / 1000),
      carrierMessages: this.carrierMessages,
      modelMessages: this.modelMessages,
      framesLost: this.framesLost,
      framesUnknown: this.framesUnknown,
      clearsMissed: this.clearsMissed,
      clearsUnasked: this.clearsUnasked,
      turnsCutShort: this.turnsCutShort,
      mediaWithoutSpeech: this.mediaWithoutSpeech,
      callsDropped: this.callsDropped,
      generatorLagMs: spread(this.generatorLagMs),
    };
  }
}

/** Count, median, 95th and 99th percentile and maximum (nearest rank); nulls where there is no sample. */
export function spread(samples) {
  const sorted = Float64Array.from(samples).sort();
  const rank = (share) =>
    sorted.length === 0 ? null : round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]);
  return { count: sorted.length, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99), max: rank(1) };
}

export function round(value) {
  return Math.round(value * 1000) / 1000;
}
