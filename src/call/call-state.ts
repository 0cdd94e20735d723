/**
 * The states of a call and the one pure function that moves between them. Effects are carried out by `call-effects.ts`.
 *
 *   announced ──stream──▶ connecting ──model ready──▶ live ──▶ ending ──▶ ended
 *       │  └──────stream, model ready already──────────▶│         ▲
 *       └── no stream / over ──▶ ended                  └─ caller hung up ──▶ ended
 *
 * `ending` has stages: `farewell` (the model says goodbye), `prompt` (what is left is heard out, often a recorded clip),
 * `cutting` (the line is being ended), `transferring` (the carrier is asked to connect the caller with a human; when it does not,
 * the call is live again). A carrier socket that is lost without `stop` (`streamLost`) may come back in connecting and live.
 */
import type { EndReason } from './end-reason.js';
import type { PromptName } from './prompts.js';

export type CallState =
  | { readonly name: 'announced'; readonly model: 'connecting' | 'ready' | 'failed' }
  | { readonly name: 'connecting'; readonly streamLost: boolean; readonly modelReady?: boolean }
  | { readonly name: 'live'; readonly streamLost: boolean }
  | {
      readonly name: 'ending';
      readonly reason: EndReason;
      readonly stage: 'farewell' | 'prompt' | 'cutting' | 'transferring';
      /** In `farewell`: whether the goodbye has begun, the model has said all of it, and all sent was heard. */
      readonly begun: boolean;
      readonly said: boolean;
      readonly heard: boolean;
      /** Nobody is left who could go on if a transfer fails. */
      readonly modelLost?: boolean;
      /** What would have ended the call meanwhile, were it not on its way to a human. */
      readonly overtakenBy?: EndReason;
    }
  | { readonly name: 'ended'; readonly reason: EndReason };

export type CallTimer =
  | 'noStream'
  | 'streamReturn'
  | 'maxDuration'
  | 'farewellStart'
  | 'transferStart'
  | 'farewellCap'
  | 'farewellMax'
  | 'cutMax';

export type CallEvent =
  | { readonly type: 'streamStarted' }
  /** The carrier said `stop`, or its status says that the call is over. */
  | { readonly type: 'callerHungUp' }
  /** The carrier's socket is gone. */
  | { readonly type: 'streamClosed' }
  | { readonly type: 'modelReady' }
  | { readonly type: 'modelFailed' }
  | { readonly type: 'modelClosed' }
  /** The model was asked to speak and does not. */
  | { readonly type: 'modelMute' }
  | { readonly type: 'timer'; readonly timer: CallTimer }
  /** Both sides were silent for too long, the second time. */
  | { readonly type: 'callerIdle' }
  /** The model called `end_call`; `spoken`: it has already said something in that turn; `heard`: all of it. */
  | { readonly type: 'agentEnds'; readonly spoken: boolean; readonly heard: boolean }
  /** A tool wants the caller connected with a human; `heard`: all that was said. */
  | { readonly type: 'agentTransfers'; readonly heard: boolean }
  /** What came of asking the carrier for it. */
  | { readonly type: 'lineTransferred'; readonly isDone: boolean }
  /** A tool has ended the conversation; `heard`: all that was said. */
  | { readonly type: 'invocationEnds'; readonly heard: boolean }
  /** A limit of the agent's own is reached. */
  | { readonly type: 'costLimit' }
  | { readonly type: 'operatorHangsUp' }
  /** The server stops. `handsOver`: the carrier will ask what follows the stream, and another server may go on. */
  | { readonly type: 'drainDeadline'; readonly handsOver?: boolean }
  | { readonly type: 'interrupted' }
  /** First sound of an agent message was sent. */
  | { readonly type: 'agentSpeaks' }
  /** The model has nothing more to say in this turn. */
  | { readonly type: 'agentTurnOver'; readonly spoken: boolean; readonly heard: boolean }
  /** All that was sent was heard. */
  | { readonly type: 'playoutDrained' }
  /** The attempt to cut the line through REST is over; without success the socket's close does it. */
  | { readonly type: 'lineCut' }
  | { readonly type: 'fault' };

