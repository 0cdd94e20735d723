/**
 * How a call ends, as pure transitions: the goodbye, what is heard out, the line that is cut or led on. `call-state.ts` decides
 * that a call ends, and why.
 */
import type { CallEvent, CallState, CallTimer, Transition } from './call-state.js';
import type { EndReason } from './end-reason.js';
import type { PromptName } from './prompts.js';

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

export function stay(state: CallState): Transition {
  return { state, effects: [] };
}

export function finish(reason: EndReason): Transition {
  return { state: { name: 'ended', reason }, effects: [{ do: 'finish', reason }] };
}

export function cut(reason: EndReason): Transition {
  return {
    state: { name: 'ending', reason, stage: 'cutting', begun: true, said: true, heard: true },
    effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'cutMax' }, { do: 'cutLine' }],
  };
}

/** A recorded clip explains what happens; the model has no more say. */
export function playThenCut(reason: EndReason, prompt: PromptName): Transition {
  return {
    state: { name: 'ending', reason, stage: 'prompt', begun: true, said: true, heard: true },
    effects: [{ do: 'closeModel' }, { do: 'arm', timer: 'farewellMax' }, { do: 'play', prompt }],
  };
}

export function askFarewell(reason: EndReason): Transition {
  return {
    state: { name: 'ending', reason, stage: 'farewell', begun: false, said: false, heard: true },
    effects: [
      { do: 'arm', timer: 'farewellMax' },
      { do: 'arm', timer: 'farewellStart' },
      { do: 'askFarewell' },
    ],
  };
}

/** The model hangs up; its goodbye is what it says in this turn. */
export function agentFarewell(spoken: boolean, heard: boolean): Transition {
  return {
    state: { name: 'ending', reason: 'agent_ended', stage: 'farewell', begun: spoken, said: false, heard },
    effects: [
      { do: 'arm', timer: 'farewellMax' },
      { do: 'arm', timer: 'farewellStart' },
    ],
  };
}

/** A farewell that begins with no model to say it. */
export function withoutModel(farewell: Transition): Transition {
  if (farewell.state.name !== 'ending') return farewell;
  const { state, effects } = endFarewell({ ...farewell.state, modelLost: true });
  return { state, effects: [...farewell.effects, ...effects] };
}

export function transferAfterFarewell(heard: boolean): Transition {
  return {
    state: { name: 'ending', reason: 'transferred', stage: 'farewell', begun: false, said: false, heard },
    effects: [
      { do: 'arm', timer: 'farewellMax' },
      { do: 'arm', timer: 'transferStart' },
    ],
  };
}

/** The model has no more say at once; what it has said by then is heard out, for a while. */
export function endInvocation(heard: boolean): Transition {
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

export function fromEnding(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
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
    case 'modelReady':
      return stay({ ...state, modelLost: false });
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
  return {
    state: { name: 'live', streamLost: true, ...(modelLost === true && { modelLost }) },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'transferStart' },
      { do: 'dropStream' },
      { do: 'arm', timer: 'streamReturn' },
      ...(modelLost === true ? [{ do: 'reconnect' } as const] : []),
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
    state: { name: 'live', streamLost: false, ...(state.modelLost === true && { modelLost: true }) },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'farewellStart' },
      ...(state.modelLost === true ? ([{ do: 'hold' }, { do: 'reconnect' }] as const) : []),
    ],
  };
}

/** The carrier takes the stream away when it connects the caller: that is no hang-up, and ends the call here. */
function inTransfer(state: CallState & { name: 'ending' }, event: CallEvent): Transition {
  if (event.type === 'modelClosed') return stay({ ...state, modelLost: true });
  if (event.type === 'modelReady') return stay({ ...state, modelLost: false });
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
  return {
    state: { name: 'live', streamLost: false, ...(modelLost === true && { modelLost }) },
    effects: [
      { do: 'disarm', timer: 'farewellMax' },
      { do: 'disarm', timer: 'transferStart' },
      { do: 'disarm', timer: 'cutMax' },
      { do: 'tellTransferFailed' },
      ...(modelLost === true ? ([{ do: 'hold' }, { do: 'reconnect' }] as const) : []),
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
