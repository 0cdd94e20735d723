import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CallEffect,
  type CallEvent,
  type CallState,
  type CallTimer,
  INITIAL_CALL_STATE,
  transition,
} from '../../src/call/call-state.js';

/** Runs events from the first state; returns the last state and all effects in order. */
function run(...events: CallEvent[]): { state: CallState; effects: CallEffect[] } {
  let state: CallState = INITIAL_CALL_STATE;
  const effects: CallEffect[] = [];
  for (const event of events) {
    const step = transition(state, event);
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, effects };
}

const live: CallEvent[] = [{ type: 'modelReady' }, { type: 'streamStarted' }];
/** The model has said all of a turn in which it spoke; `heard`: and the caller has heard it. */
const turnOver = (heard: boolean): CallEvent => ({ type: 'agentTurnOver', spoken: true, heard });
const names = (effects: readonly CallEffect[]): string[] => effects.map((effect) => effect.do);

describe('a call begins', () => {
  it('greets once both the stream and the model are there, whichever comes first', () => {
    const modelFirst = run({ type: 'modelReady' }, { type: 'streamStarted' });
    const streamFirst = run({ type: 'streamStarted' }, { type: 'modelReady' });
    expect(modelFirst.state).toEqual({ name: 'live', streamLost: false });
    expect(streamFirst.state).toEqual({ name: 'live', streamLost: false });
    for (const { effects } of [modelFirst, streamFirst]) {
      expect(names(effects).filter((name) => name === 'greet')).toHaveLength(1);
    }
  });

  it('says sorry when the model could not be reached, before or after the stream opened', () => {
    for (const events of [
      [{ type: 'modelFailed' }, { type: 'streamStarted' }],
      [{ type: 'streamStarted' }, { type: 'modelFailed' }],
    ] as CallEvent[][]) {
      const { state, effects } = run(...events);
      expect(state).toMatchObject({ name: 'ending', reason: 'model_unreachable', stage: 'prompt' });
      expect(effects).toContainEqual({ do: 'play', prompt: 'unavailable' });
    }
  });

  it('is over when no stream comes', () => {
    expect(run({ type: 'timer', timer: 'noStream' }).state).toEqual({ name: 'ended', reason: 'no_stream' });
  });
});

