/**
 * The function calls of one run, from the model's message to the answer: told as an event, carried out side by side,
 * each result told as it comes, and answered exactly once, or never if the model withdraws it. Nothing here waits: sound,
 * words and interruptions go on meanwhile. What a call does is `ToolWork`'s business.
 */
import { errorText } from '../errors.js';
import { NO_ACTIONS, type EventActions, type Part } from '../event/event.js';
import type { WithdrawnCall } from '../event/run-stream.js';
import type { FunctionCall, FunctionResponse } from '../model/live-connection.js';
import type { Log } from '../observe/log.js';
import {
  TOOL_CALL_IDS_MAX,
  TOOL_CALLS_EMPTY_MAX,
  TOOL_CALLS_OPEN_MAX,
  TOOL_CALLS_PER_MESSAGE_MAX,
} from '../tool-limits.js';
import { canonicalJson } from './canonical-json.js';
import { hasChanges } from './changes.js';
import type { ModelUpdate } from './model-updates.js';
import { ToolGroup } from './tool-group.js';
import { errorResponse, isEmpty, isError } from './tool-result.js';
import { WorkUnderWay } from './work-under-way.js';
import type { CallOutcome, CallRef, ToolWork, WorkListener } from './tool-work.js';

export interface ToolEvents {
  called(
    functionCalls: readonly FunctionCall[],
    options: {
      readonly parts?: readonly Part[] | undefined;
      readonly longRunningToolIds?: readonly string[];
    },
  ): void;
  /** `isPending`: another response of the same id follows. */
  responded(
    functionResponses: readonly FunctionResponse[],
    options: {
      readonly actions: EventActions;
      readonly isPending?: boolean;
      /** It was told before as given up: this is what has become of it after all. */
      readonly isLate?: boolean;
      readonly eventId?: string | undefined;
    },
  ): void;
  /** The model withdrew them: they are not answered, whether or not they have a result by then. */
  withdrawn(calls: readonly WithdrawnCall[]): void;
  changed(actions: EventActions): void;
}

/** The run's side of it. */
export interface ToolHost {
  readonly events: ToolEvents;
  /** One frame for the model. */
  answer(functionResponses: readonly FunctionResponse[]): void;
  /** For the model, at its next pause. */
  update(update: ModelUpdate): void;
  /** What such an update said is not told any more. */
  forgetUpdate(replaces: string): void;
  /** A tool has ended the conversation; its result is told already. */
  endInvocation(): void;
  /** Something has come from outside, with time gone by: what it leads to happens now. Whatever follows may throw. */
  enter(happens: () => void): void;
}

/** Hears what came from outside by way of tools, for a recording. */
export interface ToolTap {
  outcome(id: string, outcome: CallOutcome): void;
  settled(call: CallRef, outcome: CallOutcome): void;
  late(call: CallRef, outcome: CallOutcome): void;
  update(update: ModelUpdate): void;
  forgotten(replaces: string): void;
  over(name: string): void;
  ends(): void;
}

export interface ToolCallsOptions {
  readonly host: ToolHost;
  /** Made with what hears of it. */
  readonly work: (listener: WorkListener) => ToolWork;
  readonly autoExecute: boolean;
  readonly autoRespond: boolean;
  readonly responses: 'group' | 'each';
  readonly tap?: ToolTap | undefined;
  readonly log: Log;
}

interface OpenCall {
  readonly call: FunctionCall;
  readonly group: ToolGroup;
  readonly controller: AbortController;
  /** `former`: of a connection that is gone, whose ids mean nothing to the model any more. */
  state: 'running' | 'withdrawn' | 'former';
}

/** What a call has come to, as long as its answer waits for the others of its message. */
interface HeldAnswer {
  readonly call: FunctionCall;
  readonly group: ToolGroup;
  readonly outcome: CallOutcome;
}

