/**
 * The calls of this server as runs: each is followed from its first event on. What is committed goes to the store in spoken
 * order, what happens goes to those who watch. The sound of a call never waits for either.
 */
import type { AgentContext } from '../agent/agent.js';
import type { Clock, Timer } from '../clock.js';
import type { RunStream } from '../event/run-stream.js';
import { RUN_KEPT_AFTER_END_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { EventWriter } from '../store/event-writer.js';
import type { SessionKey } from '../store/store.js';
import { Broadcast } from '../wire/broadcast.js';
import { StoredFirst } from './stored-first.js';

export interface RunsOptions {
  readonly writer: Pick<EventWriter, 'createSession' | 'append'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Followed {
  readonly broadcast: Broadcast;
  /** Until it is forgotten; undefined while the run is going on, or has something to store. */
  forgetting: Timer | undefined;
}

export class Runs {
  readonly #options: RunsOptions;
  readonly #bySession = new Map<string, Followed>();

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Follows a call. Its session is made where there is none. */
  followCall(call: AgentContext, run: RunStream): void {
    const { writer, clock, log } = this.#options;
    const session: SessionKey = { appName: call.appName, userId: call.userId, id: call.sessionId };
    void writer.createSession(session);
    const broadcast = new Broadcast({ clock });
    const followed: Followed = { broadcast, forgetting: undefined };
    this.#forget(call.sessionId);
    this.#bySession.set(call.sessionId, followed);
    const teller = new StoredFirst({ broadcast, append: (event) => writer.append(session, event), clock });
    run.listen((item) => teller.hear(item));
    void teller.told.then(() => {
      broadcast.end();
      log.debug({ callSid: call.callSid }, 'the run of a call is over');
      if (this.#bySession.get(call.sessionId) !== followed) return;
      followed.forgetting = clock.setTimer(RUN_KEPT_AFTER_END_MS, () => this.#forget(call.sessionId));
    });
  }

  /** What can be watched of a call that is going on or has just ended. */
  broadcastOf(sessionId: string): Broadcast | undefined {
    return this.#bySession.get(sessionId)?.broadcast;
  }

  /** Whether a call is going on, or what was said in it is not all stored. */
  isRunning(sessionId: string): boolean {
    const followed = this.#bySession.get(sessionId);
    return followed !== undefined && followed.forgetting === undefined;
  }

  /** Calls that are going on or not all stored, and watchers of all. */
  counts(): Readonly<Record<string, number>> {
    const all = [...this.#bySession.values()];
    return {
      runs: all.filter(({ forgetting }) => forgetting === undefined).length,
      watchers: all.reduce((sum, { broadcast }) => sum + broadcast.watchers, 0),
    };
  }

  close(): void {
    for (const sessionId of this.#bySession.keys()) this.#forget(sessionId);
  }

  #forget(sessionId: string): void {
    const followed = this.#bySession.get(sessionId);
    if (followed === undefined) return;
    followed.forgetting?.cancel();
    followed.broadcast.end();
    this.#bySession.delete(sessionId);
  }
}
