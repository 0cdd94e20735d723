/**
 * Decisive script 4: the life of monitors in a call, minutes of it, on a virtual clock with the agent that ships; and what a
 * tool with an input stream gets of the caller. Rows B1 to B14, X5, X6, X20.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import monitor from '../../agents/monitor.js';
import { loadPrompts } from '../../src/call/prompts.js';
import { systemClock } from '../../src/clock.js';
import { type Agent, defineAgent, defineTool, type Tool } from '../../src/index.js';
import type { FunctionCall } from '../../src/model/live-connection.js';
import type { ToolRuns } from '../../src/tool/tool-runs.js';
import { bareTools } from '../support/bare-tools.js';
import { CallRig, type FakeModel, type FakeStream, FRAME } from '../support/call-rig.js';
import { desk } from '../support/probe-agents.js';
import { Stage } from '../support/stage.js';

// The agent waits by Node's own timers; here they are the call's.
vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn<typeof wait>() }));
const waits = vi.mocked(wait);

/** What the caller says. */
const SPEECH = loadPrompts().apology;
const STOCK = 'monitor_stock_price';
const AUDIO = 'monitor_caller_audio';

class MonitorCall {
  #ids = 0;

  private constructor(
    readonly rig: CallRig,
    readonly tools: ToolRuns,
    readonly stream: FakeStream,
    readonly model: FakeModel,
  ) {}

  static async open(agent: Agent): Promise<MonitorCall> {
    let tools: ToolRuns | undefined;
    const rig = new CallRig({ agent, deps: { openTools: (run) => tools!.open(run), idleRepromptMs: 0 } });
    tools = bareTools(rig.clock);
    waits.mockImplementation((ms, value, options) => waited(rig, ms ?? 0, value, options?.signal));
    const { stream, model } = await rig.greeted();
    return new MonitorCall(rig, tools, stream, model);
  }

  get counts(): { streamingTools: number; inputStreams: number } {
    const { streamingTools = 0, inputStreams = 0 } = this.tools.counts();
    return { streamingTools, inputStreams };
  }

  /** What the model was told by itself since it was last asked. */
  get told(): string[] {
    return this.model.texts.filter((text) => text.startsWith('Your tool')).map((text) => text.slice(10));
  }

  async calls(...calls: readonly (readonly [string, object?])[]): Promise<readonly object[]> {
    const functionCalls = calls.map(([name, args = {}]) => ({ id: `c${(this.#ids += 1)}`, name, args }));
    this.model.listener.onToolCall(functionCalls as FunctionCall[]);
    await this.rig.turns();
    const answer = (id: string) => this.model.responses.filter((response) => response.id === id);
    const answers = functionCalls.map(({ id }) => answer(id));
    if (answers.some(({ length }) => length !== 1)) throw new Error('a call was not answered once');
    return answers.map(([first]) => first!.response);
  }

  /** Time goes by with a caller on the line, who says `voice` or nothing. */
  async pass(ms: number, voice?: 'speaking'): Promise<void> {
    for (let at = 0; at < ms; at += 20) {
      const from = (at * 8) % (SPEECH.length - 160);
      const frame = voice === undefined ? FRAME : SPEECH.subarray(from, from + 160);
      this.stream.listener?.onMedia(frame, this.#sentAtMs());
      this.rig.clock.advance(20);
      await this.rig.turns();
    }
  }

  #sentAtMs(): number {
    return Math.round(this.rig.clock.nowMs() - 1_000_000);
  }

  /** The model says what it was told, and the caller hears it. */
  async says(words: string, ms = 600): Promise<void> {
    this.model.say(words, ms);
    await this.pass(ms + 200);
  }

  async hangUp(): Promise<void> {
    this.stream.listener!.onStop();
    await this.rig.turns();
  }
}

/** Node's timer, by the rig's clock. */
function waited(rig: CallRig, ms: number, value: unknown, signal?: AbortSignal): Promise<never> {
  return new Promise((resolve, reject) => {
    const timer = rig.clock.setTimer(ms, () => resolve(value as never));
    signal?.addEventListener('abort', () => {
      timer.cancel();
      reject(signal.reason as Error);
    });
  });
}

const price = (value: number): string => `${STOCK} reports: The price for XYZ is ${value}`;