export type CallEffect =
  | { readonly do: 'greet' }
  /** After a lost stream came back: the caller is told and the conversation goes on. */
  | { readonly do: 'welcomeBack' }
  | { readonly do: 'dropStream' }
  | { readonly do: 'arm'; readonly timer: CallTimer }
  | { readonly do: 'disarm'; readonly timer: CallTimer }
  | { readonly do: 'askFarewell' }
  /** Ask the carrier to connect the caller with a human; `lineTransferred` follows. */
  | { readonly do: 'transfer' }
  /** The caller is still here: the model has to say so. */
  | { readonly do: 'tellTransferFailed' }
  /** Nothing more is expected of the model's turn: what there is of it is played out. */
  | { readonly do: 'endTurn' }
  | { readonly do: 'play'; readonly prompt: PromptName }
  | { readonly do: 'closeModel' }
  /** End the line through REST; `lineCut` follows. */
  | { readonly do: 'cutLine' }
  | { readonly do: 'closeStream' }
  | { readonly do: 'finish'; readonly reason: EndReason };

export interface Transition {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
}

export const INITIAL_CALL_STATE: CallState = { name: 'announced', model: 'connecting' };

/** Total: every pair of state and event has an answer; one that changes nothing returns the same state. */
export function transition(state: CallState, event: CallEvent): Transition {
  if (state.name === 'ended') return stay(state);
  if (event.type === 'callerHungUp') return finish(decidedReason(state) ?? 'caller_hangup');
  if (event.type === 'operatorHangsUp') {
    const endsAnyway = state.name === 'ending' && state.reason !== 'transferred';
    return endsAnyway ? stay(state) : cut('operator_hangup');
  }
  switch (state.name) {
    case 'announced':
      return fromAnnounced(state, event);
    case 'connecting':
      return fromConnecting(state, event);
    case 'live':
      return fromLive(state, event);
    case 'ending':
      return fromEnding(state, event);
  }
}

function stay(state: CallState): Transition {
  return { state, effects: [] };
}

function finish(reason: EndReason): Transition {
  return { state: { name: 'ended', reason }, effects: [{ do: 'finish', reason }] };
}

/** The reason that a call ends for whatever comes now; undefined where none is decided. Before the carrier is asked to connect
 * the caller with a human, nobody has been transferred. */
export function decidedReason(state: CallState): EndReason | undefined {
  if (state.name !== 'ending' && state.name !== 'ended') return undefined;
  const isOnlyPlanned = state.name === 'ending' && isTransferFarewell(state);
  return isOnlyPlanned ? undefined : state.reason;
}

function isTransferFarewell(state: CallState & { name: 'ending' }): boolean {
  return state.reason === 'transferred' && state.stage === 'farewell';
}

function cut(reason: EndReason): Transition {
  return {
    state: { name: 'ending', reason, stage: 'cutting', begun: true, said: true, heard: true },
    effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'cutMax' }, { do: 'cutLine' }],
  };
}

/** A recorded clip explains what happens; the model has no more say. */
function playThenCut(reason: EndReason, prompt: PromptName): Transition {
  return {
    state: { name: 'ending', reason, stage: 'prompt', begun: true, said: true, heard: true },
    effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'farewellMax' }, { do: 'play', prompt }],
  };
}

function askFarewell(reason: EndReason): Transition {
  return {
    state: { name: 'ending', reason, stage: 'farewell', begun: false, said: false, heard: true },
    effects: [
      { do: 'arm', timer: 'farewellMax' },
      { do: 'arm', timer: 'farewellStart' },
      { do: 'askFarewell' },
    ],
  };
}