describe('a call is handed to a human', () => {
  const asked: CallEvent[] = [...live, { type: 'agentTransfers', heard: true }];
  const said: CallEvent[] = [{ type: 'agentSpeaks' }, turnOver(false), { type: 'playoutDrained' }];

  it('behind a farewell that was heard, and is over when the carrier takes the stream away', () => {
    const farewell = run(...asked, ...said);
    expect(farewell.state).toMatchObject({ name: 'ending', reason: 'transferred', stage: 'transferring' });
    expect(names(farewell.effects).filter((name) => name === 'transfer')).toHaveLength(1);
    expect(names(farewell.effects)).not.toContain('closeModel');
    const done = run(...asked, ...said, { type: 'lineTransferred', isDone: true });
    expect(names(done.effects)).toContain('closeModel');
    for (const last of ['callerHungUp', 'streamClosed'] as const)
      expect(run(...asked, ...said, { type: 'lineTransferred', isDone: true }, { type: last }).state).toEqual(
        {
          name: 'ended',
          reason: 'transferred',
        },
      );
  });

  it('without a farewell after three seconds, and behind one that the caller cut', () => {
    const silent = run(...asked, { type: 'timer', timer: 'transferStart' });
    expect(silent.state).toMatchObject({ stage: 'transferring' });
    const cut = run(...asked, { type: 'agentSpeaks' }, { type: 'interrupted' });
    expect(cut.state).toMatchObject({ stage: 'transferring' });
    const early = run(...asked, { type: 'agentSpeaks' }, { type: 'timer', timer: 'transferStart' });
    expect(early.state).toMatchObject({ stage: 'farewell' });
  });

  it('or stays with the agent, which says so, where the carrier does not do it', () => {
    const failed = run(...asked, ...said, { type: 'lineTransferred', isDone: false });
    expect(failed.state).toEqual({ name: 'live', streamLost: false });
    expect(names(failed.effects).at(-1)).toBe('tellTransferFailed');
    const alone = run(...asked, ...said, { type: 'modelClosed' }, { type: 'lineTransferred', isDone: false });
    expect(alone.state).toEqual({ name: 'live', streamLost: false, modelLost: true });
    expect(names(alone.effects).slice(-3)).toEqual(['tellTransferFailed', 'hold', 'reconnect']);
  });

  it('is not cut short: what was said in front of the tool is heard out, too', () => {
    const unheard: CallEvent[] = [...live, { type: 'agentTransfers', heard: false }];
    for (const last of [{ type: 'timer', timer: 'transferStart' }, { type: 'modelClosed' }] as CallEvent[]) {
      expect(run(...unheard, last).state).toMatchObject({ stage: 'farewell' });
      expect(run(...unheard, last, { type: 'playoutDrained' }).state).toMatchObject({
        stage: 'transferring',
      });
    }
    const cutIn = run(...unheard, { type: 'interrupted' }, { type: 'timer', timer: 'transferStart' });
    expect(cutIn.state).toMatchObject({ stage: 'transferring' });
  });

  it('or hangs up in the farewell, where nobody has been transferred yet', () => {
    for (const events of [asked, [...asked, { type: 'agentSpeaks' }]] as CallEvent[][])
      expect(run(...events, { type: 'callerHungUp' }).state).toEqual({
        name: 'ended',
        reason: 'caller_hangup',
      });
  });

  it('or loses the line in the farewell, and may come back to the agent', () => {
    const lost = run(...asked, { type: 'agentSpeaks' }, { type: 'streamClosed' });
    expect(lost.state).toEqual({ name: 'live', streamLost: true });
    expect(names(lost.effects).slice(-2)).toEqual(['dropStream', 'arm']);
    const alone = run(...asked, { type: 'agentSpeaks' }, { type: 'modelClosed' }, { type: 'streamClosed' });
    expect(alone.state).toEqual({ name: 'live', streamLost: true, modelLost: true });
    expect(names(alone.effects).at(-1)).toBe('reconnect');
    const late = run(...asked, { type: 'timer', timer: 'maxDuration' }, { type: 'streamClosed' });
    expect(late.state).toEqual({ name: 'ended', reason: 'max_duration' });
  });

  it('also past a limit of ours; where the carrier does not do it, the limit stands', () => {
    const limits: [CallEvent, string, string][] = [
      [{ type: 'timer', timer: 'maxDuration' }, 'max_duration', 'apology'],
      [{ type: 'drainDeadline' }, 'server_draining', 'draining'],
    ];
    for (const [limit, reason, prompt] of limits) {
      for (const events of [
        [...asked, limit, ...said],
        [...asked, ...said, limit],
      ]) {
        expect(run(...events).state).toMatchObject({ reason: 'transferred', stage: 'transferring' });
        const failed = run(...events, { type: 'lineTransferred', isDone: false });
        expect(failed.state).toMatchObject({ name: 'ending', reason, stage: 'prompt' });
        expect(failed.effects).toContainEqual({ do: 'play', prompt });
      }
    }
  });

  it('not against an operator, who ends the call at once', () => {
    for (const events of [asked, [...asked, ...said]]) {
      const { state, effects } = run(...events, { type: 'operatorHangsUp' });
      expect(state).toMatchObject({ name: 'ending', reason: 'operator_hangup', stage: 'cutting' });
      expect(names(effects).at(-1)).toBe('cutLine');
    }
  });

  it('also where something in the farewell breaks', () => {
    const { state } = run(...asked, { type: 'agentSpeaks' }, { type: 'fault' });
    expect(state).toMatchObject({ reason: 'transferred', stage: 'transferring' });
    expect(run(...asked, ...said, { type: 'fault' }).state).toMatchObject({ stage: 'transferring' });
  });

  it('is not begun on a lost line, and is over in any case after a while', () => {
    const lost = run(...live, { type: 'streamClosed' }, { type: 'agentTransfers', heard: true });
    expect(lost.state).toEqual({ name: 'live', streamLost: true });
    const stuck = run(...asked, ...said, { type: 'timer', timer: 'cutMax' });
    expect(stuck.state).toEqual({ name: 'ended', reason: 'transferred' });
  });
});