describe('the life of monitors', () => {
  it('B2 B3 B4 B8 B9 B14 X6: begun, answered at once, told in pauses, one stopped and called anew', async () => {
    const call = await MonitorCall.open(monitor);
    expect(call.counts).toEqual({ streamingTools: 0, inputStreams: 0 });
    const answers = await call.calls([STOCK, { stock_symbol: '$XYZ' }], [AUDIO]);
    expect(answers).toMatchObject([{ status: 'pending' }, { status: 'pending' }]);
    expect(call.counts).toEqual({ streamingTools: 2, inputStreams: 1 });
    // The model speaks over the fourth second: the price waits until it has ended.
    call.model.say('I will watch it, and I will tell you at once when anything changes.', 4_500, {
      generationComplete: false,
      turnComplete: false,
    });
    await call.pass(5_000);
    expect(call.told).toEqual([]);
    call.model.listener.onGenerationComplete();
    call.model.listener.onTurnComplete(undefined);
    await call.pass(1_200);
    expect(call.told).toEqual([price(300)]);
    await call.says('It is at 300.');
    await call.pass(1_800);
    expect(call.told).toEqual([price(300), price(400)]);
    await call.says('It is at 400.');
    const [stopped] = await call.calls(['stop_streaming', { function_name: STOCK }]);
    expect(stopped).toMatchObject({ status: 'stopped' });
    expect(call.counts).toEqual({ streamingTools: 1, inputStreams: 1 });
    await call.pass(50_000);
    expect(call.told).toEqual([price(300), price(400)]);
    // The other one still reports.
    await call.pass(2_000, 'speaking');
    await call.pass(3_000);
    expect(call.told.slice(2).join('\n')).toMatch(/^monitor_caller_audio reports: .*(speaking|noisy)/);
    await call.says('I hear you.');
    await call.pass(2_000);
    await call.says('And now I do not.');
    const before = call.told.filter((text) => text.startsWith(STOCK)).length;
    await call.calls([STOCK, { stock_symbol: 'XYZ' }]);
    await call.pass(5_500);
    expect(call.told.filter((text) => text.startsWith(STOCK)).slice(before)).toEqual([price(300)]);
    await call.hangUp();
    // B12: it ends with the call.
    expect(call.counts).toEqual({ streamingTools: 0, inputStreams: 0 });
    await call.rig.advance(20);
    expect(call.rig.clock.pendingTimers).toBe(0);
  });

  it('X6: of each tool only the newest value waits', async () => {
    const call = await MonitorCall.open(monitor);
    await call.calls([STOCK, { stock_symbol: 'XYZ' }]);
    call.model.say('A long story.', 9_000, { generationComplete: false, turnComplete: false });
    await call.pass(9_500);
    expect(call.told).toEqual([]);
    call.model.listener.onTurnComplete(undefined);
    await call.pass(1_500);
    expect(call.told).toEqual([price(400)]);
    await call.hangUp();
  });

  it('B9: a stop forgets what waits', async () => {
    const call = await MonitorCall.open(monitor);
    await call.calls([STOCK, { stock_symbol: 'XYZ' }]);
    call.model.say('A long story.', 5_000, { generationComplete: false, turnComplete: false });
    await call.pass(4_500);
    await call.calls(['stop_streaming', { function_name: STOCK }]);
    call.model.listener.onTurnComplete(undefined);
    await call.pass(10_000);
    expect(call.told).toEqual([]);
    await call.hangUp();
  });

  it('B11 X20: a stop of nothing is harmless; a monitor that runs is not begun twice, with other arguments anew', async () => {
    const call = await MonitorCall.open(monitor);
    const [idle, unknown] = await call.calls(
      ['stop_streaming', { function_name: STOCK }],
      ['stop_streaming', { function_name: 'nope' }],
    );
    expect(JSON.stringify([idle, unknown])).not.toContain('"error"');
    await call.calls([STOCK, { stock_symbol: 'XYZ' }]);
    const [again] = await call.calls([STOCK, { stock_symbol: 'XYZ' }]);
    expect(again).toMatchObject({ status: 'running' });
    await call.pass(3_000);
    await call.calls([STOCK, { stock_symbol: 'ABC' }]);
    expect(call.counts.streamingTools).toBe(1);
    await call.pass(5_500);
    expect(call.told).toEqual([`${STOCK} reports: The price for ABC is 300`]);
    await call.hangUp();
  });
});

