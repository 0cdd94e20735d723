/**
 * The tools of all runs of a server: what they have in common (the ledger, pending calls, workers), and how a run begins
 * with what its session holds. A decision on a call whose run is over is carried out here, with a context of its own.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { RunSettings, ToolCallControl } from '../agent/tool-context.js';
import { deepFreeze } from '../agent/deep-freeze.js';
import { type Clock, within } from '../clock.js';
import { errorText } from '../errors.js';
import type { Event, EventActions, FunctionResponse, JsonObject } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import type { Log } from '../observe/log.js';
import type { DeedLedger } from '../store/ledger.js';
import type { Memory } from '../store/memory.js';
import type { DecidedCall, PendingCall, PendingCalls } from '../store/pending-calls.js';
import type { SessionKey, Store } from '../store/store.js';
import {
  CONTEXT_EVENTS_MAX,
  RECALL_MAX_MS,
  SESSION_READ_MAX_MS,
  TOOLS_CONCURRENT,
  TOOLS_LEAVE_MAX_MS,
} from '../tool-limits.js';
import { AgentTools } from './agent-tools.js';
import type { BuiltInTool } from './built-in-tools.js';
import { hasChanges } from './changes.js';
import { outcomeOfDecision } from './decided-call.js';
import { Guards } from './guards.js';
import { Handlers, type RunInWorker } from './handler.js';
import { type ArtifactAccess, Invocation, type InvocationOptions } from './invocation.js';
import { isAnonymous, memoryOf, recalled } from './memory-access.js';
import { PendingDesk } from './pending-desk.js';
import { Permits } from './permits.js';
import { RunSecrets } from './run-secrets.js';
import { SideEffects } from './side-effects.js';
import type { CallOutcome, CallRef, WorkListener } from './tool-work.js';
import { withinTime } from './within-time.js';

export type ToolStore = Pick<Store, 'readState' | 'saveArtifact' | 'loadArtifact'> &
  DeedLedger &
  PendingCalls &
  Memory;

export interface ToolRunsOptions {
  /** Without one there is no state, no artifact, no memory, and nothing that is done once or waits for a person. */
  readonly store: ToolStore | undefined;
  readonly agentNamed: (name: string) => Agent | undefined;
  readonly runInWorker: (agent: Agent) => RunInWorker;
  /** Tells the result of a call whose run is over, in an event with the pending call's id where it was one: resolves when that is
   * stored, and the call settled with it, by this or by another that was stored before. */
  readonly tellLate: (run: RunRef, late: LateResult) => Promise<void>;
  /** Tells what was changed behind the end of a run; resolves when it is stored. */
  readonly tellChanged: (run: RunRef, actions: EventActions) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LateResult {
  readonly response: FunctionResponse;
  readonly actions: EventActions;
  readonly eventId?: string;
}

/** The run that an event is of, once it is over. */
export type RunRef = Pick<PendingCall, 'session' | 'invocationId'>;

export interface RunTools {
  readonly agent: Agent;
  readonly identity: AgentContext;
  readonly builtIn: readonly BuiltInTool[];
  /** Committed events of the session before this run. */
  readonly history: readonly Event[];
  readonly callControl: ToolCallControl;
  readonly isLive: boolean;
  /** Kept with the run, for whoever else logs what its authors throw. */
  readonly secrets: RunSecrets;
  readonly listener: WorkListener;
  /** Tells the run as it goes on, from now on. */
  readonly listen: (hear: (item: RunItem) => void) => void;
}

export class ToolRuns {
  readonly desk: PendingDesk;
  readonly #options: ToolRunsOptions;
  readonly #sideEffects: SideEffects;
  /** Until nothing of them is left. */
  readonly #open = new Set<AgentTools>();
  /** Runs that are over, until their streaming tools have ended. */
  readonly #closing = new Set<Promise<void>>();
  /** Changes behind the end of a run that are being stored. */
  readonly #late = new Set<Promise<void>>();

  constructor(options: ToolRunsOptions) {
    const { store, clock, log } = options;
    this.#options = options;
    this.#sideEffects = new SideEffects({ ledger: store, clock, log });
    this.desk = new PendingDesk({
      store,
      alone: (call) => this.#carryOutAlone(call),
      tellLate: (call, outcome) => this.#tellLate(call, outcome),
      log,
    });
  }

  /** The deed of this key is being done here, and will settle its entry by itself. */
  isBeingDone(appName: string, key: string): boolean {
    return this.#sideEffects.isUnderWay(appName, key);
  }

