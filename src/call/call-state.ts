/**
 * The states of a call and the one pure function that moves between them. Effects are carried out by `call-effects.ts`.
 *
 *   announced ──stream──▶ connecting ──model ready──▶ live ──▶ ending ──▶ ended
 *       │  └──────stream, model ready already──────────▶│         ▲
 *       └── no stream / over ──▶ ended                  └─ caller hung up ──▶ ended
 *
 * `ending` has stages: `farewell` (the model says goodbye), `prompt` (what is left is heard out, often a recorded clip),
 * `cutting` (the line is being ended), `transferring` (the carrier is asked to connect the caller with a human; when it does not,
 * the call is live again). A carrier socket that is lost without `stop` (`streamLost`) may come back in connecting and live, and
 * so may the model (`modelLost`): the caller stays, and hears the hold clip while it takes.
 */
import {
  agentFarewell,
  askFarewell,
  cut,
  decidedReason,
  endInvocation,
  finish,
  fromEnding,
  playThenCut,
  stay,
  transferAfterFarewell,
  withoutModel,
} from './call-ending.js';
import type { EndReason } from './end-reason.js';
import type { PromptName } from './prompts.js';

export type CallState =
  | { readonly name: 'announced'; readonly model: 'connecting' | 'ready' | 'failed' }
  | { readonly name: 'connecting'; readonly streamLost: boolean; readonly modelReady?: boolean }
  | { readonly name: 'live'; readonly streamLost: boolean; readonly modelLost?: boolean }
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
  | 'hold'
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
  /** There is no model, and no further try. */
  | { readonly type: 'modelFailed' }
  /** The connection is gone: lost, or left for another one. */
  | { readonly type: 'modelClosed' }
  /** The model was asked to speak, on one connection after another, and does not. */
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
  /** Another connection to the model; `modelReady` or `modelFailed` follows. */
  | { readonly do: 'reconnect' }
  /** The model is back, and goes on where it was. */
  | { readonly do: 'goOn' }
  /** The caller is asked to wait, and again while it takes. */
  | { readonly do: 'hold' }
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

function fromAnnounced(state: CallState & { name: 'announced' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelReady':
      return stay({ ...state, model: 'ready' });
    case 'modelFailed':
      return stay({ ...state, model: 'failed' });
    case 'modelClosed':
      return { state: { ...state, model: 'connecting' }, effects: [{ do: 'reconnect' }] };
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
  if (model === 'connecting') {
    return {
      state: { name: 'connecting', streamLost: false },
      effects: [...opening, { do: 'arm', timer: 'hold' }],
    };
  }
  return { state: { name: 'live', streamLost: false }, effects: [...opening, { do: 'greet' }] };
}

function fromConnecting(state: CallState & { name: 'connecting' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelReady':
      if (state.streamLost) return stay({ ...state, modelReady: true });
      return {
        state: { name: 'live', streamLost: false },
        effects: [{ do: 'disarm', timer: 'hold' }, { do: 'greet' }],
      };
    case 'streamStarted':
      if (state.modelReady !== true) return fromUnderWay(state, event);
      return {
        state: { name: 'live', streamLost: false },
        effects: [{ do: 'disarm', timer: 'streamReturn' }, { do: 'disarm', timer: 'hold' }, { do: 'greet' }],
      };
    case 'modelClosed':
      return {
        state: { name: 'connecting', streamLost: state.streamLost },
        effects: [{ do: 'reconnect' }],
      };
    case 'modelFailed':
      return state.streamLost ? finish('model_unreachable') : playThenCut('model_unreachable', 'unavailable');
    default:
      return fromUnderWay(state, event);
  }
}

function fromLive(state: CallState & { name: 'live' }, event: CallEvent): Transition {
  switch (event.type) {
    case 'modelReady':
      if (state.modelLost !== true) return stay(state);
      return {
        state: { name: 'live', streamLost: state.streamLost },
        effects: [{ do: 'disarm', timer: 'hold' }, { do: 'goOn' }],
      };
    case 'modelClosed':
      return {
        state: { ...state, modelLost: true },
        effects: [{ do: 'arm', timer: 'hold' }, { do: 'reconnect' }],
      };
    case 'modelFailed':
      return state.streamLost ? finish('model_lost') : playThenCut('model_lost', 'apology');
    case 'modelMute':
      return state.streamLost ? stay(state) : playThenCut('model_lost', 'apology');
    case 'agentEnds':
      return onAgentEnds(state, event);
    case 'agentTransfers':
      // Its farewell would not be heard; it may try again.
      return state.streamLost ? stay(state) : onAgentTransfers(state, event);
    case 'invocationEnds':
      return endInvocation(event.heard);
    case 'costLimit':
      return state.streamLost ? finish('cost_limit') : sayFarewell(state, 'cost_limit');
    case 'callerIdle':
      return state.streamLost ? stay(state) : sayFarewell(state, 'caller_idle');
    default:
      return fromUnderWay(state, event);
  }
}

/** The model says it, and where there is none a recorded clip does. */
function sayFarewell(state: CallState & { name: 'live' }, reason: EndReason): Transition {
  return state.modelLost === true ? playThenCut(reason, 'goodbye') : askFarewell(reason);
}

function onAgentEnds(
  state: CallState & { name: 'live' },
  { spoken, heard }: Extract<CallEvent, { type: 'agentEnds' }>,
): Transition {
  if (state.streamLost) return stay(state); // Its goodbye would not be heard; it may try again.
  const farewell = agentFarewell(spoken, heard);
  return state.modelLost === true ? withoutModel(farewell) : farewell;
}

function onAgentTransfers(
  state: CallState & { name: 'live' },
  { heard }: Extract<CallEvent, { type: 'agentTransfers' }>,
): Transition {
  const farewell = transferAfterFarewell(heard);
  return state.modelLost === true ? withoutModel(farewell) : farewell;
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
        effects: [{ do: 'disarm', timer: 'streamReturn' }, onLineBack(state)],
      };
    case 'timer':
      if (event.timer === 'streamReturn') return finish('carrier_lost');
      if (event.timer === 'hold') return { state, effects: lacksModel(state) ? [{ do: 'hold' }] : [] };
      if (event.timer !== 'maxDuration') return stay(state);
      return state.name === 'live' && !state.streamLost
        ? sayFarewell(state, 'max_duration')
        : cut('max_duration');
    case 'drainDeadline':
      if (state.streamLost) return finish('server_draining');
      return event.handsOver === true ? handOver() : playThenCut('server_draining', 'draining');
    case 'fault':
      return state.streamLost ? finish('internal_error') : playThenCut('internal_error', 'apology');
    default:
      return stay(state); // Turns and playout are the conversation's business while nothing ends.
  }
}

/** There is a caller on the line and nobody to talk with. */
function lacksModel(state: CallState & { name: 'connecting' | 'live' }): boolean {
  return !state.streamLost && (state.name === 'connecting' || state.modelLost === true);
}

function onLineBack(state: CallState & { name: 'connecting' | 'live' }): CallEffect {
  return state.name === 'live' && state.modelLost !== true
    ? { do: 'welcomeBack' }
    : { do: 'arm', timer: 'hold' };
}
