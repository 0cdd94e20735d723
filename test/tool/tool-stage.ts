/**
 * The tools of one run on a clock that stands still, with a ledger and pending calls in memory: what the model sends goes
 * in, and what the model, the events and the log are told is kept in order.
 */
import { defineAgent, type AgentContext, type AgentDefinition } from '../../src/agent/agent.js';
import { defineTool, type Tool, type ToolDefinition } from '../../src/agent/tool.js';
import { nextTurn } from '../../src/clock.js';
import type { EventActions, JsonObject } from '../../src/event/event.js';
import type { FunctionCall, FunctionResponse } from '../../src/model/live-connection.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import type { SessionKey } from '../../src/store/store.js';
import type { AgentTools } from '../../src/tool/agent-tools.js';
import { endCall, stopStreaming } from '../../src/tool/built-in-tools.js';
import { RunSecrets } from '../../src/tool/run-secrets.js';
import { Invocation, type InvocationOptions } from '../../src/tool/invocation.js';
import type { ModelUpdate } from '../../src/tool/model-updates.js';
import type { PendingDesk } from '../../src/tool/pending-desk.js';
import { ToolCalls, type ToolCallsOptions, type ToolHost } from '../../src/tool/tool-calls.js';
import { NO_LINE, ToolRuns, type ToolStore } from '../../src/tool/tool-runs.js';
import type { ToolWork, WorkListener } from '../../src/tool/tool-work.js';
import { RecordingLog } from '../telephony/recording-log.js';
import { MemoryLedger } from './memory-ledger.js';
import { MemoryPendingCalls } from './memory-pending-calls.js';

export const SESSION: SessionKey = { appName: 'desk', userId: '+15550100', id: 'CA1' };
export const IDENTITY: AgentContext = {
  invocationId: 'i1',
  callSid: 'CA1',
  appName: 'desk',
  userId: '+15550100',
  sessionId: 'CA1',
  callerVerified: true,
};

/** What the run was told, in order. */
export type Told =
  | { readonly kind: 'called'; readonly ids: readonly string[]; readonly long: readonly string[] }
  | {
      readonly kind: 'responded';
      readonly id: string;
      readonly response: JsonObject;
      readonly actions: EventActions;
      readonly isPending: boolean;
      readonly isLate: boolean;
    }
  | {
      readonly kind: 'withdrawn';
      readonly ids: readonly string[];
      /** Those of them whose results waited for the others of their message. */
      readonly withResult: readonly string[];
    }
  | { readonly kind: 'changed'; readonly actions: EventActions }
  | { readonly kind: 'answered'; readonly responses: readonly FunctionResponse[] }
  | ({ readonly kind: 'update' } & ModelUpdate)
  | { readonly kind: 'forgotten'; readonly replaces: string }
  | { readonly kind: 'ended' };

type ToldOf<Kind extends Told['kind']> = Extract<Told, { readonly kind: Kind }>;

export class RecordingHost implements ToolHost {
  readonly #onStored: (eventId: string) => void;
  readonly told: Told[] = [];
  readonly events: ToolHost['events'] = {
    called: (calls, { longRunningToolIds = [] }) =>
      this.#keep({ kind: 'called', ids: calls.map(({ id }) => id), long: longRunningToolIds }),
    responded: (responses, { actions, isPending = false, isLate = false, eventId }) => {
      if (eventId !== undefined) this.#onStored(eventId);
      for (const { id, response } of responses)
        this.#keep({ kind: 'responded', id, response, actions, isPending, isLate });
    },
    withdrawn: (calls) =>
      this.#keep({
        kind: 'withdrawn',
        ids: calls.map(({ id }) => id),
        withResult: calls.flatMap(({ id, hasResult }) => (hasResult ? id : [])),
      }),
    changed: (actions) => this.#keep({ kind: 'changed', actions }),
  };

  /** `onStored` is told of events with an id of their own, as if they were stored at once. */
  constructor(onStored: (eventId: string) => void = () => {}) {
    this.#onStored = onStored;
  }

  answer(responses: readonly FunctionResponse[]): void {
    this.#keep({ kind: 'answered', responses });
  }

  update(update: ModelUpdate): void {
    this.#keep({ kind: 'update', ...update });
  }

  forgetUpdate(replaces: string): void {
    this.#keep({ kind: 'forgotten', replaces });
  }

  endInvocation(): void {
    this.#keep({ kind: 'ended' });
  }

  enter(happens: () => void): void {
    happens();
  }

  of<Kind extends Told['kind']>(kind: Kind): readonly ToldOf<Kind>[] {
    return this.told.filter((one): one is ToldOf<Kind> => one.kind === kind);
  }

  /** The ids of each frame that the model was sent. */
  get frames(): readonly (readonly string[])[] {
    return this.of('answered').map(({ responses }) => responses.map(({ id }) => id));
  }

  get texts(): readonly string[] {
    return this.of('update').map(({ text }) => text);
  }

  /** What a call was answered to the model; undefined where it was not. */
  answerTo(id: string): JsonObject | undefined {
    return this.of('answered')
      .flatMap(({ responses }) => responses)
      .find((response) => response.id === id)?.response;
  }

  /** The newest event that tells the result of a call. */
  resultOf(id: string): JsonObject | undefined {
    return this.of('responded').findLast((one) => one.id === id)?.response;
  }

  #keep(one: Told): void {
    this.told.push(one);
  }
}

