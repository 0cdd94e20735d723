/**
 * The frames of one run or call, for everyone who watches it. Stands between what happens there, which must never wait, and
 * connections of any speed: publishing puts a frame into the log and returns; watchers are served afterwards, a few in each turn
 * of the event loop. Numbers are those of the stream, the same for all who watch it, so that one can come back and go on.
 */
import { nextTurn, type Clock, type Timer } from '../clock.js';
import type { HistoryMessage } from '../client/frame.js';
import {
  WIRE_FINISH_MAX_MS,
  WIRE_HEARTBEAT_MS,
  WIRE_UNREAD_MAX_MS,
  WIRE_WATCHERS_MAX,
  WIRE_WATCHERS_PER_TURN,
} from '../limits.js';
import { FrameLog } from './frame-log.js';
import type { FrameSink } from './frame-sink.js';
import { frameOf, type Happening, type Unnumbered } from './happening.js';
import { MessageLedger } from './message-ledger.js';
import { Watcher } from './watcher.js';
import { WireFrame } from './wire-frame.js';

export interface BroadcastOptions {
  readonly clock: Clock;
  /** Complete messages of earlier runs of the same session, for the first `history`. */
  readonly stored?: readonly HistoryMessage[];
  readonly heartbeatMs?: number;
}

export interface WatchOptions {
  /** The last number that the client has had; what follows is told, or all anew if that is too long ago. */
  readonly lastSeq?: number | undefined;
  /** Without `history`, from the first frame on: for the client that started the run. */
  readonly fromStart?: boolean;
}

const CLOSING_FRAMES: ReadonlySet<Unnumbered['type']> = new Set(['done', 'flush']);

export class Broadcast {
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  readonly #ledger: MessageLedger;
  readonly #log = new FrameLog();
  readonly #watchers = new Set<Watcher>();
  /** Numbers that some watcher has had for a part of a snapshot only; pruned with the log. */
  readonly #ambiguous = new Set<number>();
  #seq = 0;
  #hasEnded = false;
  #lastFrameAtMs: number;
  #timer: Timer;
  #finishing: Timer | undefined;
  #isServing = false;
  #isBehind = false;
  /** A fatal error was told: only what closes a message may follow it. */
  #isOver = false;
  #allRead: () => void = () => {};
  /** Resolves when nothing more will be told and the last watcher has gone. */
  readonly finished = new Promise<void>((resolve) => {
    this.#allRead = resolve;
  });

