/**
 * State and files that tools write, whatever ends their run: a hang-up, a client that leaves, a text run's end. And what a tool
 * must not write, which it is told where it does. Rows D3, D7, D14.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../../src/clock.js';
import { type Event, functionResponses } from '../../src/event/event.js';
import { defineTool, type ToolContext } from '../../src/index.js';
import { DEFAULT_FROM } from '../../src/replay/webhook-params.js';
import { answerTo, desk, linesOf } from '../support/probe-agents.js';
import { Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let stage: Stage;
afterEach(() => stage.close());

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

/** Tools that have written something when the run ends, and write more behind that. */
const pay = defineTool({
  name: 'pay',
  description: 'Pays, and goes on behind the end.',
  async execute(_args, ctx) {
    ctx.state['user:step'] = 'paid';
    await ctx.saveArtifact('receipt', Uint8Array.of(1), 'text/plain');
    ctx.state['began'] = true;
    await aborted(ctx.signal);
    ctx.state['user:step'] = 'paid, and told by nobody';
    await wait(20);
    await ctx.saveArtifact('receipt', Uint8Array.of(1, 2), 'text/plain');
  },
});
const watch = defineTool({
  name: 'watch',
  description: 'Watches.',
  async *execute(_args, ctx) {
    ctx.state['user:subscribed'] = 'XYZ';
    try {
      yield 'It is watched.';
      ctx.state['user:seen'] = 1;
      await aborted(ctx.signal);
    } finally {
      ctx.state['user:subscribed'] = null;
      ctx.state['user:left'] = true;
    }
  },
});
const bake = defineTool({
  name: 'bake',
  description: 'Bakes for long.',
  longRunning: true,
  async execute(_args, ctx) {
    ctx.state['user:oven'] = 'on';
    try {
      await aborted(ctx.signal);
      throw new Error('stopped');
    } finally {
      ctx.state['user:oven'] = 'off';
    }
  },
});

const actionsOf = (events: readonly Event[]) =>
  events
    .map(({ actions: { stateDelta, artifactDelta } }) => ({ ...stateDelta, ...artifactDelta }))
    .filter((changes) => Object.keys(changes).length > 0);

const AFTER = {
  'user:step': 'paid, and told by nobody',
  began: true,
  'user:seen': 1,
  'user:left': true,
  'user:subscribed': null,
  'user:oven': 'off',
};

/** The state of the session in the end, when all of it is told by events. */
async function keptIn(sessionId: string, userId = DEFAULT_FROM): Promise<object> {
  await waitUntil('what was changed behind the end', async () => {
    const { events } = await stage.session(sessionId, userId);
    return actionsOf(events).some((changes) => 'receipt' in changes && changes['receipt'] === 1);
  });
  await stage.idle();
  const { state, events } = await stage.session(sessionId, userId);
  // What was changed until then stands with the response that says that the call was cut.
  const cut = events.find((event) => functionResponses(event).some(({ name }) => name === 'pay'));
  expect(cut?.actions).toEqual({
    stateDelta: { 'user:step': 'paid', began: true },
    artifactDelta: { receipt: 0 },
  });
  expect(actionsOf(events)).toContainEqual({ 'user:seen': 1 });
  // The state is the sum of what the events tell.
  expect(Object.assign({}, ...events.map(({ actions }) => actions.stateDelta))).toEqual(state);
  expect(stage.errors).toEqual([]);
  return state;
}

const CALLS = ['pay', 'watch', 'bake'].map((name, at) => ({ id: `c${at + 1}`, name, args: {} }));

