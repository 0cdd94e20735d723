/**
 * A call's link to its model, over as many connections as the call needs, at most one at a time. A connection that is lost is
 * followed by another; one that is about to end is left in time, at a pause if there is one. The next goes on with the
 * newest session that can be resumed, or begins a new one, which is told what was said. Tries and time are bounded. Whether
 * the call wants another connection at all is its own business (`reconnect`), and the rules stand in docs/reconnection.md.
 */
import type { SocketScope } from '../call-tap.js';
import type { Clock, Timer } from '../clock.js';
import { AppError, errorText } from '../errors.js';
import { faultFields } from '../foreign.js';
import type { CallSid } from '../ids.js';
import {
  CONNECTION_AGE_GRACE_MS,
  CONNECTION_AGE_MAX_MS,
  FIRST_TRIES_MAX,
  FORMER_CLOSE_MAX_MS,
  GO_AWAY_MARGIN_MS,
  GO_AWAY_UNTOLD_MS,
  RECONNECT_DELAYS_MS,
  RECONNECT_MAX_MS,
} from '../link-limits.js';
import { ModelConnectError } from '../model/gemini-connect-error.js';
import type {
  ConnectLive,
  LiveClose,
  LiveConnection,
  LiveListener,
  LiveSetup,
} from '../model/live-connection.js';
import type { CallObserver, ReconnectReason } from '../observe/call-observer.js';
import type { Log } from '../observe/log.js';
import type { AnotherConnection } from './live-setup.js';
import { type Handle, Resumption } from './resumption.js';

export interface ModelLinkOptions {
  readonly callSid: CallSid;
  readonly clock: Clock;
  readonly connectLive: ConnectLive;
  readonly observer: Pick<CallObserver, 'onModelReconnect'>;
  readonly log: Log;
  /** How much has been said and done by now (`HeardHistory.position`). */
  readonly position: () => number;
  readonly events: ModelLinkEvents;
}

export interface ModelLinkEvents {
  onReady(model: LiveConnection): void;
  /** There is no model, and no further try. */
  onFailed(): void;
  /** The connection is gone: `lost` says how, `left` that we have left it for another one, neither that it is closed for good. */
  onGone(how: { readonly lost?: LiveClose; readonly left?: boolean }): void;
  /** The call is neither beginning nor ending: only then is a connection left for another one. */
  mayLeave(): boolean;
  /** Nobody speaks, waits, or has a function carried out. */
  isPause(): boolean;
}

export interface ModelConnect {
  /** May run an author's code: what it throws is a model that cannot be reached. */
  readonly makeSetup: (again: (AnotherConnection & { readonly since: number }) | undefined) => LiveSetup;
  readonly makeListener: (onClose: (close: LiveClose) => void) => LiveListener;
  readonly openScope: () => SocketScope;
}

/** From the end of one connection to the beginning of the next. */
interface Outage {
  /** There has been no connection yet. */
  readonly isFirst: boolean;
  readonly reason: ReconnectReason;
  readonly sinceMs: number;
  /** Given up at this time. */
  readonly deadline: Timer;
  tries: number;
  next: Timer | undefined;
  handle: Handle | undefined;
}

export class ModelLink {
  readonly #options: ModelLinkOptions;
  readonly #resumption = new Resumption();
  #connect: ModelConnect | undefined;
  #connecting: AbortController | undefined;
  #model: LiveConnection | undefined;
  #readyAtMs = 0;
  /** Why there is no model. */
  #goneFor: ReconnectReason = 'lost';
  #outage: Outage | undefined;
  /** The connection that was left, until its socket is closed: a session is refused while another has it. */
  #former: LiveConnection | undefined;
  /** The connection is to be left: at the next pause, or when the timer fires. */
  #leaving: ReconnectReason | undefined;
  #leaveTimer: Timer | undefined;

  constructor(options: ModelLinkOptions) {
    this.#options = options;
  }

  get model(): LiveConnection | undefined {
    return this.#model;
  }

  /** A connection is open or on its way. */
  get isAlive(): boolean {
    return this.#model !== undefined || this.#connecting !== undefined || this.#outage !== undefined;
  }

  connect(connect: ModelConnect): void {
    this.#connect = connect;
    this.#open(undefined);
  }

  /** The call wants another connection in the place of the one that is gone. */
  reconnect(): void {
    const { log, callSid } = this.#options;
    if (this.#model !== undefined || this.#outage !== undefined) return;
    if (this.#resumption.isHopeless) {
      log.error({ callSid }, 'the model’s connections die as soon as they are there: it is given up');
      return this.#giveUp({ isFirst: false, reason: this.#goneFor });
    }
    // What died quickly is not asked again at once.
    const outage = this.#beginOutage({
      isFirst: false,
      tries: Math.max(0, this.#resumption.quickDeaths - 1),
    });
    const waitMs = RECONNECT_DELAYS_MS[outage.tries] ?? 0;
    this.#tryAfter(outage, this.#former === undefined ? waitMs : FORMER_CLOSE_MAX_MS);
  }

