/**
 * What clients have been told of a conversation so far, for two purposes: what comes late for a sealed message is dropped
 * before it gets a number, and a watcher that joins is told everything in an order in which the others saw it too.
 */
import type { HistoryMessage, Role, ToolState } from '../client/frame.js';
import { WIRE_HISTORY_MAX_CHARS, WIRE_MESSAGES_MAX, WIRE_TOOLS_MAX } from '../limits.js';
import { historyMessageOf, type Unnumbered } from './happening.js';

interface LedgerMessage {
  role: Role;
  text: string;
  state: 'open' | 'done' | 'cut' | 'failed';
}

interface LedgerTool {
  readonly msg: string;
  readonly name: string;
  state: ToolState;
}

export interface Snapshot {
  /** Complete messages from the beginning up to the first one that is not complete. */
  readonly history: readonly HistoryMessage[];
  /** The rest: what is not complete, what was sealed behind it, and tools that still run. */
  readonly rest: readonly Unnumbered[];
}

const isSettled = (state: ToolState): boolean => state !== 'running' && state !== 'pending';

export class MessageLedger {
  /** In the order in which they were first told. */
  readonly #messages = new Map<string, LedgerMessage>();
  readonly #tools = new Map<string, LedgerTool>();
  #chars = 0;

  /** `stored` are the messages of earlier runs. */
  constructor(stored: readonly HistoryMessage[] = []) {
    for (const message of stored) {
      const { msg, role, text } = historyMessageOf(message);
      if (this.#messages.has(msg)) continue;
      this.#messages.set(msg, { role, text, state: 'done' });
      this.#chars += text.length;
    }
    this.#forget();
  }

  /** Notes a frame; false if it must not be sent, because it would change what is sealed or says nothing new. */
  admit(frame: Unnumbered): boolean {
    switch (frame.type) {
      case 'delta':
        return this.#change(frame.msg, (message) => {
          message.role = frame.role;
          message.text += frame.text;
          this.#chars += frame.text.length;
        });
      case 'done':
        return this.#change(frame.msg, (message) => {
          message.role = frame.role;
          this.#seal(message, 'done', frame.text);
        });
      case 'flush':
        return this.#change(frame.msg, (message) => this.#seal(message, 'cut', frame.text));
      case 'error':
        this.#change(frame.msg, (message) => this.#seal(message, 'failed', ''));
        return true;
      case 'tool':
        return this.#admitTool(frame);
      case 'heartbeat':
      case 'ready':
      case 'history':
        return true;
    }
  }

  /** Every part of `rest` stands for at least one frame that has been told. */
  snapshot(): Snapshot {
    const tools = this.#runningTools();
    const history: HistoryMessage[] = [];
    const behind: Unnumbered[] = [];
    const rest: Unnumbered[] = [];
    for (const [msg, { role, text, state }] of this.#messages) {
      const running = tools.get(msg) ?? [];
      tools.delete(msg);
      if (state === 'open') {
        // A message without text has its place by a tool that runs.
        if (text !== '' || running.length === 0) rest.push({ type: 'delta', msg, role, text });
      } else if (text !== '') {
        if (rest.length === 0) history.push({ msg, role, text });
        else if (state === 'cut' && role === 'model') rest.push({ type: 'flush', msg, text });
        else rest.push({ type: 'done', msg, role, text });
      }
      (rest.length === 0 ? behind : rest).push(...running);
    }
    return { history, rest: [...behind, ...rest, ...[...tools.values()].flat()] };
  }

  /** By message. */
  #runningTools(): Map<string, Unnumbered[]> {
    const tools = new Map<string, Unnumbered[]>();
    for (const [callId, { msg, name, state }] of this.#tools) {
      if (isSettled(state)) continue;
      const frame = { type: 'tool', msg, callId, name, state } as const;
      tools.set(msg, [...(tools.get(msg) ?? []), frame]);
    }
    return tools;
  }

  #open(msg: string): LedgerMessage {
    const message: LedgerMessage = { role: 'model', text: '', state: 'open' };
    this.#messages.set(msg, message);
    return message;
  }

  #change(msg: string, change: (message: LedgerMessage) => void): boolean {
    const message = this.#messages.get(msg) ?? this.#open(msg);
    if (message.state !== 'open') return false;
    change(message);
    this.#forget();
    return true;
  }

  #seal(message: LedgerMessage, state: LedgerMessage['state'], text: string): void {
    this.#chars += text.length - message.text.length;
    message.text = text;
    message.state = state;
  }

  #admitTool({ msg, callId, name, state }: Extract<Unnumbered, { type: 'tool' }>): boolean {
    const before = this.#tools.get(callId);
    if (before !== undefined) {
      if (isSettled(before.state) || before.state === state) return false;
      before.state = state;
      return true;
    }
    if (!this.#messages.has(msg)) this.#open(msg);
    this.#tools.set(callId, { msg, name, state });
    if (this.#tools.size > WIRE_TOOLS_MAX) this.#tools.delete(this.#tools.keys().next().value ?? '');
    this.#forget();
    return true;
  }

  /** Forgets the oldest sealed messages once there are too many of them. */
  #forget(): void {
    if (this.#chars <= WIRE_HISTORY_MAX_CHARS && this.#messages.size <= WIRE_MESSAGES_MAX) return;
    for (const [msg, message] of this.#messages) {
      if (message.state === 'open' && message.text !== '') continue;
      this.#messages.delete(msg);
      this.#chars -= message.text.length;
      if (this.#chars <= WIRE_HISTORY_MAX_CHARS && this.#messages.size <= WIRE_MESSAGES_MAX) return;
    }
  }
}
