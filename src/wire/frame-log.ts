/**
 * The newest frames of one stream, once for all who watch it: a watcher is only a position in here, so that one that stands
 * still costs nothing. When there are too many, what has been overtaken goes first (heartbeats, and deltas of a message whose
 * sealed text is in here too), then the oldest; who has not read those is behind for good.
 */
import type { Frame } from '../client/frame.js';
import { WIRE_LOG_FRAMES_MAX, WIRE_LOG_MAX_CHARS } from '../limits.js';
import type { WireFrame } from './wire-frame.js';

interface LogBounds {
  readonly framesMax: number;
  readonly charsMax: number;
}

/** What the bounds are brought down to, so that a full log is not gone through for every frame. */
const KEPT_SHARE = 0.75;

export class FrameLog {
  readonly #bounds: LogBounds;
  #frames: WireFrame[] = [];
  #chars = 0;
  /** Messages whose sealing frame is in here. */
  readonly #sealed = new Set<string>();
  /** The first delta of a message, which gives it its place among the others. */
  readonly #placing = new Map<string, number>();
  #horizon = 0;

  constructor(bounds: LogBounds = { framesMax: WIRE_LOG_FRAMES_MAX, charsMax: WIRE_LOG_MAX_CHARS }) {
    this.#bounds = bounds;
  }

  /** Who has had all up to here, or more, can be told the rest. */
  get horizon(): number {
    return this.#horizon;
  }

  get size(): { readonly frames: number; readonly chars: number } {
    return { frames: this.#frames.length, chars: this.#chars };
  }

  append(frame: WireFrame): void {
    this.#frames.push(frame);
    this.#chars += frame.json.length;
    this.#note(frame.frame);
    if (this.#isOver(1)) this.#shrink();
  }

  /** The index of the first frame above `seq`, for `at`. */
  indexAfter(seq: number): number {
    let low = 0;
    let high = this.#frames.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#frames[middle]?.seq ?? 0) > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  at(index: number): WireFrame | undefined {
    return this.#frames[index];
  }

  /** Whether what follows says all that this frame says. */
  isOvertaken({ frame }: WireFrame): boolean {
    if (frame.type === 'heartbeat') return frame.seq !== this.#frames.at(-1)?.seq;
    return (
      frame.type === 'delta' && this.#sealed.has(frame.msg) && this.#placing.get(frame.msg) !== frame.seq
    );
  }

  #note(frame: Frame): void {
    switch (frame.type) {
      case 'delta':
        if (!this.#placing.has(frame.msg)) this.#placing.set(frame.msg, frame.seq);
        break;
      case 'done':
      case 'flush':
      case 'error':
        this.#sealed.add(frame.msg);
        break;
      default:
    }
  }

  #isOver(share: number): boolean {
    return (
      this.#frames.length > this.#bounds.framesMax * share || this.#chars > this.#bounds.charsMax * share
    );
  }

  #shrink(): void {
    this.#frames = this.#frames.filter((frame) => !this.isOvertaken(frame));
    this.#chars = this.#frames.reduce((sum, { json }) => sum + json.length, 0);
    let dropped = 0;
    let frames = this.#frames.length;
    const { framesMax, charsMax } = this.#bounds;
    while (frames > 1 && (frames > framesMax * KEPT_SHARE || this.#chars > charsMax * KEPT_SHARE)) {
      const oldest = this.#frames[dropped];
      if (oldest === undefined) break;
      this.#chars -= oldest.json.length;
      this.#horizon = oldest.seq;
      this.#forget(oldest.frame);
      dropped += 1;
      frames -= 1;
    }
    this.#frames.splice(0, dropped);
  }

  #forget(frame: Frame): void {
    if (frame.type !== 'done' && frame.type !== 'flush' && frame.type !== 'error') return;
    this.#sealed.delete(frame.msg);
    this.#placing.delete(frame.msg);
  }
}