describe('what tools have changed when a run ends, and change behind it', () => {
  it('D3 D7 D14: is in the session after a hang-up', async () => {
    stage = await Stage.open({}, systemClock, [desk({ tools: [pay, watch, bake] })]);
    const call = await stage.call();
    call.model.toolCall(...CALLS);
    await begun(call.callSid);
    call.phone.hangUp();
    await call.over;
    expect(await keptIn(call.callSid)).toEqual(AFTER);
  });

  it('D3 D7 D14: is in the session after a web client has left', async () => {
    stage = await Stage.open({}, systemClock, [desk({ tools: [pay, watch, bake] })]);
    const socket = new WebSocket(`${stage.url.replace('http', 'ws')}/run_live`);
    socket.on('open', () => socket.send(JSON.stringify({ type: 'start', userId: 'ada', sessionId: 'web' })));
    const model = await stage.gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    model.toolCall(...CALLS);
    await begun('web', 'ada');
    socket.send(JSON.stringify({ type: 'end' }));
    expect(await keptIn('web', 'ada')).toEqual(AFTER);
    socket.terminate();
  });

  it('D3 D14: is in the session of a text run that was left, or went on past its slow work', async () => {
    const release = new AbortController();
    let isHeld = false;
    const hold = defineTool({
      name: 'hold',
      description: 'Holds the run.',
      async execute(_args, ctx) {
        ctx.state['held'] = true;
        isHeld = true;
        await aborted(release.signal);
        ctx.state['released'] = true;
      },
    });
    stage = await Stage.open({}, systemClock, [desk({ tools: [hold, bake] })]);
    stage.textModel.answer = (asked) => {
      if (asked.contents.at(-1)?.parts.some(({ functionResponse }) => functionResponse) === true)
        asked.answers('Well.');
      else asked.calls(asked.told.at(-1) === 'user: Bake.' ? 'bake' : 'hold', 'c1');
    };
    expect((await stage.run('baked', 'Bake.')).status).toBe(200);
    const stream = stage.stream('held', 'Hold.');
    await waitUntil('the tool', () => Promise.resolve(isHeld));
    stream.cut();
    await waitUntil('the end of the run', async () => {
      const { events } = await stage.session('held');
      return linesOf(events).includes('response c1');
    });
    release.abort();
    await waitUntil('what was changed behind it', async () => {
      const [held, baked] = [await stage.session('held'), await stage.session('baked')];
      return 'released' in held.state && (baked.state as Record<string, unknown>)['user:oven'] === 'off';
    });
    expect((await stage.session('held')).state).toMatchObject({ held: true, released: true });
  });

  /** All of them have written what they write first. */
  async function begun(sessionId: string, userId = DEFAULT_FROM): Promise<void> {
    await waitUntil('the tools', async () => {
      const counts = (await stage.json('/debug/runs')).body;
      return counts['streamingTools'] === 1 && counts['pending'] === 1;
    });
    await waitUntil('the first value', async () => {
      const { events } = await stage.session(sessionId, userId);
      return actionsOf(events).some((changes) => 'user:subscribed' in changes);
    });
    await waitUntil('the receipt', async () => {
      const path = `/apps/desk/users/${encodeURIComponent(userId)}/sessions/${sessionId}/artifacts`;
      return JSON.stringify((await stage.json(path)).body).includes('receipt');
    });
    // What the database has, the tool has in the next turn; and the generator goes on behind its value.
    await wait(50);
  }
});

describe('what a tool must not write', () => {
  const wide = '漢'.repeat(200);
  const set = (key: string, value: unknown) => (ctx: ToolContext) => {
    ctx.state[key] = value;
  };
  it.each([
    ['a value of 2 MB', set('big', 'x'.repeat(2_000_000)), 'at most'],
    ['wide values of 600 KB', set('big', '漢'.repeat(200_000)), 'at most'],
    ['a key with NUL', set('a\0b', 1), 'cannot be stored'],
    ['a key with half a character', set('a\ud83d', 1), 'cannot be stored'],
    ['a key of 600 bytes', set(wide, 1), '256 bytes'],
    [
      'values that are too much together',
      ({ state }: ToolContext) => {
        for (let at = 0; at < 20; at += 1) state[`part ${at}`] = 'x'.repeat(100_000);
      },
      'at most',
    ],
    [
      'an artifact with such a name',
      (ctx: ToolContext) => ctx.saveArtifact(wide, Uint8Array.of(1), 'a/b'),
      '256 bytes',
    ],
    [
      'one with NUL',
      (ctx: ToolContext) => ctx.saveArtifact('a\0b', Uint8Array.of(1), 'a/b'),
      'cannot be stored',
    ],
    [
      'one that is too large',
      (ctx: ToolContext) => ctx.saveArtifact('a', new Uint8Array(17 << 20), 'a/b'),
      'bound',
    ],
  ])('is an error inside it, and its response stands in the history: %s', async (_what, write, why) => {
    const writes = defineTool({
      name: 'writes',
      description: 'Writes.',
      async execute(_args, ctx) {
        ctx.state['before'] = 1;
        await Promise.resolve(write(ctx));
        return { ok: 1 };
      },
    });
    stage = await Stage.open({}, systemClock, [desk({ tools: [writes] })]);
    stage.textModel.answer = (asked) => {
      if (asked.contents.at(-1)?.parts.some(({ functionResponse }) => functionResponse) === true)
        asked.answers('Well.');
      else asked.calls('writes', 'c1');
    };
    await stage.run('s1', 'Write.');
    const { state, events } = await stage.session('s1');
    expect(linesOf(events)).toEqual(['user: Write.', 'call c1', 'response c1', 'desk: Well.']);
    expect(JSON.stringify(events.flatMap(functionResponses))).toContain(why);
    expect(state).toMatchObject({ before: 1 });
    expect(stage.errors).toEqual([]);
  });

  it('leaves room for all that may be written and answered at once', async () => {
    const full = defineTool({
      name: 'full',
      description: 'Writes as much as it may.',
      execute(_args, { state }) {
        for (let at = 0; at < 5; at += 1) state[`漢${at}`] = '漢'.repeat(34_000);
        return { text: '漢'.repeat(63_000) };
      },
    });
    stage = await Stage.open({}, systemClock, [desk({ tools: [full] })]);
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'full', args: {} });
    await answerTo(call.model, 'c1');
    call.phone.hangUp();
    await call.over;
    await stage.ended(call.callSid);
    await stage.idle();
    const { state, events } = await stage.session(call.callSid);
    expect(Object.keys(state)).toHaveLength(5);
    expect(linesOf(events)).toContain('response c1');
    expect(stage.errors).toEqual([]);
  });
});
