/** Runs in text over time: what stops one, and what is counted of it. */
import { bareTools } from '../support/bare-tools.js';
import { describe, expect, it } from 'vitest';
import { defineAgent, type Agent, type AgentDefinition } from '../../src/agent/agent.js';
import { defineTool } from '../../src/agent/tool.js';
import { nextTurn } from '../../src/clock.js';
import type { Event } from '../../src/event/event.js';
import { CLOSE_TOLD_MAX_MS, TEXT_RUN_MAX_MS } from '../../src/limits.js';
import type { GenerateText } from '../../src/model/text-model.js';
import { silentLog } from '../../src/observe/log.js';
import type { RunObserver } from '../../src/observe/run-observer.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { TextRuns, type TextRunsOptions } from '../../src/run/text-runs.js';
import { MemorySink } from '../wire/memory-sink.js';

/** Says half a sentence and then nothing, until it is called off. */
const hangs: GenerateText = async function* (_request, signal) {
  yield { type: 'text', text: 'Half a' };
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
};

function rig(
  generate: GenerateText = hangs,
  instruction: Agent['instruction'] = 'Be brief.',
  append: TextRunsOptions['writer']['append'] = async () => ({ stored: true, seq: 1 }),
  definition: Partial<AgentDefinition> = {},
) {
  const clock = new VirtualClock();
  const observed: unknown[][] = [];
  const observerOf = (mode: string): RunObserver =>
    new Proxy({} as RunObserver, {
      get:
        (_target, name) =>
        (...args: unknown[]) =>
          void observed.push([name, mode, ...args]),
    });
  const runs = new TextRuns({
    agent: defineAgent({ name: 'support', instruction, ...definition }),
    generate,
    store: { createSession: async () => true, getSession: async () => undefined },
    writer: { append },
    isBusy: () => false,
    tools: bareTools(clock),
    recall: async () => undefined,
    observerOf,
    clock,
    log: silentLog,
  });
  return { clock, runs, observed };
}

const request = { userId: 'ada', sessionId: 's1', message: 'Well?', mode: 'sse' } as const;