describe('a tool ends the conversation', () => {
  it('at once where all was heard, else when it is heard, or after three seconds', () => {
    const heard = run(...live, { type: 'invocationEnds', heard: true });
    expect(names(heard.effects).slice(-3)).toEqual(['closeModel', 'arm', 'cutLine']);
    const unheard = run(...live, { type: 'invocationEnds', heard: false });
    expect(unheard.state).toMatchObject({ name: 'ending', reason: 'agent_ended', stage: 'prompt' });
    expect(names(unheard.effects)).toContain('closeModel');
    for (const last of [{ type: 'playoutDrained' }, { type: 'timer', timer: 'farewellCap' }] as CallEvent[])
      expect(run(...live, { type: 'invocationEnds', heard: false }, last).state).toMatchObject({
        stage: 'cutting',
      });
  });
});

describe('a call ends', () => {
  it('at once when the caller hangs up, in every state that is not ending', () => {
    for (const events of [[], [{ type: 'streamStarted' }], live] as CallEvent[][]) {
      expect(run(...events, { type: 'callerHungUp' }).state).toEqual({
        name: 'ended',
        reason: 'caller_hangup',
      });
    }
  });

  it('plays the apology for a lost model, then closes the stream so that /twilio/after decides', () => {
    const { state, effects } = run(
      ...live,
      { type: 'modelClosed' },
      { type: 'modelFailed' },
      { type: 'playoutDrained' },
      { type: 'streamClosed' },
    );
    expect(effects).toContainEqual({ do: 'play', prompt: 'apology' });
    expect(names(effects)).toContain('closeStream');
    expect(names(effects)).not.toContain('cutLine');
    expect(state).toEqual({ name: 'ended', reason: 'model_lost' });
  });

  it('waits for a goodbye that follows end_call to be said and heard', () => {
    const ends: CallEvent = { type: 'agentEnds', spoken: false, heard: true };
    const said = run(...live, ends, { type: 'agentSpeaks' }, turnOver(false));
    expect(names(said.effects)).not.toContain('cutLine');
    const heard = run(...live, ends, { type: 'agentSpeaks' }, turnOver(false), { type: 'playoutDrained' });
    expect(names(heard.effects)).toContain('cutLine');
  });

  it('does not repeat a goodbye that was said before end_call, and cuts when the model has nothing to add', () => {
    const ends: CallEvent = { type: 'agentEnds', spoken: true, heard: false };
    const { effects } = run(...live, ends, { type: 'playoutDrained' }, turnOver(true));
    expect(names(effects)).toContain('cutLine');
    expect(names(effects)).not.toContain('play');
  });

  it('plays a recorded goodbye when the model does not say one', () => {
    const { state, effects } = run(
      ...live,
      { type: 'callerIdle' },
      { type: 'timer', timer: 'farewellStart' },
      { type: 'playoutDrained' },
    );
    expect(names(effects)).toEqual(expect.arrayContaining(['askFarewell', 'play', 'cutLine']));
    expect(state).toMatchObject({ name: 'ending', reason: 'caller_idle', stage: 'cutting' });
  });

  it('goes on when the caller speaks into a goodbye of the agent, but not past a limit of ours', () => {
    const ends: CallEvent = { type: 'agentEnds', spoken: true, heard: false };
    expect(run(...live, ends, { type: 'interrupted' }).state).toEqual({ name: 'live', streamLost: false });
    const limit = run(...live, { type: 'timer', timer: 'maxDuration' }, { type: 'interrupted' });
    expect(limit.state).toMatchObject({ name: 'ending', reason: 'max_duration' });
  });

  it('keeps its own reason when the caller hangs up while it is ending', () => {
    const { state } = run(...live, { type: 'timer', timer: 'maxDuration' }, { type: 'callerHungUp' });
    expect(state).toEqual({ name: 'ended', reason: 'max_duration' });
  });

  it('never waits longer than its limits, whatever stage it is in', () => {
    for (const start of [
      { type: 'callerIdle' },
      { type: 'agentEnds', spoken: false, heard: true },
      { type: 'modelFailed' },
      { type: 'drainDeadline' },
      { type: 'drainDeadline', handsOver: true },
      { type: 'fault' },
      { type: 'operatorHangsUp' },
    ] as CallEvent[]) {
      const { state } = run(
        ...live,
        start,
        { type: 'timer', timer: 'farewellMax' },
        { type: 'timer', timer: 'cutMax' },
      );
      expect(state.name).toBe('ended');
    }
  });
});

