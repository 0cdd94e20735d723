/**
 * What a page shows of a conversation, and what one frame makes of it. Pure and strictly one after the other: putting frames
 * in order and dropping repeated ones is the reducer's. A sealed message (complete, cut or failed) keeps its text for ever;
 * only its tools may still change.
 */
import type { ErrorFrame, Frame, HistoryMessage, Role, ToolFrame, ToolState } from './frame.js';
import { FAILURES_KEPT_MAX } from './bounds.js';

export interface ShownTool {
  readonly callId: string;
  readonly name: string;
  readonly state: ToolState;
}

/** `open`: more may come. `done`: complete. `cut`: kept as far as it was heard. `failed`: closed by an error, without text. */
export type MessageStatus = 'open' | 'done' | 'cut' | 'failed';

export interface ShownMessage {
  readonly msg: string;
  readonly role: Role;
  readonly text: string;
  readonly status: MessageStatus;
  readonly tools: readonly ShownTool[];
}

export interface ShownFailure {
  readonly msg: string;
  readonly code: string;
  readonly message: string;
  readonly fatal: boolean;
}

export interface Page {
  /** In the order in which each was first seen. */
  readonly messages: readonly ShownMessage[];
  /** The newest ones, `FAILURES_KEPT_MAX` at most: of messages, and notices that belong to none. */
  readonly failures: readonly ShownFailure[];
  /** `ready` has come. */
  readonly isReady: boolean;
  /** A fatal error has come: nothing more will. */
  readonly isOver: boolean;
}

export const EMPTY_PAGE: Page = { messages: [], failures: [], isReady: false, isOver: false };

/** Changes one message, which is added at the end if it is new; `change` returns the same object for no change. */
function changeMessage(page: Page, msg: string, change: (message: ShownMessage) => ShownMessage): Page {
  const index = page.messages.findLastIndex((message) => message.msg === msg);
  const before = page.messages[index] ?? { msg, role: 'model', text: '', status: 'open', tools: [] };
  const after = change(before);
  if (after === page.messages[index]) return page;
  const messages = index < 0 ? [...page.messages, after] : page.messages.with(index, after);
  return { ...page, messages };
}

/** As `changeMessage`, for what may no longer change once the message is sealed. One that failed before anything of it was shown is not on
 * the page, and does not come there any more. */
function changeText(page: Page, msg: string, change: (message: ShownMessage) => ShownMessage): Page {
  if (!isShown(page, msg) && page.failures.some((failure) => failure.msg === msg)) return page;
  return changeMessage(page, msg, (message) => (message.status === 'open' ? change(message) : message));
}

function isShown(page: Page, msg: string): boolean {
  return page.messages.some((message) => message.msg === msg);
}

const isSettled = (state: ToolState): boolean => state !== 'running' && state !== 'pending';

function changeTool(message: ShownMessage, { callId, name, state }: ToolFrame): ShownMessage {
  const index = message.tools.findIndex((tool) => tool.callId === callId);
  const before = message.tools[index];
  if (before === undefined) return { ...message, tools: [...message.tools, { callId, name, state }] };
  if (isSettled(before.state) || before.state === state) return message;
  return { ...message, tools: message.tools.with(index, { callId, name, state }) };
}

/** An error with a `msg` of its own is a notice, and no message. */
function fail(page: Page, { msg, code, message, fatal }: ErrorFrame): Page {
  const closed = isShown(page, msg)
    ? changeText(page, msg, (each) => ({ ...each, text: '', status: 'failed' }))
    : page;
  const failures = [...page.failures, { msg, code, message, fatal }].slice(-FAILURES_KEPT_MAX);
  return { ...closed, failures, isOver: page.isOver || fatal };
}

function showHistory(page: Page, stored: readonly HistoryMessage[]): Page {
  const byMsg = new Map(stored.map((message) => [message.msg, message]));
  const messages = [...byMsg.values()].map(({ msg, role, text }): ShownMessage => ({
    msg,
    role,
    text,
    status: 'done',
    tools: [],
  }));
  return { ...page, messages, failures: [] };
}

/** The page after one more frame. The same object comes back if nothing changed. */
export function showFrame(page: Page, frame: Frame): Page {
  switch (frame.type) {
    case 'delta':
      return changeText(page, frame.msg, (message) => ({
        ...message,
        role: frame.role,
        text: message.text + frame.text,
      }));
    case 'done':
      return changeText(page, frame.msg, (message) => ({
        ...message,
        role: frame.role,
        text: frame.text,
        status: 'done',
      }));
    case 'flush':
      return changeText(page, frame.msg, (message) => ({ ...message, text: frame.text, status: 'cut' }));
    case 'tool':
      return changeMessage(page, frame.msg, (message) => changeTool(message, frame));
    case 'error':
      return fail(page, frame);
    case 'history':
      return showHistory(page, frame.messages);
    case 'ready':
      return page.isReady ? page : { ...page, isReady: true };
    case 'heartbeat':
      return page;
  }
}

/** The page without what was not complete: the rest of it will not come over another connection. */
export function withoutOpenMessages(page: Page): Page {
  return { ...page, messages: page.messages.filter((message) => message.status !== 'open') };
}

/** The messages that have text and keep it: word for word what the server has stored. */
export function storedMessages(page: Pick<Page, 'messages'>): HistoryMessage[] {
  return page.messages
    .filter(({ status, text }) => status !== 'open' && text !== '')
    .map(({ msg, role, text }) => ({ msg, role, text }));
}
