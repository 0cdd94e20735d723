/**
 * The frames that the server sends to clients: one JSON object each, with `type`, `seq`, and `msg` but for the last three.
 * Stands between what came over a connection, which may be anything, and the reducer, which sees only whole frames. Holds
 * no state and needs nothing but the language.
 */

export type Role = 'user' | 'model';
export type ToolState = 'running' | 'pending' | 'done' | 'error' | 'cancelled';

/** A message that is complete and stored. */
export interface HistoryMessage {
  readonly msg: string;
  readonly role: Role;
  readonly text: string;
}

/** More text of a message that is not complete yet. */
export interface DeltaFrame {
  readonly type: 'delta';
  readonly seq: number;
  readonly msg: string;
  readonly role: Role;
  readonly text: string;
}

/** A function that the model called, and how far it has come. Arguments and results stay on the server. */
export interface ToolFrame {
  readonly type: 'tool';
  readonly seq: number;
  readonly msg: string;
  readonly callId: string;
  readonly name: string;
  readonly state: ToolState;
}

/** A message is complete: this is its text, whatever the deltas held. */
export interface DoneFrame {
  readonly type: 'done';
  readonly seq: number;
  readonly msg: string;
  readonly role: Role;
  readonly text: string;
}

/** A message was cut: this is the part of it that was heard. */
export interface FlushFrame {
  readonly type: 'flush';
  readonly seq: number;
  readonly msg: string;
  readonly text: string;
}

/** Something failed. A message that was not complete is closed by it and has no text; `fatal` ends the run. */
export interface ErrorFrame {
  readonly type: 'error';
  readonly seq: number;
  readonly msg: string;
  readonly code: string;
  readonly message: string;
  readonly fatal: boolean;
}

/** The stream lives. Numbers that are missing directly before it were left out on purpose and do not come. */
export interface HeartbeatFrame {
  readonly type: 'heartbeat';
  readonly seq: number;
}

/** The server takes input now. */
export interface ReadyFrame {
  readonly type: 'ready';
  readonly seq: number;
}

/** All stored messages; takes the place of everything before it. */
export interface HistoryFrame {
  readonly type: 'history';
  readonly seq: number;
  readonly messages: readonly HistoryMessage[];
}

export type Frame =
  DeltaFrame | ToolFrame | DoneFrame | FlushFrame | ErrorFrame | HeartbeatFrame | ReadyFrame | HistoryFrame;

export type FrameType = Frame['type'];

export type FrameReading =
  | { readonly kind: 'frame'; readonly frame: Frame }
  /** A type that this module does not know, as a later server may send. `seq` is undefined if it has none. */
  | { readonly kind: 'unknown'; readonly seq: number | undefined }
  | { readonly kind: 'refused'; readonly reason: string };

type Fields = Readonly<Record<string, unknown>>;

const TOOL_STATES: ReadonlySet<unknown> = new Set<ToolState>([
  'running',
  'pending',
  'done',
  'error',
  'cancelled',
]);

const isText = (value: unknown): value is string => typeof value === 'string';
const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isRole = (value: unknown): value is Role => value === 'user' || value === 'model';
const isSeq = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

class Refusal extends Error {}

function take<T>(fields: Fields, key: string, is: (value: unknown) => value is T): T {
  const value = fields[key];
  if (is(value)) return value;
  throw new Refusal(`${key} is missing or not what it should be`);
}

function readMessages(value: unknown): HistoryMessage[] {
  if (!Array.isArray(value)) throw new Refusal('messages is not a list');
  return value.map((each: unknown) => {
    if (typeof each !== 'object' || each === null) throw new Refusal('messages holds something else');
    const fields = each as Fields;
    return {
      msg: take(fields, 'msg', isName),
      role: take(fields, 'role', isRole),
      text: take(fields, 'text', isText),
    };
  });
}

function readSpoken(fields: Fields, seq: number): Omit<DeltaFrame, 'type'> {
  const msg = take(fields, 'msg', isName);
  return { seq, msg, role: take(fields, 'role', isRole), text: take(fields, 'text', isText) };
}

const isToolState = (value: unknown): value is ToolState => TOOL_STATES.has(value);
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';

const READERS: { readonly [Type in FrameType]: (fields: Fields, seq: number) => Frame } = {
  delta: (fields, seq) => ({ type: 'delta', ...readSpoken(fields, seq) }),
  done: (fields, seq) => ({ type: 'done', ...readSpoken(fields, seq) }),
  tool: (fields, seq) => ({
    type: 'tool',
    seq,
    msg: take(fields, 'msg', isName),
    callId: take(fields, 'callId', isName),
    name: take(fields, 'name', isText),
    state: take(fields, 'state', isToolState),
  }),
  flush: (fields, seq) => ({
    type: 'flush',
    seq,
    msg: take(fields, 'msg', isName),
    text: take(fields, 'text', isText),
  }),
  error: (fields, seq) => ({
    type: 'error',
    seq,
    msg: take(fields, 'msg', isName),
    code: take(fields, 'code', isText),
    message: take(fields, 'message', isText),
    fatal: take(fields, 'fatal', isFlag),
  }),
  heartbeat: (_, seq) => ({ type: 'heartbeat', seq }),
  ready: (_, seq) => ({ type: 'ready', seq }),
  history: (fields, seq) => ({ type: 'history', seq, messages: readMessages(fields['messages']) }),
};

function isFrameType(type: string): type is FrameType {
  return Object.hasOwn(READERS, type);
}

/** Reads one frame out of anything; never throws. What it returns holds the named keys and no other. */
export function readFrame(value: unknown): FrameReading {
  try {
    if (typeof value !== 'object' || value === null) throw new Refusal('a frame is an object');
    const fields = value as Fields;
    const type = take(fields, 'type', isText);
    const seq = fields['seq'];
    if (!isFrameType(type)) return { kind: 'unknown', seq: isSeq(seq) ? seq : undefined };
    return { kind: 'frame', frame: READERS[type](fields, take(fields, 'seq', isSeq)) };
  } catch (error) {
    return { kind: 'refused', reason: error instanceof Refusal ? error.message : 'it cannot be read' };
  }
}

/** As `readFrame`, from the JSON text that a connection carries. */
export function readFrameText(text: string): FrameReading {
  try {
    return readFrame(JSON.parse(text) as unknown);
  } catch {
    return { kind: 'refused', reason: 'it is not JSON' };
  }
}