describe('runs in text', () => {
  it('I5: end when their time is over, with an error that closes the message', async () => {
    const { clock, runs, observed } = rig();
    const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
    const sink = new MemorySink();
    broadcast.watch(sink, { fromStart: true });
    while (sink.state.messages.length < 2) await nextTurn();
    clock.advance(TEXT_RUN_MAX_MS);
    expect(await outcome).toBe('stopped');
    while (!sink.isGone) await nextTurn();
    expect(sink.state.isOver).toBe(true);
    expect(sink.state.messages.map(({ status, text }) => `${status} ${text}`)).toEqual([
      'done Well?',
      'failed ',
    ]);
    expect(observed.at(-1)).toEqual(['onStreamEnded', 'sse', 'error']);
    expect(runs.count).toBe(0);
  });

  it('X22: end when the minutes are over that the agent grants, whoever is at work, as an error that is stored', async () => {
    let hasBegun = false;
    const slow = defineTool({
      name: 'slow',
      description: 'Waits.',
      execute() {
        hasBegun = true;
        return new Promise(() => {});
      },
    });
    const calls: GenerateText = async function* () {
      yield { type: 'functionCalls', functionCalls: [{ id: 'c1', name: 'slow', args: {} }] };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
      await nextTurn();
    };
    for (const generate of [hangs, calls]) {
      const stored: Event[] = [];
      const { clock, runs, observed } = rig(
        generate,
        'Be brief.',
        async (_session, event) => ({ stored: true, seq: stored.push(event) }),
        { tools: [slow], runConfig: { limits: { maxMinutes: 0.5 } } },
      );
      const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
      const sink = new MemorySink();
      broadcast.watch(sink, { fromStart: true });
      const isBegun = (): boolean => (generate === hangs ? sink.state.messages.length === 2 : hasBegun);
      while (!isBegun()) await nextTurn();
      clock.advance(29_999);
      await nextTurn();
      expect(runs.count).toBe(1);
      clock.advance(1);
      expect(await outcome).toBe('error');
      expect(stored.at(-1)).toMatchObject({ errorCode: 'cost_limit' });
      expect(observed.at(-1)).toEqual(['onStreamEnded', 'sse', 'error']);
    }
  });

  it('X22: are one turn, however many functions are in it', async () => {
    let round = 0;
    const look = defineTool({ name: 'look', description: 'Looks.', execute: () => ({ round }) });
    const asks: GenerateText = async function* () {
      round += 1;
      await nextTurn();
      if (round < 4) yield { type: 'functionCalls', functionCalls: [{ id: 'c', name: 'look', args: {} }] };
      else yield { type: 'text', text: 'Done.' };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
    };
    const { runs } = rig(asks, undefined, undefined, {
      tools: [look],
      runConfig: { limits: { maxTurns: 1 } },
    });
    const { outcome } = await runs.start(request, new AbortController().signal);
    expect(await outcome).toBe('done');
    expect(round).toBe(4);
  });

  it('X22: call no more functions once the tokens are used up, and may still finish what is being said', async () => {
    const usage = { promptTokens: { TEXT: 900 }, responseTokens: { TEXT: 200 }, totalTokenCount: 1_100 };
    for (const [what, expected] of [
      ['answer', 'done'],
      ['calls', 'error'],
    ] as const) {
      const generate: GenerateText = async function* () {
        await nextTurn();
        if (what === 'answer') yield { type: 'text', text: 'Done.' };
        else yield { type: 'functionCalls', functionCalls: [{ id: 'c', name: 'look', args: {} }] };
        yield { type: 'usageMetadata', usage };
        yield { type: 'end', finishReason: 'STOP', parts: [] };
      };
      const { runs } = rig(generate, undefined, undefined, { runConfig: { limits: { maxTokens: 1_000 } } });
      const { outcome } = await runs.start(request, new AbortController().signal);
      expect([what, await outcome]).toEqual([what, expected]);
    }
  });

  it('I3: end when the client leaves or the server stops, and are counted as disconnected', async () => {
    for (const stop of ['client', 'server'] as const) {
      const { runs, observed } = rig();
      const controller = new AbortController();
      const { outcome } = await runs.start(request, controller.signal);
      if (stop === 'client') controller.abort();
      else await runs.close();
      expect(await outcome).toBe('stopped');
      expect(observed.at(-1)).toEqual(['onStreamEnded', 'sse', 'disconnected']);
    }
  });

  it('go on while the server drains, which takes no other and is over with the last one', async () => {
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { runs } = rig(async function* () {
      yield { type: 'text', text: 'Half a ' };
      await held;
      yield { type: 'text', text: 'sentence.' };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
    });
    const { outcome } = await runs.start(request, new AbortController().signal);
    let isDrained = false;
    const drained = runs.drain().then(() => (isDrained = true));
    await expect(
      runs.start({ ...request, sessionId: 's2' }, new AbortController().signal),
    ).rejects.toMatchObject({ code: 'server_draining' });
    await nextTurn();
    expect(isDrained).toBe(false);
    goOn();
    expect(await outcome).toBe('done');
    await drained;
  });

  it('are cut when the server closes, and told why', async () => {
    const { clock, runs } = rig();
    const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
    const sink = new MemorySink();
    broadcast.watch(sink, { fromStart: true });
    while (sink.state.messages.length < 2) await nextTurn();
    const drained = runs.drain();
    await runs.close();
    await drained;
    expect(await outcome).toBe('stopped');
    while (!sink.isGone) await nextTurn();
    expect(sink.frames.at(-1)?.frame).toMatchObject({ type: 'error', code: 'server_draining', fatal: true });
    expect(clock.pendingTimers).toBe(0);
  });

  it('are refused where the author’s instruction is none, and the session is free again', async () => {
    const bad: [string, () => unknown][] = [
      [
        'throws',
        () => {
          throw new Error('no such user');
        },
      ],
      ['gives nothing', () => undefined],
      ['gives no words', () => ' '],
      ['gives a number', () => 7],
      ['gives a promise', () => Promise.resolve('Be brief.')],
    ];
    for (const [how, instruction] of bad) {
      const { runs, observed } = rig(hangs, instruction as () => string);
      const started = runs.start(request, new AbortController().signal);
      const refused = await started.then(() => 'started', String);
      expect(`${how}: ${refused}`).toMatch(/instruction function threw|must return a string/u);
      expect(observed.at(-1)).toEqual(['onStreamEnded', 'sse', 'error']);
      expect(runs.count).toBe(0);
    }
  });

  it('end with an error, and nothing else does, where a fault of ours breaks one', async () => {
    const { runs, observed } = rig(async function* () {
      yield { type: 'functionCalls', functionCalls: [{ id: '', name: '', args: {} }] };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
    });
    const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
    const sink = new MemorySink();
    broadcast.watch(sink, { fromStart: true });
    expect(await outcome).toBe('error');
    while (!sink.isGone) await nextTurn();
    expect(observed.at(-1)).toEqual(['onStreamEnded', 'sse', 'error']);
    expect(runs.count).toBe(0);
  });

  it('are told as cut when the server stops and the store does not answer', async () => {
    const answers: GenerateText = async function* () {
      yield { type: 'text', text: 'Here it is.' };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
    };
    const { clock, runs } = rig(answers, 'Be brief.', () => new Promise(() => {}));
    const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
    const sink = new MemorySink();
    broadcast.watch(sink, { fromStart: true });
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    const closed = runs.close();
    while (!sink.isGone) {
      clock.advance(500);
      await nextTurn();
    }
    await outcome;
    await closed;
    expect(sink.state.failures.at(-1)).toMatchObject({ code: 'server_draining', fatal: true });
    expect(clock.nowMs()).toBeLessThanOrEqual(CLOSE_TOLD_MAX_MS);
  });

  it('A18: keep a function that is called before the first word on the message of those words', async () => {
    let asked = 0;
    const callsFirst: GenerateText = async function* () {
      asked += 1;
      if (asked === 1) {
        yield { type: 'functionCalls', functionCalls: [{ id: 'c1', name: 'look_up', args: {} }] };
        yield {
          type: 'end',
          finishReason: 'STOP',
          parts: [{ functionCall: { id: 'c1', name: 'look_up', args: {} } }],
        };
        return;
      }
      yield { type: 'text', text: 'Found.' };
      yield { type: 'end', finishReason: 'STOP', parts: [{ text: 'Found.' }] };
    };
    const { runs } = rig(callsFirst);
    const { broadcast, outcome } = await runs.start(request, new AbortController().signal);
    const sink = new MemorySink();
    broadcast.watch(sink, { fromStart: true });
    expect(await outcome).toBe('done');
    while (!sink.isGone) await nextTurn();
    expect(sink.state.messages.map(({ role, text, status }) => [role, text, status])).toEqual([
      ['user', 'Well?', 'done'],
      ['model', 'Found.', 'done'],
    ]);
  });

  it('take one run at a time in a session, and count none that was refused', async () => {
    const { runs, observed } = rig();
    await runs.start(request, new AbortController().signal);
    await expect(runs.start(request, new AbortController().signal)).rejects.toMatchObject({
      code: 'run_conflict',
    });
    expect(observed.filter(([name]) => name === 'onStreamStarted')).toHaveLength(1);
    await runs.close();
  });

  it('count first event and gaps by the clock, from the message’s receipt', async () => {
    let clock = new VirtualClock();
    const built = rig(async function* () {
      clock.advance(300);
      yield { type: 'text', text: 'One ' };
      clock.advance(200);
      yield { type: 'text', text: 'two.' };
      yield { type: 'end', finishReason: 'STOP', parts: [] };
    });
    clock = built.clock;
    const { outcome } = await built.runs.start(request, new AbortController().signal);
    await outcome;
    expect(built.observed).toEqual([
      ['onStreamStarted', 'sse'],
      ['onFirstEvent', 'sse', 'reply', 300],
      ['onDeltaGap', 'sse', 'model', 200],
      ['onStreamEnded', 'sse', 'done'],
    ]);
  });
});