describe('a lost carrier socket', () => {
  it('may come back, and the caller is told', () => {
    const lost = run(...live, { type: 'streamClosed' });
    expect(lost.state).toEqual({ name: 'live', streamLost: true });
    expect(names(lost.effects)).toContain('dropStream');
    const back = run(...live, { type: 'streamClosed' }, { type: 'streamStarted' });
    expect(back.state).toEqual({ name: 'live', streamLost: false });
    expect(names(back.effects)).toContain('welcomeBack');
    expect(names(back.effects).filter((name) => name === 'greet')).toHaveLength(1);
  });

  it('that does not come back is the end of the call', () => {
    const { state } = run(...live, { type: 'streamClosed' }, { type: 'timer', timer: 'streamReturn' });
    expect(state).toEqual({ name: 'ended', reason: 'carrier_lost' });
  });
});

describe('a server that stops', () => {
  it('hands a call over: the model and the socket are closed, the line is not cut', () => {
    for (const before of [live, [{ type: 'streamStarted' }] satisfies CallEvent[]]) {
      const { state, effects } = run(...before, { type: 'drainDeadline', handsOver: true });
      expect(state).toMatchObject({ name: 'ending', reason: 'server_draining', stage: 'cutting' });
      expect(names(effects).slice(-3)).toEqual(['closeModel', 'arm', 'closeStream']);
      expect(names(effects)).not.toContain('cutLine');
    }
  });

  it('tells whoever nobody goes on with', () => {
    const { effects } = run(...live, { type: 'drainDeadline' });
    expect(effects).toContainEqual({ do: 'play', prompt: 'draining' });
  });
});

