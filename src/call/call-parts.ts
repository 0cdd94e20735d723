/**
 * The set-up of one call: its clock and recorder, the run that it is told as, and the parts that do its work, built and joined
 * once. What they notice comes back to the host, which decides.
 */
import type { Agent } from '../agent/agent.js';
import type { CallTap, WebhookRequest } from '../call-tap.js';
import { errorText } from '../errors.js';
import type { Event } from '../event/event.js';
import { RunEvents } from '../event/run-events.js';
import type { LiveConnection } from '../model/live-connection.js';
import { tellPlugins } from '../tool/plugin-events.js';
import { RunSecrets } from '../tool/run-secrets.js';
import { CallClock } from './call-clock.js';
import type { SoundTee } from './caller-leg.js';
import type { CallDeps } from './call-deps.js';
import { CallEffects } from './call-effects.js';
import type { CallIdentity } from './call-identity.js';
import { CallLine } from './call-line.js';
import type { CallEvent, CallTimer } from './call-state.js';
import { CallTimers } from './call-timers.js';
import { Conversation } from './conversation.js';
import { CostWatch } from './cost-watch.js';
import type { EndReason } from './end-reason.js';
import { FunctionCalls } from './function-calls.js';
import { HeardHistory } from './heard-history.js';
import { IdleWatch } from './idle-watch.js';
import { callerSilent, callerWaits } from './line-texts.js';
import type { ConversationEvent } from './live-events.js';
import { ModelLink } from './model-link.js';
import { RefusedTurns } from './refused-turns.js';

export interface CallSetUp {
  readonly identity: CallIdentity;
  /** The webhook that announced it; a call from the web has none. */
  readonly request?: WebhookRequest;
  /** What was said in the same session before. */
  readonly history?: readonly Event[];
  readonly agent: Agent;
  readonly deps: CallDeps;
}

export type CallTimerName = CallTimer | 'tick' | 'wait';

/** The call, as its parts see it. */
export interface CallHost {
  isLive(): boolean;
  /** It is over, or about to be. */
  isEnding(): boolean;
  post(event: CallEvent | ConversationEvent): void;
  /** For what happens while an event is being handled: now, not behind it. */
  apply(event: CallEvent): void;
  guard(run: () => void): void;
  fault(error: unknown): void;
  onTimer(name: CallTimerName): void;
  onModelReady(model: LiveConnection): void;
  finish(reason: EndReason): void;
}

export interface CallParts {
  readonly clock: CallClock;
  readonly tap: CallTap | undefined;
  readonly run: RunEvents;
  readonly timers: CallTimers<CallTimerName>;
  readonly conversation: Conversation;
  readonly link: ModelLink;
  readonly idle: IdleWatch;
  readonly line: CallLine;
  readonly functionCalls: FunctionCalls;
  readonly refusedTurns: RefusedTurns;
  readonly costs: CostWatch;
  readonly effects: CallEffects;
  readonly heard: HeardHistory;
}

export function makeCallParts(setUp: CallSetUp, host: CallHost): CallParts {
  const { identity, deps } = setUp;
  const clock = new CallClock(deps.clock);
  const tap = deps.openTap?.(identity, clock);
  if (tap !== undefined) clock.onStall = (dueMs, nowMs) => tap.stalled(dueMs, nowMs);
  if (setUp.request !== undefined) tap?.webhook(setUp.request);
  const secrets = new RunSecrets();
  const run = openRun(setUp, clock, secrets);
  const timers = new CallTimers<CallTimerName>(clock, (name) => host.onTimer(name));
  // The tools hear the caller by way of the conversation, and speak into it.
  const tee: SoundTee = {
    get wantsSound() {
      return functionCalls.work.wantsSound;
    },
    onSound: (pcm16k) => functionCalls.work.onSound(pcm16k),
  };
  const conversation = makeConversation(setUp, host, { clock, run, tee });
  const heard = new HeardHistory(setUp.history);
  run.stream.listen(heard.hear);
  const link = makeLink(setUp, host, {
    clock,
    conversation,
    run,
    heard,
    functionCalls: () => functionCalls,
  });
  // Nobody waits for a model that has never said a word.
  const isWaiting = (): boolean => functionCalls.isWorkUnderWay && conversation.messagesBegun > 0;
  const idle = makeIdleWatch(setUp, host, { clock, conversation, isWaiting });
  const line = new CallLine({
    callSid: identity.callSid,
    call: host,
    conversation,
    timers,
    callControl: deps.callControl,
    nowMs: () => clock.nowMs(),
    observer: deps.observer,
    log: deps.log,
  });
  const parts = { clock, tap, run, conversation, link };
  const costs = makeCostWatch(setUp, { clock, run, line });
  const functionCalls: FunctionCalls = makeFunctionCalls(setUp, host, { ...parts, secrets, costs });
  const effects = new CallEffects({
    conversation,
    idle,
    line,
    link,
    timers,
    tellReady: identity.callDirection === 'web' ? run : undefined,
    greeting: setUp.agent.greeting,
    callMaxMs: deps.callMaxMs,
    cutLine: () => line.cut({ clock, tap: tap?.rest }),
    transfer: () => line.transfer({ clock, tap: tap?.rest }),
    onNoStream: () => host.post({ type: 'streamClosed' }),
    onMute: () => host.post({ type: 'modelMute' }),
    onFinish: (reason) => host.finish(reason),
  });
  const refusedTurns = new RefusedTurns({ run, explain: () => effects.explainRefusal() });
  return {
    ...parts,
    timers,
    idle,
    line,
    functionCalls,
    refusedTurns,
    costs,
    effects,
    heard,
  };
}

