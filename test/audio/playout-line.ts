/** A playout wired to a simulated carrier on a virtual clock, with everything that passed between them kept. */
import assert from 'node:assert/strict';
import type { Clock } from '../../src/clock.js';
import { MULAW_BYTES_PER_MS } from '../../src/limits.js';
import { Playout, type PlayoutObserver } from '../../src/audio/playout.js';
import type { PlayoutSink } from '../../src/audio/playout-sink.js';
import type { Utterance } from '../../src/audio/utterance.js';
import { CarrierEar } from '../support/carrier-ear.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

export interface SentMessage {
  readonly atMs: number;
  readonly kind: 'media' | 'mark' | 'clear';
  readonly bytes: number;
  readonly mark: string | undefined;
}

/** `bytes` of sound in which every byte tells its place; never the code of silence. */
export function tellingSound(bytes: number, from = 0): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, index) => (from + index) % 251);
}

export function soundOf(ms: number, from = 0): Uint8Array {
  return tellingSound(ms * MULAW_BYTES_PER_MS, from);
}

/** Waits below a millisecond only burn the processor: Node would make them one, a virtual clock might stand still. */
function refusingShortTimers(clock: Clock): Clock {
  return {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs(),
    setTimer: (delayMs, fire) => {
      assert(delayMs >= 1, 'no timer is shorter than a millisecond');
      return clock.setTimer(delayMs, fire);
    },
  };
}

export class PlayoutLine implements PlayoutSink, PlayoutObserver {
  readonly clock = new VirtualClock(5_000);
  readonly ear: CarrierEar;
  readonly playout: Playout;
  readonly sent: SentMessage[] = [];
  /** Observer calls in order, as text. */
  readonly events: string[] = [];
  bufferedAmount = 0;
  /** Runs after an observer call was noted. */
  react: (event: string) => void = () => {};

  constructor(returnDelays?: (name: string) => readonly number[]) {
    this.ear = new CarrierEar({
      clock: this.clock,
      onMark: (name) => this.playout.onMark(name),
      ...(returnDelays === undefined ? {} : { returnDelays }),
    });
    this.playout = new Playout({ clock: refusingShortTimers(this.clock), sink: this, observer: this });
  }

  get sentMs(): number {
    return this.sent.reduce((sum, { bytes }) => sum + bytes, 0) / MULAW_BYTES_PER_MS;
  }

  get marks(): string[] {
    return this.sent.flatMap(({ mark }) => mark ?? []);
  }

  /** Time since the line was made. */
  get timeMs(): number {
    return this.clock.nowMs() - 5_000;
  }

  /** Gaps of a millisecond at most, which are below the clock's grain. */
  shortGaps(): number {
    const stretches = this.ear.stretches();
    return stretches.filter(({ startMs }, index) => {
      const before = stretches[index - 1];
      if (before === undefined) return false;
      return startMs - (before.startMs + before.sound.length / MULAW_BYTES_PER_MS) <= 1;
    }).length;
  }

  /** 0 unless the playout left the sink corked. */
  corked = 0;
  /** System calls that a real sink would have made. */
  writes = 0;
  #sentAtCork = 0;

  /** An utterance with this much sound, still open. */
  say(ms: number): Utterance {
    const utterance = this.playout.startUtterance();
    this.playout.push(utterance, soundOf(ms));
    return utterance;
  }

  send(mulaw: Uint8Array, mark: string | undefined): void {
    this.sent.push({ atMs: this.timeMs, kind: 'media', bytes: mulaw.length, mark });
    this.ear.media(mulaw);
    if (mark !== undefined) this.ear.mark(mark);
  }

  sendMark(mark: string): void {
    this.sent.push({ atMs: this.timeMs, kind: 'mark', bytes: 0, mark });
    this.ear.mark(mark);
  }

  sendClear(): void {
    this.sent.push({ atMs: this.timeMs, kind: 'clear', bytes: 0, mark: undefined });
    this.ear.clear();
  }

  cork(): void {
    this.corked += 1;
    this.#sentAtCork = this.sent.length;
  }

  uncork(): void {
    this.corked -= 1;
    if (this.sent.length > this.#sentAtCork) this.writes += 1;
  }

  onFirstSent(utterance: Utterance): void {
    this.#note(`first ${utterance.id}`);
  }

  onUnderrun(gapMs: number, cause: string): void {
    this.#note(`underrun ${gapMs} ${cause}`);
  }

  onUtteranceHeard(utterance: Utterance): void {
    this.#note(`heard ${utterance.id}`);
  }

  onDrained(): void {
    this.#note('drained');
  }

  onDropped(ms: number, reason: string): void {
    this.#note(`dropped ${ms} ${reason}`);
  }

  onHoldOver(cleared: boolean): void {
    this.#note(`hold over ${cleared ? 'cleared' : 'finished'}`);
  }

  #note(event: string): void {
    this.events.push(event);
    this.react(event);
  }
}
