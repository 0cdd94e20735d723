/**
 * What has been said and done in a conversation so far, in order, and of the agent only what was heard: the past of a session
 * that another connection begins. Listens to the run. What the agent is saying now is no part of it yet; what the caller is
 * saying is, as far as it was understood.
 */
import { type Event, functionCalls, functionResponses } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import { HEARD_EVENTS_MAX } from '../link-limits.js';

interface Entry {
  readonly position: number;
  /** Of a message that may still change. */
  readonly msg?: string;
  /** Undefined while nothing is known of it. */
  event: Event | undefined;
}

export class HeardHistory {
  #entries: Entry[];
  #position = 0;

  /** `history`: what was committed before this run. */
  constructor(history: readonly Event[] = []) {
    this.#entries = history.slice(-HEARD_EVENTS_MAX).map((event) => ({ position: 0, event }));
  }

  /** Rises with every message and function call. */
  get position(): number {
    return this.#position;
  }

  /** What was said and done behind `position`; all of it for 0. */
  events(position = 0): Event[] {
    const isAll = position <= 0;
    return this.#entries.flatMap((entry) =>
      entry.event !== undefined && (isAll || entry.position > position) ? [entry.event] : [],
    );
  }

  readonly hear = (item: RunItem): void => {
    switch (item.type) {
      case 'opened':
        // A recorded clip of ours answers nothing: it is no word of the model's.
        if (item.role === 'user' || item.turn !== undefined) this.#insert(item.msg, item.before);
        return;
      case 'delta':
        if (item.role === 'user') this.#grow(item.msg, item.event);
        return;
      case 'sealed':
        return this.#seal(item.msg, item.event);
      case 'event':
        return this.#add(item.event);
      default:
    }
  };

  #insert(msg: string, before: string | undefined): void {
    const found = before === undefined ? -1 : this.#entries.findLastIndex((entry) => entry.msg === before);
    this.#position += 1;
    const at = found < 0 ? this.#entries.length : found;
    this.#entries.splice(at, 0, { position: this.#position, msg, event: undefined });
    this.#bound();
  }

  #add(event: Event): void {
    const isCall = functionCalls(event).length > 0;
    if (!isCall && functionResponses(event).length === 0) return;
    if (isCall) this.#position += 1;
    this.#entries.push({ position: this.#position, event });
    this.#bound();
  }

  /** What the caller says comes in pieces, and may not be sealed before the answer is over. */
  #grow(msg: string, piece: Event): void {
    const entry = this.#find(msg);
    if (entry === undefined) return;
    const text = textOf(entry.event) + textOf(piece);
    entry.event = { ...piece, content: { role: 'user', parts: [{ text }] } };
  }

  #seal(msg: string, event: Event | undefined): void {
    const entry = this.#find(msg);
    if (entry !== undefined) entry.event = event;
  }

  #find(msg: string): Entry | undefined {
    return this.#entries.findLast((entry) => entry.msg === msg);
  }

  #bound(): void {
    if (this.#entries.length > HEARD_EVENTS_MAX) this.#entries.shift();
  }
}

function textOf(event: Event | undefined): string {
  return (event?.content?.parts ?? []).map(({ text = '' }) => text).join('');
}