  counts(): Readonly<Record<string, number>> {
    const sum: Record<string, number> = {
      toolRuns: this.#open.size,
      lateChanges: this.#late.size,
      sideEffects: this.#sideEffects.underWay,
      ...this.desk.counts(),
    };
    for (const tools of this.#open)
      for (const [name, count] of Object.entries(tools.counts())) sum[name] = (sum[name] ?? 0) + count;
    return sum;
  }

  /** Resolves when runs that are over have stored what was changed, and what was decided is done. */
  async idle(): Promise<void> {
    const { clock } = this.#options;
    await this.desk.idle();
    await within(clock, TOOLS_LEAVE_MAX_MS, this.#left());
  }

  async #left(): Promise<void> {
    // A generator that is being stopped changes something in its end.
    while (this.#closing.size + this.#late.size > 0) await Promise.all([...this.#closing, ...this.#late]);
  }

  /** What is remembered of a caller, for the instruction; undefined, at once, where nothing is kept. Never rejects: a call
   * begins all the same. */
  recall({
    appName,
    userId,
    sessionId,
  }: Pick<AgentContext, 'appName' | 'userId' | 'sessionId'>): undefined | Promise<string | undefined> {
    const { store, clock, log } = this.#options;
    if (store === undefined || isAnonymous(userId)) return undefined;
    const asked = recalled(store, { appName, userId, id: sessionId });
    return withinTime(asked, { clock, delayMs: RECALL_MAX_MS }).catch((error: unknown) => {
      log.warn({ cause: errorText(error) }, 'what is remembered of a caller could not be read');
      return undefined;
    });
  }

  open(run: RunTools): AgentTools {
    const { clock, log } = this.#options;
    const { agent, identity, secrets, listener } = run;
    const session = sessionOf(identity);
    const ref: RunRef = { session, invocationId: identity.invocationId };
    const invocation = this.#begin({
      identity,
      runConfig: settingsOf(agent, run.isLive ? LIVE_SETTINGS : TEXT_SETTINGS),
      secrets,
      history: run.history,
      callControl: run.callControl,
      onFollowUp: (text) => listener.update({ text: secrets.text(text), interrupts: false }),
      onChanged: (actions) => listener.changed(actions),
    });
    hearFromTheStart(run, invocation);
    const tools = new AgentTools({
      agent,
      builtIn: run.builtIn,
      identity,
      invocation,
      session,
      secrets,
      handlers: this.#handlers(agent, secrets),
      desk: this.desk,
      isLive: run.isLive,
      listener,
      clock,
      log,
      tellLate: (actions) => this.#tellChanged(ref, actions),
      tellLateResult: (call, outcome) => this.#tellLateResult(ref, call, outcome),
      onClosing: (closed) =>
        until(
          closed.finally(() => this.#open.delete(tools)),
          this.#closing,
        ),
    });
    this.#open.add(tools);
    return tools;
  }

  async #begin(
    about: Omit<InvocationOptions, 'state' | 'artifacts' | 'memory' | 'clock' | 'log'>,
  ): Promise<Invocation> {
    const { store, clock, log } = this.#options;
    const session = sessionOf(about.identity);
    const state = store === undefined ? {} : await this.#stateOf(store, session);
    const artifacts = artifactsOf(store, session);
    return new Invocation({ ...about, state, artifacts, memory: memoryOf(store, session), clock, log });
  }