/** A host and the calls of one run over work that a test makes up. */
export function toolCalls(work: ToolWork, options: Partial<ToolCallsOptions> = {}) {
  const host = new RecordingHost();
  let listener: WorkListener | undefined;
  const calls = new ToolCalls({
    host,
    work: (heard) => {
      listener = heard;
      return work;
    },
    autoExecute: true,
    autoRespond: true,
    responses: 'group',
    log: new RecordingLog(),
    ...options,
  });
  return { host, calls, listener: listener! };
}

export interface StageOptions extends Partial<Omit<AgentDefinition, 'name'>> {
  readonly isLive?: boolean;
  readonly autoExecute?: boolean;
  readonly autoRespond?: boolean;
  readonly responses?: 'group' | 'each';
  readonly state?: JsonObject;
  readonly readState?: () => Promise<JsonObject>;
  /** Of a server that goes on from another one's store. */
  readonly ledger?: MemoryLedger | undefined;
  readonly store?: MemoryPendingCalls;
  readonly clock?: VirtualClock;
}

export class ToolStage {
  readonly clock: VirtualClock;
  readonly log = new RecordingLog();
  readonly host: RecordingHost;
  readonly ledger: MemoryLedger;
  readonly store: MemoryPendingCalls;
  readonly runs: ToolRuns;
  readonly desk: PendingDesk;
  readonly tools: AgentTools;
  readonly calls: ToolCalls;
  /** Results of calls whose run was over. */
  readonly late: {
    readonly callId: string;
    readonly response: JsonObject;
    readonly actions: EventActions;
    /** It was told before as given up. */
    readonly isLate: boolean;
  }[] = [];
  /** What was changed behind the end of the run. */
  readonly lateChanges: EventActions[] = [];
  #count = 0;

  constructor({
    isLive = true,
    autoExecute = true,
    autoRespond = true,
    responses = 'group',
    state = {},
    readState = () => Promise.resolve(state),
    ledger = new MemoryLedger(),
    store = new MemoryPendingCalls(),
    clock = new VirtualClock(),
    ...definition
  }: StageOptions = {}) {
    this.clock = clock;
    this.ledger = ledger;
    this.store = store;
    this.host = new RecordingHost((eventId) => void store.tell(eventId));
    const { log } = this;
    const agent = defineAgent({ instruction: 'Serve.', ...definition, name: 'desk' });
    this.runs = new ToolRuns({
      store: storeOf({ ledger, store, readState }),
      agentNamed: (name) => (name === 'desk' ? agent : undefined),
      runInWorker: () => () => Promise.reject(new Error('there are no workers here')),
      tellLate: async (_run, { response: { id: callId = '', response = {} }, actions, eventId }) => {
        const isLate = eventId === undefined;
        if (isLate || store.tell(eventId)) this.late.push({ callId, response, actions, isLate });
      },
      tellChanged: async (_run, actions) => void this.lateChanges.push(actions),
      clock,
      log,
    });
    this.desk = this.runs.desk;
    let tools: AgentTools | undefined;
    this.calls = new ToolCalls({
      host: this.host,
      work: (listener) => {
        const stop = stopStreaming(agent);
        tools = this.runs.open({
          agent,
          builtIn: [endCall(NO_LINE), ...(stop === undefined ? [] : [stop])],
          identity: IDENTITY,
          history: [],
          callControl: NO_LINE,
          isLive,
          secrets: new RunSecrets(),
          listener,
          listen() {},
        });
        return tools;
      },
      autoExecute,
      autoRespond,
      responses,
      log,
    });
    this.tools = tools!;
  }

