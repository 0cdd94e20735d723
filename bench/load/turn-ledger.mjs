/**
 * One call's account of speech: what the model has said of the present turn, how much of it has reached the carrier,
 * and when the carrier's queue runs out. It is where a dry carrier is counted: a caller hears nothing although the
 * model had already sent speech. Waiting for the first sound of a turn is a latency, not dryness. No clock of its own.
 */

/** The last piece of a turn, shorter than a frame, may wait for its end; a filter holds back 2–3 ms besides. */
const TOLERANCE_MS = 25;

export class TurnLedger {
  #measured;
  #chunkEndsMs = [];
  #chunkSentAt = [];
  #receivedMs = 0;
  #heardFromAt;
  #interruptedAt;
  /** When the carrier will have played all it has. */
  queueEndAt = 0;

  /** `measured` is a Measurements. */
  constructor(measured) {
    this.#measured = measured;
  }

  /** Speech the model has sent in this turn. */
  get sentMs() {
    return this.#chunkEndsMs.at(-1) ?? 0;
  }

  /** For how long the caller has been hearing this turn. */
  heardMs(now) {
    return this.#heardFromAt === undefined ? 0 : now - this.#heardFromAt;
  }

  /** `interrupted` was sent and `clear` has not come. */
  get awaitsClear() {
    return this.#interruptedAt !== undefined;
  }

  /** Whether all that was sent of this turn is with the carrier. */
  get allArrived() {
    return this.#receivedMs + TOLERANCE_MS >= this.sentMs;
  }

  beginTurn() {
    this.#chunkEndsMs.length = 0;
    this.#chunkSentAt.length = 0;
    this.#receivedMs = 0;
    this.#heardFromAt = undefined;
    this.#interruptedAt = undefined;
  }

  chunkSent(ms, now) {
    this.#chunkEndsMs.push(this.sentMs + ms);
    this.#chunkSentAt.push(now);
    this.#measured.spokenMs += ms;
  }

  /** The carrier got `ms` of sound. */
  mediaArrived(ms, now) {
    this.#measured.heardMs += ms;
    if (!this.awaitsClear) {
      if (this.sentMs === 0) this.#measured.mediaWithoutSpeech += 1;
      else if (this.#heardFromAt !== undefined) this.#countDry(now);
      else {
        this.#heardFromAt = now;
        this.#measured.addFirstSound(this.#chunkSentAt[0], now);
      }
      this.#receivedMs += ms;
    }
    this.queueEndAt = Math.max(now, this.queueEndAt) + ms;
  }

  interruptedSent(now) {
    this.#interruptedAt = now;
  }

  /** The carrier was told to drop what it has. */
  clearArrived(now) {
    this.#measured.heardMs -= Math.max(0, this.queueEndAt - now);
    this.queueEndAt = now;
    if (this.#interruptedAt === undefined) {
      this.#measured.clearsUnasked += 1;
      return;
    }
    this.#measured.addInterruptedToClear(this.#interruptedAt, now);
    this.beginTurn();
  }

  /** Counts dryness that is still going on at the end of the window. */
  settle(now) {
    if (this.#heardFromAt !== undefined && !this.awaitsClear) this.#countDry(now);
  }

  #countDry(now) {
    if (now <= this.queueEndAt) return;
    const chunk = this.#chunkEndsMs.findIndex((endMs) => endMs > this.#receivedMs + TOLERANCE_MS);
    if (chunk === -1) return;
    this.#measured.addDry(Math.max(this.queueEndAt, this.#chunkSentAt[chunk]), now);
  }
}