describe('the machine as a whole', () => {
  const timers = [
    'noStream',
    'streamReturn',
    'maxDuration',
    'farewellStart',
    'transferStart',
    'farewellCap',
    'farewellMax',
    'cutMax',
  ] as const satisfies CallTimer[];
  const anyEvent: fc.Arbitrary<CallEvent> = fc.oneof(
    ...(
      [
        'streamStarted',
        'callerHungUp',
        'streamClosed',
        'modelReady',
        'modelFailed',
        'modelClosed',
        'modelMute',
        'callerIdle',
        'operatorHangsUp',
        'drainDeadline',
        'interrupted',
        'agentSpeaks',
        'playoutDrained',
        'lineCut',
        'fault',
      ] as const
    ).map((type) => fc.constant<CallEvent>({ type })),
    ...(['agentTransfers', 'invocationEnds'] as const).map((type) =>
      fc.boolean().map((heard): CallEvent => ({ type, heard })),
    ),
    fc.boolean().map((isDone): CallEvent => ({ type: 'lineTransferred', isDone })),
    fc.boolean().map((handsOver): CallEvent => ({ type: 'drainDeadline', handsOver })),
    fc.constant<CallEvent>({ type: 'costLimit' }),
    fc.constantFrom(...timers).map((timer): CallEvent => ({ type: 'timer', timer })),
    ...(['agentEnds', 'agentTurnOver'] as const).map((type) =>
      fc.record({ spoken: fc.boolean(), heard: fc.boolean() }).map((said): CallEvent => ({ type, ...said })),
    ),
  );

  it('answers every event in every state, finishes exactly once and then does nothing more', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        const { state, effects } = run(...events);
        const finishes = effects.filter((effect) => effect.do === 'finish');
        expect(finishes).toHaveLength(state.name === 'ended' ? 1 : 0);
      }),
      { numRuns: 2_000 },
    );
  });

  /** Runs events as they can come, with timers only while they are armed; `look` is shown each state. */
  function runArmed(
    events: CallEvent[],
    look: (state: CallState, armed: ReadonlySet<CallTimer>) => void,
  ): void {
    let state: CallState = INITIAL_CALL_STATE;
    const armed = new Set<CallTimer>(['noStream']);
    for (const event of events) {
      if (event.type === 'timer' && !armed.delete(event.timer)) continue;
      const step = transition(state, event);
      state = step.state;
      for (const effect of step.effects) {
        if (effect.do === 'arm') armed.add(effect.timer);
        else if (effect.do === 'disarm') armed.delete(effect.timer);
      }
      look(state, armed);
    }
  }

  it('never waits without a bound: for a stream, for one to come back, for an end', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        runArmed([...live, ...events], (state, armed) => {
          if (state.name === 'ending') {
            const bounds =
              state.stage === 'farewell' || state.stage === 'prompt'
                ? ['farewellMax', 'farewellCap']
                : ['cutMax'];
            expect(bounds.some((timer) => armed.has(timer as CallTimer))).toBe(true);
          } else if (state.name === 'live' && state.streamLost) expect(armed).toContain('streamReturn');
        });
      }),
      { numRuns: 2_000 },
    );
  });

  it('is never live again once its time is up, a failed transfer or an interrupted goodbye notwithstanding', () => {
    const ends = new Set([
      'callerHungUp',
      'operatorHangsUp',
      'modelClosed',
      'modelFailed',
      'streamClosed',
      'fault',
    ]);
    const goingOn = fc.array(
      anyEvent.filter((event) => !ends.has(event.type)),
      { maxLength: 20 },
    );
    const ending = fc.constantFrom<CallEvent>(
      { type: 'agentTransfers', heard: true },
      { type: 'agentEnds', spoken: false, heard: true },
    );
    fc.assert(
      fc.property(ending, goingOn, goingOn, (begins, before, after) => {
        for (const limit of [{ type: 'timer', timer: 'maxDuration' }, { type: 'drainDeadline' }] as const) {
          let { state } = transition(run(...live, begins, ...before).state, limit);
          for (const event of after) {
            expect(state.name).not.toBe('live');
            state = transition(state, event).state;
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('leads nobody on, plays nothing and asks nothing of the model once the line is being cut or is gone', () => {
    const talking = new Set([
      'greet',
      'welcomeBack',
      'askFarewell',
      'play',
      'transfer',
      'tellTransferFailed',
    ]);
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        let state: CallState = INITIAL_CALL_STATE;
        const talk: string[] = [];
        for (const event of events) {
          const isCut = state.name === 'ended' || (state.name === 'ending' && state.stage === 'cutting');
          const step = transition(state, event);
          if (isCut) talk.push(...names(step.effects).filter((name) => talking.has(name)));
          state = step.state;
        }
        expect(talk).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('counts a call as transferred only where the carrier was asked for it', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        const { state, effects } = run(...live, ...events);
        const isTransferred = state.name === 'ended' && state.reason === 'transferred';
        expect(!isTransferred || names(effects).includes('transfer')).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is ended by a caller who hangs up, from wherever it is', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        expect(run(...events, { type: 'callerHungUp' }).state.name).toBe('ended');
      }),
    );
  });
});