  constructor(options: BroadcastOptions) {
    this.#clock = options.clock;
    this.#heartbeatMs = options.heartbeatMs ?? WIRE_HEARTBEAT_MS;
    this.#ledger = new MessageLedger(options.stored);
    this.#lastFrameAtMs = options.clock.nowMs();
    this.#timer = this.#clock.setTimer(this.#heartbeatMs, () => this.#beat());
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** The number of the last frame; 0 before the first. */
  get seq(): number {
    return this.#seq;
  }

  /** Frames and characters that are kept. */
  get kept(): { readonly frames: number; readonly chars: number } {
    return this.#log.size;
  }

  /** Nothing will follow on what a client with this number has had. */
  isFinishedAfter(lastSeq: number | undefined): boolean {
    return this.#hasEnded && lastSeq === this.#seq;
  }

  /** Tells everyone. What comes late for a sealed message, says nothing new, or comes after the end is dropped: false. So is
   * what follows a fatal error, but for what closes a message. Throws a TypeError for values that no client could read. */
  publish(happening: Happening): boolean {
    const frame = frameOf(happening);
    if (this.#hasEnded || (this.#isOver && !CLOSING_FRAMES.has(frame.type))) return false;
    if (!this.#ledger.admit(frame)) return false;
    this.#append(frame);
    if (frame.type === 'error' && frame.fatal) this.#isOver = true;
    return true;
  }

  /** Adds a watcher; false if there are too many, or its connection is gone. After the end it is told what there is, and ended. */
  watch(sink: FrameSink, options: WatchOptions = {}): boolean {
    if (sink.isGone || this.#watchers.size >= WIRE_WATCHERS_MAX) return false;
    const goesOn = this.#canGoOn(options);
    const watcher = new Watcher({
      sink,
      log: this.#log,
      seq: goesOn ? (options.lastSeq ?? 0) : this.#seq,
      gone: () => this.#remove(watcher),
      nowMs: () => this.#clock.nowMs(),
    });
    this.#watchers.add(watcher);
    if (!goesOn) watcher.greet(this.#snapshot());
    if (this.#hasEnded) this.#finish(watcher);
    watcher.pump();
    return true;
  }

  /** Nothing more happens. Watchers are ended when they have had everything, and after a while in any case. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#timer.cancel();
    for (const watcher of this.#watchers) this.#finish(watcher);
    if (this.#watchers.size === 0) this.#allRead();
    this.#serve();
  }

  #finish(watcher: Watcher): void {
    watcher.endAfterLog();
    this.#finishing ??= this.#clock.setTimer(WIRE_FINISH_MAX_MS, () => {
      this.#finishing = undefined;
      for (const each of this.#watchers) each.cut();
    });
  }

  #remove(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (!this.#hasEnded || this.#watchers.size > 0) return;
    this.#allRead();
    this.#finishing?.cancel();
    this.#finishing = undefined;
  }

  #canGoOn({ lastSeq, fromStart }: WatchOptions): boolean {
    if (lastSeq === undefined) return fromStart === true && this.#log.horizon === 0;
    return lastSeq >= this.#log.horizon && lastSeq <= this.#seq && !this.#ambiguous.has(lastSeq);
  }

  /** All there is to tell, with the last numbers of the stream so far: what follows goes on from there. */
  #snapshot(): WireFrame[] {
    const { history, rest } = this.#ledger.snapshot();
    const first = this.#seq - rest.length;
    if (this.#ambiguous.size > 0) {
      for (const seq of this.#ambiguous) if (seq < this.#log.horizon) this.#ambiguous.delete(seq);
    }
    for (let seq = first; seq < this.#seq; seq += 1) this.#ambiguous.add(seq);
    return [
      new WireFrame({ type: 'history', seq: first, messages: history }),
      ...rest.map((frame, index) => new WireFrame(numbered(frame, first + 1 + index))),
    ];
  }

  #append(frame: Unnumbered): void {
    this.#seq += 1;
    // JSON keeps the order of keys; a reader of the wire finds type and number in front.
    this.#log.append(new WireFrame(numbered(frame, this.#seq)));
    this.#lastFrameAtMs = this.#clock.nowMs();
    this.#serve();
  }

  /** Begins to serve all watchers, or begins anew with those that were served already. */
  #serve(): void {
    this.#isBehind = true;
    if (this.#isServing || this.#watchers.size === 0) return;
    this.#isServing = true;
    void this.#serveAll();
  }

  async #serveAll(): Promise<void> {
    while (this.#isBehind) {
      this.#isBehind = false;
      await nextTurn();
      let served = 0;
      for (const watcher of this.#watchers) {
        if (served >= WIRE_WATCHERS_PER_TURN) {
          served = 0;
          await nextTurn();
        }
        if (watcher.pump()) served += 1;
      }
    }
    this.#isServing = false;
  }

  #beat(): void {
    const idleMs = this.#clock.nowMs() - this.#lastFrameAtMs;
    for (const watcher of this.#watchers) watcher.check(WIRE_UNREAD_MAX_MS);
    if (idleMs >= this.#heartbeatMs) this.#append({ type: 'heartbeat' });
    const nextMs = this.#lastFrameAtMs + this.#heartbeatMs - this.#clock.nowMs();
    this.#timer = this.#clock.setTimer(nextMs, () => this.#beat());
  }
}

function numbered(frame: Unnumbered, seq: number): WireFrame['frame'] {
  const { type, ...rest } = frame;
  return { type, seq, ...rest } as WireFrame['frame'];
}
