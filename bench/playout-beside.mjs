/**
 * One call's playout in this process, played on paper by a carrier in real time: how long the carrier was dry though sound was
 * there, and how much sound it had left whenever more came. Needs a build.
 */
import { Playout } from '../dist/audio/playout.js';
import { systemClock } from '../dist/clock.js';

const MULAW_BYTES_PER_MS = 8;
/** What the playout keeps at the carrier when it is in time, less one batch of messages. */
const DUE_LEFT_MS = 120;
/** A write is called late when the carrier has less left than this share of what it should have. */
const LATE_LEFT_MS = DUE_LEFT_MS / 2;

export class PlayoutBeside {
  #playout;
  #queueEndAtMs = 0;
  #isMidTurn = false;
  #timers = new Set();
  #writes = 0;
  #lateWrites = 0;
  #dryMs = 0;
  #dryGaps = 0;
  #leftMinMs = Infinity;
  #underruns = 0;

  constructor() {
    const nothing = () => {};
    this.#playout = new Playout({
      clock: systemClock,
      sink: {
        send: (mulaw, markName) => this.#send(mulaw, markName),
        sendMark: (name) => this.#mark(name),
        sendClear: nothing,
        cork: nothing,
        uncork: nothing,
        bufferedAmount: 0,
      },
      observer: {
        onFirstSent: nothing,
        onUnderrun: () => (this.#underruns += 1),
        onUtteranceHeard: nothing,
        onDrained: nothing,
        onDropped: nothing,
        onHoldOver: nothing,
      },
    });
  }

  /** Says so much at once; it is played from now on. */
  say(ms) {
    const utterance = this.#playout.startUtterance();
    this.#isMidTurn = false;
    this.#playout.push(utterance, new Uint8Array(ms * MULAW_BYTES_PER_MS).fill(0x20));
  }

  /** Ends, and tells what it was. */
  end() {
    this.#playout.close();
    for (const timer of this.#timers) clearTimeout(timer);
    return {
      playoutWrites: this.#writes,
      lateWrites: this.#lateWrites,
      leftMinMs: Math.round(this.#leftMinMs),
      dryMs: Math.round(this.#dryMs),
      dryGaps: this.#dryGaps,
      underruns: this.#underruns,
    };
  }

  #send(mulaw, markName) {
    const nowMs = performance.now();
    if (this.#isMidTurn && this.#writes > 10) {
      const leftMs = this.#queueEndAtMs - nowMs;
      this.#leftMinMs = Math.min(this.#leftMinMs, leftMs);
      if (leftMs < LATE_LEFT_MS) this.#lateWrites += 1;
      if (leftMs < 0) {
        this.#dryMs -= leftMs;
        this.#dryGaps += 1;
      }
    }
    this.#isMidTurn = true;
    this.#writes += 1;
    this.#queueEndAtMs = Math.max(this.#queueEndAtMs, nowMs) + mulaw.length / MULAW_BYTES_PER_MS;
    if (markName !== undefined) this.#mark(markName);
  }

  #mark(name) {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#playout.onMark(name);
      },
      Math.max(0, this.#queueEndAtMs - performance.now()),
    );
    this.#timers.add(timer);
  }
}