  async #stateOf(store: ToolStore, session: SessionKey): Promise<JsonObject> {
    const { clock } = this.#options;
    return withinTime(store.readState(session), { clock, delayMs: SESSION_READ_MAX_MS });
  }

  #handlers(agent: Agent, secrets: RunSecrets): Handlers {
    const { runInWorker, clock, log } = this.#options;
    return new Handlers({
      sideEffects: this.#sideEffects,
      runInWorker: runInWorker(agent),
      permits: new Permits(agent.runConfig?.maxConcurrentTools ?? TOOLS_CONCURRENT),
      secrets,
      clock,
      log,
    });
  }

  /** After its run, or after a restart. */
  async #carryOutAlone(call: DecidedCall): Promise<void> {
    const { agentNamed, clock, log } = this.#options;
    const agent = agentNamed(call.session.appName);
    const tool = agent?.tools?.find(({ name }) => name === call.tool);
    // What the ledger guards may be tried again after a crash, until the event of its result settles it; anything else is rather
    // lost than done twice.
    const isGuarded = call.kind === 'approval' && tool?.sideEffect !== undefined;
    if (agent === undefined) return log.error({ tool: call.tool }, 'a decided call has no agent any more');
    const secrets = new RunSecrets();
    const invocation = await this.#begin({
      identity: identityOf(call),
      runConfig: settingsOf(agent, { responseModalities: [] }),
      secrets,
      history: [],
      callControl: NO_LINE,
      onFollowUp: () =>
        log.info({ tool: call.tool }, 'a follow-up of a call whose run is over is told to nobody'),
      onChanged: (actions) => this.#tellChanged(call, actions),
    });
    if (!isGuarded && !(await this.desk.settle(call.id))) return;
    const controller = new AbortController();
    const scope = invocation.scope(controller.signal);
    const guards = new Guards(agent, { secrets, clock, log });
    const handlers = this.#handlers(agent, secrets);
    const tellLate = (outcome: CallOutcome, isNews: boolean): void => {
      const told = secrets.outcome(outcome);
      if (isNews) void this.#tellLateResult(call, { id: call.callId, name: call.tool }, told);
      else if (hasChanges(told.actions)) void this.#tellChanged(call, told.actions);
    };
    const run = { tool, call, guards, handlers, scope, controller, tellLate, log };
    await this.#tellLate(call, secrets.outcome(await outcomeOfDecision(run)));
  }

  async #tellLate(call: PendingCall, { response, actions }: CallOutcome): Promise<void> {
    const { id: eventId, callId: id, tool: name } = call;
    await this.#options.tellLate(call, { response: { id, name, response }, actions, eventId });
  }

  #tellLateResult(run: RunRef, { id, name }: CallRef, { response, actions }: CallOutcome): Promise<void> {
    const { tellLate, log } = this.#options;
    const told = tellLate(run, { response: { id, name, response }, actions }).catch((error: unknown) => {
      log.error({ tool: name, cause: errorText(error) }, 'what a call came to behind its run is lost');
    });
    until(told, this.#late);
    return told;
  }

  #tellChanged(run: RunRef, actions: EventActions): Promise<void> {
    const { tellChanged, log } = this.#options;
    const told = tellChanged(run, actions).catch((error: unknown) => {
      log.error({ cause: errorText(error) }, 'what a tool changed behind the end of its run is lost');
    });
    until(told, this.#late);
    return told;
  }
}

/** Stands among the others until it is done. */
function until(work: Promise<void>, among: Set<Promise<void>>): void {
  among.add(work);
  void work.finally(() => among.delete(work));
}

/** As every live connection is set up (`model/gemini-setup.ts`). */
const LIVE_SETTINGS: RunSettings = {
  responseModalities: ['AUDIO'],
  inputAudioTranscription: {},
  outputAudioTranscription: {},
};
const TEXT_SETTINGS: RunSettings = { responseModalities: ['TEXT'] };

/** What tools may look at and not change. */
function settingsOf({ runConfig }: Agent, mode: RunSettings): RunSettings {
  return deepFreeze({ ...runConfig, ...mode });
}

/** Where nobody is on a line. */
export const NO_LINE: ToolCallControl = {
  hangUp: () => ({ kind: 'unavailable', why: 'There is no line to hang up.' }),
  transfer: () => ({ kind: 'unavailable', why: 'There is no line that could be connected.' }),
};

function sessionOf({ appName, userId, sessionId }: AgentContext): SessionKey {
  return { appName, userId, id: sessionId };
}

function identityOf({ session, callSid, invocationId }: DecidedCall): AgentContext {
  const { appName, userId, id: sessionId } = session;
  return { invocationId, callSid, appName, userId, sessionId, callerVerified: false };
}

function artifactsOf(store: ToolStore | undefined, session: SessionKey): ArtifactAccess {
  return {
    async save(name, bytes, mimeType) {
      if (store === undefined) throw new Error('saveArtifact: there is no store');
      return store.saveArtifact(session, name, bytes, mimeType);
    },
    load: async (name, version) => store?.loadArtifact(session, name, version),
  };
}

/** What happens in a run while its state is being read is part of what its tools see. */
function hearFromTheStart({ listen }: RunTools, invocation: Promise<Invocation>): void {
  const early: RunItem[] = [];
  let hear = (item: RunItem): void => {
    if (early.length === CONTEXT_EVENTS_MAX) early.shift();
    early.push(item);
  };
  listen((item) => hear(item));
  // Whoever needs it hears of the failure; nobody may.
  invocation.then(
    (begun) => {
      for (const item of early.splice(0)) begun.hear(item);
      hear = (item) => begun.hear(item);
    },
    () => (hear = () => {}),
  );
}
