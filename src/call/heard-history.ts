/**
 * What has been said and done in a conversation so far, in order, and of the agent only what was heard: the past of a session
 * that another connection begins. Listens to the run. What the agent is saying now is no part of it yet; what the caller is
 * saying is, as far as it was understood.
 */
import { type Event, functionCalls, functionResponses, NO_ACTIONS } from '../event/event.js';
import type { Role, RunItem } from '../event/run-stream.js';
import { HEARD_EVENTS_MAX } from '../link-limits.js';

interface Entry {
  /** When it came, or grew last. */
  position: number;
  /** Of a message that may still change. */
  readonly msg?: string;
  readonly role?: Role;
  /** Undefined while nothing is known of it for good. */
  event: Event | undefined;
}

/** What an open message has come to by now, as it was heard; undefined where that is nothing. */
export type TextOf = (msg: string) => string | undefined;

export class HeardHistory {
  #entries: Entry[];
  #position = 0;

  /** `history`: what was committed before this run. */
  constructor(history: readonly Event[] = []) {
    this.#entries = history.slice(-HEARD_EVENTS_MAX).map((event) => ({ position: 0, event }));
  }

  /** Rises by one with every message, function call and result, and a little with every piece of what the caller says. */
  get position(): number {
    return this.#position;
  }

  /** What was said and done behind `position`, the calls of each result with it; all of it for 0. `untold`: calls whose result is
   * still to be told in words of its own. */
  events(
    position = 0,
    { textOf = () => undefined, untold = new Set() }: { textOf?: TextOf; untold?: ReadonlySet<string> } = {},
  ): Event[] {
    const told = this.#entries.filter(({ event }) => !isUntold(event, untold));
    const isNew = (entry: Entry): boolean => position <= 0 || entry.position > position;
    const answered = new Set(
      told
        .filter(isNew)
        .flatMap(({ event }) => (event === undefined ? [] : functionResponses(event).map(({ id }) => id))),
    );
    const isAnswered = ({ event }: Entry): boolean =>
      event !== undefined && functionCalls(event).some(({ id }) => answered.has(id));
    return told
      .filter((entry) => isNew(entry) || isAnswered(entry))
      .flatMap((entry) => entry.event ?? openEvent(entry, textOf) ?? []);
  }

  /** The caller has pressed a key. */
  pressed(digit: string): void {
    this.#position += 1;
    const event = eventOf('user', `(pressed the key ${digit})`);
    this.#entries.push({ position: this.#position, event });
    this.#bound();
  }

  readonly hear = (item: RunItem): void => {
    switch (item.type) {
      case 'opened':
        // A recorded clip of ours answers nothing: it is no word of the model's.
        if (item.role === 'user' || item.turn !== undefined) this.#insert(item.msg, item.role, item.before);
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

  #insert(msg: string, role: Role, before: string | undefined): void {
    const found = before === undefined ? -1 : this.#entries.findLastIndex((entry) => entry.msg === before);
    this.#position += 1;
    const at = found < 0 ? this.#entries.length : found;
    this.#entries.splice(at, 0, { position: this.#position, msg, role, event: undefined });
    this.#bound();
  }

  #add(event: Event): void {
    const isCall = functionCalls(event).length > 0;
    if (!isCall && functionResponses(event).length === 0) return;
    this.#position += 1;
    this.#entries.push({ position: this.#position, event });
    this.#bound();
  }

  /** What the caller says comes in pieces, and may not be sealed before the answer is over. */
  #grow(msg: string, piece: Event): void {
    const entry = this.#find(msg);
    if (entry === undefined) return;
    this.#position += PIECE;
    entry.position = this.#position;
    const text = words(entry.event) + words(piece);
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

/** What one piece counts beside a message: it makes a handle old, and not stale. */
const PIECE = 1e-4;

function isUntold(event: Event | undefined, untold: ReadonlySet<string>): boolean {
  return event !== undefined && functionResponses(event).some(({ id = '' }) => untold.has(id));
}

function openEvent({ msg, role }: Entry, textOf: TextOf): Event | undefined {
  const text = msg === undefined ? undefined : textOf(msg);
  return text === undefined || role === undefined ? undefined : eventOf(role, text);
}

/** For the model's eyes only: it is no event of the run. */
function eventOf(role: Role, text: string): Event {
  const author = role === 'user' ? 'user' : 'agent';
  return {
    id: '',
    invocationId: '',
    author,
    timestamp: 0,
    content: { role, parts: [{ text }] },
    actions: NO_ACTIONS,
  };
}

function words(event: Event | undefined): string {
  return (event?.content?.parts ?? []).map(({ text = '' }) => text).join('');
}
