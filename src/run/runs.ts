/**
 * The calls of this server as runs: each is followed from its first event on. What is committed goes to the store in spoken
 * order, what happens goes to those who watch. The sound of a call never waits for either.
 */
import type { AgentContext } from '../agent/agent.js';
import type { Clock, Timer } from '../clock.js';
import type { Event } from '../event/event.js';
import { errorText } from '../errors.js';
import type { RunStream } from '../event/run-stream.js';
import { RUN_KEPT_AFTER_END_MS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { EventWriter } from '../store/event-writer.js';
import type { AppendOutcome, SessionKey } from '../store/store.js';
import { Broadcast } from '../wire/broadcast.js';
import type { Happening } from '../wire/happening.js';
import type { Deleted } from './forgetting-store.js';
import { historyMessages } from './run-happenings.js';
import { StoredFirst } from './stored-first.js';

export interface RunsOptions {
  readonly writer: Pick<EventWriter, 'createSession' | 'append'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Followed {
  readonly session: SessionKey;
  readonly broadcast: Broadcast;
  /** Its session was deleted: nothing of it is kept beyond its end. */
  isDeleted: boolean;
  /** All that is committed is stored and told, and the broadcast has ended. */
  readonly told: Promise<void>;
  /** Until it is forgotten; undefined while the run is going on, or has something to store. */
  forgetting: Timer | undefined;
}

export class Runs {
  readonly #options: RunsOptions;
  readonly #byCall = new Map<string, Followed>();

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Follows a call. Its session is made where there is none; `history` is what it holds already. */
  followCall(call: AgentContext, run: RunStream, history: readonly Event[] = []): void {
    const { writer, clock, log } = this.#options;
    const session: SessionKey = { appName: call.appName, userId: call.userId, id: call.sessionId };
    const broadcast = new Broadcast({ clock, stored: historyMessages(history) });
    const teller = new StoredFirst({
      broadcast,
      append: keptIn(session, writer),
      clock,
      onFault: (error) =>
        log.error({ callSid: call.callSid, cause: errorText(error) }, 'a frame could not be told'),
    });
    run.listen((item) => teller.hear(item));
    const told = teller.told.then(() => broadcast.end());
    const followed: Followed = { session, broadcast, told, isDeleted: false, forgetting: undefined };
    this.#forget(call.callSid);
    this.#byCall.set(call.callSid, followed);
    void told.then(() => {
      log.debug({ callSid: call.callSid }, 'the run of a call is over');
      if (this.#byCall.get(call.callSid) !== followed) return;
      if (followed.isDeleted) return this.#forget(call.callSid);
      followed.forgetting = clock.setTimer(RUN_KEPT_AFTER_END_MS, () => this.#forget(call.callSid));
    });
  }

  /** What can be watched of a call that is going on or has just ended. */
  broadcastOf(callSid: string): Broadcast | undefined {
    return this.#byCall.get(callSid)?.broadcast;
  }

  /** Whether a call is going on in that session, or what was said in it is not all stored. */
  isRunning({ appName, userId, id }: SessionKey): boolean {
    for (const { session, forgetting } of this.#byCall.values()) {
      const isSame = session.id === id && session.userId === userId && session.appName === appName;
      if (isSame && forgetting === undefined) return true;
    }
    return false;
  }

  /** Calls that are going on or not all stored, and watchers of all. */
  counts(): Readonly<Record<string, number>> {
    const all = [...this.#byCall.values()];
    return {
      runs: all.filter(({ forgetting }) => forgetting === undefined).length,
      watchers: all.reduce((sum, { broadcast }) => sum + broadcast.watchers, 0),
    };
  }

  /** Sessions of calls that are over and can still be read. */
  get kept(): readonly SessionKey[] {
    return [...this.#byCall.values()].flatMap(({ session, forgetting }) =>
      forgetting === undefined ? [] : session,
    );
  }

  /** What was said in these sessions is deleted: of ended calls it is forgotten now, of others with their end. */
  forget({ appName, userId, sessionId }: Deleted): void {
    for (const [callSid, followed] of this.#byCall) {
      const { session, forgetting } = followed;
      const isMeant =
        (appName === undefined || appName === session.appName) &&
        (userId === undefined || userId === session.userId) &&
        (sessionId === undefined || sessionId === session.id);
      if (!isMeant) continue;
      if (forgetting === undefined) followed.isDeleted = true;
      else this.#forget(callSid);
    }
  }

  /** Resolves when all of every run is stored and told, which none is that goes on. */
  async told(): Promise<void> {
    await Promise.all([...this.#byCall.values()].map(({ told }) => told));
  }

  /** Ends what is not told yet, saying so, and forgets everything. Resolves when the last watcher has read it and gone. */
  async close(): Promise<void> {
    const broadcasts = [...this.#byCall.values()].map(({ broadcast }) => broadcast);
    for (const [callSid, { broadcast, forgetting }] of this.#byCall) {
      // Its words are not stored: nothing is called complete that a crash could take back, but nobody is left without a word.
      if (forgetting === undefined) broadcast.publish(CUT);
      this.#forget(callSid);
    }
    await Promise.all(broadcasts.map(({ finished }) => finished));
  }

  #forget(callSid: string): void {
    const followed = this.#byCall.get(callSid);
    if (followed === undefined) return;
    followed.forgetting?.cancel();
    followed.broadcast.end();
    this.#byCall.delete(callSid);
  }
}

const CUT: Happening = {
  kind: 'error',
  msg: 'stopped',
  code: 'server_draining',
  message: 'The server has stopped.',
  fatal: true,
};

/**
 * Appends to a session that is made first. If the database was away for so long that its making was given up, it is handed in
 * again with the next event, so that a call that outlives the trouble is stored from there on. A session that was made and is
 * then deleted is not made anew.
 */
function keptIn(
  session: SessionKey,
  writer: RunsOptions['writer'],
): (event: Event) => Promise<AppendOutcome> {
  let isGivenUp = false;
  const make = (): void => {
    isGivenUp = false;
    void writer.createSession(session).then(({ stored }) => {
      isGivenUp = !stored;
    });
  };
  make();
  return (event) => {
    if (isGivenUp) make();
    return writer.append(session, event);
  };
}
