/**
 * Decisive script 3: what every temper of a guard makes of a refund and of a monitor, seen by the model, in the store and by the
 * handler's own count, under each live model's profile; and a denied refund in all modes. Rows C1 to C13.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { functionCalls, functionResponses } from '../../src/event/event.js';
import { type AgentDefinition, definePlugin, defineTool } from '../../src/index.js';
import { DEFAULT_FROM } from '../../src/replay/webhook-params.js';
import { answerTo, desk, linesOf, LIVE_MODELS } from '../support/probe-agents.js';
import type { JsonObject } from '../support/scripted-gemini.js';
import { says, Stage } from '../support/stage.js';

/** How often each handler was begun, by agent and tool. */
const counts = new Map<string, number>();
const REFUND = { status: 'approved', refund_id: 'R-1', message: 'It is refunded.' };

function tools(agentName: string) {
  const count = (tool: string): void => {
    const key = `${agentName} ${tool}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  return [
    defineTool({
      name: 'process_refund',
      description: 'Refunds.',
      execute() {
        count('process_refund');
        return REFUND;
      },
    }),
    defineTool({
      name: 'monitor_stock_price',
      description: 'Watches.',
      async *execute(_args, { signal }) {
        count('monitor_stock_price');
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        yield 'never';
      },
    }),
  ];
}

type Temper = 'none' | 'null' | 'substitute' | 'replace' | 'throw' | 'hang';
interface Row {
  readonly stage: 'before' | 'after';
  readonly who: 'plugin' | 'agent';
  readonly temper: Temper;
  readonly runs: number;
  /** What the model gets of the refund. */
  readonly refund: JsonObject;
  /** Whether the monitor runs. */
  readonly monitors: boolean;
}

const DENIED = { denied: 'by the guard' };
const refused = (who: string, cause: string): JsonObject => ({
  error: expect.stringMatching(new RegExp(`process_refund was refused by ${who}.*${cause}`)) as unknown,
});

const ROWS: readonly Row[] = [
  { stage: 'before', who: 'plugin', temper: 'none', runs: 1, refund: REFUND, monitors: true },
  { stage: 'before', who: 'plugin', temper: 'null', runs: 1, refund: REFUND, monitors: true },
  { stage: 'before', who: 'plugin', temper: 'substitute', runs: 0, refund: DENIED, monitors: false },
  {
    stage: 'before',
    who: 'plugin',
    temper: 'throw',
    runs: 0,
    refund: refused('guard', 'broken'),
    monitors: false,
  },
  {
    stage: 'before',
    who: 'plugin',
    temper: 'hang',
    runs: 0,
    refund: refused('guard', ''),
    monitors: false,
  },
  { stage: 'before', who: 'agent', temper: 'none', runs: 1, refund: REFUND, monitors: true },
  { stage: 'before', who: 'agent', temper: 'null', runs: 1, refund: REFUND, monitors: true },
  { stage: 'before', who: 'agent', temper: 'substitute', runs: 0, refund: DENIED, monitors: false },
  {
    stage: 'before',
    who: 'agent',
    temper: 'throw',
    runs: 0,
    refund: refused('agent', 'broken'),
    monitors: false,
  },
  { stage: 'before', who: 'agent', temper: 'hang', runs: 0, refund: refused('agent', ''), monitors: false },
  { stage: 'after', who: 'plugin', temper: 'null', runs: 1, refund: REFUND, monitors: true },
  { stage: 'after', who: 'plugin', temper: 'replace', runs: 1, refund: DENIED, monitors: true },
  { stage: 'after', who: 'plugin', temper: 'throw', runs: 1, refund: REFUND, monitors: true },
  { stage: 'after', who: 'agent', temper: 'null', runs: 1, refund: REFUND, monitors: true },
  { stage: 'after', who: 'agent', temper: 'replace', runs: 1, refund: DENIED, monitors: true },
  { stage: 'after', who: 'agent', temper: 'throw', runs: 1, refund: { error: 'broken' }, monitors: true },
];

const ACTS: Readonly<Record<Temper, () => unknown>> = {
  none: () => undefined,
  null: () => null,
  substitute: () => DENIED,
  replace: () => DENIED,
  throw: () => {
    throw new Error('broken');
  },
  hang: () => new Promise(() => {}),
};

const nameOf = ({ stage, who, temper }: Row): string => `${stage}-${who}-${temper}`;

/** Counts how often the stage behind the tool was asked: never behind a refusal. */
let afterAsked = 0;

function agentOf(row: Row) {
  const act = ACTS[row.temper];
  const hook = row.stage === 'before' ? { beforeTool: act } : { afterTool: act };
  const plugin = definePlugin({ name: 'guard', ...(row.who === 'plugin' && hook) });
  const witness = definePlugin({ name: 'witness', afterTool: () => void (afterAsked += 1) });
  const name = nameOf(row);
  return desk({
    name,
    tools: tools(name),
    plugins: [witness, plugin],
    ...(row.who === 'agent' && hook),
    runConfig: { guardTimeoutMs: 200 },
  });
}

const denying = desk({
  name: 'denying',
  tools: tools('denying'),
  plugins: [definePlugin({ name: 'guard', beforeTool: ACTS.throw })],
});

let stage: Stage;

async function withCall(agent: string, during: (call: Awaited<ReturnType<Stage['call']>>) => Promise<void>) {
  const call = await stage.call({ agent });
  await during(call);
  call.phone.hangUp();
  await call.over;
  await stage.ended(call.callSid);
  await stage.idle();
  return stage.events(call.callSid, DEFAULT_FROM, agent);
}

const trace: string[] = [];
let audited: string[] = [];
let handlerArgs: unknown;
/** What a plugin heard of a run. */
let watched: string[] = [];

/** Agents for order, trust, edited arguments and contents. */
function extras() {
  const tracing = (name: string, priority: number, value?: unknown) =>
    definePlugin({ name, priority, beforeTool: () => (trace.push(name), value) });
  const callback = { beforeTool: () => void trace.push('a1') };
  const inOrder = (name: string, value: unknown, more: Partial<AgentDefinition>) =>
    desk({ name, tools: tools(name), plugins: [tracing('p2', 2), tracing('p1', 1, value)], ...more });
  const echo = defineTool({
    name: 'echo',
    description: 'Echoes.',
    execute(args) {
      handlerArgs = args;
      return { ok: true };
    },
  });
  const native = defineTool({
    name: 'native',
    description: 'Trusted.',
    trusted: true,
    execute: () => ({ ok: true }),
  });
  const audit = definePlugin({ name: 'audit', beforeTool: ({ tool }) => void audited.push(tool) });
  const edit = definePlugin({
    name: 'edit',
    beforeTool({ args }) {
      args['amount'] = 5;
    },
  });
  const contents = definePlugin({
    name: 'contents',
    beforeTool: ({ args }) =>
      args['as'] === 'text'
        ? { role: 'user', parts: [{ text: 'Not ' }, { text: 'today.' }] }
        : { role: 'user', parts: [{ functionResponse: { name: 'echo', response: { not: 'today' } } }] },
  });
  const watcher = definePlugin({
    name: 'watcher',
    onEvent(event) {
      watched.push(event.partial === true ? 'fragment' : (linesOf([event])[0] ?? 'other'));
      for (const key of Object.keys(event)) Reflect.deleteProperty(event, key);
    },
  });
  const failing = definePlugin({
    name: 'failing',
    onEvent: () => Promise.reject(new Error('broken')) as never,
  });
  return [
    desk({ name: 'watched', tools: [echo], plugins: [failing, watcher] }),
    inOrder('all-pass', undefined, callback),
    inOrder('first-decides', { no: true }, callback),
    desk({ name: 'editing', tools: [echo, native], plugins: [audit, edit] }),
    desk({ name: 'contents', tools: [echo], plugins: [contents] }),
  ];
}

describe.each(LIVE_MODELS)('under the profile of %s', (modelName) => {
  beforeAll(async () => {
    counts.clear();
    const rows = ROWS.map((row) => agentOf(row));
    stage = await Stage.open({ GEMINI_MODEL: modelName }, systemClock, [denying, ...rows, ...extras()]);
  });
  afterAll(() => stage.close());

  describe('C1 C2 C3 C4 C5 C7 C8 C13: a guard', () => {
    it.each(ROWS.map((row) => [nameOf(row), row] as const))('%s', async (name, row) => {
      afterAsked = 0;
      const events = await withCall(name, async ({ model }) => {
        model.toolCall(
          { id: 'r1', name: 'process_refund', args: { order_id: 'A-10293' } },
          { id: 'm1', name: 'monitor_stock_price', args: { stock_symbol: 'XYZ' } },
        );
        expect((await answerTo(model, 'r1')).response).toEqual(row.refund);
        const { response } = await answerTo(model, 'm1');
        const { body } = await stage.json('/debug/runs');
        expect(body['streamingTools']).toBe(row.monitors ? 1 : 0);
        if (row.monitors) expect(response).toMatchObject({ status: 'pending' });
        else expect(JSON.stringify(response)).toMatch(/denied|monitor_stock_price was refused/);
      });
      expect(counts.get(`${name} process_refund`) ?? 0).toBe(row.runs);
      expect(counts.get(`${name} monitor_stock_price`) ?? 0).toBe(row.monitors ? 1 : 0);
      if (row.stage === 'before' && ['throw', 'hang'].includes(row.temper)) expect(afterAsked).toBe(0);
      expect(events.flatMap((event) => functionCalls(event)).map(({ id }) => id)).toEqual(['r1', 'm1']);
      const stored = events.flatMap((event) => functionResponses(event));
      expect(stored.find(({ id }) => id === 'r1')?.response).toEqual(row.refund);
      expect(stored.filter(({ id }) => id === 'm1')).toHaveLength(1);
    });
  });

  describe('C12: a refund that is denied', () => {
    const denied = /process_refund was refused by guard.*broken/;

    it('is denied by phone', async () => {
      await withCall('denying', async ({ model }) => {
        model.toolCall({ id: 'r1', name: 'process_refund' });
        expect(JSON.stringify((await answerTo(model, 'r1')).response)).toMatch(denied);
      });
      expect(counts.get('denying process_refund')).toBeUndefined();
    });

    it.each(['/run', '/run_sse'])('is denied by %s', async (door) => {
      stage.textModel.answer = (asked) => {
        if (asked.contents.at(-1)?.parts.some((part) => part.functionResponse !== undefined) === true)
          asked.answers('That did not work.');
        else asked.calls('process_refund', 'r1');
      };
      const session = `denied by ${door}`;
      if (door === '/run') {
        const { body } = await stage.run(session, 'Refund me.');
        expect(body['tools']).toEqual([{ callId: 'r1', name: 'process_refund', state: 'error' }]);
      } else {
        const chat = stage.stream(session, 'Refund me.');
        await chat.ended();
        expect(chat.of('tool').map(({ state }) => state)).toEqual(['running', 'error']);
      }
      const told = stage.textModel.asked.at(-1)!.contents.at(-1)!.parts[0]!.functionResponse;
      expect(JSON.stringify(told)).toMatch(denied);
      const events = await stage.events(session);
      const responses = events.flatMap((event) => functionResponses(event));
      expect(JSON.stringify(responses)).toMatch(denied);
      expect(counts.get('denying process_refund')).toBeUndefined();
    });
  });

  describe('guards in a call', () => {
    it.each([
      ['all-pass', ['p1', 'p2', 'a1']],
      ['first-decides', ['p1']],
    ])('C9: come in the order of priority, the agent’s own last: %s', async (agent, order) => {
      trace.length = 0;
      await withCall(agent, async ({ model }) => {
        model.toolCall({ id: 'r1', name: 'process_refund' });
        await answerTo(model, 'r1');
      });
      expect(trace).toEqual(order);
    });

    it('C10 C11 D13: see governed tools and no trusted one; what they edit reaches the handler, the event keeps the original', async () => {
      audited = [];
      const events = await withCall('editing', async ({ model }) => {
        model.toolCall({ id: 'e1', name: 'echo', args: { amount: 500 } }, { id: 'n1', name: 'native' });
        await answerTo(model, 'n1');
      });
      expect(audited).toEqual(['echo']);
      expect(handlerArgs).toEqual({ amount: 5 });
      expect(events.flatMap((event) => functionCalls(event))[0]?.args).toEqual({ amount: 500 });
      expect(events.flatMap((event) => functionResponses(event)).map(({ id }) => id)).toEqual(
        expect.arrayContaining(['e1', 'n1']),
      );
    });

    it('hear every event of a run, and neither change nor break it', async () => {
      watched = [];
      const events = await withCall('watched', async ({ model, callSid }) => {
        const page = await stage.watch(callSid);
        model.toolCall({ id: 'c1', name: 'echo' });
        await answerTo(model, 'c1');
        says(model, 'There.', { ms: 200 });
        await page.until('the words', ({ sealed }) => sealed.includes('done: There.'));
      });
      expect(watched).toEqual(['call c1', 'response c1', 'fragment', 'watched: There.']);
      expect(linesOf(events)).toEqual(['call c1', 'response c1', 'watched: There.']);
      expect(stage.errors.filter((line) => line.includes('a plugin that watches'))).toHaveLength(4);
    });

    it('C6: a content is told as its payload, or as its text', async () => {
      await withCall('contents', async ({ model }) => {
        model.toolCall({ id: 't1', name: 'echo', args: { as: 'text' } }, { id: 'p1', name: 'echo' });
        expect((await answerTo(model, 't1')).response).toEqual({ result: 'Not today.' });
        expect((await answerTo(model, 'p1')).response).toEqual({ not: 'today' });
      });
    });
  });
});
