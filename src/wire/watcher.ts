/**
 * One watcher of a stream: a position in its log, and a connection. Takes frames out of the log only while the connection
 * takes them, so that a slow one delays nobody. One that has been behind is not told again what has been overtaken meanwhile,
 * and gets neighbouring deltas of one message as one. Numbers that are left out are covered by a heartbeat.
 */
import { WIRE_BATCH_FRAMES_MAX, WIRE_BATCH_MAX_CHARS } from '../limits.js';
import type { DeltaFrame } from '../client/frame.js';
import type { FrameLog } from './frame-log.js';
import type { FrameSink } from './frame-sink.js';
import { WireFrame } from './wire-frame.js';

export interface WatcherOptions {
  readonly sink: FrameSink;
  readonly log: FrameLog;
  /** What is read already. */
  readonly seq: number;
  /** Called once, when the connection has ended. */
  readonly gone: () => void;
  readonly nowMs: () => number;
}

interface Batch {
  readonly frames: WireFrame[];
  /** The number of the last of them. */
  readonly seq: number;
}

export class Watcher {
  readonly #sink: FrameSink;
  readonly #log: FrameLog;
  readonly #options: WatcherOptions;
  #seq: number;
  /** Since when the connection has taken nothing; undefined while it takes what there is. */
  #behindSinceMs: number | undefined;
  #catchesUp = true;
  #endsAfterLog = false;
  #hasEnded = false;

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#sink = options.sink;
    this.#log = options.log;
    this.#seq = options.seq;
    this.#sink.listen({
      drained: () => {
        this.#behindSinceMs = undefined;
        this.pump();
      },
      gone: () => {
        this.#hasEnded = true;
        options.gone();
      },
    });
  }

  /** Writes frames that are not in the log, for this watcher alone. */
  greet(frames: readonly WireFrame[]): void {
    if (frames.length > 0) this.#write(frames);
  }

  /** Writes what the connection takes; true if that was anything. */
  pump(): boolean {
    let hasWritten = false;
    while (!this.#hasEnded && this.#behindSinceMs === undefined) {
      if (this.#seq < this.#log.horizon) {
        this.#sink.cut();
        break;
      }
      const batch = this.#nextBatch();
      if (batch === undefined) {
        this.#catchesUp = false;
        if (this.#endsAfterLog) this.#end();
        break;
      }
      hasWritten = true;
      this.#seq = batch.seq;
      this.#write(batch.frames);
    }
    return hasWritten;
  }

  /** From now on the connection is ended as soon as it has had everything. */
  endAfterLog(): void {
    this.#endsAfterLog = true;
  }

  cut(): void {
    this.#sink.cut();
  }

  /** Ends the connection if it has taken nothing for `unreadMaxMs`, or has lost its place in the log. */
  check(unreadMaxMs: number): void {
    if (this.#hasEnded || this.#behindSinceMs === undefined) return;
    const unreadMs = this.#options.nowMs() - this.#behindSinceMs;
    if (unreadMs >= unreadMaxMs || this.#seq < this.#log.horizon) this.#sink.cut();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#sink.end();
  }

  #write(frames: readonly WireFrame[]): void {
    if (this.#takes(frames)) return;
    this.#behindSinceMs = this.#options.nowMs();
    this.#catchesUp = true;
  }

  /** A connection that throws is broken, and nobody else's matter. */
  #takes(frames: readonly WireFrame[]): boolean {
    try {
      return this.#sink.write(frames);
    } catch {
      this.#sink.cut();
      return false;
    }
  }

  /** The next frames of the log, undefined if there is none. */
  #nextBatch(): Batch | undefined {
    const frames: WireFrame[] = [];
    let index = this.#log.indexAfter(this.#seq);
    let chars = 0;
    /** The last number that the client will know of. */
    let told = this.#seq;
    for (let frame = this.#log.at(index); frame !== undefined; frame = this.#log.at((index += 1))) {
      if (frames.length >= WIRE_BATCH_FRAMES_MAX || chars >= WIRE_BATCH_MAX_CHARS) break;
      if (this.#catchesUp && this.#log.isOvertaken(frame)) continue;
      const merged = this.#catchesUp ? this.#mergeDeltas(index) : undefined;
      const sent = merged?.frame ?? frame;
      index = merged?.index ?? index;
      if (sent.seq > told + 1 && sent.frame.type !== 'heartbeat') {
        frames.push(new WireFrame({ type: 'heartbeat', seq: sent.seq - 1 }));
      }
      frames.push(sent);
      told = sent.seq;
      chars += sent.json.length;
    }
    return frames.length === 0 ? undefined : { frames, seq: told };
  }

  /** The delta at `index` and those that follow it of the same message as one, with the index of the last of them. */
  #mergeDeltas(index: number): { frame: WireFrame; index: number } | undefined {
    const first = this.#log.at(index)?.frame;
    if (first?.type !== 'delta') return undefined;
    let merged: DeltaFrame = first;
    let last = index;
    for (let next = index + 1; merged.text.length < WIRE_BATCH_MAX_CHARS; next += 1) {
      const frame = this.#log.at(next);
      if (frame === undefined) break;
      if (this.#log.isOvertaken(frame)) continue;
      if (frame.frame.type !== 'delta' || frame.frame.msg !== first.msg) break;
      merged = { ...frame.frame, text: merged.text + frame.frame.text };
      last = next;
    }
    return last === index ? undefined : { frame: new WireFrame(merged), index: last };
  }
}