function transferAfterFarewell(heard: boolean): Transition {
  return {
    state: { name: 'ending', reason: 'transferred', stage: 'farewell', begun: false, said: false, heard },
    effects: [
      { do: 'arm', timer: 'farewellMax' },
      { do: 'arm', timer: 'transferStart' },
    ],
  };
}

/** The model has no more say at once; what it has said by then is heard out, for a while. */
function endInvocation(heard: boolean): Transition {
  if (heard) return cut('agent_ended');
  return {
    state: { name: 'ending', reason: 'agent_ended', stage: 'prompt', begun: true, said: true, heard },
    effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'farewellCap' }],
  };
}

/** The farewell is over: the line is ended, or led on. */
function leave(state: CallState & { name: 'ending' }): Transition {
  if (state.reason !== 'transferred') return cut(state.reason);
  return {
    state: { ...state, stage: 'transferring' },
    effects: [{ do: 'arm', timer: 'cutMax' }, { do: 'transfer' }],
  };
}

function fromAnnounced(state: CallState & { name: 'announced' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelReady':
      return stay({ ...state, model: 'ready' });
    case 'modelFailed':
    case 'modelClosed':
      return stay({ ...state, model: 'failed' });
    case 'streamStarted':
      return onFirstStream(state.model);
    case 'timer':
      return event.timer === 'noStream' ? finish('no_stream') : stay(state);
    case 'drainDeadline':
      return finish('server_draining');
    case 'fault':
      return finish('internal_error');
    default:
      return stay(state); // Nothing is on the line yet that could be meant.
  }
}

function onFirstStream(model: 'connecting' | 'ready' | 'failed'): Transition {
  const opening: CallEffect[] = [
    { do: 'disarm', timer: 'noStream' },
    { do: 'arm', timer: 'maxDuration' },
  ];
  if (model === 'failed') {
    const apology = playThenCut('model_unreachable', 'unavailable');
    return { state: apology.state, effects: [...opening, ...apology.effects] };
  }
  if (model === 'connecting') return { state: { name: 'connecting', streamLost: false }, effects: opening };
  return { state: { name: 'live', streamLost: false }, effects: [...opening, { do: 'greet' }] };
}

function fromConnecting(state: CallState & { name: 'connecting' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelReady':
      if (state.streamLost) return stay({ ...state, modelReady: true });
      return { state: { name: 'live', streamLost: false }, effects: [{ do: 'greet' }] };
    case 'streamStarted':
      if (state.modelReady !== true) return fromUnderWay(state, event);
      return {
        state: { name: 'live', streamLost: false },
        effects: [{ do: 'disarm', timer: 'streamReturn' }, { do: 'greet' }],
      };
    case 'modelFailed':
    case 'modelClosed':
      return state.streamLost ? finish('model_unreachable') : playThenCut('model_unreachable', 'unavailable');
    default:
      return fromUnderWay(state, event);
  }
}

function fromLive(state: CallState & { name: 'live' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelFailed':
    case 'modelClosed':
      return state.streamLost ? finish('model_lost') : playThenCut('model_lost', 'apology');
    case 'modelMute':
      return state.streamLost ? stay(state) : playThenCut('model_lost', 'apology');
    case 'agentEnds':
      if (state.streamLost) return stay(state); // Its goodbye would not be heard; it may try again.
      return {
        state: {
          name: 'ending',
          reason: 'agent_ended',
          stage: 'farewell',
          begun: event.spoken,
          said: false,
          heard: event.heard,
        },
        effects: [
          { do: 'arm', timer: 'farewellMax' },
          { do: 'arm', timer: 'farewellStart' },
        ],
      };
    case 'agentTransfers':
      // Its farewell would not be heard; it may try again.
      return state.streamLost ? stay(state) : transferAfterFarewell(event.heard);
    case 'invocationEnds':
      return endInvocation(event.heard);
    case 'costLimit':
      return state.streamLost ? finish('cost_limit') : askFarewell('cost_limit');
    case 'callerIdle':
      return state.streamLost ? stay(state) : askFarewell('caller_idle');
    default:
      return fromUnderWay(state, event);
  }
}