  /** `timeLeftMs`: 0 where it is not told. */
  onGoAway(timeLeftMs: number): void {
    const { callSid, log } = this.#options;
    log.info({ callSid, timeLeftMs }, 'the model announces the end of its connection');
    const withinMs = timeLeftMs > 0 ? Math.max(0, timeLeftMs - GO_AWAY_MARGIN_MS) : GO_AWAY_UNTOLD_MS;
    this.#leaveWithin(withinMs, 'go_away');
  }

  onSessionResumptionUpdate(newHandle: string | undefined, resumable: boolean): void {
    const { clock, position } = this.#options;
    this.#resumption.onUpdate(newHandle, resumable, position(), clock.nowMs());
  }

  /** Twice a second. */
  onTick(): void {
    const reason = this.#leaving;
    const { events, position } = this.#options;
    if (reason === undefined || !events.isPause() || !this.#resumption.isCurrent(position())) return;
    this.#leave(reason);
  }

  /** The model says nothing though it should: what it had in mind is not trusted. */
  onStall(): void {
    this.#resumption.drop();
    this.#leave('stall');
  }

  /** Closes what is open and calls off what is on its way. Idempotent. */
  close(): void {
    this.#connecting?.abort();
    this.#connecting = undefined;
    this.#endOutage();
    this.#stay();
    const model = this.#model;
    this.#model = undefined;
    if (model === undefined) return;
    this.#options.events.onGone({});
    model.close();
  }

  #beginOutage({ isFirst, tries }: Pick<Outage, 'isFirst' | 'tries'>): Outage {
    const { clock } = this.#options;
    const outage: Outage = {
      isFirst,
      reason: this.#goneFor,
      sinceMs: clock.nowMs(),
      deadline: clock.setTimer(RECONNECT_MAX_MS, () => this.#giveUp(outage)),
      tries,
      next: undefined,
      handle: undefined,
    };
    this.#outage = outage;
    return outage;
  }

  // --- Connecting -----------------------------------------------------------------------------------------------

  #open(outage: Outage | undefined): void {
    const { connectLive, events, position } = this.#options;
    const connect = this.#connect;
    if (connect === undefined) return events.onFailed();
    const handle = outage && this.#resumption.take(position(), this.#options.clock.nowMs());
    if (outage !== undefined) outage.handle = handle;
    const setup = this.#makeSetup(connect, outage, handle);
    if (setup === undefined) return outage === undefined ? events.onFailed() : this.#giveUp(outage);
    const connecting = new AbortController();
    this.#connecting = connecting;
    let own: LiveConnection | undefined;
    const listener = connect.makeListener((close) => this.#onClosed(own, close));
    connectLive(setup, listener, connecting.signal, connect.openScope()).then(
      (model) => {
        if (this.#connecting !== connecting) return model.close();
        own = model;
        this.#onConnected(model);
      },
      (error: unknown) => {
        if (this.#connecting === connecting) this.#onRefused(error);
      },
    );
  }

  #makeSetup(
    connect: ModelConnect,
    outage: Outage | undefined,
    handle: Handle | undefined,
  ): LiveSetup | undefined {
    try {
      return connect.makeSetup(
        outage?.isFirst === false
          ? { resumptionHandle: handle?.handle, since: handle === undefined ? 0 : handle.position }
          : undefined,
      );
    } catch (error) {
      const { log, callSid } = this.#options;
      log.error({ callSid, ...faultFields(error) }, 'the agent has no usable instruction: the call ends');
      return undefined;
    }
  }

  #onConnected(model: LiveConnection): void {
    const { clock, log, callSid, observer, events } = this.#options;
    const outage = this.#outage;
    this.#endOutage();
    this.#connecting = undefined;
    this.#model = model;
    this.#readyAtMs = clock.nowMs();
    this.#resumption.onConnected();
    this.#leaveTimer = clock.setTimer(CONNECTION_AGE_MAX_MS, () =>
      this.#leaveWithin(CONNECTION_AGE_GRACE_MS, 'age'),
    );
    if (outage === undefined || outage.isFirst)
      log.info({ callSid, model: model.modelName }, 'model connected');
    else {
      const outcome = outage.handle === undefined ? 'fresh' : 'resumed';
      const awayMs = Math.round(clock.nowMs() - outage.sinceMs);
      log.info(
        { callSid, reason: outage.reason, outcome, tries: outage.tries, awayMs },
        'model connected again',
      );
      observer.onModelReconnect(outage.reason, outcome);
    }
    events.onReady(model);
  }

