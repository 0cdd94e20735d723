/**
 * What can happen in a run that clients are told of, and the allow-list that makes frames of it: every frame is put together
 * here key by key, so that nothing else of what is passed in can leave the server, however much it holds.
 */
import type { Frame, HistoryMessage, Role, ToolState } from '../client/frame.js';
import { WIRE_NAME_MAX_CHARS } from '../limits.js';

export type Happening =
  | { readonly kind: 'delta'; readonly msg: string; readonly role: Role; readonly text: string }
  | { readonly kind: 'done'; readonly msg: string; readonly role: Role; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly msg: string;
      readonly callId: string;
      readonly name: string;
      readonly state: ToolState;
    }
  /** `text` is what was heard of the message. */
  | { readonly kind: 'flush'; readonly msg: string; readonly text: string }
  /** `message` is for clients: nothing about the inside. The `msg` that it closes, or one of its own. */
  | {
      readonly kind: 'error';
      readonly msg: string;
      readonly code: string;
      readonly message: string;
      readonly fatal: boolean;
    }
  /** Input is taken from now on. */
  | { readonly kind: 'ready' };

/** A frame that has no number yet. */
export type Unnumbered<F extends Frame = Frame> = F extends Frame ? Omit<F, 'seq'> : never;

const ROLES: ReadonlySet<unknown> = new Set<Role>(['user', 'model']);
const TOOL_STATES: ReadonlySet<unknown> = new Set<ToolState>([
  'running',
  'pending',
  'done',
  'error',
  'cancelled',
]);

/** What a client could not read is a fault of ours, and told as one; a value's type is named, never the value. */
function text(value: string, key: string): string {
  if (typeof value === 'string') return value;
  throw new TypeError(`${key} of a frame is ${typeof value}, not text`);
}

function name(value: string, key: string): string {
  const checked = text(value, key);
  if (checked !== '') return checked.slice(0, WIRE_NAME_MAX_CHARS);
  throw new TypeError(`${key} of a frame is empty`);
}

function flag(value: boolean, key: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new TypeError(`${key} of a frame is ${typeof value}, neither true nor false`);
}

function oneOf<T extends string>(value: T, allowed: ReadonlySet<unknown>, key: string): T {
  if (allowed.has(value)) return value;
  throw new TypeError(`${key} of a frame is none of those that clients know`);
}

/** The frame that clients get. Throws a TypeError for values that are not of the declared types. */
export function frameOf(happening: Happening): Unnumbered {
  switch (happening.kind) {
    case 'delta':
    case 'done':
      return {
        type: happening.kind,
        msg: name(happening.msg, 'msg'),
        role: oneOf(happening.role, ROLES, 'role'),
        text: text(happening.text, 'text'),
      };
    case 'tool':
      return {
        type: 'tool',
        msg: name(happening.msg, 'msg'),
        callId: name(happening.callId, 'callId'),
        name: name(happening.name, 'name'),
        state: oneOf(happening.state, TOOL_STATES, 'state'),
      };
    case 'flush':
      return { type: 'flush', msg: name(happening.msg, 'msg'), text: text(happening.text, 'text') };
    case 'error':
      return {
        type: 'error',
        msg: name(happening.msg, 'msg'),
        code: name(happening.code, 'code'),
        message: text(happening.message, 'message').slice(0, WIRE_NAME_MAX_CHARS),
        fatal: flag(happening.fatal, 'fatal'),
      };
    case 'ready':
      return { type: 'ready' };
  }
}

/** The same for stored messages. */
export function historyMessageOf(message: HistoryMessage): HistoryMessage {
  return {
    msg: name(message.msg, 'msg'),
    role: oneOf(message.role, ROLES, 'role'),
    text: text(message.text, 'text'),
  };
}