/** The socket is closed and the line is not: the caller hears from whoever the carrier asks next. */
function handOver(): Transition {
  const { state } = cut('server_draining');
  return { state, effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'cutMax' }, { do: 'closeStream' }] };
}

/** What connecting and live have in common: the carrier's socket, the clock and the operator. */
function fromUnderWay(state: CallState & { name: 'connecting' | 'live' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'streamClosed':
      return {
        state: { ...state, streamLost: true },
        effects: [{ do: 'dropStream' }, { do: 'arm', timer: 'streamReturn' }],
      };
    case 'streamStarted':
      return {
        state: { ...state, streamLost: false },
        effects: [
          { do: 'disarm', timer: 'streamReturn' },
          ...(state.name === 'live' ? [{ do: 'welcomeBack' } as const] : []),
        ],
      };
    case 'timer':
      if (event.timer === 'streamReturn') return finish('carrier_lost');
      if (event.timer !== 'maxDuration') return stay(state);
      return state.name === 'live' && !state.streamLost ? askFarewell('max_duration') : cut('max_duration');
    case 'drainDeadline':
      if (state.streamLost) return finish('server_draining');
      return event.handsOver === true ? handOver() : playThenCut('server_draining', 'draining');
    case 'fault':
      return state.streamLost ? finish('internal_error') : playThenCut('internal_error', 'apology');
    default:
      return stay(state); // Turns and playout are the conversation's business while nothing ends.
  }
}

function fromEnding(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
  if (event.type === 'streamClosed')
    return isTransferFarewell(state) ? loseFarewell(state) : finish(state.reason);
  if (event.type === 'fault') {
    // A fault while saying goodbye must not lengthen it; a fault while cutting leaves only the end.
    if (state.stage === 'transferring') return stay(state);
    return state.stage === 'cutting' ? finish(state.reason) : leave(state);
  }
  if (event.type === 'timer' && event.timer === 'farewellMax') {
    const isLeaving = state.stage === 'cutting' || state.stage === 'transferring';
    return isLeaving ? stay(state) : leavePrompt(state);
  }
  switch (state.stage) {
    case 'farewell':
      return inFarewell(state, event);
    case 'prompt':
      return event.type === 'playoutDrained' || isTimer(event, 'farewellCap')
        ? leavePrompt(state)
        : stay(state);
    case 'transferring':
      return inTransfer(state, event);
    case 'cutting':
      return inCutting(state, event);
  }
}

/**
 * After an apology for a lost model the socket is closed, so that the carrier goes on to `/twilio/after`, which
 * decides (today: hang up). Every other ending cuts the line.
 */
function leavePrompt(state: CallState & { name: 'ending' }): Transition {
  if (state.reason !== 'model_lost' && state.reason !== 'model_unreachable') return leave(state);
  return {
    state: { ...state, stage: 'cutting' },
    effects: [{ do: 'arm', timer: 'cutMax' }, { do: 'closeStream' }],
  };
}

function inFarewell(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'agentSpeaks':
      return stay({ ...state, begun: true, heard: false });
    case 'agentTurnOver':
      return state.begun || event.spoken
        ? settle({ ...state, begun: true, said: true, heard: event.heard })
        : stay(state);
    case 'playoutDrained':
      return settle({ ...state, heard: true });
    case 'modelClosed':
      return endFarewell({ ...state, modelLost: true });
    case 'timer':
      if (event.timer === 'maxDuration') return overtaken(state, 'max_duration');
      return event.timer === 'farewellStart' || event.timer === 'transferStart'
        ? endFarewell(state)
        : stay(state);
    case 'interrupted':
      return onFarewellInterrupted(state);
    case 'drainDeadline':
      return overtaken(state, 'server_draining');
    default:
      return stay(state);
  }
}