  #onRefused(error: unknown): void {
    const { callSid, log, events } = this.#options;
    const isRefused = error instanceof AppError && error.code === 'model_setup_refused';
    this.#connecting = undefined;
    if (this.#outage === undefined && isRefused) {
      log.error({ callSid, ...whyOf(error, false) }, 'the model could not be reached');
      return events.onFailed();
    }
    const outage = this.#outage ?? this.#beginOutage({ isFirst: true, tries: 1 });
    log.warn(
      { callSid, ...whyOf(error, !outage.isFirst), tries: outage.tries },
      'a connect to the model failed',
    );
    if (outage.handle !== undefined) this.#resumption.onRefused(isRefused);
    // A session that cannot be resumed is no sign that a new one will not be taken.
    if (outage.handle !== undefined && isRefused) return this.#tryAfter(outage, 0);
    const isOver = outage.isFirst && outage.tries >= FIRST_TRIES_MAX;
    const waitMs = RECONNECT_DELAYS_MS[outage.tries];
    if (waitMs === undefined || isOver) return this.#giveUp(outage);
    this.#tryAfter(outage, waitMs);
  }

  #tryAfter(outage: Outage, waitMs: number): void {
    const attempt = (): void => {
      outage.next = undefined;
      outage.tries += 1;
      this.#former = undefined;
      this.#open(outage);
    };
    if (waitMs > 0) outage.next = this.#options.clock.setTimer(waitMs, attempt);
    else attempt();
  }

  #giveUp({ isFirst, reason }: Pick<Outage, 'isFirst' | 'reason'>): void {
    const { callSid, log, observer, events } = this.#options;
    this.#connecting?.abort();
    this.#connecting = undefined;
    this.#endOutage();
    log.error({ callSid, reason }, isFirst ? 'there is no model' : 'the model could not be connected again');
    if (!isFirst) observer.onModelReconnect(reason, 'failed');
    events.onFailed();
  }

  #endOutage(): void {
    this.#outage?.deadline.cancel();
    this.#outage?.next?.cancel();
    this.#outage = undefined;
    this.#former = undefined;
  }

  // --- Losing and leaving ---------------------------------------------------------------------------------------

  /** A connection's own word that it is closed; also of one that was left, or closed by us. */
  #onClosed(own: LiveConnection | undefined, close: LiveClose): void {
    const { callSid, clock, log, events } = this.#options;
    if (own !== undefined && own === this.#former) return this.#onFormerClosed();
    if (own === undefined || own !== this.#model) return;
    this.#model = undefined;
    this.#stay();
    this.#goneFor = 'lost';
    const { code, reason } = close;
    log.warn({ callSid, code, pii: { reason } }, 'the model’s connection was lost');
    this.#resumption.onLost(clock.nowMs() - this.#readyAtMs);
    events.onGone({ lost: close });
  }

  #onFormerClosed(): void {
    this.#former = undefined;
    const outage = this.#outage;
    if (outage?.next === undefined) return;
    outage.next.cancel();
    this.#tryAfter(outage, 0);
  }

  #leaveWithin(waitMs: number, reason: ReconnectReason): void {
    if (this.#model === undefined) return;
    this.#leaveTimer?.cancel();
    this.#leaving = reason;
    this.#leaveTimer = this.#options.clock.setTimer(waitMs, () => this.#leave(reason));
  }

  #leave(reason: ReconnectReason): void {
    const { callSid, clock, log, events } = this.#options;
    const model = this.#model;
    // Whoever says goodbye stays; a call that goes on after all leaves at its next pause.
    if (model === undefined || !events.mayLeave()) return;
    this.#stay();
    const livedMs = clock.nowMs() - this.#readyAtMs;
    log.info(
      { callSid, reason, ageMs: Math.round(livedMs) },
      'the model’s connection is left for another one',
    );
    this.#resumption.onLeft(livedMs);
    this.#model = undefined;
    this.#goneFor = reason;
    this.#former = model;
    try {
      // First, so that nothing is said to it any more.
      events.onGone({ left: true });
    } finally {
      model.close();
    }
  }

  /** The connection is not to be left any more, or is gone already. */
  #stay(): void {
    this.#leaving = undefined;
    this.#leaveTimer?.cancel();
    this.#leaveTimer = undefined;
  }
}

/** What an operator needs to mend it: our code, and the provider's own words on the setup, which may quote what was said where the
 * setup holds it (`isPrivate`). */
function whyOf(error: unknown, isPrivate: boolean): object {
  if (!(error instanceof AppError)) return { cause: errorText(error) };
  const reason = error instanceof ModelConnectError ? error.providerReason : '';
  const told = reason === '' ? {} : isPrivate ? { pii: { reason } } : { reason };
  return { errorCode: error.code, cause: error.message, ...told };
}