/** A tool that counts the frames it gets; `watches` reads none. */
function counting(name: string, seen: number[], inputStream?: true): Tool {
  return defineTool({
    name,
    description: 'Counts.',
    ...(inputStream && { inputStream }),
    async *execute(_args, { inputStream: frames, signal }) {
      const at = seen.push(0) - 1;
      try {
        if (frames === undefined) await waitForEnd(signal);
        else for await (const frame of frames) seen[at]! += frame.data.length / 640;
      } finally {
        ended.push(name);
      }
      yield* [];
    },
  });
}

function waitForEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve());
  });
}

const ended: string[] = [];
beforeEach(() => {
  ended.length = 0;
});

describe('a copy of the caller’s sound', () => {
  it('B5 B6 B7 B10: goes to whoever declared it, whole, from the call on, and begins anew', async () => {
    const [left, right, none]: [number[], number[], number[]] = [[], [], []];
    const tools = [counting('left', left, true), counting('right', right, true), counting('none', none)];
    const call = await MonitorCall.open(defineAgent({ name: 'desk', instruction: 'Serve.', tools }));
    await call.pass(200);
    await call.calls(['left'], ['right'], ['none']);
    expect(call.counts).toEqual({ streamingTools: 3, inputStreams: 2 });
    const sent = call.model.audioMessages;
    await call.pass(1_000);
    expect([left, right, none]).toEqual([[50], [50], [0]]);
    expect(call.model.audioMessages - sent).toBe(50);
    await call.calls(['stop_streaming', { function_name: 'left' }]);
    expect(ended).toEqual(['left']);
    await call.pass(400);
    await call.calls(['left']);
    await call.pass(100);
    expect([left, right]).toEqual([[50, 5], [75]]);
    await call.hangUp();
    expect(ended.toSorted()).toEqual(['left', 'left', 'none', 'right']);
  });

  it('B8: a tool that looks now and then sees the newest, and reports changes only', async () => {
    const readings = ['A', 'A', 'B', 'B', 'A'];
    let looks = 0;
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      inputStream: true,
      async *execute(_args, { inputStream, signal }) {
        let last = 'A';
        while (looks < readings.length) {
          await wait(500, undefined, { signal });
          if (inputStream?.drainLatest() === undefined) continue;
          const now = readings[looks]!;
          looks += 1;
          if (now !== last) yield `now ${now}`;
          last = now;
        }
      },
    });
    const call = await MonitorCall.open(defineAgent({ name: 'desk', instruction: 'Serve.', tools: [look] }));
    await call.calls(['look']);
    await call.pass(1_900);
    await call.says('B.');
    await call.pass(2_000);
    expect(call.told).toEqual(['look reports: now B', 'look reports: now A']);
    // It has ended by itself.
    expect(call.counts).toEqual({ streamingTools: 0, inputStreams: 0 });
    await call.hangUp();
  });

  it('B13: one that throws is over, and the model is told no more than that', async () => {
    const breaks = defineTool({
      name: 'breaks',
      description: 'Breaks.',
      async *execute() {
        yield { count: 1 };
        throw new Error('secret detail');
      },
    });
    const call = await MonitorCall.open(
      defineAgent({ name: 'desk', instruction: 'Serve.', tools: [breaks] }),
    );
    await call.calls(['breaks']);
    // Its last value is told first; the failure waits for the next pause.
    await call.pass(12_000);
    expect(call.told).toEqual(['breaks reports: {"count":1}', 'breaks has failed and is over.']);
    expect(call.counts.streamingTools).toBe(0);
    await call.hangUp();
  });
});

describe('B1: a streaming tool', () => {
  let stage: Stage | undefined;
  afterAll(() => stage?.close());

  it('is refused in a run in text, and its objects reach a live model as JSON', async () => {
    const count = defineTool({
      name: 'count',
      description: 'Counts.',
      async *execute() {
        yield { count: 1 };
      },
    });
    stage = await Stage.open({}, systemClock, [desk({ tools: [count] })]);
    stage.textModel.answer = (asked) => {
      if (asked.told.at(-1)?.includes('[response]') === true) asked.answers('I cannot.');
      else asked.calls('count', 'c1');
    };
    await stage.run('text', 'Count.');
    const told = stage.textModel.asked.at(-1)!.contents.at(-1)!.parts[0]!.functionResponse;
    expect(JSON.stringify(told)).toContain('count was refused: it streams, which needs a live conversation');
    const { model, phone, over } = await stage.call();
    model.toolCall({ id: 'c1', name: 'count' });
    await model.waitUntil(() => model.receivedTextInputs.includes('Your tool count reports: {"count":1}'));
    phone.hangUp();
    await over;
    await stage.idle();
  });
});
