/**
 * What is remembered of calls that have ended: their record, what the carrier may still ask about them, and what was said, for
 * as long as nobody deletes it. Bounded in number, and in time as far as words go.
 */
import type { CallView } from '../console/call-view.js';
import type { Clock } from '../clock.js';
import type { CallSid } from '../ids.js';
import { ENDED_CALLS_MAX, ENDED_WORDS_KEPT_MS } from '../limits.js';
import type { Call } from './call.js';
import type { CallTrail } from './call-trail.js';

/** Whose words are to be forgotten: all that is named must fit. */
export interface ForgottenWords {
  readonly appName?: string;
  readonly userId?: string;
  readonly sessionId?: string;
  /** Only of calls that ended before this time. */
  readonly beforeMs?: number;
}

export interface EndedCall {
  readonly view: CallView;
  readonly owesApology: boolean;
  /** The caller was left on the line. */
  readonly leavesCaller: boolean;
  /** Webhooks that come after a recorded call's end belong to its recording. */
  readonly trail: CallTrail | undefined;
}

interface Remembered extends EndedCall {
  /** Undefined once the words are forgotten, with whom they were from. */
  readonly of: Pick<Call['identity'], 'appName' | 'userId' | 'sessionId'> | undefined;
  readonly endedAtMs: number;
}

export class EndedCalls {
  readonly #clock: Pick<Clock, 'wallMs'>;
  /** In order of ending; the oldest are forgotten. */
  readonly #calls = new Map<CallSid, Remembered>();
  /** Calls that go on, and of whose words nothing is to be kept. */
  readonly #deleted = new WeakSet<Call>();

  constructor(clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock;
  }

  has(callSid: CallSid): boolean {
    return this.#calls.has(callSid);
  }

  get(callSid: CallSid): EndedCall | undefined {
    this.#expire();
    return this.#calls.get(callSid);
  }

  /** Newest first. */
  views(): CallView[] {
    this.#expire();
    return [...this.#calls.values()].map(({ view }) => view).toReversed();
  }

  add(call: Call): void {
    const { callSid, identity, owesApology, leavesCaller, trail } = call;
    const endedAtMs = this.#clock.wallMs();
    const ended = { view: call.view(), owesApology, leavesCaller, trail, of: identity, endedAtMs };
    this.#calls.set(callSid, this.#deleted.has(call) ? withoutWords(ended) : ended);
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= ENDED_CALLS_MAX) break;
      this.#calls.delete(oldest);
    }
    this.#expire();
  }

  /** It goes on after all. */
  remove(callSid: CallSid): void {
    this.#calls.delete(callSid);
  }

  /** Whose words are kept. */
  get kept(): readonly Pick<Call['identity'], 'appName' | 'userId' | 'sessionId'>[] {
    return [...this.#calls.values()].flatMap(({ of }) => of ?? []);
  }

  /** Forgets the words of ended calls, and of those of `running` once they end. Their records stay. */
  forget(deleted: ForgottenWords, running: Iterable<Call>): void {
    for (const [callSid, ended] of this.#calls) {
      const isEarlier = deleted.beforeMs === undefined || ended.endedAtMs < deleted.beforeMs;
      if (isEarlier && ended.of !== undefined && isOf(ended.of, deleted))
        this.#calls.set(callSid, withoutWords(ended));
    }
    if (deleted.beforeMs !== undefined) return;
    for (const call of running) if (isOf(call.identity, deleted)) this.#deleted.add(call);
  }

  /** Whoever deletes by a process of their own cannot tell this one. */
  #expire(): void {
    this.forget({ beforeMs: this.#clock.wallMs() - ENDED_WORDS_KEPT_MS }, []);
  }
}

function isOf(call: NonNullable<Remembered['of']>, { appName, userId, sessionId }: ForgottenWords): boolean {
  return (
    (appName === undefined || appName === call.appName) &&
    (userId === undefined || userId === call.userId) &&
    (sessionId === undefined || sessionId === call.sessionId)
  );
}

function withoutWords(ended: Remembered): Remembered {
  return { ...ended, view: { ...ended.view, messages: [] }, of: undefined };
}