  /** One message of the model, with an id for each call. */
  send(...calls: readonly (readonly [name: string, args?: JsonObject])[]): readonly string[] {
    const functionCalls = calls.map(([name, args = {}]): FunctionCall => {
      this.#count += 1;
      return { id: `c${this.#count}`, name, args };
    });
    void this.calls.dispatch(functionCalls);
    return functionCalls.map(({ id }) => id);
  }

  /** Sends one call and lets happen what happens without waiting. */
  async ask(name: string, args: JsonObject = {}): Promise<string> {
    const [id = ''] = this.send([name, args]);
    await settled();
    return id;
  }

  /** Time goes by in steps, so that what a timer set off is done before the next one. */
  async pass(ms: number): Promise<void> {
    await settled();
    for (let left = ms; left > 0;) {
      const { nextTimerAtMs } = this.clock;
      const step = nextTimerAtMs === undefined ? left : Math.min(left, nextTimerAtMs - this.clock.nowMs());
      this.clock.advance(Math.max(0, step));
      left -= step;
      await settled();
    }
  }

  /** The run is over, and what it left behind has had its time. */
  async close(): Promise<void> {
    const closed = this.calls.close();
    await this.pass(5_000);
    await closed;
  }

  /** All changes that some event has told. */
  get changesTold(): readonly EventActions[] {
    const inRun = this.host.told.flatMap((one) => ('actions' in one ? one.actions : []));
    return [...inRun, ...this.late.map(({ actions }) => actions), ...this.lateChanges];
  }

  get counts(): Readonly<Record<string, number>> {
    return {
      ...this.runs.counts(),
      ...this.calls.counts(),
      timers: this.clock.pendingTimers,
    };
  }
}

/** Of a run that is not over, while nothing is going on in it. */
export const NOTHING_OPEN = {
  toolRuns: 1,
  tools: 0,
  pending: 0,
  streamingTools: 0,
  inputStreams: 0,
  pendingCalls: 0,
  decisions: 0,
  sideEffects: 0,
  lateChanges: 0,
  timers: 0,
};

/** Of one that is over. */
export const NOTHING_LEFT = { ...NOTHING_OPEN, toolRuns: 0 };

interface StoreParts {
  readonly ledger: MemoryLedger;
  readonly store: MemoryPendingCalls;
  readonly readState: () => Promise<JsonObject>;
}

function storeOf({ ledger, store, readState }: StoreParts): ToolStore {
  return {
    readState,
    async saveArtifact() {
      await store.gate;
      return 0;
    },
    loadArtifact: () => Promise.resolve(undefined),
    remember: () => Promise.resolve(0),
    relate: () => Promise.resolve(false),
    recall: () => Promise.resolve([]),
    claim: (claim) => ledger.claim(claim),
    settle: (appName, key, response) => ledger.settle(appName, key, response),
    release: (appName, key) => ledger.release(appName, key),
    addPendingCall: (call) => store.addPendingCall(call),
    listPendingCalls: () => store.listPendingCalls(),
    findPendingCall: () => store.findPendingCall(),
    decidePendingCall: (id, decision) => store.decidePendingCall(id, decision),
    settlePendingCall: (id) => store.settlePendingCall(id),
    listDecidedCalls: () => store.listDecidedCalls(),
    handOverPendingCall: (id) => store.handOverPendingCall(id),
    keepPendingCalls: (ids) => store.keepPendingCalls(ids),
    listLostCalls: () => store.listLostCalls(),
  };
}

export function invocationOf(options: Partial<InvocationOptions> = {}) {
  return new Invocation({
    identity: IDENTITY,
    runConfig: { responseModalities: ['AUDIO'] },
    secrets: new RunSecrets(),
    history: [],
    state: {},
    artifacts: { save: () => Promise.resolve(0), load: () => Promise.resolve(undefined) },
    memory: { remember: () => Promise.resolve(0), relate: () => Promise.resolve(false) },
    callControl: NO_LINE,
    clock: new VirtualClock(),
    log: new RecordingLog(),
    onFollowUp() {},
    onChanged: () => Promise.resolve(),
    ...options,
  });
}

export function tool(name: string, options: Partial<ToolDefinition> = {}): Tool {
  return defineTool({ name, description: `Does ${name}.`, execute: () => ({ ok: name }), ...options });
}

/** What was begun has had its callbacks, and what they led to. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
}

/** A promise, and what settles it. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
}

export function deferred<Value = unknown>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, 'promise'> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle! };
}
