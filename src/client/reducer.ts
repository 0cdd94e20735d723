/**
 * From frames to a page: `reduce(state, frame)`, pure and total. Stands between a connection, which may repeat frames or
 * bring them in another order, and the page. Frames count once each and by their `seq`; the newest `REORDERED_FRAMES_MAX` are
 * kept, and one that comes late is put in its place among them, as if it had come in time. Nothing is held back to wait
 * for a missing one.
 */
import { REORDERED_FRAMES_MAX } from './bounds.js';
import { readFrame, type Frame, type FrameReading } from './frame.js';
import { EMPTY_PAGE, showFrame, withoutOpenMessages, type Page } from './page.js';

/** A frame of a type that is not known, which still has its place in the order. */
interface UnknownFrame {
  readonly type: undefined;
  readonly seq: number;
}

type OrderedFrame = Frame | UnknownFrame;

/** What has happened to frames, for a developer's eye and for tests. */
export interface FrameCounts {
  /** Numbers between those that came, which may still come. */
  readonly missing: number;
  /** Numbers that were missing until it was too late for them. */
  readonly lost: number;
  /** Frames that changed nothing because their number had been, or was older than all that are kept. */
  readonly repeated: number;
  /** Frames of a type that this module does not know. */
  readonly unknown: number;
  /** Frames that could not be read. */
  readonly refused: number;
}

export interface ClientState extends Page {
  readonly counts: FrameCounts;
  /** Why the last frame that was refused could not be read. */
  readonly refusal: string | undefined;
  /** The highest number so far; undefined before the first. */
  readonly lastSeq: number | undefined;
  /** The reducer's own: the page before the frames that are kept, the number it stands at, and those frames in order. */
  readonly window: {
    readonly page: Page;
    readonly seq: number | undefined;
    readonly frames: readonly OrderedFrame[];
  };
}

export const initialState: ClientState = {
  ...EMPTY_PAGE,
  counts: { missing: 0, lost: 0, repeated: 0, unknown: 0, refused: 0 },
  refusal: undefined,
  lastSeq: undefined,
  window: { page: EMPTY_PAGE, seq: undefined, frames: [] },
};

function show(page: Page, frame: OrderedFrame): Page {
  return frame.type === undefined ? page : showFrame(page, frame);
}

/** Numbers that lie between `seq` and the frame. Before a heartbeat they were left out on purpose, before a history they do
 * not matter. */
function holeBefore(seq: number | undefined, frame: OrderedFrame): number {
  if (seq === undefined || frame.type === 'heartbeat' || frame.type === 'history') return 0;
  return frame.seq - seq - 1;
}

function missingIn({ seq, frames }: ClientState['window']): number {
  let missing = 0;
  let before = seq;
  for (const frame of frames) {
    missing += holeBefore(before, frame);
    before = frame.seq;
  }
  return missing;
}

function pageOf({ messages, failures, isReady, isOver }: Page): Page {
  return { messages, failures, isReady, isOver };
}

/** The window with the frame in its place; the oldest frames fall into the page before it. */
function insert(window: ClientState['window'], frame: OrderedFrame, at: number) {
  const frames = window.frames.toSpliced(at, 0, frame);
  let { page, seq } = window;
  let lost = 0;
  while (frames.length > REORDERED_FRAMES_MAX) {
    const oldest = frames.shift() as OrderedFrame;
    lost += holeBefore(seq, oldest);
    page = show(page, oldest);
    seq = oldest.seq;
  }
  return { window: { page, seq, frames }, lost };
}

function count(state: ClientState, what: keyof FrameCounts): ClientState {
  return { ...state, counts: { ...state.counts, [what]: state.counts[what] + 1 } };
}

function place(state: ClientState, frame: OrderedFrame): ClientState {
  const { frames, seq } = state.window;
  if (seq !== undefined && frame.seq <= seq) return count(state, 'repeated');
  const at = frames.findLastIndex((each) => each.seq <= frame.seq) + 1;
  if (frames[at - 1]?.seq === frame.seq) return count(state, 'repeated');
  const { window, lost } = insert(state.window, frame, at);
  const isNewest = at === frames.length;
  const page = isNewest ? show(pageOf(state), frame) : window.frames.reduce(show, window.page);
  const counts = { ...state.counts, missing: missingIn(window), lost: state.counts.lost + lost };
  return { ...state, ...page, counts, window, lastSeq: Math.max(state.lastSeq ?? frame.seq, frame.seq) };
}

/** As `reduce`, for a frame that has been read. */
export function reduceReading(state: ClientState, reading: FrameReading): ClientState {
  switch (reading.kind) {
    case 'frame':
      return place(state, reading.frame);
    case 'unknown': {
      const counted = count(state, 'unknown');
      return reading.seq === undefined ? counted : place(counted, { type: undefined, seq: reading.seq });
    }
    case 'refused':
      return { ...count(state, 'refused'), refusal: reading.reason };
  }
}

/**
 * The state after one more frame. `frame` is what `JSON.parse` made of a frame's text, or anything else: what cannot be
 * read is counted, with its reason in `refusal`, and changes nothing. Never throws and never changes its arguments.
 */
export function reduce(state: ClientState, frame: unknown): ClientState {
  return reduceReading(state, readFrame(frame));
}

/**
 * The state at the beginning of a connection that does not go on where the last one ended: numbers begin anew, complete
 * messages stay until `history` replaces them, and what was not complete goes.
 */
export function restart(state: ClientState): ClientState {
  const page = { ...withoutOpenMessages(state), isReady: false, isOver: false };
  return {
    ...state,
    ...pageOf(page),
    counts: { ...state.counts, missing: 0, lost: state.counts.lost + state.counts.missing },
    lastSeq: undefined,
    window: { page: pageOf(page), seq: undefined, frames: [] },
  };
}
