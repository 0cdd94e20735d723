/**
 * What clients are told of a run's items. Arguments, results and state stay here: of a function only its name and how far it
 * has come.
 */
import type { Event } from '../event/event.js';
import { functionCalls, functionResponses, tellsError } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import type { HistoryMessage } from '../client/frame.js';
import type { Happening } from '../wire/happening.js';

/** Each run has its own: it remembers which message the functions belong to. */
export class RunHappenings {
  /** The agent's open message, or the last one. */
  #agentMsg: string;
  #openMsg: string | undefined;
  #errors = 0;
  /** Withdrawn, and without a result. */
  readonly #cancelled = new Set<string>();

  /** `firstMsg`: the agent's first message, on which functions stand that are called before it has a word. */
  constructor(firstMsg = 'm0') {
    this.#agentMsg = firstMsg;
  }

  /** The agent's message that has begun and is not sealed. */
  get openMsg(): string | undefined {
    return this.#openMsg;
  }

  of(item: RunItem): readonly Happening[] {
    switch (item.type) {
      case 'opened':
        if (item.role === 'model') this.#openMsg = this.#agentMsg = item.msg;
        return [];
      case 'delta':
        return [{ kind: 'delta', msg: item.msg, role: item.role, text: eventText(item.event) }];
      case 'sealed':
        if (item.msg === this.#openMsg) this.#openMsg = undefined;
        return [sealed(item)];
      case 'event':
        if (item.endsMsg === this.#openMsg) this.#openMsg = undefined;
        return item.isLate === true ? [] : this.#ofEvent(item);
      case 'withdrawn':
        return this.#withdrawn(item.calls);
      case 'ready':
        return [{ kind: 'ready' }];
      case 'asked':
      case 'used':
      case 'over':
        return [];
    }
  }

  #withdrawn(calls: Extract<RunItem, { type: 'withdrawn' }>['calls']): Happening[] {
    return calls.map(({ id: callId, name, hasResult }) => {
      if (!hasResult) this.#cancelled.add(callId);
      return { kind: 'tool', msg: this.#agentMsg, callId, name, state: 'cancelled' };
    });
  }

  #ofEvent({ event, endsMsg, fatal = false }: Extract<RunItem, { type: 'event' }>): Happening[] {
    const msg = this.#agentMsg;
    const happenings: Happening[] = [];
    const later = new Set(event.longRunningToolIds);
    for (const { id = '', name } of functionCalls(event)) {
      happenings.push({ kind: 'tool', msg, callId: id, name, state: later.has(id) ? 'pending' : 'running' });
    }
    for (const answer of functionResponses(event)) {
      const { id = '', name } = answer;
      // What a withdrawn call came to is for the record.
      if (this.#cancelled.delete(id)) continue;
      const state = later.has(id) ? 'pending' : tellsError(answer) ? 'error' : 'done';
      happenings.push({ kind: 'tool', msg, callId: id, name, state });
    }
    if (event.errorCode !== undefined) {
      this.#errors += 1;
      const { errorCode: code, errorMessage: message = '' } = event;
      happenings.push({ kind: 'error', msg: endsMsg ?? `e${this.#errors}`, code, message, fatal });
    }
    return happenings;
  }
}

function sealed({ msg, role, event }: Extract<RunItem, { type: 'sealed' }>): Happening {
  const text = event === undefined ? '' : eventText(event);
  if (event === undefined || event.interrupted === true) return { kind: 'flush', msg, text };
  return { kind: 'done', msg, role, text };
}

/** What an event says; thinking is nobody’s to hear. */
export function eventText(event: Event): string {
  return (event.content?.parts ?? [])
    .map(({ text, thought }) => (thought === true ? '' : (text ?? '')))
    .join('');
}

/** Committed messages of a session, for the first `history`. */
export function historyMessages(events: readonly Event[]): HistoryMessage[] {
  return events.flatMap((event) => {
    const text = eventText(event);
    return text === ''
      ? []
      : [{ msg: event.id, role: event.author === 'user' ? 'user' : 'model', text } as const];
  });
}