function openRun(
  { identity, agent, deps, history = [] }: CallSetUp,
  clock: CallClock,
  secrets: RunSecrets,
): RunEvents {
  const { callSid, invocationId } = identity;
  const run = new RunEvents({
    invocationId,
    agentName: agent.name,
    clock: { nowMs: () => clock.realMs(), wallMs: () => clock.wallMs() },
    onFault: (error) => deps.log.error({ callSid, cause: errorText(error) }, 'a listener of the run failed'),
  });
  deps.openRun?.(identity, run.stream, history);
  tellPlugins(agent, run.stream, { secrets, log: deps.log });
  return run;
}

function makeConversation(
  { deps, history = [] }: CallSetUp,
  host: CallHost,
  { clock, run, tee }: Pick<CallParts, 'clock' | 'run'> & { readonly tee: SoundTee },
): Conversation {
  return new Conversation({
    clock,
    observer: deps.observer,
    prompts: deps.prompts,
    greetingProtectionMs: deps.greetingProtectionMs,
    run,
    isContinued: history.length > 0,
    isLive: () => host.isLive(),
    tee,
    events: {
      onAgentSpeaks: () => host.post({ type: 'agentSpeaks' }),
      onPlayoutDrained: () => host.post({ type: 'playoutDrained' }),
    },
  });
}

function makeFunctionCalls(
  { agent, identity, history = [], deps }: CallSetUp,
  host: CallHost,
  {
    clock,
    tap,
    run,
    conversation,
    link,
    secrets,
    costs,
  }: Pick<CallParts, 'clock' | 'tap' | 'run' | 'conversation' | 'link' | 'costs'> & {
    readonly secrets: RunSecrets;
  },
): FunctionCalls {
  return new FunctionCalls({
    agent,
    identity,
    history,
    openTools: deps.openTools,
    secrets,
    conversation,
    run,
    model: () => link.model,
    clock,
    isLive: () => host.isLive(),
    tap,
    log: deps.log,
    post: (happens) => host.guard(() => host.post({ type: 'toolHappened', run: happens })),
    events: {
      onAgentEnds: (spoken) => host.apply({ type: 'agentEnds', spoken, heard: conversation.isSilent }),
      onAgentTransfers: () => host.apply({ type: 'agentTransfers', heard: conversation.isSilent }),
      onInvocationEnds: () => {
        run.endedByTool();
        host.apply({ type: 'invocationEnds', heard: conversation.isSilent });
      },
      onUpdateTold: () => costs.onAsked(),
      whyNoTransfer: () => deps.callControl.whyNoTransfer,
    },
  });
}

function makeLink(
  { identity, deps }: CallSetUp,
  host: CallHost,
  {
    clock,
    conversation,
    run,
    heard,
    functionCalls,
  }: Pick<CallParts, 'clock' | 'conversation' | 'run' | 'heard'> & {
    readonly functionCalls: () => FunctionCalls;
  },
): ModelLink {
  let wasReady = false;
  return new ModelLink({
    callSid: identity.callSid,
    clock,
    connectLive: deps.connectLive,
    observer: deps.observer,
    log: deps.log,
    position: () => heard.position,
    events: {
      onReady: (model) => {
        wasReady = true;
        host.onModelReady(model);
      },
      onFailed: () =>
        host.guard(() => {
          if (!wasReady) run.failed('model_unreachable', 'The model could not be reached.');
          host.post({ type: 'modelFailed' });
        }),
      onGone: ({ lost, left }) => {
        conversation.detachModel(lost !== undefined);
        functionCalls().onModelGone();
        if (lost !== undefined) {
          run.failed('model_lost', 'The connection to the model was lost.');
          functionCalls().onModelLost(lost);
        }
        if (lost !== undefined || left === true) host.post({ type: 'modelClosed' });
      },
      mayLeave: () => !host.isEnding(),
      isPause: () => functionCalls().isPause,
    },
  });
}

function makeCostWatch(
  { agent }: CallSetUp,
  { clock, run, line }: Pick<CallParts, 'clock' | 'run' | 'line'>,
): CostWatch {
  const costs = new CostWatch({
    limits: agent.runConfig?.limits,
    nowMs: () => clock.nowMs(),
    openedAtMs: () => line.firstOpenedAtMs,
  });
  run.stream.listen((item) => costs.hear(item));
  return costs;
}

function makeIdleWatch(
  { deps }: CallSetUp,
  host: CallHost,
  {
    clock,
    conversation,
    isWaiting,
  }: Pick<CallParts, 'clock' | 'conversation'> & { readonly isWaiting: () => boolean },
): IdleWatch {
  return new IdleWatch({
    clock,
    repromptMs: deps.idleRepromptMs,
    callerActiveAtMs: () => conversation.callerActiveAtMs(),
    // Who waits for an answer is not idle, however long it takes.
    activeAtMs: () => (conversation.waits.isDue ? clock.nowMs() : conversation.activeAtMs()),
    isWaiting,
    onReprompt: () => {
      const seconds = deps.idleRepromptMs / 1000;
      if (host.isLive()) conversation.tell(isWaiting() ? callerWaits(seconds) : callerSilent(seconds));
    },
    onIdle: () => host.post({ type: 'callerIdle' }),
  });
}