export class ToolCalls {
  readonly #options: ToolCallsOptions;
  readonly #work: ToolWork;
  /** Ids are unique among those of one connection only. */
  readonly #open = new Set<OpenCall>();
  /** Of this connection, by id. */
  readonly #held = new Map<string, HeldAnswer>();
  #connection = 0;
  /** In order of age. */
  readonly #seen = new Set<string>();
  /** What this turn's calls with an empty result asked for. */
  readonly #emptyThisTurn = new Set<string>();
  readonly #underWay = new WorkUnderWay();
  #isClosed = false;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
    const { host, tap } = options;
    const enter = (happens: () => void): boolean => this.#enter(happens);
    this.#work = options.work({
      update: (update) => {
        enter(() => {
          tap?.update(update);
          host.update(update);
        });
      },
      ended: (name, isStopped) => {
        if (this.#isClosed) return;
        const over = (): void => {
          tap?.over(name);
          this.#underWay.streamOver(name);
        };
        if (!isStopped) return void enter(over);
        this.#forget(name);
        over();
      },
      forget: (name) => this.#forget(name),
      ends: () => {
        enter(() => {
          tap?.ends();
          host.endInvocation();
        });
      },
      changed: async (actions) => {
        if (!enter(() => host.events.changed(actions))) await this.#work.tellLate(actions);
      },
      settled: (call, outcome, eventId) =>
        enter(() => {
          tap?.settled(call, outcome);
          this.#underWay.settled(call.id);
          this.#settleLate(call, outcome, eventId);
        }),
      late: (call, outcome) =>
        enter(() => {
          tap?.late(call, outcome);
          this.#tellLate(call, outcome);
        }),
    });
  }

  /** Something is being carried out that the model waits for. */
  get awaitsAnswer(): boolean {
    for (const { state } of this.#open) if (state === 'running') return this.#options.autoRespond;
    return false;
  }

  /** Something is being carried out whose result somebody wants, whichever connection asked for it. */
  get isCarryingOut(): boolean {
    for (const { state } of this.#open) if (state !== 'withdrawn') return this.#options.autoRespond;
    return false;
  }

  /** What was answered at once and goes on: the caller waits for it without being idle. */
  get isWorkUnderWay(): boolean {
    return this.#underWay.isAny;
  }

  get work(): ToolWork {
    return this.#work;
  }

  counts(): Readonly<Record<string, number>> {
    return { tools: this.#open.size, ...this.#work.counts() };
  }

  /** Calls without a result. */
  get open(): number {
    return this.#open.size;
  }

  /** One message of the model, with the parts that its calls stand in, where more than the calls is kept. Resolves with every
   * answer when the last is given. */
  async dispatch(
    functionCalls: readonly FunctionCall[],
    parts?: readonly Part[],
  ): Promise<readonly FunctionResponse[]> {
    if (functionCalls.length <= TOOL_CALLS_PER_MESSAGE_MAX) return this.#carryOutAll(functionCalls, parts);
    const taken = this.#carryOutAll(
      functionCalls.slice(0, TOOL_CALLS_PER_MESSAGE_MAX),
      parts?.slice(0, TOOL_CALLS_PER_MESSAGE_MAX),
    );
    const refused = this.#refuseAll(functionCalls.slice(TOOL_CALLS_PER_MESSAGE_MAX));
    return [...(await taken), ...refused];
  }

  /** In one frame: a message of twenty thousand calls would otherwise hold up the sound. */
  #refuseAll(functionCalls: readonly FunctionCall[]): readonly FunctionResponse[] {
    const { host, autoExecute, autoRespond, log } = this.#options;
    log.warn({ calls: functionCalls.length }, 'the model asked for too many function calls in one message');
    if (!autoExecute || this.#isClosed) return [];
    const refused = functionCalls.map(({ id, name }) => ({ id, name, response: TOO_MANY }));
    if (autoRespond) host.answer(refused);
    return refused;
  }

  async #carryOutAll(
    functionCalls: readonly FunctionCall[],
    parts: readonly Part[] | undefined,
  ): Promise<readonly FunctionResponse[]> {
    const { host, autoExecute, autoRespond, responses, log } = this.#options;
    const calls = functionCalls.filter(({ id }) => this.#isNew(id));
    if (calls.length < functionCalls.length)
      log.warn({}, 'the model sent a function call twice: it is not run again');
    if (calls.length === 0 || this.#isClosed) return [];
    const longRunningToolIds = calls.filter(({ name }) => this.#work.isLongRunning(name)).map(({ id }) => id);
    host.events.called(calls, { parts, longRunningToolIds });
    if (!autoExecute) return [];
    const connection = this.#connection;
    const group = new ToolGroup({
      calls,
      isEach: responses === 'each',
      answer: (answered) => {
        if (connection === this.#connection) for (const { id } of answered) this.#held.delete(id);
        // A model that is being left gets nothing more.
        if (!autoRespond || this.#isClosed) return;
        if (connection === this.#connection) host.answer(answered);
        else for (const response of answered) this.#tellFormer(response);
      },
    });
    for (const call of calls) this.#carryOut(call, group);
    return group.done;
  }

  /** Resolves when nothing is being carried out any more, or the run is over. */
  async idle(): Promise<void> {
    await Promise.all([...this.#open].map(({ group }) => group.done));
  }

  /** The model does not want them any more. What they have done by then is told when it is known. */
  withdraw(ids: readonly string[]): void {
    const withdrawn = [...this.#open].filter(
      ({ call, state }) => state === 'running' && ids.includes(call.id),
    );
    const held = [...this.#held.values()].filter(({ call }) => ids.includes(call.id));
    if (withdrawn.length + held.length === 0) return;
    for (const open of withdrawn) open.state = 'withdrawn';
    this.#options.host.events.withdrawn([
      ...held.map(({ call: { id, name } }) => ({ id, name, hasResult: true })),
      ...withdrawn.map(({ call: { id, name } }) => ({ id, name, hasResult: false })),
    ]);
    // Before the group is complete without the others, and sends what it holds.
    for (const { call, group, outcome } of held) {
      this.#held.delete(call.id);
      group.withdraw(call.id);
      this.#tellWithdrawn(call, outcome);
    }
    for (const { call, group, controller } of withdrawn) {
      group.withdraw(call.id);
      controller.abort(new Error('the call was withdrawn'));
    }
  }

  /** Another connection to the model gives out ids anew, and does not know those that are still open: what they come to is
   * told at a pause. */
  forgetIds(): void {
    this.#seen.clear();
    this.#held.clear();
    this.#connection += 1;
    for (const open of this.#open) if (open.state === 'running') open.state = 'former';
  }

  /** The caller has said something new: the same call may be meant anew. */
  onCallerTurn(): void {
    this.#emptyThisTurn.clear();
  }

  /** The run is over. Calls without a result are told as such, with what they have changed, so that none stands in the history
   * unanswered. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const actions of this.#work.leave()) this.#options.host.events.changed(actions);
    for (const open of this.#open) {
      this.#tell(open.call, {
        ...NO_OUTCOME,
        actions: this.#work.takeActions(open.call),
        response: errorResponse('The conversation ended before it was done.'),
      });
      open.group.withdraw(open.call.id);
      open.controller.abort(new Error('the conversation is over'));
    }
    this.#open.clear();
    this.#held.clear();
    await this.#work.close();
  }

  #forget(name: string): void {
    if (this.#isClosed) return;
    this.#options.tap?.forgotten(name);
    this.#options.host.forgetUpdate(name);
  }

  #carryOut(call: FunctionCall, group: ToolGroup): void {
    const open: OpenCall = { call, group, controller: new AbortController(), state: 'running' };
    this.#open.add(open);
    const outcome = this.#begin(call, open.controller.signal);
    if (!(outcome instanceof Promise)) return this.#onOutcome(open, outcome);
    void outcome.then((late) => {
      const isTold = this.#enter(() => {
        this.#options.tap?.outcome(call.id, late);
        this.#onOutcome(open, late);
      });
      if (!isTold) this.#tellUntold(call, late);
    });
  }

  /** False: the run is over, perhaps by the time that has gone by. */
  #enter(happens: () => void): boolean {
    if (this.#isClosed) return false;
    let hasHappened = false;
    this.#options.host.enter(() => {
      if (this.#isClosed) return;
      hasHappened = true;
      happens();
    });
    return hasHappened || !this.#isClosed;
  }

  /** Arguments that are nested a hundred thousand deep are more than any reader of them can take. */
  #begin(call: FunctionCall, signal: AbortSignal): CallOutcome | Promise<CallOutcome> {
    const { unreadable } = call;
    if (unreadable !== undefined) return { ...NO_OUTCOME, response: errorResponse(unreadable) };
    try {
      return this.#refusalOf(call) ?? this.#work.carryOut(call, signal);
    } catch (error) {
      this.#options.log.warn(
        { tool: call.name, pii: { cause: errorText(error) } },
        'a function call could not be read',
      );
      return { ...NO_OUTCOME, response: errorResponse(`The arguments of ${call.name} cannot be read.`) };
    }
  }

  #onOutcome(open: OpenCall, outcome: CallOutcome): void {
    if (this.#isClosed) return;
    const { call } = open;
    this.#open.delete(open);
    this.#underWay.begun(call, outcome.kind);
    this.#tell(call, outcome);
    if (open.state === 'withdrawn') this.#tellWithdrawn(call, outcome);
    else this.#answer(open, outcome);
    if (outcome.endInvocation) this.#options.host.endInvocation();
  }

  #answer({ call, group, state }: OpenCall, outcome: CallOutcome): void {
    const { id, name, args } = call;
    if (outcome.kind === 'done' && isEmptyOutcome(outcome))
      keepNewest(this.#emptyThisTurn, canonicalJson([name, args]), TOOL_CALLS_EMPTY_MAX);
    // Taken out again as soon as the group answers it, which may be at once.
    if (state === 'running') this.#held.set(id, { call, group, outcome });
    group.settle({ id, name, response: outcome.response }, outcome.kind !== 'done');
  }

  /** The run ended in front of it, and has told the call as cut: what was done is told all the same. */
  #tellUntold(call: FunctionCall, outcome: CallOutcome): void {
    if (outcome.ran && !isError(outcome.response)) void this.#work.tellLateResult(call, outcome);
    else if (hasChanges(outcome.actions)) void this.#work.tellLate(outcome.actions);
  }

  #tell({ id, name }: CallRef, { response, actions, kind }: CallOutcome, eventId?: string): void {
    const isPending = kind === 'pending';
    this.#options.host.events.responded([{ id, name, response }], { actions, isPending, eventId });
  }

  /** What the model took back may have been done all the same: it has to know. */
  #tellWithdrawn({ name }: CallRef, { ran, response }: CallOutcome): void {
    if (!ran || isError(response)) return;
    const text = `${name} was withdrawn, but it had been carried out already. Its result: ${JSON.stringify(response)}`;
    this.#options.host.update({ text, interrupts: false });
  }

  /** It was given up, as withdrawn or too slow, and has ended now. */
  #tellLate({ id, name }: CallRef, { response, actions }: CallOutcome): void {
    this.#options.host.events.responded([{ id, name, response }], { actions, isLate: true });
    const what = isError(response) ? 'has ended now' : 'has been carried out after all';
    const text = `${name} was given up, but ${what}. Its result: ${JSON.stringify(response)}`;
    this.#options.host.update({ text, callId: id, interrupts: false });
  }

  /** Who asked is gone; who is there now has to know all the same. */
  #tellFormer({ id, name, response }: FunctionResponse): void {
    const text = `${name}, which was asked for before the connection was lost, has a result: ${JSON.stringify(response)}`;
    this.#options.host.update({ text, callId: id, interrupts: false });
  }

  #settleLate(call: CallRef, outcome: CallOutcome, eventId: string | undefined): void {
    this.#tell(call, outcome, eventId);
    const text = `${call.name}, which was pending, has come to a result: ${JSON.stringify(outcome.response)}`;
    this.#options.host.update({ text, callId: call.id, interrupts: false });
    if (outcome.endInvocation) this.#options.host.endInvocation();
  }

  #refusalOf(call: FunctionCall): CallOutcome | undefined {
    if (this.#open.size > TOOL_CALLS_OPEN_MAX) {
      const response = errorResponse(`${call.name} was not run: too many calls are being carried out.`);
      return { ...NO_OUTCOME, response };
    }
    if (!this.#emptyThisTurn.has(canonicalJson([call.name, call.args]))) return undefined;
    const message = 'It was run a moment ago and had nothing to report. Do not call it again.';
    return { ...NO_OUTCOME, response: { status: 'done', result: null, retryable: false, message } };
  }

  #isNew(id: string): boolean {
    if (this.#seen.has(id)) return false;
    keepNewest(this.#seen, id, TOOL_CALL_IDS_MAX);
    return true;
  }
}

const TOO_MANY = errorResponse(
  'It was not run: too many calls in one message. Ask again for what is needed.',
);

const NO_OUTCOME = { kind: 'done', actions: NO_ACTIONS, ran: false, endInvocation: false } as const;

/** Adds to a set in order of age, of which the oldest goes. */
function keepNewest(set: Set<string>, item: string, max: number): void {
  set.add(item);
  for (const oldest of set) {
    if (set.size <= max) break;
    set.delete(oldest);
  }
}

/** Wrapped or not, it says nothing. */
function isEmptyOutcome({ response }: CallOutcome): boolean {
  const keys = Object.keys(response);
  return isEmpty(response) || (keys.length === 1 && keys[0] === 'result' && isEmpty(response['result']));
}
