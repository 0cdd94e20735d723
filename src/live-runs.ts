/**
 * Live conversations of web clients, put together from calls, runs and the store: whose session is free, what was said in it
 * before, and who watches. One session has one run at a time, whatever its mode.
 */
import type { CallRegistry } from './call/call-registry.js';
import type { Clock } from './clock.js';
import { errorText, StoreError } from './errors.js';
import type { Event } from './event/event.js';
import { HISTORY_READ, WEB_HISTORY_WAIT_MS } from './limits.js';
import type { Log } from './observe/log.js';
import type { Runs } from './run/runs.js';
import type { TextRuns } from './run/text-runs.js';
import type { EventWriter } from './store/event-writer.js';
import { sessionName } from './store/session-name.js';
import type { SessionKey, Store } from './store/store.js';
import type { LiveLine, OpenedLive, OpenLive, RefusedLive } from './web/live-runs.js';

export interface LiveRunsOptions {
  readonly appName: string;
  readonly calls: Pick<CallRegistry, 'openWeb' | 'rejoinWeb'>;
  readonly runs: Pick<Runs, 'isRunning' | 'broadcastOf'>;
  readonly textRuns: Pick<TextRuns, 'isRunning'> | undefined;
  /** Without it nothing was said before. */
  readonly keeping:
    { readonly store: Pick<Store, 'getSession'>; readonly writer: Pick<EventWriter, 'flushed'> } | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const CONFLICT: RefusedLive = { code: 'run_conflict', refused: 'a run is going on in this session' };

export function createOpenLive(options: LiveRunsOptions): OpenLive {
  const { appName, calls, runs, textRuns } = options;
  const opening = new Set<string>();
  const joined = (line: LiveLine | RefusedLive): OpenedLive | RefusedLive => {
    if ('refused' in line) return line;
    const broadcast = runs.broadcastOf(line.callSid);
    return broadcast === undefined ? CONFLICT : { line, broadcast };
  };
  return async (caller, stream) => {
    const going = calls.rejoinWeb(caller, stream);
    if (going !== undefined) return joined(going);
    const session: SessionKey = { appName, userId: caller.userId, id: caller.sessionId };
    const key = sessionName(session);
    if (opening.has(key) || textRuns?.isRunning(session) === true) return CONFLICT;
    opening.add(key);
    try {
      const { history, failure } = await historyOf(session, options);
      if (failure?.code === 'store_refused') return { code: failure.code, refused: failure.message };
      // A conversation that has just ended is over once it is stored, which reading the history has waited for.
      if (runs.isRunning(session) || textRuns?.isRunning(session) === true) return CONFLICT;
      const opened = joined(calls.openWeb(caller, stream, history));
      if (failure === undefined) return opened;
      return { ...opened, fault: { code: failure.code, message: 'What was said before could not be read.' } };
    } finally {
      opening.delete(key);
    }
  };
}

interface Earlier {
  readonly history: readonly Event[];
  readonly failure: StoreError | undefined;
}

/** Within WEB_HISTORY_WAIT_MS: a database that fails does not keep anybody from talking. */
function historyOf(session: SessionKey, { keeping, clock, log }: LiveRunsOptions): Promise<Earlier> {
  if (keeping === undefined) return Promise.resolve({ history: [], failure: undefined });
  const read = async (): Promise<Earlier> => {
    // The run before this one may have ended a moment ago.
    await keeping.writer.flushed(session);
    const stored = await keeping.store.getSession(session, HISTORY_READ);
    return { history: stored?.events ?? [], failure: undefined };
  };
  return new Promise((resolve) => {
    const fail = (failure: StoreError): void => {
      if (failure.code !== 'store_refused')
        log.error({ cause: failure.message }, 'the history of a session could not be read');
      resolve({ history: [], failure });
    };
    const timer = clock.setTimer(WEB_HISTORY_WAIT_MS, () =>
      fail(new StoreError('store_failed', 'the database took too long')),
    );
    read().then(
      (earlier) => {
        timer.cancel();
        resolve(earlier);
      },
      (error: unknown) => {
        timer.cancel();
        fail(error instanceof StoreError ? error : new StoreError('store_failed', errorText(error)));
      },
    );
  });
}