/** What was said is heard out; what was not said in time, a recorded goodbye says. Where a human follows nobody has to be told
 * goodbye, and what the caller is still hearing may have been the farewell. */
function endFarewell(state: CallState & { name: 'ending' }): Transition {
  const isTransfer = state.reason === 'transferred';
  if (state.begun || (isTransfer && !state.heard)) return settleSaid({ ...state, begun: true });
  return isTransfer ? leave(state) : playThenCut(state.reason, 'goodbye');
}

/** Another reason to end has come; a caller who is on the way to a human goes on, and only one who stays is told of it. */
function overtaken(state: CallState & { name: 'ending' }, reason: EndReason): Transition {
  return stay(state.reason === 'transferred' ? { ...state, overtakenBy: reason } : { ...state, reason });
}

/** The line was lost before the carrier was asked for anything: the caller may come back to the agent, and ask again. */
function loseFarewell({ modelLost, overtakenBy }: CallState & { name: 'ending' }): Transition {
  if (overtakenBy !== undefined) return finish(overtakenBy);
  if (modelLost === true) return finish('model_lost');
  return {
    state: { name: 'live', streamLost: true },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'transferStart' },
      { do: 'dropStream' },
      { do: 'arm', timer: 'streamReturn' },
    ],
  };
}

/** The model is taken to have said all it will: a turn that it left open is ended, so that its end can be heard. */
function settleSaid(state: CallState & { name: 'ending' }): Transition {
  const settled = settle({ ...state, said: true });
  return settled.effects.length > 0 ? settled : { ...settled, effects: [{ do: 'endTurn' }] };
}

function settle(state: CallState & { name: 'ending' }): Transition {
  return state.begun && state.said && state.heard ? leave(state) : stay(state);
}

/** A caller who speaks into the goodbye is still there; only a limit of ours goes on regardless. */
function onFarewellInterrupted(state: CallState & { name: 'ending' }): Transition {
  if (state.reason !== 'agent_ended' && state.reason !== 'caller_idle') {
    const heard = { ...state, heard: true };
    return state.begun ? settle({ ...heard, said: true }) : stay(heard);
  }
  return {
    state: { name: 'live', streamLost: false },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'farewellStart' },
    ],
  };
}

/** The carrier takes the stream away when it connects the caller: that is no hang-up, and ends the call here. */
function inTransfer(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
  if (event.type === 'modelClosed') return stay({ ...state, modelLost: true });
  if (event.type === 'drainDeadline') return overtaken(state, 'server_draining');
  if (isTimer(event, 'maxDuration')) return overtaken(state, 'max_duration');
  if (isTimer(event, 'cutMax')) return finish(state.reason);
  if (event.type !== 'lineTransferred') return stay(state);
  return event.isDone ? { state, effects: [{ do: 'closeModel' }] } : onTransferFailed(state);
}

/** The caller is still here: the agent goes on, unless it is gone or its time is up by now. */
function onTransferFailed({ overtakenBy, modelLost }: CallState & { name: 'ending' }): Transition {
  if (overtakenBy === 'server_draining') return playThenCut(overtakenBy, 'draining');
  if (overtakenBy !== undefined) return playThenCut(overtakenBy, 'apology');
  if (modelLost === true) return playThenCut('model_lost', 'apology');
  return {
    state: { name: 'live', streamLost: false },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'transferStart' },
      { do: 'disarm', timer: 'cutMax' },
      { do: 'tellTransferFailed' },
    ],
  };
}

function isTimer(event: CallEvent, timer: CallTimer): boolean {
  return event.type === 'timer' && event.timer === timer;
}

function inCutting(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
  if (event.type === 'lineCut') return { state, effects: [{ do: 'closeStream' }] };
  if (event.type === 'timer' && event.timer === 'cutMax') return finish(state.reason);
  return stay(state);
}
